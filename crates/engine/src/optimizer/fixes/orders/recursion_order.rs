//! Rows of a recursive table stay in their order where something is computed over them.
//!
//! In: a physical plan with its exchanges. Out: the same plan without an exchange that deals out the rows of a recursion in turn.
//! Invariant: an exchange by a hash stays, as do those above what changes the order anyway.
//! A recursion gives its rows in one stream, step by step; DataFusion deals them out to all workers, and they come back scrambled.
//! Not here: rows within one step, whose joins have no order.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;

use crate::exec::is_recursion;

/// The rule.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let kept = plan.transform_up(|node| {
        let Some(exchange) = node.downcast_ref::<RepartitionExec>() else {
            return Ok(Transformed::no(node));
        };
        let in_turn = matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_));
        match in_turn && is_recursion(exchange.input()) {
            true => Ok(Transformed::yes(Arc::clone(exchange.input()))),
            false => Ok(Transformed::no(node)),
        }
    });
    kept.data()
}
