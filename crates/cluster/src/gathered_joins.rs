//! Joins that have to see all rows of their second input in one place.
//!
//! In: a plan whose joins may run in several tasks. Out: the same, with the second input of such a join in one partition.
//! Invariant: which rows of the first input have a match is known to one process. A join that yields rows by that runs as one task.
//! Not here: other hash joins, which the scheduler's planner spreads by their keys.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// The plan with such joins over one partition.
pub(crate) fn gathered(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = |node: Arc<dyn ExecutionPlan>| {
        if !tells_of_first(node.as_ref()) {
            return Ok(Transformed::no(node));
        }
        let [left, right] = node.children()[..] else {
            return Ok(Transformed::no(node));
        };
        if right.output_partitioning().partition_count() == 1 {
            return Ok(Transformed::no(node));
        }
        let one = Arc::new(CoalescePartitionsExec::new(Arc::clone(right)));
        // Of all rows: a node that asks for one partition. The scheduler's planner removes one that nobody asks for.
        let asked = Arc::new(GlobalLimitExec::new(one, 0, None));
        let inputs = vec![Arc::clone(left), asked as Arc<dyn ExecutionPlan>];
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node.replace_children(inputs, anew).map(Transformed::yes)
    };
    plan.transform_up(changed).data()
}

/// Whether a row of a join's result may follow from a row of the first input and all of the second.
fn tells_of_first(node: &dyn ExecutionPlan) -> bool {
    use JoinType::{Inner, Right, RightAnti, RightMark, RightSemi};
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        return !matches!(
            join.join_type(),
            Inner | Right | RightAnti | RightMark | RightSemi
        );
    }
    // NOT IN. The scheduler's planner hashes the others by their keys.
    node.downcast_ref::<HashJoinExec>()
        .is_some_and(|join| join.null_aware && *join.partition_mode() == PartitionMode::CollectLeft)
}
