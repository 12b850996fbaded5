//! `day + (t - u)` of a date and what lies between two timestamps: the sum of a date and an interval.
//!
//! In: a sum or difference as it was written. Out: the same with an interval in the place of the duration.
//! Invariant: all else stays. DataFusion has no sum of a date and a duration.
//! Not here: what an interval with hours makes of the date (meanings.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::interval_of_span;

/// The planner of such sums.
#[derive(Debug)]
pub(in crate::optimizer) struct DaySpans;

impl ExprPlanner for DaySpans {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_plus = expr.op == BinaryOperator::Plus;
        if !is_plus && expr.op != BinaryOperator::Minus {
            return Ok(PlannerResult::Original(expr));
        }
        // The right side first: long sums grow on the left, and each look at their type is a walk.
        match expr.right.get_type(schema) {
            Ok(DataType::Duration(_)) if is_day(&expr.left, schema) => {
                expr.right = interval_of_span(expr.right);
            }
            Ok(DataType::Date32) if is_plus && is_span(&expr.left, schema) => {
                expr.left = interval_of_span(expr.left);
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }
}

fn is_day(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| of == DataType::Date32)
}

fn is_span(expr: &Expr, schema: &DFSchema) -> bool {
    let of = expr.get_type(schema);
    of.is_ok_and(|of| matches!(of, DataType::Duration(_)))
}
