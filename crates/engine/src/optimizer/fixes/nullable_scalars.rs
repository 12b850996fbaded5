//! Scalar subqueries that may have no row.
//!
//! In: a plan whose types are known. Out: the same plan, in which such a subquery is a value that can be NULL.
//! Invariant: what can be NULL says so. DataFusion asks the subquery's column, which need not be: `(SELECT count(*) … HAVING …)`.
//! Not here: subqueries with outer columns, which become joins (unnested/).

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::unnested::one_row;
use super::{each_named, each_plan};

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        let has_scalars = plan
            .expressions()
            .iter()
            .any(Expr::contains_scalar_subquery);
        match has_scalars {
            true => each_named(plan, nullable),
            false => Ok(Transformed::no(plan)),
        }
    })
}

fn nullable(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let field = subquery.subquery.schema().fields().first();
    let is_nullable = field.is_none_or(|field| field.is_nullable());
    if is_nullable || !subquery.outer_ref_columns.is_empty() || has_a_row(&subquery.subquery) {
        return Ok(Transformed::no(expr));
    }
    let column = subquery.subquery.schema().columns().remove(0);
    let name = column.name.clone();
    let value = one_row(Expr::Column(column), lit(1_i64)).alias(name);
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    let plan = plan.project(vec![value])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery {
        subquery: plan.into(),
        ..subquery.clone()
    })))
}

/// Whether a plan is sure to have a row.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(above) => has_a_row(&above.input),
        LogicalPlan::SubqueryAlias(above) => has_a_row(&above.input),
        LogicalPlan::Sort(above) => has_a_row(&above.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}
