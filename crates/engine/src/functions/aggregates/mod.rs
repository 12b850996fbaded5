//! Aggregates by name, as DataFusion runs them: in windows, and where it groups itself.
//!
//! In: DataFusion's calls. Out: accumulators; those that have states in grouse-groupby are made of these (to_datafusion.rs).
//! Invariant: each means the same as the operator's states of its name.
//! Not here: which aggregates have states of ours (aggregate/native.rs).

pub(in crate::functions) mod overflow;
mod to_datafusion;
mod total;
mod total_states;
pub(in crate::functions) mod totals_in_order;
pub(in crate::functions) mod sum;
mod temporal_states;
pub(in crate::functions) mod avg;
pub(in crate::functions) mod arg_extreme;
mod arg_extreme_rows;
pub(in crate::functions) mod uniq;
pub(in crate::functions) mod top_rows;
pub(in crate::functions) mod quantiles;
pub(in crate::functions) mod frequent;
mod moments;
pub(in crate::functions) mod statistics;
pub(in crate::functions) mod ordered_set;
pub(in crate::functions) mod percentile_cont;
pub(in crate::functions) mod standing;
pub(in crate::functions) mod recomputed;
pub(in crate::functions) mod distinct_rows;
pub(in crate::functions) mod exclusions;
pub(in crate::functions) mod first_mode;
