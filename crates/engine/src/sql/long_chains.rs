//! Long chains of AND, OR, UNION ALL, `+` and `||` as trees of little depth.
//!
//! In: a parsed statement, in which `a OR b OR c` nests one level for each operand. Out: the same statement with chains of
//! more than `FLAT_MAX` operands in halves, and these in halves; of `+` and `||` from `LONG_MAX` on, since floats differ by it
//! in their last digits; chains of other operators stay, up to `DEEP_MAX` operands.
//! Invariant: operands keep their order, so that conditions are looked at and rows come as they are written. What brackets
//! would change, dates with intervals and lists with items, stays.
//! DataFusion clones, compares and evaluates expressions by recursion, and thousands of levels are more than a stack holds.
//! Not here: brackets and subqueries, whose nesting the parser bounds.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitorMut,
};

use super::statement::visit;
use crate::error::Error;
use crate::sql::walk::done;

/// Operands that stay as they are written.
const FLAT_MAX: usize = 64;

/// Operands of `+` and `||` that stay as they are written: DataFusion takes a second for so many, and four times that for twice
/// as many.
const LONG_MAX: usize = 1_000;

/// Operands of a chain that cannot be bracketed otherwise: DataFusion walks down it for the type of each.
const DEEP_MAX: usize = 4_000;

/// Brackets the chains of a statement.
pub(crate) fn bracket(statement: &mut Statement) -> Result<(), Error> {
    done(visit(statement, &mut Chains::default()))
}

#[derive(Default)]
struct Chains {
    /// Levels on the left that are counted already.
    counted: usize,
}

impl VisitorMut for Chains {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let op = match expr {
            Expr::BinaryOp { op, .. } => op.clone(),
            _ => return ControlFlow::Continue(()),
        };
        if self.counted > 0 {
            self.counted -= 1;
        } else {
            self.counted = depth(expr).saturating_sub(1);
        }
        let stay = match op {
            BinaryOperator::And | BinaryOperator::Or => FLAT_MAX,
            BinaryOperator::Plus | BinaryOperator::StringConcat => LONG_MAX,
            _ => usize::MAX,
        };
        if levels(expr, &op) >= stay && !is_bound(expr, &op) {
            let operands = operands(take(expr), &op);
            *expr = halved(operands, &|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: op.clone(),
                right: Box::new(right),
            });
            self.counted = 0;
        } else if self.counted >= DEEP_MAX {
            return ControlFlow::Break(Error::Execution(format!(
                "an expression has more than {DEEP_MAX} operands one after the other (at {op}); cut it into several expressions, e.g. columns of a subquery"
            )));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut levels = 0;
        let mut body = query.body.as_ref();
        while let Some(left) = left_of_union(body) {
            levels += 1;
            body = left;
        }
        if levels >= FLAT_MAX {
            let mut operands = Vec::with_capacity(levels + 1);
            let mut body = std::mem::replace(query.body.as_mut(), nothing());
            while left_of_union(&body).is_some() {
                let SetExpr::SetOperation { left, right, .. } = body else {
                    break;
                };
                operands.push(*right);
                body = *left;
            }
            operands.push(body);
            operands.reverse();
            *query.body = halved(operands, &|left, right| SetExpr::SetOperation {
                left: Box::new(left),
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                right: Box::new(right),
            });
        }
        ControlFlow::Continue(())
    }
}

/// Holds the place of a query's body.
fn nothing() -> SetExpr {
    SetExpr::Values(Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    })
}

fn left_of_union(body: &SetExpr) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All,
            ..
        } => Some(left),
        _ => None,
    }
}

/// How often `op` follows on the left.
fn levels(expr: &Expr, op: &BinaryOperator) -> usize {
    let mut levels = 0;
    let mut expr = expr;
    while let Expr::BinaryOp { left, op: own, .. } = expr
        && own == op
    {
        levels += 1;
        expr = left;
    }
    levels
}

/// Whether an operand says that brackets would change the result.
fn is_bound(expr: &Expr, op: &BinaryOperator) -> bool {
    let is_bound = |operand: &Expr| matches!(operand, Expr::Interval(_) | Expr::Array(_));
    let mut expr = expr;
    while let Expr::BinaryOp {
        left,
        op: own,
        right,
    } = expr
        && own == op
    {
        if is_bound(right) {
            return true;
        }
        expr = left;
    }
    is_bound(expr)
}

/// How often any operator follows on the left.
fn depth(expr: &Expr) -> usize {
    let mut levels = 0;
    let mut expr = expr;
    while let Expr::BinaryOp { left, .. } = expr {
        levels += 1;
        expr = left;
    }
    levels
}

fn operands(mut expr: Expr, of: &BinaryOperator) -> Vec<Expr> {
    let mut operands = Vec::new();
    loop {
        match expr {
            Expr::BinaryOp { left, op, right } if op == *of => {
                operands.push(*right);
                expr = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    operands
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// The operands, in their order, as a tree of halves.
fn halved<T>(operands: Vec<T>, join: &dyn Fn(T, T) -> T) -> T {
    let mut level = operands;
    loop {
        let mut pairs = Vec::with_capacity(level.len().div_ceil(2));
        let mut rest = level.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        level = pairs;
        if level.len() <= 1 {
            break;
        }
    }
    level.remove(0)
}
