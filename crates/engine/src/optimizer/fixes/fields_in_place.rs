//! Fields of structs and values of keys, which DataFusion draws below a filter, stay where that changes what the plan is.
//!
//! In: a plan on its way through `extract_leaf_expressions` or `push_down_leaf_projections`. Out: what these make of it; plans of
//! DELETE, of UPDATE and of a recursion as they are, and plans of which they make none.
//! Invariant: the table of a DELETE gets its condition over the table's own columns, and both parts of a recursion have as many
//! columns as before.
//! A field that is drawn below the alias of a table, and once more in the next round, has two names there, which DataFusion's
//! rule refuses as ambiguous.
//! Not here: other rules that move expressions of DELETE and UPDATE (mod.rs, `but_for_changes`).

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, ExpressionPlacement, LogicalPlan, WriteOp};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rules for a whole plan, but for parts that stay.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let is_change = match &plan {
        LogicalPlan::Dml(change) => matches!(change.op, WriteOp::Delete | WriteOp::Update),
        _ => false,
    };
    if is_change || !has_fields(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let before = plan.clone();
    match drawn(datafusion, plan, config) {
        Err(error) if matches!(error.find_root(), DataFusionError::SchemaError(..)) => {
            Ok(Transformed::no(before))
        }
        drawn => drawn,
    }
}

fn drawn(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if datafusion.apply_order().is_none() {
        return match has_recursion(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => datafusion.rewrite(plan, config),
        };
    }
    // A rule that is shown each node draws fields out of projections alone.
    let drawn = plan.transform_down_with_subqueries(|node| match &node {
        LogicalPlan::Projection(_) if has_recursion(&node)? => {
            Ok(Transformed::new(node, false, TreeNodeRecursion::Jump))
        }
        _ => datafusion.rewrite(node, config),
    })?;
    match drawn.transformed {
        // Nodes above one with other columns have these, too.
        true => drawn.transform_data(|plan| {
            plan.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
        }),
        false => Ok(drawn),
    }
}

fn has_recursion(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|part| Ok(matches!(part, LogicalPlan::RecursiveQuery(_))))
}

/// Whether there is anything that the rules draw below others.
fn has_fields(plan: &LogicalPlan) -> Result<bool> {
    let is_field = |part: &Expr| Ok(part.placement() == ExpressionPlacement::MoveTowardsLeafNodes);
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(is_field)?;
            Ok(match found {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })
    })?;
    Ok(found)
}
