//! Optimizer: what is done to plans on their way to execution.
//!
//! In: DataFusion's lists of rules. Out: the same lists with ours in place.
//! Invariant: a rule changes how an answer is computed, never a right answer.
//! Not here: the operator (exec/), text of statements (sql/).

pub(crate) mod fixes;
mod rules;
mod shared_sums;
mod group_by;
mod fold_projection;
mod shared_states;
mod top_n_per_group;
mod limited_groups;
mod stages;
mod filters;
pub(crate) mod scans;
pub(crate) mod joins;
pub(crate) mod passes;
pub(crate) mod kinds;
