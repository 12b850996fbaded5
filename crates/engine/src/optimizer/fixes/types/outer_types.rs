//! Types of columns of an outer query, where a UNION has got its own since the subquery was planned.
//!
//! In: a plan after type coercion. Out: the same plan, in which columns of outer queries have the types that these have now, and
//! what a subquery compares them with is brought to them.
//! Invariant: names stay. DataFusion gives a UNION of an INTEGER and a DOUBLE its type only with type coercion. A subquery
//! compared an INTEGER with what had become a DOUBLE, and a join of two types ended in an internal error.
//! Not here: subqueries as joins (unnested/).

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;

use crate::optimizer::fixes::types::compared::in_scope;

/// The rule.
pub(in crate::optimizer) fn analyze(
    plan: LogicalPlan,
    config: &ConfigOptions,
) -> Result<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(|plan| {
        let mut has_subquery = false;
        plan.apply_subqueries(|_| {
            has_subquery = true;
            Ok(TreeNodeRecursion::Stop)
        })?;
        if !has_subquery {
            return Ok(Transformed::no(plan));
        }
        let schema = in_scope(&plan)?;
        plan.map_subqueries(|subquery| match subquery {
            LogicalPlan::Subquery(mut subquery) => {
                let inner = Arc::unwrap_or_clone(Arc::clone(&subquery.subquery));
                let inner = retyped(inner, &schema)?;
                let changed = inner.transformed;
                if changed {
                    subquery.subquery = Arc::new(inner.data);
                    let columns = subquery.outer_ref_columns.into_iter();
                    let columns = columns.map(|column| Ok(current(column, &schema)?.data));
                    subquery.outer_ref_columns = columns.collect::<Result<_>>()?;
                }
                let subquery = LogicalPlan::Subquery(subquery);
                Ok(Transformed::new_transformed(subquery, changed))
            }
            other => Ok(Transformed::no(other)),
        })
    })?;
    match plan.transformed {
        true => TypeCoercion::new().analyze(plan.data, config),
        false => Ok(plan.data),
    }
}

fn retyped(plan: LogicalPlan, outer: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|plan| {
        let plan = plan.map_expressions(|expr| expr.transform_up(|part| current(part, outer)))?;
        plan.map_data(|plan| match plan {
            // Their columns have the types of what is in them.
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
                plan.recompute_schema()
            }
            other => Ok(other),
        })
    })
}

/// A column of the outer query with the type that it has there.
fn current(part: Expr, outer: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::OuterReferenceColumn(field, column) = &part else {
        return Ok(Transformed::no(part));
    };
    match outer.qualified_field_from_column(column) {
        Ok((_, now)) if now.data_type() != field.data_type() => {
            let column = column.clone();
            Ok(Transformed::yes(Expr::OuterReferenceColumn(
                Arc::clone(now),
                column,
            )))
        }
        _ => Ok(Transformed::no(part)),
    }
}
