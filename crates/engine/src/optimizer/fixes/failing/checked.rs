//! Integer arithmetic that fails on overflow, where DataFusion's wraps.
//!
//! In: a physical expression and the schema of its input. Out: the same expression in which `+`, `-`, `*` and the negation of
//! integers are checked.
//! Invariant: types stay, and so does what cannot overflow: a checked kernel has a branch per row, a wrapping one has none. What
//! can overflow follows from types and literals: `CAST(small AS BIGINT) + 1` cannot.
//! Not here: decimals (within_digits.rs); divisions, which DataFusion checks itself; floats; dates, times and intervals, which
//! are DataFusion's. Nor the negation of a column with metadata, and where in a plan expressions are (plan_expressions.rs,
//! constants.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal, NegativeExpr};

use crate::optimizer::fixes::failing::checked_operation::CheckedOperation;
use crate::optimizer::fixes::failing::within_digits::within_digits;

/// Levels of an expression that are looked at for the bounds of its values.
const DEPTH_MAX: usize = 8;

/// The same as [`checked`], of a plan that travels: its checks are expressions of their own.
pub(in crate::optimizer::fixes) fn checked_to_travel(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        let operation = checked_root(&expr, schema).map(|checked| {
            let operation = CheckedOperation::new(checked);
            Arc::new(operation) as Arc<dyn PhysicalExpr>
        });
        Ok(match operation.or_else(|| within_digits(&expr, schema)) {
            Some(checked) => Transformed::yes(checked),
            None => Transformed::no(expr),
        })
    })
}

/// The expression with all its arithmetic checked.
pub(in crate::optimizer::fixes) fn checked(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        let root =
            checked_root(&expr, schema).map(|checked| Arc::new(checked) as Arc<dyn PhysicalExpr>);
        Ok(match root.or_else(|| within_digits(&expr, schema)) {
            Some(checked) => Transformed::yes(checked),
            None => Transformed::no(expr),
        })
    })
}

/// The expression with its outermost operation checked; `None` if that has no need.
fn checked_root(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<BinaryExpr> {
    let wrapping = wrapping(expr, schema)?;
    let (least, greatest) = type_bounds(&integer_type(wrapping.right(), schema)?)?;
    if let Some((low, high)) = result_bounds(&wrapping, schema, DEPTH_MAX)
        && least <= low
        && high <= greatest
    {
        return None;
    }
    Some(wrapping.with_fail_on_overflow(true))
}

/// The expression as `+`, `-` or `*` of two integers, if it is one; `-x` is `0 - x`.
fn wrapping(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<BinaryExpr> {
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        // A difference would lose the metadata, and the schema has to stay.
        if !negative.return_field(schema).ok()?.metadata().is_empty() {
            return None;
        }
        let zero = ScalarValue::new_zero(&integer_type(negative.arg(), schema)?).ok()?;
        let zero = Arc::new(Literal::new(zero));
        let arg = Arc::clone(negative.arg());
        return Some(BinaryExpr::new(zero, Operator::Minus, arg));
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    if !matches!(
        binary.op(),
        Operator::Plus | Operator::Minus | Operator::Multiply
    ) {
        return None;
    }
    integer_type(binary.right(), schema)?;
    integer_type(binary.left(), schema)?;
    Some(binary.clone())
}

/// The type of an expression, if that is an integer.
fn integer_type(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<DataType> {
    // Integers in arithmetic are all of one type, so a long sum has that of its last operand. DataFusion would ask for the
    // types of all operands, for each part of the sum again.
    let mut last = expr;
    while let Some(binary) = last.downcast_ref::<BinaryExpr>()
        && binary.op().is_numerical_operators()
    {
        last = binary.right();
    }
    [last, expr]
        .into_iter()
        .filter_map(|expr| expr.data_type(schema).ok())
        .find(DataType::is_integer)
}

/// The least and the greatest value.
type Bounds = (i128, i128);

/// The bounds of an operation's results before they are cut to their type.
fn result_bounds(binary: &BinaryExpr, schema: &Schema, depth: usize) -> Option<Bounds> {
    let (a, b) = value_bounds(binary.left(), schema, depth)?;
    let (c, d) = value_bounds(binary.right(), schema, depth)?;
    match binary.op() {
        Operator::Plus => Some((a + c, b + d)),
        Operator::Minus => Some((a - d, b - c)),
        Operator::Multiply => {
            let corners = [
                a.checked_mul(c)?,
                a.checked_mul(d)?,
                b.checked_mul(c)?,
                b.checked_mul(d)?,
            ];
            Some((corners.into_iter().min()?, corners.into_iter().max()?))
        }
        // The sign is that of the dividend, the size less than that of the divisor.
        Operator::Modulo => {
            let most = c.abs().max(d.abs()).max(1) - 1;
            Some((a.clamp(-most, 0), b.clamp(0, most)))
        }
        _ => None,
    }
}

/// The bounds of an integer expression's values.
fn value_bounds(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, depth: usize) -> Option<Bounds> {
    let (least, greatest) = type_bounds(&integer_type(expr, schema)?)?;
    let narrower = if depth == 0 {
        None
    } else if let Some(literal) = expr.downcast_ref::<Literal>() {
        integer(literal.value()).map(|value| (value, value))
    } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        value_bounds(cast.expr(), schema, depth - 1)
    } else if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        result_bounds(binary, schema, depth - 1)
    } else {
        None
    };
    // A cast or a result outside of the type is an error, not a value.
    let (low, high) = narrower.unwrap_or((least, greatest));
    Some((low.clamp(least, greatest), high.clamp(least, greatest)))
}

pub(in crate::optimizer::fixes) fn type_bounds(data_type: &DataType) -> Option<Bounds> {
    match data_type {
        DataType::Int8 => Some((i8::MIN.into(), i8::MAX.into())),
        DataType::Int16 => Some((i16::MIN.into(), i16::MAX.into())),
        DataType::Int32 => Some((i32::MIN.into(), i32::MAX.into())),
        DataType::Int64 => Some((i64::MIN.into(), i64::MAX.into())),
        DataType::UInt8 => Some((0, u8::MAX.into())),
        DataType::UInt16 => Some((0, u16::MAX.into())),
        DataType::UInt32 => Some((0, u32::MAX.into())),
        DataType::UInt64 => Some((0, u64::MAX.into())),
        _ => None,
    }
}

fn integer(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) => value.map(i128::from),
        ScalarValue::Int64(value) => value.map(i128::from),
        ScalarValue::UInt8(value) => value.map(i128::from),
        ScalarValue::UInt16(value) => value.map(i128::from),
        ScalarValue::UInt32(value) => value.map(i128::from),
        ScalarValue::UInt64(value) => value.map(i128::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{cast, col, lit};

    fn schema() -> Schema {
        let field = |name, data_type| Field::new(name, data_type, false);
        Schema::new(vec![
            field("small", DataType::Int16),
            field("long", DataType::Int64),
            field("unsigned", DataType::UInt64),
            field("float", DataType::Float64),
        ])
    }

    fn column(name: &str) -> Arc<dyn PhysicalExpr> {
        col(name, &schema()).unwrap()
    }

    fn widened(name: &str) -> Arc<dyn PhysicalExpr> {
        cast(column(name), &schema(), DataType::Int64).unwrap()
    }

    fn binary(
        left: Arc<dyn PhysicalExpr>,
        op: Operator,
        right: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, op, right))
    }

    #[track_caller]
    fn check(expr: Arc<dyn PhysicalExpr>, expected: bool) {
        let text = expr.to_string();
        let transformed = checked(expr, &schema()).unwrap().transformed;
        assert_eq!(transformed, expected, "{text}");
    }

    #[test]
    fn what_can_overflow_is_checked() {
        use Operator::{Divide, Gt, Minus, Modulo, Multiply, Plus};
        check(binary(column("long"), Plus, lit(1_i64)), true);
        check(binary(column("long"), Plus, lit(0_i64)), false);
        check(binary(column("small"), Plus, column("small")), true);
        check(binary(widened("small"), Plus, lit(1_i64)), false);
        check(binary(widened("small"), Plus, lit(i64::MAX)), true);
        check(binary(widened("small"), Multiply, widened("small")), false);
        check(binary(widened("unsigned"), Plus, lit(1_i64)), true);
        check(binary(column("unsigned"), Minus, lit(1_u64)), true);
        check(
            binary(column("unsigned"), Multiply, column("unsigned")),
            true,
        );
        let rest = binary(column("unsigned"), Modulo, lit(100_u64));
        check(binary(Arc::clone(&rest), Multiply, lit(100_u64)), false);
        check(binary(rest, Minus, lit(1_u64)), true);
        let rest = binary(column("long"), Modulo, lit(100_i64));
        check(binary(rest, Minus, lit(1_i64)), false);
        check(binary(column("long"), Divide, lit(2_i64)), false);
        check(binary(column("long"), Gt, lit(2_i64)), false);
        check(binary(column("float"), Plus, lit(1_f64)), false);
        let negative = |expr| Arc::new(NegativeExpr::new(expr)) as Arc<dyn PhysicalExpr>;
        check(negative(column("long")), true);
        check(negative(widened("small")), false);
        check(negative(column("float")), false);
    }

    #[test]
    fn a_long_sum_is_checked_in_good_time() {
        let mut sum = column("long");
        for _ in 0..500 {
            sum = binary(sum, Operator::Plus, lit(1_i64));
        }
        check(sum, true);
    }
}
