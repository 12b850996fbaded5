//! Joins whose keys are compared by IS NOT DISTINCT FROM, kept apart from those that are compared by `=`.
//!
//! In: a plan on its way through DataFusion's `extract_equijoin_predicate` or `eliminate_cross_join`. Out: what the rule makes of
//! it, where its joins have keys of one kind.
//! Invariant: a join says once for all its keys whether NULL equals NULL. DataFusion adds keys of `=` to one in which it does,
//! and puts joins of both kinds together.
//! Not here: subqueries as joins, whose outer columns are such keys (unnested/).

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::optimizer::fixes::failing::guarded_joins::with_guarded_keys;

/// Keys are not added to a join in which NULL equals NULL.
pub(in crate::optimizer) fn extract(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Join(join) if is_null_equal(join) => Ok(Transformed::no(plan)),
        LogicalPlan::Join(join) => match with_guarded_keys(join)? {
            Some(join) => {
                let plan = datafusion.rewrite(LogicalPlan::Join(join), config)?;
                Ok(Transformed::yes(plan.data))
            }
            None => datafusion.rewrite(plan, config),
        },
        _ => datafusion.rewrite(plan, config),
    }
}

/// Joins that are put together have their keys as conditions; `extract_equijoin_predicate` makes keys of them again.
pub(in crate::optimizer) fn reorder(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut any = false;
    plan.apply_with_subqueries(|plan| {
        any |= matches!(plan, LogicalPlan::Join(join) if is_movable(join));
        Ok(match any {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !any {
        return datafusion.rewrite(plan, config);
    }
    let plan = plan.transform_down_with_subqueries(|plan| {
        Ok(match plan {
            LogicalPlan::Join(join) if is_movable(&join) => {
                Transformed::yes(LogicalPlan::Join(by_conditions(join)))
            }
            plan => Transformed::no(plan),
        })
    })?;
    let plan = datafusion.rewrite(plan.data, config)?;
    Ok(Transformed::yes(plan.data))
}

fn is_null_equal(join: &Join) -> bool {
    !join.on.is_empty() && join.null_equality == NullEquality::NullEqualsNull
}

fn is_movable(join: &Join) -> bool {
    join.join_type == JoinType::Inner && is_null_equal(join)
}

fn by_conditions(mut join: Join) -> Join {
    let pairs = std::mem::take(&mut join.on).into_iter();
    let same = |(left, right): (Expr, Expr)| binary_expr(left, Operator::IsNotDistinctFrom, right);
    join.filter = conjunction(pairs.map(same).chain(join.filter.take()));
    join.null_equality = NullEquality::NullEqualsNothing;
    join
}
