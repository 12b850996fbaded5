//! Optimizer: what is done to plans on their way to execution.
//!
//! In: DataFusion's lists of rules. Out: the same lists with ours in place.
//! Invariant: a rule changes how an answer is computed, never a right answer.
//! Not here: the operator (exec/), text of statements (sql/).

pub mod fixes;
pub(crate) mod passes;
