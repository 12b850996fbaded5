//! GroupByExec: the operator as a node of DataFusion's plan.
//!
//! ```text
//! node (immutable) -> run (one per execution) -> worker: sources -> program -> Build -> Merge -> outlet -> streams
//! ```
//!
//! In: the streams of one input plan. Out: as many streams as workers, or one where there is no GROUP BY.
//! Invariant: the node never changes; whatever an execution changes lives in its run and ends with its last stream.
//! Not here: which aggregations it takes over (optimizer/group_by.rs), the algorithm (`grouse_groupby`).

mod conditions;
mod program;
mod base_grouping;
mod distinct_groupings;
mod selections;
mod turns;
mod source;
mod rendezvous;
mod meeting;
mod worker;
mod outlet;
mod memory;
mod metrics;
mod run;
mod order;
mod reads;
mod column_bounds;
mod explain;
mod node;

pub(crate) use conditions::is_dynamic;
pub(crate) use node::GroupByExec;
pub(crate) use node::{Replaced, Tuning};
pub(crate) use order::is_recursion;
pub(crate) use reads::{FewValues, Form, Read, columns_of};
pub(crate) use selections::SelectingFilterExec;

pub(crate) use crate::runtime::memory::GROUP_BY as NAME;
