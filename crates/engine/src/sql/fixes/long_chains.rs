//! Long chains of AND, OR, UNION, `+` and `||` as trees of little depth.
//!
//! In: a parsed statement, in which `a OR b OR c` nests one level for each operand. Out: the same statement with chains of
//! more than `FLAT_MAX` operands in halves, and these in halves. Chains of `+` and `||` are cut from `LONG_MAX` on, since
//! floats differ by it in their last digits. Other chains stay, up to `DEEP_MAX` operands, or `QUERIES_MAX` of EXCEPT and
//! INTERSECT.
//! Invariant: operands keep their order, so that conditions are looked at and rows come as they are written. What brackets
//! would change, dates with intervals and lists with items, stays. DataFusion clones, compares and evaluates expressions by
//! recursion, and thousands of levels are more than a stack holds. What is refused is taken apart first: Rust drops it by
//! recursion, too.
//! Not here: brackets and subqueries, whose nesting is bounded before (nesting.rs, the parser).

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitorMut,
};

use crate::error::Error;
use crate::sql::walk::{done, visit};

/// Operands that stay as they are written.
const FLAT_MAX: usize = 64;

/// Operands of `+` and `||` that stay as they are written: DataFusion takes a second for so many, and four times that for twice
/// as many.
const LONG_MAX: usize = 1_000;

/// Operands of a chain that cannot be bracketed otherwise: DataFusion walks down it for the type of each.
const DEEP_MAX: usize = 4_000;

/// Queries of a chain that cannot be bracketed otherwise: a thousand of EXCEPT take five seconds to plan, twice as many 20.
const QUERIES_MAX: usize = 1_000;

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
        if self.counted > 0 {
            self.counted -= 1;
        } else {
            self.counted = depth(expr).saturating_sub(1);
        }
        if let Expr::BinaryOp { op, .. } = expr {
            let op = op.clone();
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
                return ControlFlow::Continue(());
            }
        }
        if self.counted < DEEP_MAX {
            return ControlFlow::Continue(());
        }
        take_apart(take(expr));
        ControlFlow::Break(Error::Execution(format!(
            "an expression has more than {DEEP_MAX} operands one after the other; cut it into several expressions, e.g. columns of a subquery"
        )))
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let body = query.body.as_mut();
        if let SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier:
                of @ (SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None),
            ..
        } = *body
        {
            halve_unions(body, of);
        }
        if set_levels(body) < QUERIES_MAX {
            return ControlFlow::Continue(());
        }
        take_queries_apart(std::mem::replace(body, nothing()));
        ControlFlow::Break(Error::Execution(format!(
            "more than {QUERIES_MAX} queries follow each other with EXCEPT, INTERSECT or UNION of several kinds; cut them into several common table expressions"
        )))
    }
}

/// Brackets a chain of UNION with one quantifier.
fn halve_unions(body: &mut SetExpr, of: SetQuantifier) {
    let mut levels = 0;
    let mut next = &*body;
    while let Some(left) = left_of_union(next, of) {
        levels += 1;
        next = left;
    }
    if levels < FLAT_MAX {
        return;
    }
    let mut operands = Vec::with_capacity(levels + 1);
    let mut rest = std::mem::replace(body, nothing());
    while left_of_union(&rest, of).is_some() {
        let SetExpr::SetOperation { left, right, .. } = rest else {
            break;
        };
        operands.push(*right);
        rest = *left;
    }
    operands.push(rest);
    operands.reverse();
    *body = halved(operands, &|left, right| SetExpr::SetOperation {
        left: Box::new(left),
        op: SetOperator::Union,
        set_quantifier: of,
        right: Box::new(right),
    });
}

/// Holds the place of a query's body.
fn nothing() -> SetExpr {
    SetExpr::Values(Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    })
}

fn left_of_union(body: &SetExpr, of: SetQuantifier) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier,
            ..
        } if *set_quantifier == of => Some(left),
        _ => None,
    }
}

/// How deep set operations are nested without brackets.
fn set_levels(body: &SetExpr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(body, 0)];
    while let Some((body, level)) = open.pop() {
        deepest = deepest.max(level);
        if let SetExpr::SetOperation { left, right, .. } = body {
            open.extend([(left.as_ref(), level + 1), (right.as_ref(), level + 1)]);
        }
    }
    deepest
}

/// Drops set operations one by one.
fn take_queries_apart(body: SetExpr) {
    let mut open = vec![body];
    while let Some(body) = open.pop() {
        if let SetExpr::SetOperation { left, right, .. } = body {
            open.extend([*left, *right]);
        }
    }
}

/// Drops a chain operand by operand.
fn take_apart(mut expr: Expr) {
    while let Some(first) = first_operand(&mut expr) {
        expr = take(first);
    }
}

/// What an operator behind it is applied to; the parser reads as many operators as there are without recursion.
fn first_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left: first, .. }
        | Expr::AnyOp { left: first, .. }
        | Expr::AllOp { left: first, .. }
        | Expr::CompoundFieldAccess { root: first, .. }
        | Expr::JsonAccess { value: first, .. }
        | Expr::AtTimeZone {
            timestamp: first, ..
        }
        | Expr::IsFalse(first)
        | Expr::IsNotFalse(first)
        | Expr::IsTrue(first)
        | Expr::IsNotTrue(first)
        | Expr::IsNull(first)
        | Expr::IsNotNull(first)
        | Expr::IsUnknown(first)
        | Expr::IsNotUnknown(first)
        | Expr::IsDistinctFrom(first, _)
        | Expr::IsNotDistinctFrom(first, _)
        | Expr::IsNormalized { expr: first, .. }
        | Expr::InList { expr: first, .. }
        | Expr::InSubquery { expr: first, .. }
        | Expr::InUnnest { expr: first, .. }
        | Expr::Between { expr: first, .. }
        | Expr::Like { expr: first, .. }
        | Expr::ILike { expr: first, .. }
        | Expr::SimilarTo { expr: first, .. }
        | Expr::RLike { expr: first, .. }
        | Expr::UnaryOp { expr: first, .. }
        | Expr::Cast { expr: first, .. }
        | Expr::Collate { expr: first, .. }
        | Expr::OuterJoin(first) => Some(first),
        Expr::MemberOf(member) => Some(&mut member.value),
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
fn depth(expr: &mut Expr) -> usize {
    let mut levels = 0;
    let mut expr = expr;
    while let Some(first) = first_operand(expr) {
        levels += 1;
        expr = first;
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
