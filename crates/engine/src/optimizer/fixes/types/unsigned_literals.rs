//! Integer literals beside a BIGINT UNSIGNED take its type, as in DuckDB.
//!
//! In: an arithmetic operator and its operands, while DataFusion plans an expression. Out: the same, a literal from 0 on cast
//! to UInt64 where the other operand is one and no literal itself.
//! Invariant: the name of the expression stays, because DataFusion names a cast as what it casts. DataFusion calls every
//! integer literal signed, and for UInt64 beside a signed integer it knows no type but Decimal128. So `number % 10000` is a key
//! of 16 bytes that hashes and divides slowly, and a result that no client expects.
//! Not here: comparisons, from which DataFusion takes such casts away again; negative literals, whose results are decimals.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// The planner of such expressions; it leaves the rest of the work to DataFusion's.
#[derive(Debug)]
pub(in crate::optimizer) struct UnsignedLiterals;

impl ExprPlanner for UnsignedLiterals {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let (left, right) = match (is_arithmetic(&op), is_natural(&left), is_natural(&right)) {
            (true, false, true) if is_unsigned(&left, schema) => (left, as_unsigned(right)),
            (true, true, false) if is_unsigned(&right, schema) => (as_unsigned(left), right),
            _ => (left, right),
        };
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    )
}

fn is_natural(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Int64(Some(0..)), _))
}

fn is_unsigned(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(..) => false,
        // Were the other operand unsigned, the literal would be cast already. The type of a long sum is not asked for again
        // and again.
        Expr::BinaryExpr(BinaryExpr { left, right, .. })
            if is_natural(left) || is_natural(right) =>
        {
            false
        }
        _ => expr
            .get_type(schema)
            .is_ok_and(|kind| kind == DataType::UInt64),
    }
}

fn as_unsigned(literal: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(literal), DataType::UInt64))
}
