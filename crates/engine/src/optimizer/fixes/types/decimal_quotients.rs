//! `x / y` of a decimal and a decimal or an integer is a DOUBLE, planned where its type is first asked for.
//!
//! In: a division as it was written. Out: a quotient with the digits of a double. DataFusion's has four digits more behind the
//! point than x, so that `0.01 / 1000000` were 0 without an error.
//! Invariant: divisions of floats, of integers alone and of intervals stay.
//! Not here: how it is computed (functions/arithmetic/double_quotient.rs); divisions that other rules make when types are
//! settled, which stay decimals (own_casts.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::double_quotient;

/// The planner of such divisions.
#[derive(Debug)]
pub(in crate::optimizer) struct DecimalQuotients;

impl ExprPlanner for DecimalQuotients {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != BinaryOperator::Divide || !is_of_decimals(&expr, schema) {
            return Ok(PlannerResult::Original(expr));
        }
        let quotient = double_quotient(expr.left, expr.right);
        Ok(PlannerResult::Planned(quotient))
    }
}

/// Whether one operand is a decimal, the other one too or an integer.
fn is_of_decimals(expr: &RawBinaryExpr, schema: &DFSchema) -> bool {
    let of = |operand: &Expr| operand.get_type(schema);
    let (Ok(left), Ok(right)) = (of(&expr.left), of(&expr.right)) else {
        return false;
    };
    let is_exact = |of: &DataType| of.is_decimal() || of.is_integer();
    (left.is_decimal() || right.is_decimal()) && is_exact(&left) && is_exact(&right)
}
