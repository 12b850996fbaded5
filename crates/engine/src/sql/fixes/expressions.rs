//! Expressions that mean something else to DataFusion than to people.
//!
//! In: a parsed statement. Out: the same statement with three changes. `count(DISTINCT *)` counts whole rows, where DataFusion
//! counts a constant. `x = ANY (list)` calls a function that gives NULL where a NULL in the list leaves it open. `x < ANY
//! (list)` is what `x >= ALL (list)` is not.
//! Invariant: expressions of other forms stay, and so do subqueries in ANY.
//! Not here: the functions that are called (functions/).

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator, VisitorMut,
};

use crate::functions::{ANY_EQUAL, WHOLE_ROW};
use crate::sql::params::call;
use crate::sql::statement::visit;

/// Puts calls in the place of such expressions.
pub(crate) fn say_what_is_meant(statement: &mut Statement) {
    let ControlFlow::Continue(()) = visit(statement, &mut ExpressionMeanings);
}

struct ExpressionMeanings;

impl VisitorMut for ExpressionMeanings {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
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
            _ => {}
        }
        ControlFlow::Continue(())
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
