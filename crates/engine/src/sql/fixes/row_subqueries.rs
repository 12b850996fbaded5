//! Rows of several values: `(a, b) < (c, d)`, `ROW(a, b) BETWEEN (c, d) AND (e, f)`, `(a, b) OVERLAPS (c, d)`. Also with
//! a subquery: `(a, b) IN (SELECT x, y …)`, `(a, b) < ALL (SELECT x, y …)`.
//!
//! In: a parsed statement. Out: the same statement with comparisons of single values, and subqueries of one column. `TRUE
//! IN (SELECT a = x AND b = y …)` is NULL where SQL says so; for ALL it is `FALSE NOT IN`. Where only true counts, it is
//! `EXISTS (SELECT … WHERE a = x AND b = y)`, which is planned as a join.
//! Invariant: a subquery of one column stays: its values are structs.
//! Not here: lists of rows, `(a, b) IN ((1, 2), (3, 4))`.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, TableAliasColumnDef, TableFactor,
    UnaryOperator, Value, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{derived, function_name, parse_expr, parse_query, quoted, written_row};
use crate::sql::walk::{done, flow, visit};

/// The names of the subquery's rows and, with a number behind it, of their columns.
const ROWS: &str = "__rows";

/// Rewrites each such comparison.
pub(crate) fn compare_rows(statement: &mut Statement) -> Result<()> {
    done(visit(statement, &mut RowSubqueries))
}

struct RowSubqueries;

impl VisitorMut for RowSubqueries {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let conditions = [&mut select.selection, &mut select.having];
        let mut conditions = conditions.into_iter().flatten();
        flow(conditions.try_for_each(keep_true))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Some(compared) = compared_rows(expr).or_else(|| row_between(expr)) {
            *expr = compared;
        }
        flow(in_rows(expr, WantedResult::Value))
    }
}

/// `(a, b) < (c, d)` by its values: DataFusion compares structs, in which NULL is a value like any other.
fn compared_rows(expr: &Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op, right } = expr else {
        return None;
    };
    let (left, right) = (row_of(left)?, row_of(right)?);
    if left.len() != right.len() {
        return None;
    }
    let mut pairs = left.iter().zip(&right).rev();
    let pair = |op: &BinaryOperator, (left, right): (&&Expr, &&Expr)| {
        let pair = both((*left).clone(), op.clone(), (*right).clone());
        // Values of rows may be rows.
        compared_rows(&pair).map_or(pair, |rows| Expr::Nested(Box::new(rows)))
    };
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or, Overlaps};
    match op {
        Eq => pairs
            .map(|one| pair(&Eq, one))
            .reduce(|all, one| both(one, And, all)),
        NotEq => pairs
            .map(|one| pair(&NotEq, one))
            .reduce(|all, one| both(one, Or, all)),
        Lt | LtEq | Gt | GtEq => {
            let strict = if matches!(op, Lt | LtEq) { Lt } else { Gt };
            let last = pair(op, pairs.next()?);
            Some(pairs.fold(last, |rest, one| {
                let rest = Expr::Nested(Box::new(both(pair(&Eq, one), And, rest)));
                Expr::Nested(Box::new(both(pair(&strict, one), Or, rest)))
            }))
        }
        Overlaps => overlap(&left, &right),
        _ => None,
    }
}

/// The values of `(a, b)` or `ROW(a, b)`.
fn row_of(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Nested(inner) => row_of(inner),
        Expr::Function(function) if function_name(function).as_deref() != Some("row") => None,
        _ => written_row(expr),
    }
}

/// `(a, b) BETWEEN (c, d) AND (e, f)` is two comparisons of rows.
fn row_between(expr: &Expr) -> Option<Expr> {
    let Expr::Between {
        expr,
        negated,
        low,
        high,
    } = expr
    else {
        return None;
    };
    let compared = |op: BinaryOperator, bound: &Expr| {
        let rows = both(expr.as_ref().clone(), op, bound.clone());
        compared_rows(&rows).map(|rows| Expr::Nested(Box::new(rows)))
    };
    let from = compared(BinaryOperator::GtEq, low)?;
    let to = compared(BinaryOperator::LtEq, high)?;
    let between = Expr::Nested(Box::new(both(from, BinaryOperator::And, to)));
    Some(match negated {
        true => Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(between),
        },
        false => between,
    })
}

/// `(a, b) OVERLAPS (c, d)`: a span is its beginning and what follows up to its end, or one instant. As in PostgreSQL, the one
/// bound that is known is the beginning, and the outcome is NULL where the other could change it.
fn overlap(left: &[&Expr], right: &[&Expr]) -> Option<Expr> {
    let ([a, b], [c, d]) = (left, right) else {
        return None;
    };
    let bounds = |one: &Expr, other: &Expr| {
        let end = format!(
            "CASE WHEN {one} IS NOT NULL AND {other} IS NOT NULL THEN greatest({one}, {other}) END"
        );
        (format!("least({one}, {other})"), end)
    };
    let ((from, to), (other_from, other_to)) = (bounds(a, b), bounds(c, d));
    let text = format!(
        "CASE WHEN {from} < {other_from} THEN {other_from} < {to} OR {other_to} < {to} \
         WHEN {other_from} < {from} THEN {from} < {other_to} OR {to} < {other_to} \
         WHEN {from} = {other_from} THEN {to} <> {other_to} OR {to} = {other_to} END"
    );
    parse_expr(&text).ok()
}

/// Rewrites what is joined by AND, of which only true counts.
fn keep_true(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => keep_true(left).and_then(|()| keep_true(right)),
        Expr::Nested(inner) => keep_true(inner),
        other => in_rows(other, WantedResult::IsTrue),
    }
}

/// What is wanted of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedResult {
    /// True, false or NULL.
    Value,
    /// Whether it is true.
    IsTrue,
}

/// A row that is compared with those of a query.
struct RowComparison<'a> {
    row: Vec<Expr>,
    op: BinaryOperator,
    query: &'a mut Query,
    /// The outcome of a comparison that decides, and whether it is wanted there or nowhere.
    decides: bool,
    is_wanted: bool,
}

impl RowComparison<'_> {
    /// `IN` is `= ANY`, `NOT IN` is `<> ALL`.
    fn of(expr: &mut Expr) -> Option<RowComparison<'_>> {
        let is_any = matches!(expr, Expr::AnyOp { .. });
        let (row, op, query, decides, is_wanted) = match expr {
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => (expr, BinaryOperator::Eq, subquery, true, !*negated),
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            }
            | Expr::AllOp {
                left,
                compare_op,
                right,
            } => {
                let Expr::Subquery(query) = right.as_mut() else {
                    return None;
                };
                match (is_any, &compare_op) {
                    (false, BinaryOperator::NotEq) => {
                        (left, BinaryOperator::Eq, query, true, false)
                    }
                    _ => (left, compare_op.clone(), query, is_any, is_any),
                }
            }
            _ => return None,
        };
        let row = row_of(row)?.into_iter().cloned().collect();
        (!has_one_column(query)).then_some(RowComparison {
            row,
            op,
            query,
            decides,
            is_wanted,
        })
    }
}

fn in_rows(expr: &mut Expr, wanted: WantedResult) -> Result<()> {
    let Some(compared) = RowComparison::of(expr) else {
        return Ok(());
    };
    let names: Vec<String> = (1..=compared.row.len())
        .map(|at| format!("{ROWS}_{at}"))
        .collect();
    let column = |name: &String| Expr::CompoundIdentifier(vec![quoted(ROWS), quoted(name)]);
    let columns = Expr::Tuple(names.iter().map(column).collect());
    let both_rows = both(Expr::Tuple(compared.row), compared.op, columns);
    let Some(outcome) = compared_rows(&both_rows) else {
        return Ok(());
    };
    let mut query = parse_query(&format!("SELECT true FROM {ROWS}"))?;
    let rows = std::mem::replace(compared.query, query.as_ref().clone());
    let (decides, is_wanted) = (compared.decides, compared.is_wanted);
    let is_exists = wanted == WantedResult::IsTrue && is_wanted;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(from) = select.from.first_mut()
    {
        from.relation = named(rows, &names);
        match is_exists {
            true => select.selection = Some(outcome),
            false => select.projection = vec![SelectItem::UnnamedExpr(outcome)],
        }
    }
    *expr = match is_exists {
        true => Expr::Exists {
            subquery: query,
            negated: false,
        },
        false => Expr::InSubquery {
            expr: Box::new(Expr::value(Value::Boolean(decides))),
            subquery: query,
            negated: !is_wanted,
        },
    };
    Ok(())
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

/// A query as a table whose columns have these names.
fn named(query: Query, columns: &[String]) -> TableFactor {
    let mut table = derived(Box::new(query), Some(quoted(ROWS)));
    if let TableFactor::Derived {
        alias: Some(alias), ..
    } = &mut table
    {
        alias.columns = columns.iter().map(TableAliasColumnDef::from_name).collect();
    }
    table
}

/// Whether the rows of a query have one value, as far as its text says.
fn has_one_column(query: &Query) -> bool {
    let mut body = query.body.as_ref();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    match body {
        SetExpr::Select(select) => matches!(
            select.projection.as_slice(),
            [SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }]
        ),
        SetExpr::Values(values) => values.rows.first().is_some_and(|row| row.len() == 1),
        SetExpr::Query(query) => has_one_column(query),
        _ => false,
    }
}
