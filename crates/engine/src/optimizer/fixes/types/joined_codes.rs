//! `d || 1` where d is a dictionary.
//!
//! In: a concatenation, while DataFusion plans it. Out: the same one of the dictionary's values.
//! Invariant: names stay, as DataFusion names a cast as what it casts.
//! DataFusion knows no type that a dictionary and a number have in common, and one that two dictionaries have is none that
//! it can concatenate.
//! Not here: concatenations of lists.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// The planner of such concatenations.
#[derive(Debug)]
pub(in crate::optimizer) struct JoinedCodes;

impl ExprPlanner for JoinedCodes {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op == BinaryOperator::StringConcat {
            expr.left = values_of(expr.left, schema);
            expr.right = values_of(expr.right, schema);
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// The expression, without codes.
fn values_of(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::Dictionary(_, values)) => Expr::Cast(Cast::new(Box::new(expr), *values)),
        // What has no type yet is DataFusion's to tell.
        _ => expr,
    }
}
