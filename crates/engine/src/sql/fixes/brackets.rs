//! Parentheses that a statement needs to be read again as it is.
//!
//! In: a statement after rewrites. Out: the same one, with parentheses around operands that bind less than their operator.
//! Invariant: what the parser has read needs none. Clauses that are put together as text mean the same once they are parsed.
//! Not here: the order of operators, which is the dialect's.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator};

use crate::sql::walk::{each_up, visit};

/// How tight an operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    Xor,
    And,
    Not,
    /// Comparisons, IS, IN, LIKE and BETWEEN.
    Comparison,
    /// All others between two operands.
    Infix,
    Sum,
    Product,
    Sign,
    /// `AT TIME ZONE` and COLLATE.
    Suffix,
    /// `::`
    Cast,
    /// It has no operands that could be torn off.
    Whole,
}

/// Puts the parentheses in.
pub(in crate::sql) fn bracket_operands(statement: &mut DataFusionStatement) {
    let ControlFlow::Continue(()) = visit(statement, &mut each_up(bracketed));
}

fn bracketed(expr: &mut Expr) {
    use Binding::{Cast, Comparison, Not, Sign, Suffix, Whole};
    match expr {
        Expr::BinaryOp { left, op, right } => {
            let own = of_operator(op);
            let is_torn = match left.as_ref() {
                Expr::BinaryOp { op: inner, .. } if of_operator(inner) == own => {
                    matches!(own, Comparison | Binding::Infix) && inner != op
                }
                left => of(left) < own,
            };
            bracket(left, is_torn);
            let is_torn = of(right) <= own;
            bracket(right, is_torn);
        }
        Expr::UnaryOp { op, expr } => {
            let is_torn = match op {
                UnaryOperator::Not => of(expr) < Not,
                _ => of(expr) <= Sign,
            };
            bracket(expr, is_torn);
        }
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            below(left, Comparison);
            below(right, Comparison);
        }
        Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr)
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::InUnnest { expr, .. }
        | Expr::AnyOp { left: expr, .. }
        | Expr::AllOp { left: expr, .. } => below(expr, Comparison),
        Expr::Like { expr, pattern, .. }
        | Expr::ILike { expr, pattern, .. }
        | Expr::SimilarTo { expr, pattern, .. }
        | Expr::RLike { expr, pattern, .. } => {
            below(expr, Comparison);
            below(pattern, Comparison);
        }
        Expr::Between {
            expr, low, high, ..
        } => {
            for operand in [expr, low, high] {
                below(operand, Comparison);
            }
        }
        Expr::AtTimeZone { timestamp, .. } => below(timestamp, Sign),
        Expr::Collate { expr, .. } => below(expr, Sign),
        Expr::Cast {
            kind: CastKind::DoubleColon,
            expr,
            ..
        } => below(expr, Suffix),
        Expr::CompoundFieldAccess { root, .. } => below(root, Cast),
        _ => debug_assert!(of(expr) == Whole || matches!(expr, Expr::Exists { .. })),
    }
}

/// Puts an operand that binds no tighter than this into parentheses.
fn below(operand: &mut Expr, binding: Binding) {
    let is_torn = of(operand) <= binding;
    bracket(operand, is_torn);
}

fn bracket(operand: &mut Expr, is_torn: bool) {
    if is_torn {
        let inner = std::mem::replace(operand, Expr::Tuple(Vec::new()));
        *operand = Expr::Nested(Box::new(inner));
    }
}

/// How tight an expression holds together.
fn of(expr: &Expr) -> Binding {
    match expr {
        Expr::BinaryOp { op, .. } => of_operator(op),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            ..
        }
        | Expr::Exists { negated: true, .. } => Binding::Not,
        Expr::UnaryOp { .. } => Binding::Sign,
        Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::InUnnest { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::RLike { .. }
        | Expr::Between { .. } => Binding::Comparison,
        Expr::AtTimeZone { .. } | Expr::Collate { .. } => Binding::Suffix,
        Expr::Cast {
            kind: CastKind::DoubleColon,
            ..
        } => Binding::Cast,
        _ => Binding::Whole,
    }
}

fn of_operator(op: &BinaryOperator) -> Binding {
    use BinaryOperator::{
        And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus, Spaceship,
        Xor,
    };
    match op {
        Or => Binding::Or,
        Xor => Binding::Xor,
        And => Binding::And,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship => Binding::Comparison,
        Plus | Minus => Binding::Sum,
        Multiply | Divide | Modulo => Binding::Product,
        _ => Binding::Infix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ast::parse_statement;
    use crate::sql::walk::each;

    /// The tree without its parentheses is written with those that it needs.
    #[test]
    fn what_is_written_is_read_as_it_was() {
        let bare = |statement: &DataFusionStatement| {
            let mut bare = statement.clone();
            let ControlFlow::Continue(()) = visit(
                &mut bare,
                &mut each(|expr| {
                    while let Expr::Nested(inner) = expr {
                        *expr = std::mem::replace(inner, Expr::Tuple(Vec::new()));
                    }
                }),
            );
            bare
        };
        for expr in [
            "(a OR b) AND c",
            "NOT (a AND b)",
            "NOT a AND b",
            "(NOT a) = b",
            "(a = b) = (c < d)",
            "(a = b) IS NULL",
            "a = (b IS NULL)",
            "(a AND b) IS TRUE",
            "a - (b - c) - d",
            "(a + b) * c / (d % e)",
            "a * (b * c)",
            "-(-1)",
            "-(a + b)",
            "(-a)::INT",
            "-a::INT",
            "(a + b)::INT",
            "(a || b) LIKE (c || d)",
            "(a LIKE b) LIKE c",
            "a BETWEEN (b AND c) AND (d OR e)",
            "(a BETWEEN b AND c) BETWEEN d AND e",
            "(a OR b) IN (1, 2)",
            "(a < b) = ANY (SELECT c)",
            "(a OR b) IS DISTINCT FROM (c AND d)",
            "(a + b)[1]",
            "(a + b) AT TIME ZONE 'UTC'",
            "(a || b) + c",
            "a || (b || c)",
            "(a -> b) || c",
            "(a COLLATE x) = b",
        ] {
            let written = format!("SELECT {expr}");
            let read = bare(&parse_statement(&written).unwrap());
            let mut bracketed = read.clone();
            bracket_operands(&mut bracketed);
            let again = parse_statement(&bracketed.to_string()).unwrap();
            assert_eq!(bare(&again), read, "{expr} as {bracketed}");
        }
    }
}
