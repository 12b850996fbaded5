//! `x / y` of a decimal and a decimal or an integer is a DOUBLE, planned where its type is first asked for.
//!
//! In: a division as it was written. Out: a quotient with the digits of a double. DataFusion's has four digits more behind the
//! point than x, so that `0.01 / 1000000` were 0 without an error.
//! Invariant: divisions of floats, of integers alone and of intervals stay.
//! Not here: how it is computed (functions/arithmetic/decimal_quotient.rs); divisions whose operands have no type yet
//! (own_casts.rs).

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::ExprSchemable;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::{decimal_quotient, is_of_decimals};

/// The planner of such divisions.
#[derive(Debug)]
pub(in crate::optimizer) struct DecimalQuotients;

impl ExprPlanner for DecimalQuotients {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_of_decimals = || match (expr.left.get_type(schema), expr.right.get_type(schema)) {
            (Ok(left), Ok(right)) => is_of_decimals(&left, &right),
            _ => false,
        };
        if expr.op != BinaryOperator::Divide || !is_of_decimals() {
            return Ok(PlannerResult::Original(expr));
        }
        let quotient = decimal_quotient(expr.left, expr.right);
        Ok(PlannerResult::Planned(quotient))
    }
}
