//! The door for clusters: what a plan needs to be planned here and run on other machines.
//!
//! In: a session's state; plans, functions, expressions, nodes and scans. Out: the state that plans for other machines; groupings
//! in stages; everything of ours taken apart and made again; a part of a plan as a machine runs it.
//! Invariant: what is not in a table here, and not known by its name, does not travel.
//! Not here: messages, what is distributed (crate `grouse-cluster`), Ballista.

mod lowering;
mod tables;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use crate::exec::GroupByExec;
use crate::functions;
use crate::optimizer::passes;
use crate::scan::numbers::NumbersExec;
use crate::scan::portable;
use crate::wire::{Apart, WireReader, WireValue};

pub use crate::expr::plan_nodes::only_input;
pub(crate) use lowering::lowered;
pub use tables::{
    aggregate_apart, aggregate_of, expression_apart, expression_of, function_apart, function_of,
    node_apart, node_of, window_apart, window_of,
};

/// The state that plans for machines with so many exchange partitions: without choices that follow from this machine, and
/// without what does not go from one machine to another.
pub fn planning_state(state: SessionState, partitions: usize) -> crate::Result<SessionState> {
    let rules = passes::travelling_rules()?;
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_physical_optimizer_rules(rules)
        .build();
    let options = state.config_mut().options_mut();
    options.execution.target_partitions = partitions.max(1);
    let optimizer = &mut options.optimizer;
    optimizer.enable_round_robin_repartition = false;
    optimizer.enable_dynamic_filter_pushdown = false;
    optimizer.enable_topk_dynamic_filter_pushdown = false;
    optimizer.enable_join_dynamic_filter_pushdown = false;
    optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    Ok(state)
}

/// All functions by their names, DataFusion's and ours, without those of a session's sequences.
pub fn functions() -> SessionState {
    let context = SessionContext::new();
    functions::register(&context);
    context.state()
}

/// The plan with its groupings in stages. An error names what has to see all rows and why.
pub fn in_stages(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    GroupByExec::exchanged_in(plan, |group_by, _| group_by.across_machines())
}

/// The stage of a grouping of ours: `None` of another node, `Some(None)` of a grouping without one.
pub fn stage_of(node: &dyn ExecutionPlan) -> Option<Option<&'static str>> {
    node.downcast_ref::<GroupByExec>().map(GroupByExec::stage)
}

/// The source of a scan taken apart; an error names one that has to stay.
pub fn source_apart(source: &dyn FileSource) -> Result<Apart> {
    portable::source_apart(source)
}

/// The scan as this machine reads it: with the source that these values are of, for its files and columns.
pub fn with_source(
    scan: FileScanConfig,
    kind: &str,
    values: Vec<WireValue>,
    runtime: &RuntimeEnv,
    batch_rows: usize,
) -> Result<FileScanConfig> {
    let values = &mut WireReader::new(values);
    portable::with_source(scan, kind, values, runtime, batch_rows)
}

/// The numbers that each partition of a node gives, of one that counts up.
pub fn numbers_of(node: &dyn ExecutionPlan) -> Option<&[Range<u64>]> {
    node.downcast_ref::<NumbersExec>().map(NumbersExec::shares)
}

/// The node that counts up again: a partition for each of these shares, a column of numbers for each of `schema`.
pub fn numbers(shares: Vec<Range<u64>>, schema: SchemaRef) -> Arc<dyn ExecutionPlan> {
    Arc::new(NumbersExec::of_shares(shares, schema))
}
