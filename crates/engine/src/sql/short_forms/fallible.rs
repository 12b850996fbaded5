//! TRY: an expression that is NULL where it would fail.
//!
//! In: the argument of `TRY(…)`. Out: the same with casts that give NULL, and divisors that are NULL for 0, and numbers
//! that are NULL where they have no logarithm or root.
//! Invariant: only what is known to fail in no other way is taken; all else is an error that names it.
//! Not here: TRY_CAST, which DataFusion plans.

use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr, Function, UnaryOperator};

use crate::error::{Error, Result};
use crate::functions::WHOLE_QUOTIENT;
use crate::sql::ast::{call, function_name, number, parse_expr, plain_arguments};
use crate::sql::short_forms::quoted_call;

/// Functions that fail for no value of their types.
const SAFE: [&str; 19] = [
    "coalesce",
    "nullif",
    "ifnull",
    "lower",
    "upper",
    "trim",
    "ltrim",
    "rtrim",
    "length",
    "concat",
    "substr",
    "substring",
    "replace",
    "strpos",
    "starts_with",
    "reverse",
    "floor",
    "ceil",
    "round",
];

/// Functions that fail for numbers below 0, and for 0 but for `sqrt`.
const OF_POSITIVE: [&str; 5] = ["ln", "log", "log2", "log10", "sqrt"];

/// What TRY makes of its argument.
pub(super) fn tried(expr: &Expr) -> Result<Expr> {
    let boxed = |expr: &Expr| tried(expr).map(Box::new);
    Ok(match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => expr.clone(),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: number,
        } if matches!(number.as_ref(), Expr::Value(_)) => expr.clone(),
        Expr::Nested(inner) => Expr::Nested(boxed(inner)?),
        Expr::Cast {
            expr,
            data_type,
            array,
            format,
            ..
        } => Expr::Cast {
            kind: CastKind::TryCast,
            expr: boxed(expr)?,
            data_type: data_type.clone(),
            array: *array,
            format: format.clone(),
        },
        Expr::BinaryOp {
            left,
            op: op @ (BinaryOperator::Divide | BinaryOperator::Modulo),
            right,
        } => Expr::BinaryOp {
            left: boxed(left)?,
            op: op.clone(),
            right: Box::new(call("nullif", vec![tried(right)?, number(0)])),
        },
        Expr::BinaryOp { left, op, right } if never_fails(op) => Expr::BinaryOp {
            left: boxed(left)?,
            op: op.clone(),
            right: boxed(right)?,
        },
        Expr::IsNull(inner) => Expr::IsNull(boxed(inner)?),
        Expr::IsNotNull(inner) => Expr::IsNotNull(boxed(inner)?),
        Expr::Function(function) => called(function)?,
        other => return Err(unknown(&other.to_string())),
    })
}

fn called(function: &Function) -> Result<Expr> {
    let name = function_name(function).unwrap_or_default();
    match plain_arguments(function) {
        Some(operands) if name == WHOLE_QUOTIENT && operands.len() == 2 => {
            let divisor = call("nullif", vec![tried(operands[1])?, number(0)]);
            Ok(quoted_call(&name, vec![tried(operands[0])?, divisor]))
        }
        Some(arguments) if SAFE.contains(&name.as_str()) && function.over.is_none() => {
            let arguments = arguments.into_iter().map(tried).collect::<Result<_>>()?;
            Ok(call(&name, arguments))
        }
        Some(arguments) if OF_POSITIVE.contains(&name.as_str()) && function.over.is_none() => {
            let op = match name.as_str() {
                "sqrt" => BinaryOperator::GtEq,
                _ => BinaryOperator::Gt,
            };
            let arguments = arguments.into_iter().map(|argument| {
                let argument = tried(argument)?;
                let is_within = Expr::BinaryOp {
                    left: Box::new(argument.clone()),
                    op: op.clone(),
                    right: Box::new(number(0)),
                };
                Ok(call("if", vec![is_within, argument, parse_expr("NULL")?]))
            });
            Ok(call(&name, arguments.collect::<Result<_>>()?))
        }
        _ => Err(unknown(&function.to_string())),
    }
}

fn never_fails(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | And | Or | StringConcat
    )
}

fn unknown(text: &str) -> Error {
    Error::unsupported(format!(
        "TRY takes casts, divisions and comparisons, not {text}; write TRY_CAST or NULLIF inside it"
    ))
}
