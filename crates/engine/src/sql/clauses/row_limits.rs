//! How many rows: `FETCH FIRST n ROWS ONLY | WITH TIES`, `TOP n`, `LIMIT 10%`, `ORDER BY ALL`.
//!
//! In: a query. Out: LIMIT where that is the same; else a condition on the number or the rank of a row, in QUALIFY, so that
//! the query keeps its columns and its ORDER BY.
//! Invariant: `LIMIT p%` leaves `floor(rows · p / 100)` rows, as DuckDB does; `FETCH FIRST p PERCENT` the next whole number of
//! them, as SQL has it; both are counted in integers and decimals.
//! Not here: `LIMIT n BY`, `LIMIT n WITH TIES`.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Fetch, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, LimitClause, Offset, OffsetRows, OrderBy, OrderByExpr, OrderByKind,
    Query, SelectItem, SetExpr, TopQuantity, Value, Values, WindowSpec, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::{binary, cast, function, is_wildcard, meant, refused, select_of, sources};
use crate::error::{Error, Result};
use crate::sql::token_forms::LIMIT_PERCENT;

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

/// A number of rows that is wanted.
struct Wanted {
    amount: Expr,
    unit: Unit,
    ties: Ties,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Rows,
    PercentDown,
    PercentUp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ties {
    Left,
    Kept,
}

/// Writes FETCH, TOP and percentages as LIMIT, or as a condition.
pub(super) fn limit(query: &mut Query) -> Result<()> {
    let near = near(query);
    let fetched = query.fetch.take().map(of_fetch);
    let percent = take_percent(query);
    let has_limit = percent.is_some()
        || match &query.limit_clause {
            Some(LimitClause::LimitOffset {
                limit, limit_by, ..
            }) => limit.is_some() || !limit_by.is_empty(),
            Some(LimitClause::OffsetCommaLimit { .. }) => true,
            None => false,
        };
    let wanted = match (fetched, has_limit) {
        (Some(wanted), false) => wanted,
        (Some(_), true) => return Err(refused(TWO_LIMITS, near)),
        (None, _) => match percent {
            Some(wanted) => wanted,
            None => return Ok(()),
        },
    };
    check_percent(&wanted, near)?;
    if wanted.unit == Unit::Rows && wanted.ties == Ties::Left {
        let offset = offset_of(query).map(|value| Offset {
            value,
            rows: OffsetRows::None,
        });
        query.limit_clause = Some(LimitClause::LimitOffset {
            limit: Some(wanted.amount),
            offset,
            limit_by: Vec::new(),
        });
        return Ok(());
    }
    keep_counted(query, wanted, near)
}

fn of_fetch(fetch: Fetch) -> Wanted {
    let Fetch {
        with_ties,
        percent,
        quantity,
    } = fetch;
    Wanted {
        amount: quantity.unwrap_or_else(|| integer(1)),
        unit: if percent { Unit::PercentUp } else { Unit::Rows },
        ties: if with_ties { Ties::Kept } else { Ties::Left },
    }
}

/// Takes the marked percentage out of a LIMIT.
fn take_percent(query: &mut Query) -> Option<Wanted> {
    let Some(LimitClause::LimitOffset { limit, .. }) = &mut query.limit_clause else {
        return None;
    };
    let Some(Expr::Function(function)) = limit else {
        return None;
    };
    let [part] = function.name.0.as_slice() else {
        return None;
    };
    if part.as_ident()?.value != LIMIT_PERCENT {
        return None;
    }
    let FunctionArguments::List(arguments) = &function.args else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(amount))] = arguments.args.as_slice() else {
        return None;
    };
    let amount = amount.clone();
    *limit = None;
    Some(Wanted {
        amount,
        unit: Unit::PercentDown,
        ties: Ties::Left,
    })
}

fn check_percent(wanted: &Wanted, near: Span) -> Result<()> {
    let value = match &wanted.amount {
        Expr::Value(value) => value.value.to_string().parse::<f64>().ok(),
        _ => None,
    };
    match (wanted.unit, value) {
        (Unit::PercentDown | Unit::PercentUp, Some(value)) if !(0.0..=100.0).contains(&value) => {
            let message = format!("a limit of {value} percent; it lies between 0 and 100");
            Err(refused(message, near))
        }
        _ => Ok(()),
    }
}

fn offset_of(query: &mut Query) -> Option<Expr> {
    match query.limit_clause.take()? {
        LimitClause::LimitOffset { offset, .. } => offset.map(|offset| offset.value),
        LimitClause::OffsetCommaLimit { offset, .. } => Some(offset),
    }
}

/// Keeps the rows whose number or rank is small enough, by a condition in QUALIFY.
fn keep_counted(query: &mut Query, wanted: Wanted, near: Span) -> Result<()> {
    let offset = offset_of(query);
    let is_plain = select_of(query)
        .is_some_and(|select| select.distinct.is_none() && select.qualify.is_none());
    if !is_plain {
        wrap(query);
    }
    let keys = match &query.order_by {
        Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }) => keys.clone(),
        Some(OrderBy {
            kind: OrderByKind::All(_),
            ..
        }) => return Err(unknown_key(near)),
        None => Vec::new(),
    };
    let Some(select) = select_of(query) else {
        return Err(unknown_key(near));
    };
    let keys = keys.into_iter().map(|mut key| {
        key.expr = meant(&key.expr, &select.projection).ok_or_else(|| unknown_key(near))?;
        Ok(key)
    });
    let keys = keys.collect::<Result<Vec<OrderByExpr>>>()?;
    select.qualify = Some(condition(wanted, offset.clone(), keys));
    if let Some(value) = offset {
        query.limit_clause = Some(LimitClause::LimitOffset {
            limit: None,
            offset: Some(Offset {
                value,
                rows: OffsetRows::None,
            }),
            limit_by: Vec::new(),
        });
    }
    Ok(())
}

fn unknown_key(near: Span) -> Error {
    let message = "a number or ALL in ORDER BY that stands for a column of `*`, with a limit in percent or WITH TIES; \
                   write the column's name";
    refused(message, near)
}

/// `number <= offset + rows`, or `(number - offset) · 100 <= rows · percent`.
fn condition(wanted: Wanted, offset: Option<Expr>, keys: Vec<OrderByExpr>) -> Expr {
    let place = match wanted.ties {
        Ties::Left => "row_number",
        Ties::Kept => "rank",
    };
    let mut place = over(function(place, Vec::new()), keys);
    if let Some(offset) = offset {
        let offset = Expr::Nested(Box::new(offset));
        place = Expr::Nested(Box::new(binary(place, BinaryOperator::Minus, offset)));
    }
    let Wanted { amount, unit, .. } = wanted;
    if unit == Unit::Rows {
        return binary(place, BinaryOperator::LtEq, Expr::Nested(Box::new(amount)));
    }
    let percent = cast(
        amount,
        DataType::Decimal(ExactNumberInfo::PrecisionAndScale(12, 6)),
    );
    let mut count = function("count", Vec::new());
    if let FunctionArguments::List(arguments) = &mut count.args {
        arguments
            .args
            .push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
    }
    let rows = cast(
        over(count, Vec::new()),
        DataType::Decimal(ExactNumberInfo::PrecisionAndScale(20, 0)),
    );
    let share = binary(rows, BinaryOperator::Multiply, percent);
    match unit {
        Unit::PercentUp => {
            let before = binary(place, BinaryOperator::Minus, integer(1));
            let before = Expr::Nested(Box::new(before));
            let hundred = binary(before, BinaryOperator::Multiply, integer(100));
            binary(hundred, BinaryOperator::Lt, share)
        }
        Unit::PercentDown | Unit::Rows => {
            let hundred = binary(place, BinaryOperator::Multiply, integer(100));
            binary(hundred, BinaryOperator::LtEq, share)
        }
    }
}

fn over(mut function: Function, order_by: Vec<OrderByExpr>) -> Expr {
    function.over = Some(WindowType::WindowSpec(WindowSpec {
        window_name: None,
        partition_by: Vec::new(),
        order_by,
        window_frame: None,
    }));
    Expr::Function(function)
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
