//! Stages of a plan that is distributed, for people.
//!
//! In: a plan that travels. Out: how many stages the scheduler makes of it.
//! Not here: the cutting (Ballista's static planner).

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

/// How many stages the plan has.
pub(crate) fn stages(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let mut stages = 1;
    let counted = plan.apply(|node| {
        let exchange = node.downcast_ref::<RepartitionExec>();
        let is_hash =
            exchange.is_some_and(|of| matches!(of.partitioning(), Partitioning::Hash(..)));
        let ends =
            is_hash || node.is::<CoalescePartitionsExec>() || node.is::<SortPreservingMergeExec>();
        stages += usize::from(ends);
        Ok(TreeNodeRecursion::Continue)
    });
    debug_assert!(counted.is_ok(), "nothing in it fails");
    stages
}
