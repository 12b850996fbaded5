//! GroupByExec: the operator as a node of DataFusion's plan.
//!
//! ```text
//! node (immutable) -> execution -> worker: sources -> compiled aggregation -> Build -> Merge -> output queue -> streams
//! ```
//!
//! In: the streams of one input plan. Out: as many streams as workers, or one where there is no GROUP BY.
//! Invariant: the node never changes; whatever changes lives in an execution and ends with its last stream.
//! Not here: which aggregations it takes over (optimizer/group_by.rs), the algorithm (`grouse_groupby`).

mod conditions;
mod compiled_aggregation;
mod base_grouping;
mod distinct_groupings;
mod recording_filter;
mod selections;
mod source_scheduler;
mod source;
mod barrier;
mod build_barrier;
mod worker;
mod output_queue;
mod memory;
mod metrics;
mod execution;
mod order;
mod column_encodings;
mod column_bounds;
mod explain;
mod node;

pub(crate) use column_encodings::{ColumnEncoding, FewValues, ReadExpr, columns_of};
pub(crate) use conditions::is_dynamic;
pub(crate) use node::GroupByExec;
pub(crate) use node::{Replaced, Tuning};
pub(crate) use order::{TURN_ROWS, is_recursion};
pub(crate) use recording_filter::RecordingFilterExec;
pub(crate) use selections::SelectingFilterExec;

pub(crate) use crate::runtime::memory::GROUP_BY as NAME;
