//! Subqueries that would mean something else as joins.
//!
//! In: a plan with subqueries. Out: an error for two kinds of subqueries. SQL has an aggregate over the rows of the query
//! around it, if all its columns are of that query. A subquery that refers to outer rows may call `random()` for each of them.
//! Invariant: DataFusion computes such an aggregate over the subquery's own rows, and a join runs a subquery once for all outer
//! rows of the same values: other answers.
//! Not here: LATERAL, whose aggregates are its own.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::{outer_columns, subquery_of};

/// Refuses them in the subqueries of a plan's own expressions.
pub(super) fn refuse(plan: &LogicalPlan) -> Result<()> {
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Some(subquery) = subquery_of(part) {
                subquery.apply(refuse_in)?;
                refuse_random(subquery)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

fn refuse_random(subquery: &LogicalPlan) -> Result<()> {
    let mut is_random = false;
    subquery.apply(|plan| {
        plan.apply_expressions(|expr| {
            is_random |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match is_random && !outer_columns(subquery)?.is_empty() {
        true => not_impl_err!(
            "a function such as random() in a subquery that refers to columns of the query around it; call it outside the subquery"
        ),
        false => Ok(()),
    }
}

fn refuse_in(plan: &LogicalPlan) -> Result<TreeNodeRecursion> {
    match plan {
        LogicalPlan::Subquery(_) => return Ok(TreeNodeRecursion::Jump),
        LogicalPlan::Aggregate(aggregate) => {
            for expr in &aggregate.aggr_expr {
                expr.apply(|part| match part {
                    Expr::AggregateFunction(call) if is_of_outer(call)? => plan_err!(
                        "{}(…) in a subquery has columns of the query around it alone, so it is an aggregate of that query; compute it there",
                        call.func.name()
                    ),
                    _ => Ok(TreeNodeRecursion::Continue),
                })?;
            }
        }
        _ => {}
    }
    Ok(TreeNodeRecursion::Continue)
}

/// True of an aggregate with columns, none of which is of its own query.
fn is_of_outer(call: &AggregateFunction) -> Result<bool> {
    let (mut own, mut outer) = (false, false);
    for arg in call.params.args.iter().chain(call.params.filter.as_deref()) {
        arg.apply(|part| {
            own |= matches!(part, Expr::Column(_)) || subquery_of(part).is_some();
            outer |= matches!(part, Expr::OuterReferenceColumn(..));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(outer && !own)
}
