//! Limits other than a number of rows: `LIMIT 2 BY k`, `FETCH FIRST 3 ROWS WITH TIES`, `LIMIT 10%`.
//!
//! In: a query. Out: the same with a condition on window functions in QUALIFY, over a subquery where its rows are not those
//! of one plain SELECT.
//! Invariant: the windows order rows as the query does, so that the rows kept are those that come first.
//! Not here: LIMIT and FETCH of a number of rows, which are DataFusion's.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::sql::sqlparser::ast::{
    Expr, Fetch, LimitClause, Offset, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, Value,
};

use crate::error::{Error, Result};
use crate::sql::ast::{
    derived, function_name, item_name, number, parse_expr, parse_query, plain_arguments, quoted,
};
use crate::sql::expand::columns;
use crate::sql::expand::{Scope, fold_order};
use crate::sql::fixes::window_aggregates::has_window;
use crate::sql::tokens::table_forms::PERCENT;

/// What is kept of the rows.
enum Limit {
    /// So many of each group of equal keys.
    By { rows: Expr, keys: Vec<Expr> },
    /// So many, and those that are equal to the last by ORDER BY.
    Ties { rows: Expr },
    /// A share in per cent, rounded down or up.
    Percent {
        share: Expr,
        rounding: &'static str,
        function: &'static str,
    },
}

impl Limit {
    /// What the user wrote as a number of rows, or of per cent.
    fn number(&self) -> &Expr {
        match self {
            Limit::By { rows, .. } | Limit::Ties { rows } => rows,
            Limit::Percent { share, .. } => share,
        }
    }
}

pub(super) fn expand(query: &mut Query, scope: &Scope<'_>) -> Result<()> {
    if let Some(OrderBy {
        kind: OrderByKind::Expressions(order),
        ..
    }) = &mut query.order_by
    {
        fold_order(order)?;
    }
    columns::in_order(query, scope)?;
    number_of_rows(query, scope)?;
    let Some((limit, offset)) = taken(query)? else {
        return order_by_all(query, scope);
    };
    for number in [limit.number()].into_iter().chain(&offset) {
        check_number(number, scope)?;
    }
    wrap(query)?;
    let order = match &query.order_by {
        None => Vec::new(),
        Some(OrderBy {
            kind: OrderByKind::Expressions(order),
            ..
        }) => order.clone(),
        Some(_) => {
            return Err(Error::unsupported(
                "ORDER BY ALL beside LIMIT BY, WITH TIES or per cent",
            ));
        }
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::unsupported("such a limit of this query"));
    };
    let order = order
        .into_iter()
        .map(|key| by_item(key, select))
        .collect::<Result<Vec<_>>>()?;
    select.qualify = Some(condition(&limit, offset.as_ref(), &order)?);
    Ok(())
}

/// `ORDER BY ALL` of `*` orders by the numbers of its columns: DataFusion asks for their names in lower case.
fn order_by_all(query: &mut Query, scope: &Scope<'_>) -> Result<()> {
    let Some(OrderBy {
        kind: OrderByKind::All(options),
        ..
    }) = query.order_by
    else {
        return Ok(());
    };
    // The scope has its common tables.
    let mut unordered = query.clone();
    unordered.with = None;
    (unordered.order_by, unordered.limit_clause, unordered.fetch) = (None, None, None);
    let count = i64::try_from(scope.columns(unordered)?.len()).unwrap_or(i64::MAX);
    let keys = (1..=count).map(|place| OrderByExpr {
        expr: number(place),
        options,
        with_fill: None,
    });
    query.order_by = Some(OrderBy {
        kind: OrderByKind::Expressions(keys.collect()),
        interpolate: None,
    });
    Ok(())
}

/// `LIMIT (SELECT …)` is the number that the subquery gives; NULL is no limit.
fn number_of_rows(query: &mut Query, scope: &Scope<'_>) -> Result<()> {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else {
        return Ok(());
    };
    if let Some(Expr::Subquery(subquery)) = limit {
        *limit = number_of(subquery, scope)?;
    }
    if let Some(Offset { value, .. }) = offset
        && let Expr::Subquery(subquery) = value
    {
        *value = number_of(subquery, scope)?.map_or_else(|| parse_expr("0"), Ok)?;
    }
    Ok(())
}

/// An error for a number that reads a column: it is one number for all rows.
fn check_number(number: &Expr, scope: &Scope<'_>) -> Result<()> {
    if matches!(number, Expr::Value(_)) {
        return Ok(());
    }
    let mut query = parse_query("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(number.clone())];
    }
    scope.columns(*query).map(drop)
}

fn number_of(subquery: &Query, scope: &Scope<'_>) -> Result<Option<Expr>> {
    let query = parse_query(&format!("SELECT CAST(({subquery}) AS BIGINT) AS \"rows\""))?;
    for batch in scope.rows(*query)? {
        let rows = batch.column(0).as_primitive::<Int64Type>();
        if let Some(rows) = rows.iter().next().flatten() {
            return parse_expr(&rows.to_string()).map(Some);
        }
    }
    Ok(None)
}

/// Takes the limit out of the query, if it is one of these.
fn taken(query: &mut Query) -> Result<Option<(Limit, Option<Expr>)>> {
    let offset_of = |offset: &Option<Offset>| offset.as_ref().map(|offset| offset.value.clone());
    if let Some(Fetch {
        with_ties,
        percent,
        quantity,
    }) = &query.fetch
        && (*with_ties || *percent)
    {
        let rows = quantity.clone().map_or_else(|| parse_expr("1"), Ok)?;
        let offset = match &query.limit_clause {
            Some(LimitClause::LimitOffset {
                limit: None,
                offset,
                limit_by,
            }) if limit_by.is_empty() => offset_of(offset),
            None => None,
            Some(_) => return Err(Error::unsupported("LIMIT beside FETCH")),
        };
        if *with_ties && query.order_by.is_none() {
            let message = "WITH TIES needs ORDER BY, which says what rows are equal".to_string();
            return Err(Error::planning(message));
        }
        let limit = match (*percent, *with_ties) {
            (true, ties) => Limit::Percent {
                share: rows,
                rounding: "ceil",
                function: if ties { "rank" } else { "row_number" },
            },
            (false, _) => Limit::Ties { rows },
        };
        (query.fetch, query.limit_clause) = (None, None);
        return Ok(Some((limit, offset)));
    }
    let Some(LimitClause::LimitOffset {
        limit: Some(rows),
        offset,
        limit_by,
    }) = &query.limit_clause
    else {
        return Ok(None);
    };
    let limit = if !limit_by.is_empty() {
        Limit::By {
            rows: rows.clone(),
            keys: limit_by.clone(),
        }
    } else if let Some(share) = share_of(rows) {
        Limit::Percent {
            share,
            rounding: "floor",
            function: "row_number",
        }
    } else {
        return Ok(None);
    };
    let offset = offset_of(offset);
    query.limit_clause = None;
    Ok(Some((limit, offset)))
}

fn share_of(rows: &Expr) -> Option<Expr> {
    let Expr::Function(function) = rows else {
        return None;
    };
    let is_percent = function_name(function).as_deref() == Some(PERCENT);
    let share = plain_arguments(function)?
        .first()
        .map(|&share| share.clone());
    share.filter(|_| is_percent)
}

/// The query's rows as a subquery, unless QUALIFY can see them as they are.
fn wrap(query: &mut Query) -> Result<()> {
    let is_plain = match query.body.as_ref() {
        SetExpr::Select(select) => {
            let orders_windows = orders_windows(query.order_by.as_ref(), select);
            select.distinct.is_none() && select.qualify.is_none() && !orders_windows
        }
        _ => false,
    };
    if is_plain {
        return Ok(());
    }
    let mut outer = parse_query("SELECT *")?;
    let mut inner = parse_query("SELECT 1")?;
    std::mem::swap(&mut inner.body, &mut query.body);
    if let SetExpr::Select(select) = outer.body.as_mut() {
        select.from = vec![datafusion::sql::sqlparser::ast::TableWithJoins {
            relation: derived(inner, Some(quoted("limited"))),
            joins: Vec::new(),
        }];
    }
    query.body = outer.body;
    Ok(())
}

/// Whether ORDER BY has the alias of a window function, which cannot stand in the window of the limit, and otherwise columns
/// of the result alone.
fn orders_windows(order_by: Option<&OrderBy>, select: &Select) -> bool {
    let Some(OrderBy {
        kind: OrderByKind::Expressions(keys),
        ..
    }) = order_by
    else {
        return false;
    };
    let names_any = |key: &OrderByExpr, is_one: &dyn Fn(&SelectItem, &str) -> bool| {
        matches!(&key.expr, Expr::Identifier(name)
            if select.projection.iter().any(|item| is_one(item, &name.value)))
    };
    let is_window = |item: &SelectItem, name: &str| {
        matches!(item, SelectItem::ExprWithAlias { expr, alias }
            if alias.value.eq_ignore_ascii_case(name) && has_window(expr))
    };
    let is_named = |item: &SelectItem, name: &str| {
        matches!(item, SelectItem::Wildcard(_))
            || item_name(item).is_some_and(|own| own.value.eq_ignore_ascii_case(name))
    };
    keys.iter().any(|key| names_any(key, &is_window))
        && keys.iter().all(|key| names_any(key, &is_named))
}

/// `ORDER BY 2` orders by the second item.
fn by_item(mut key: OrderByExpr, select: &Select) -> Result<OrderByExpr> {
    let place = match &key.expr {
        Expr::Value(value) => match &value.value {
            Value::Number(place, _) => place.parse::<usize>().ok(),
            _ => None,
        },
        _ => None,
    };
    let Some(place) = place else {
        return Ok(key);
    };
    let mut before = select.projection.iter().take(place);
    let is_named = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    let has_wildcard = !before.clone().all(is_named);
    match before.next_back() {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. })
            if !has_wildcard && place <= select.projection.len() =>
        {
            key.expr = expr.clone();
            Ok(key)
        }
        _ => Err(Error::unsupported(
            "ORDER BY with the number of a column beside such a limit; write its name",
        )),
    }
}

fn condition(limit: &Limit, offset: Option<&Expr>, order: &[OrderByExpr]) -> Result<Expr> {
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    let order = match order.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", order.join(", ")),
    };
    let skipped = offset.map_or_else(|| "0".to_string(), |offset| format!("({offset})"));
    let (partition, function, last) = match limit {
        Limit::By { rows, keys } => {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            (
                format!("PARTITION BY {}", keys.join(", ")),
                "row_number",
                format!("{skipped} + ({rows})"),
            )
        }
        Limit::Ties { rows } => (String::new(), "rank", format!("{skipped} + ({rows})")),
        Limit::Percent {
            share,
            rounding,
            function,
        } => (
            String::new(),
            *function,
            format!(
                "{skipped} + {rounding}(CAST(count(*) OVER () AS DOUBLE) * coalesce({share}, 100) / 100)"
            ),
        ),
    };
    let number = |function: &str| format!("{function}() OVER ({partition}{order})");
    let kept = format!("CAST({} AS BIGINT) <= {last}", number(function));
    let text = match offset {
        None => kept,
        Some(_) => format!(
            "{kept} AND CAST({} AS BIGINT) > {skipped}",
            number("row_number")
        ),
    };
    parse_expr(&text)
}
