//! Aggregates: which states of the algorithm an aggregate of a plan has.
//!
//! In: DataFusion's aggregate expressions. Out: states of ours, or DataFusion's accumulators behind the same trait.
//! Not here: the states (`grouse_groupby::states`), aggregates by name (functions/).

pub(crate) mod native;
pub(crate) mod from_datafusion;
