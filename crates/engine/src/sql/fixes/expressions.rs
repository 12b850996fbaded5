//! Expressions that mean something else to DataFusion than to people.
//!
//! In: a parsed statement. Out: the same statement with four changes. `count(DISTINCT *)` counts whole rows, where DataFusion
//! counts a constant. `x = ANY (list)` calls a function that gives NULL where a NULL in the list leaves it open. `x < ANY
//! (list)` is what `x >= ALL (list)` is not. `x LIKE ANY (p, q)` is `x LIKE p OR x LIKE q`.
//! Invariant: expressions of other forms stay, and so do subqueries in ANY.
//! Not here: the functions that are called (functions/).

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator, visit_expressions,
};

use super::shared_tables::is_volatile;
use crate::functions::{ANY_EQUAL, WHOLE_ROW};
use crate::sql::params::call;
use crate::sql::walk::{each, visit};

/// Puts calls in the place of such expressions.
pub(crate) fn say_what_is_meant(statement: &mut Statement) {
    let ControlFlow::Continue(()) = visit(statement, &mut each(as_meant));
}

/// LIKE ANY of written patterns. NOT LIKE ANY stays, of which databases think differently, and what has another value each time.
fn like_either(expr: &Expr) -> Option<Expr> {
    let (Expr::Like {
        negated: false,
        any: true,
        expr: subject,
        pattern: list,
        ..
    }
    | Expr::ILike {
        negated: false,
        any: true,
        expr: subject,
        pattern: list,
        ..
    }) = expr
    else {
        return None;
    };
    let is_volatile = visit_expressions(subject.as_ref(), |part| match is_volatile(part) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    if is_volatile.is_break() {
        return None;
    }
    let of_pattern = |wanted: &Expr| {
        let mut like = expr.clone();
        if let Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. } = &mut like {
            *any = false;
            **pattern = Expr::Nested(Box::new(wanted.clone()));
        }
        like
    };
    let mut likes: Vec<Expr> = patterns_of(list)?.iter().map(of_pattern).collect();
    // By halves: thousands would be as many levels.
    while likes.len() > 1 {
        let pairs = likes.chunks(2).map(|pair| match pair {
            [left, right] => Expr::BinaryOp {
                left: Box::new(left.clone()),
                op: BinaryOperator::Or,
                right: Box::new(right.clone()),
            },
            _ => pair[0].clone(),
        });
        likes = pairs.map(|pair| Expr::Nested(Box::new(pair))).collect();
    }
    likes.pop()
}

/// The patterns of a list that is written out.
fn patterns_of(list: &Expr) -> Option<&[Expr]> {
    match list {
        Expr::Tuple(patterns) => Some(patterns),
        Expr::Array(array) => Some(&array.elem),
        Expr::Nested(inner) => match inner.as_ref() {
            only @ Expr::Value(_) => Some(std::slice::from_ref(only)),
            inner => patterns_of(inner),
        },
        _ => None,
    }
}

/// What is true where the comparison is false.
fn opposite(comparison: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match comparison {
        BinaryOperator::NotEq => BinaryOperator::Eq,
        BinaryOperator::Lt => BinaryOperator::GtEq,
        BinaryOperator::LtEq => BinaryOperator::Gt,
        BinaryOperator::Gt => BinaryOperator::LtEq,
        BinaryOperator::GtEq => BinaryOperator::Lt,
        _ => return None,
    })
}

fn whole_row(argument: &mut FunctionArg) {
    if matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard)) {
        let row = call(WHOLE_ROW.to_string());
        *argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(row));
    }
}

fn call_of<const N: usize>(name: &str, operands: [Expr; N]) -> Expr {
    let mut call = call(name.to_string());
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        let operands = operands.into_iter().map(FunctionArgExpr::Expr);
        list.args = operands.map(FunctionArg::Unnamed).collect();
    }
    call
}

fn as_meant(expr: &mut Expr) {
    match expr {
        Expr::Function(function) => {
            if let FunctionArguments::List(list) = &mut function.args
                && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
            {
                list.args.iter_mut().for_each(whole_row);
            }
        }
        Expr::AnyOp {
            left,
            compare_op: BinaryOperator::Eq,
            right,
            ..
        } if !matches!(right.as_ref(), Expr::Subquery(_)) => {
            let operands = [right.as_ref().clone(), left.as_ref().clone()];
            *expr = call_of(ANY_EQUAL, operands);
        }
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } if !matches!(right.as_ref(), Expr::Subquery(_)) => {
            if let Some(compare_op) = opposite(compare_op) {
                let (left, right) = (left.clone(), right.clone());
                *expr = Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(Expr::Nested(Box::new(Expr::AllOp {
                        left,
                        compare_op,
                        right,
                    }))),
                };
            }
        }
        Expr::Like { .. } | Expr::ILike { .. } => {
            if let Some(either) = like_either(expr) {
                *expr = either;
            }
        }
        _ => {}
    }
}
