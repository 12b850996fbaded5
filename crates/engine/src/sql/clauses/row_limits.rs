//! How many rows, and in which order: `FETCH FIRST n ROWS ONLY`, `TOP n`, `ORDER BY ALL`.
//!
//! In: a query. Out: LIMIT and a list of columns; TOP with ties or in percent is FETCH.
//! Invariant: a query has one limit; two are an error.
//! Not here: `WITH TIES`, percentages, `LIMIT n BY` (limits.rs).

use datafusion::sql::sqlparser::ast::{
    Expr, Fetch, Ident, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr,
    TopQuantity, Value, Values,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::{is_wildcard, refused, select_of, sources};
use crate::error::Result;

/// The name of the query whose rows are counted from outside.
const LIMITED: &str = "limited";

const TWO_LIMITS: &str = "two of LIMIT, FETCH and TOP in one query; write one";

/// `SELECT TOP 3 …` is `SELECT … FETCH FIRST 3 ROWS ONLY`.
pub(super) fn top_as_fetch(query: &mut Query) -> Result<()> {
    let near = near(query);
    let Some(top) = select_of(query).and_then(|select| select.top.take()) else {
        return Ok(());
    };
    if query.fetch.is_some() {
        return Err(refused(TWO_LIMITS, near));
    }
    query.fetch = Some(Fetch {
        with_ties: top.with_ties,
        percent: top.percent,
        quantity: top.quantity.map(|quantity| match quantity {
            TopQuantity::Expr(expr) => expr,
            TopQuantity::Constant(rows) => integer(rows),
        }),
    });
    Ok(())
}

fn near(query: &mut Query) -> Span {
    select_of(query).map_or(Span::empty(), |select| select.select_token.0.span)
}

/// `ORDER BY ALL` orders by each column of the select list.
pub(super) fn order_by_all(query: &mut Query) -> Result<()> {
    let Some(OrderBy {
        kind: OrderByKind::All(options),
        ..
    }) = &query.order_by
    else {
        return Ok(());
    };
    let options = *options;
    let items = match query.body.as_ref() {
        SetExpr::Select(select) => Some(&select.projection),
        _ => None,
    };
    match items {
        // The columns of `*` alone are known to DataFusion.
        Some(items) if items.iter().all(is_star) => Ok(()),
        Some(items) if !items.iter().any(is_wildcard) => {
            let ordinals = (1..=items.len()).map(|ordinal| OrderByExpr {
                expr: integer(ordinal),
                options,
                with_fill: None,
            });
            query.order_by = Some(OrderBy {
                kind: OrderByKind::Expressions(ordinals.collect()),
                interpolate: None,
            });
            Ok(())
        }
        _ => {
            wrap(query);
            Ok(())
        }
    }
}

fn is_star(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

/// `FETCH FIRST 3 ROWS ONLY` is `LIMIT 3`; limits.rs reads the others.
pub(super) fn limit(query: &mut Query) -> Result<()> {
    let near = near(query);
    let Some(Fetch {
        with_ties: false,
        percent: false,
        quantity,
    }) = &query.fetch
    else {
        return Ok(());
    };
    let rows = quantity.clone().unwrap_or_else(|| integer(1));
    let offset = match query.limit_clause.take() {
        None => None,
        Some(LimitClause::LimitOffset {
            limit: None,
            offset,
            limit_by,
        }) if limit_by.is_empty() => offset,
        Some(LimitClause::LimitOffset { .. } | LimitClause::OffsetCommaLimit { .. }) => {
            return Err(refused(TWO_LIMITS, near));
        }
    };
    query.fetch = None;
    query.limit_clause = Some(LimitClause::LimitOffset {
        limit: Some(rows),
        offset,
        limit_by: Vec::new(),
    });
    Ok(())
}

fn integer(value: impl ToString) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

/// `SELECT * FROM (query) AS limited`, with the order of the query; its keys are columns of the result then.
fn wrap(query: &mut Query) {
    let order_by = query.order_by.take().map(|mut order_by| {
        if let OrderByKind::Expressions(keys) = &mut order_by.kind {
            keys.iter_mut().for_each(|key| unqualify(&mut key.expr));
        }
        order_by
    });
    let limit_clause = query.limit_clause.take();
    let inner = Query {
        with: query.with.take(),
        body: std::mem::replace(&mut query.body, Box::new(SetExpr::Values(no_values()))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    query.body = sources::select_from(inner, Ident::with_quote('"', LIMITED)).body;
    query.order_by = order_by;
    query.limit_clause = limit_clause;
}

fn no_values() -> Values {
    Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    }
}

/// `t.a` in the order of a query is its column `a`.
fn unqualify(expr: &mut Expr) {
    if let Expr::CompoundIdentifier(parts) = expr
        && let Some(column) = parts.pop()
    {
        *expr = Expr::Identifier(column);
    }
}
