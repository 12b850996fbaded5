//! A column that is constant below an outer join is not constant above it.
//!
//! In: a physical plan, before anything reads what DataFusion claims about it. Out: the same plan. The side of an outer join
//! that NULLs may fill has a node that hands on its rows and its order, but not which of its columns are constant.
//! Invariant: a plan without such a constant stays. DataFusion carries constants through any join: `ORDER BY m, s` over a
//! LEFT JOIN with `(SELECT b, true AS m …)` loses `m`.
//! Not here: grouping sets, which do the same to their keys (grouping_sets.rs).

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
    SymmetricHashJoinExec,
};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::optimizer::fixes::grouping::grouping_sets::{Claims, ForgetEquivalencesExec};

/// The rule.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|plan| {
        let filled = filled_sides(&plan);
        let has_constants = |side: &usize| {
            let side = plan.children().get(*side).copied();
            side.is_some_and(|side| !side.equivalence_properties().constants().is_empty())
        };
        let filled: Vec<_> = filled.iter().copied().filter(has_constants).collect();
        if filled.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let sides = plan.children().into_iter().enumerate();
        let sides = sides.map(|(at, side)| match filled.contains(&at) {
            true => {
                let side = Arc::clone(side);
                Arc::new(ForgetEquivalencesExec::new(side, Claims::Constants)) as _
            }
            false => Arc::clone(side),
        });
        let sides = sides.collect();
        replace_children_if_necessary(plan, sides).map(Transformed::yes)
    })
    .data()
}

/// The sides of a join whose columns may be NULL where they are not below.
fn filled_sides(plan: &Arc<dyn ExecutionPlan>) -> &'static [usize] {
    let join_type = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        *join.join_type()
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        *join.join_type()
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        join.join_type()
    } else if let Some(join) = plan.downcast_ref::<PiecewiseMergeJoinExec>() {
        join.join_type()
    } else if let Some(join) = plan.downcast_ref::<SymmetricHashJoinExec>() {
        *join.join_type()
    } else {
        return &[];
    };
    match join_type {
        JoinType::Left => &[1],
        JoinType::Right => &[0],
        JoinType::Full => &[0, 1],
        _ => &[],
    }
}

/// What is known of the order of `input`, and nothing else.
pub(in crate::optimizer::fixes) fn without_constants(
    input: &Arc<dyn ExecutionPlan>,
) -> EquivalenceProperties {
    let known = input.equivalence_properties();
    EquivalenceProperties::new_with_orderings(input.schema(), known.oeq_class().clone())
}
