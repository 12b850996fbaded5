//! Which expressions can fail.
//!
//! In: a logical expression and the schema below it, or a physical one. Out: whether a row may make it an error: a division
//! by zero, an overflow, a text that is no number.
//! Invariant: what is not known to succeed can fail.
//! Not here: what is done about it (held_filters.rs, short_circuit.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal, NegativeExpr};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::functions::MIDNIGHT;
use crate::functions::equal_values::identity::{IDENTIFIED, IDENTITY};
use crate::optimizer::fixes::in_lists::APART;

/// Functions that have a value for all values of the types that they take.
const SURE: [&str; 51] = [
    APART,
    IDENTIFIED,
    IDENTITY,
    MIDNIGHT,
    "array_has",
    "array_length",
    "ascii",
    "bit_length",
    "btrim",
    "cardinality",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "date_part",
    "date_trunc",
    "datepart",
    "datetrunc",
    "ends_with",
    "get_field",
    "greatest",
    "ifnull",
    "initcap",
    "isnan",
    "iszero",
    "least",
    "length",
    "levenshtein",
    "lower",
    "ltrim",
    "md5",
    "named_struct",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "position",
    "replace",
    "reverse",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "struct",
    "text of value",
    "translate",
    "trim",
    "upper",
    "__as_written",
];

/// Functions that have one for all first values, if the others are literals that they take.
const SURE_OF_FIRST: [&str; 9] = [
    "date_bin",
    "left",
    "quotient",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "right",
    "substr",
    "substring",
];

fn function_can_fail(name: &str, are_literals: impl FnOnce() -> bool) -> bool {
    let is_sure = SURE.contains(&name) || SURE_OF_FIRST.contains(&name) && are_literals();
    !is_sure
}

/// Whether an expression over columns of `schema` can fail.
pub(in crate::optimizer::fixes) fn can_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let mut fails = false;
    let walked = expr.apply(|part| {
        fails |= part_can_fail(part, schema);
        Ok(match fails {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    fails || walked.is_err()
}

fn part_can_fail(part: &Expr, schema: &DFSchema) -> bool {
    let type_of = |expr: &Expr| expr.get_type(schema).ok();
    match part {
        Expr::BinaryExpr(binary) => {
            let divisor = match binary.right.as_ref() {
                Expr::Literal(value, _) => Some(value),
                _ => None,
            };
            operation_can_fail(binary.op, || type_of(&binary.left), divisor)
        }
        Expr::Negative(inner) => !is_sure_type(type_of(inner)),
        Expr::Cast(cast) => {
            let to = Some(cast.field.data_type().clone());
            cast_can_fail(type_of(&cast.expr), to)
        }
        Expr::ScalarFunction(function) => function_can_fail(function.func.name(), || {
            let mut others = function.args.iter().skip(1);
            others.all(|argument| matches!(argument, Expr::Literal(value, _) if !is_zero(value)))
        }),
        Expr::Column(_)
        | Expr::Alias(_)
        | Expr::Literal(..)
        | Expr::ScalarVariable(..)
        | Expr::Like(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::TryCast(_)
        | Expr::InList(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::ScalarSubquery(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Placeholder(_) => false,
        _ => true,
    }
}

/// The type is asked for where it matters: of a long chain of conditions each part would ask for those of all before it.
fn operation_can_fail(
    op: Operator,
    of: impl FnOnce() -> Option<DataType>,
    divisor: Option<&ScalarValue>,
) -> bool {
    match op {
        Operator::Plus | Operator::Minus | Operator::Multiply => !is_sure_type(of()),
        Operator::Divide | Operator::Modulo => {
            let is_number =
                divisor.is_some_and(|divisor| !divisor.is_null() && !is_zero_or_minus_one(divisor));
            !is_number && !of().is_some_and(|of| of.is_floating())
        }
        Operator::RegexMatch
        | Operator::RegexIMatch
        | Operator::RegexNotMatch
        | Operator::RegexNotIMatch => divisor.is_none(),
        _ => false,
    }
}

fn is_zero(value: &ScalarValue) -> bool {
    ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| *value == zero)
}

fn is_zero_or_minus_one(value: &ScalarValue) -> bool {
    let minus_one = ScalarValue::new_negative_one(&value.data_type());
    is_zero(value) || minus_one.is_ok_and(|one| *value == one)
}

/// Sums and products of these have no bounds that values can leave with an error.
fn is_sure_type(of: Option<DataType>) -> bool {
    of.is_some_and(|of| of.is_floating() || of.is_temporal() || of == DataType::Null)
}

fn cast_can_fail(from: Option<DataType>, to: Option<DataType>) -> bool {
    use DataType as T;
    let (Some(from), Some(to)) = (from, to) else {
        return true;
    };
    if let T::Dictionary(_, from) = &from {
        return cast_can_fail(Some(from.as_ref().clone()), Some(to));
    }
    if let T::Dictionary(_, to) = &to {
        return cast_can_fail(Some(from), Some(to.as_ref().clone()));
    }
    let is_text = |of: &T| matches!(of, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    if from == to || from == T::Null || to.is_floating() && from.is_numeric() {
        return false;
    }
    if is_text(&to) {
        return matches!(from, T::Binary | T::LargeBinary | T::BinaryView);
    }
    if from == T::Boolean && to.is_integer() || from.is_integer() && to == T::Boolean {
        return false;
    }
    if from.is_integer() && to.is_integer() {
        return !holds(&from, &to);
    }
    if from.is_integer() && matches!(to, T::Decimal128(..) | T::Decimal256(..)) {
        return !matches!(to, T::Decimal128(precision, scale) if i16::from(precision) - i16::from(scale) >= 20);
    }
    let is_date = |of: &T| matches!(of, T::Date32 | T::Date64 | T::Timestamp(..));
    !(is_date(&from) && is_date(&to))
}

/// Whether an integer type has all values of another.
pub(in crate::optimizer::fixes) fn holds(from: &DataType, to: &DataType) -> bool {
    let bits = |of: &DataType| of.primitive_width().unwrap_or(0);
    let (from_signed, to_signed) = (from.is_signed_integer(), to.is_signed_integer());
    match (from_signed, to_signed) {
        (true, true) | (false, false) => bits(from) <= bits(to),
        (false, true) => bits(from) < bits(to),
        (true, false) => false,
    }
}

/// Whether a physical expression over columns of `schema` can fail.
pub(in crate::optimizer::fixes) fn can_fail_now(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> bool {
    let mut fails = false;
    let walked = expr.apply(|part| {
        fails |= part_can_fail_now(part, schema);
        Ok(match fails {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    fails || walked.is_err()
}

/// Parts that are none of these have a value for all rows, those that a join makes while it runs among them.
fn part_can_fail_now(part: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let type_of = |expr: &Arc<dyn PhysicalExpr>| expr.data_type(schema).ok();
    if let Some(binary) = part.downcast_ref::<BinaryExpr>() {
        let divisor = binary.right().downcast_ref::<Literal>().map(Literal::value);
        operation_can_fail(*binary.op(), || type_of(binary.left()), divisor)
    } else if let Some(cast) = part.downcast_ref::<CastExpr>() {
        cast_can_fail(type_of(cast.expr()), type_of(part))
    } else if let Some(negative) = part.downcast_ref::<NegativeExpr>() {
        !is_sure_type(type_of(negative.arg()))
    } else if let Some(function) = part.downcast_ref::<ScalarFunctionExpr>() {
        function_can_fail(function.fun().name(), || {
            let mut others = function.args().iter().skip(1);
            others.all(|argument| argument.is::<Literal>())
        })
    } else {
        false
    }
}
