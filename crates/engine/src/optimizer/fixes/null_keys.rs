//! Conditions `a = b` beside a join whose keys may both be NULL.
//!
//! In: a plan before the host makes keys of a join's conditions. Out: the same plan where the join's keys are equal when both
//! are NULL, as those of `IS NOT DISTINCT FROM` and of subqueries that are joins.
//! Invariant: `a = b` is never true of NULLs. The host says of all keys of a join at once whether NULLs are equal, and adds
//! `a = b` to the others.
//! Not here: conditions of other joins, which the host makes keys of.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::logical_plan::Join;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The host's rule for one join.
pub(super) fn rewrite_join(
    host: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Join(join) if is_null_equal(join) => Ok(Transformed::no(plan)),
        _ => host.rewrite(plan, config),
    }
}

/// The host's rule for a filter and all inner joins below it.
pub(super) fn rewrite_joins(
    host: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match has_null_equal(&plan) {
        true => Ok(Transformed::no(plan)),
        false => host.rewrite(plan, config),
    }
}

fn is_null_equal(join: &Join) -> bool {
    !join.on.is_empty() && join.null_equality == NullEquality::NullEqualsNull
}

fn has_null_equal(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => has_null_equal(&filter.input),
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            is_null_equal(join) || has_null_equal(&join.left) || has_null_equal(&join.right)
        }
        _ => false,
    }
}
