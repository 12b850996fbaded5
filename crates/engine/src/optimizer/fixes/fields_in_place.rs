//! Fields of structs and values of keys, which DataFusion draws below a filter, stay where that changes what the plan is.
//!
//! In: a plan on its way through `extract_leaf_expressions` or `push_down_leaf_projections`. Out: what these make of it; plans of
//! DELETE, of UPDATE and of a recursion as they are.
//! Invariant: the table of a DELETE gets its condition over the table's own columns, and both parts of a recursion have as many
//! columns as before.
//! Not here: other rules that move expressions of DELETE and UPDATE (mod.rs, `but_for_changes`).

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{LogicalPlan, WriteOp};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rules, but for such plans and all below them.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let goes_by_nodes = datafusion.apply_order().is_some();
    let stays = match &plan {
        LogicalPlan::Dml(change) => matches!(change.op, WriteOp::Delete | WriteOp::Update),
        // A rule that is shown each node draws fields out of projections alone.
        other if goes_by_nodes && !matches!(other, LogicalPlan::Projection(_)) => false,
        other => has_recursion(other)?,
    };
    match stays {
        true => Ok(Transformed::new(plan, false, TreeNodeRecursion::Jump)),
        false => datafusion.rewrite(plan, config),
    }
}

fn has_recursion(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|part| Ok(matches!(part, LogicalPlan::RecursiveQuery(_))))
}
