//! Timestamps beside others: with and without a zone, and those that nanoseconds do not reach, before 1677 and after 2262.
//!
//! In: operands that are to have one type. Out: all have a zone if one has. Beside such a timestamp, or a string of that kind,
//! timestamps in nanoseconds are compared as microseconds. So are days beside literals and coarser columns, and results beside a
//! far day that is written. Beside a column of nanoseconds a far day is the last of them.
//! Invariant: a comparison loses nothing by that, because no nanosecond is as far.
//! Not here: literals (sql/fixes/far_timestamps.rs); timestamps within the range, which stay in nanoseconds.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{
    Between, Cast, Expr, ExprSchemable, LogicalPlanBuilder, Operator, binary_expr,
};

use crate::functions::{midnight, nanos_of_day};
use crate::sql::fixes::far_timestamps::is_far;

/// Gives days and timestamps without a zone, beside one with a zone, its type: DataFusion leaves the zone out beside a day.
pub(in crate::optimizer::fixes) fn in_one_zone(
    operands: &mut [&mut Expr],
    schema: &DFSchema,
) -> bool {
    let is_time = |expr: &Expr| match expr {
        Expr::Literal(value, _) => value.data_type().is_temporal(),
        _ => true,
    };
    let kinds = operands.iter().map(|operand| match is_time(operand) {
        true => operand.get_type(schema).ok(),
        false => None,
    });
    let kinds: Vec<Option<DataType>> = kinds.collect();
    let zoned = kinds
        .iter()
        .flatten()
        .find(|kind| matches!(kind, DataType::Timestamp(_, Some(_))));
    let Some(DataType::Timestamp(_, zone)) = zoned.cloned() else {
        return false;
    };
    let mut changed = false;
    for (operand, kind) in operands.iter_mut().zip(kinds) {
        let unit = match kind {
            Some(DataType::Timestamp(unit, None)) => unit,
            Some(DataType::Date32 | DataType::Date64) => TimeUnit::Second,
            _ => continue,
        };
        let value = Box::new(std::mem::take(*operand));
        **operand = Expr::Cast(Cast::new(value, DataType::Timestamp(unit, zone.clone())));
        changed = true;
    }
    changed
}

/// Gives days that may be far, and the timestamps that they are compared with, a type that has the order of both. False if they are
/// left to DataFusion: all days are literals that nanoseconds reach.
pub(in crate::optimizer::fixes) fn beside_days(
    operands: &mut [&mut Expr],
    schema: &DFSchema,
) -> bool {
    let kinds = operands.iter().map(|operand| operand.get_type(schema).ok());
    let kinds: Vec<Option<DataType>> = kinds.collect();
    let is_day = |kind: &Option<DataType>| matches!(kind, Some(DataType::Date32));
    let is_clock = |kind: &Option<DataType>| matches!(kind, Some(DataType::Timestamp(_, None)));
    let pairs = || operands.iter().zip(&kinds);
    let may_be_far = pairs().any(|(operand, kind)| is_day(kind) && !is_near_day(operand));
    // Two days that are compared with each other keep their own order.
    let (first, others) = match kinds.split_first() {
        Some(split) => split,
        None => return false,
    };
    let are_days_apart = !is_day(first) || !others.iter().any(is_day);
    if !may_be_far || !kinds.iter().any(is_clock) || !are_days_apart {
        return false;
    }
    let nanos = Some(DataType::Timestamp(TimeUnit::Nanosecond, None));
    let is_fine = pairs().any(|(operand, kind)| *kind == nanos && in_micros(operand).is_none());
    for (operand, kind) in operands.iter_mut().zip(&kinds) {
        let changed = match is_fine {
            true if is_day(kind) => match literal_of(operand, &DataType::Date32) {
                Some(ScalarValue::Date32(Some(day))) => {
                    let nanos = Some(nanos_of_day(day));
                    Expr::Literal(ScalarValue::TimestampNanosecond(nanos, None), None)
                }
                _ => midnight(std::mem::take(*operand)),
            },
            false if is_day(kind) => {
                let day = Box::new(std::mem::take(*operand));
                let to = DataType::Timestamp(TimeUnit::Microsecond, None);
                Expr::Cast(Cast::new(day, to))
            }
            false if *kind == nanos => match in_micros(operand) {
                Some(micros) => micros,
                None => continue,
            },
            _ => continue,
        };
        **operand = changed;
    }
    true
}

/// Days beside a subquery of timestamps, or timestamps beside one of days, as one type that has the order of both; whether one was
/// changed.
pub(in crate::optimizer::fixes) fn beside_subquery(
    expr: &mut Expr,
    subquery: &mut Subquery,
    schema: &DFSchema,
) -> Result<bool> {
    let of = expr.get_type(schema)?;
    let plan = &subquery.subquery;
    let Some((table, field)) = plan.schema().iter().next() else {
        return Ok(false);
    };
    match (&of, field.data_type()) {
        (DataType::Date32, DataType::Timestamp(unit, None)) if !is_near_day(expr) => {
            *expr = clock_of(std::mem::take(expr), *unit);
        }
        (DataType::Timestamp(unit, None), DataType::Date32) => {
            let day = Expr::Column(Column::from((table, field)));
            let clock = clock_of(day, *unit).alias(field.name());
            let days = LogicalPlanBuilder::from(plan.as_ref().clone());
            subquery.subquery = Arc::new(days.project([clock])?.build()?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The timestamp that a day is beside those of a unit.
fn clock_of(day: Expr, unit: TimeUnit) -> Expr {
    match unit {
        TimeUnit::Nanosecond => midnight(day),
        _ => {
            let to = DataType::Timestamp(TimeUnit::Microsecond, None);
            Expr::Cast(Cast::new(Box::new(day), to))
        }
    }
}

/// Gives a far day as it is written, and the timestamps without a zone that are results beside it, microseconds. False if they are
/// left to DataFusion.
pub(in crate::optimizer::fixes) fn with_far_days(
    results: &mut [&mut Expr],
    schema: &DFSchema,
) -> bool {
    if !results.iter().any(|result| is_far_day(result)) {
        return false;
    }
    let kinds = results.iter().map(|result| result.get_type(schema).ok());
    let kinds: Vec<Option<DataType>> = kinds.collect();
    let is_clock = |kind: &Option<DataType>| matches!(kind, Some(DataType::Timestamp(_, None)));
    if !kinds.iter().any(is_clock) {
        return false;
    }
    for (result, kind) in results.iter_mut().zip(&kinds) {
        if matches!(kind, Some(DataType::Date32)) || is_clock(kind) {
            let value = Box::new(std::mem::take(*result));
            let to = DataType::Timestamp(TimeUnit::Microsecond, None);
            **result = Expr::Cast(Cast::new(value, to));
        }
    }
    true
}

/// Whether a day is a literal that nanoseconds do not reach.
fn is_far_day(expr: &Expr) -> bool {
    let day = literal_of(expr, &DataType::Date32);
    day.is_some_and(|day| !day.is_null()) && !is_near_day(expr)
}

/// Whether a column of days is held against a day and a timestamp, which have no type in common that has the order of both.
pub(in crate::optimizer::fixes) fn has_day_and_clock(between: &Between, schema: &DFSchema) -> bool {
    let Expr::Column(_) = between.expr.as_ref() else {
        return false;
    };
    let kind = |expr: &Expr| expr.get_type(schema).ok();
    let is_day = |kind: &Option<DataType>| matches!(kind, Some(DataType::Date32));
    let is_clock = |kind: &Option<DataType>| matches!(kind, Some(DataType::Timestamp(_, None)));
    let bounds = [kind(&between.low), kind(&between.high)];
    is_day(&kind(&between.expr)) && bounds.iter().any(is_day) && bounds.iter().any(is_clock)
}

/// Both comparisons of a BETWEEN.
pub(in crate::optimizer::fixes) fn halves(between: &Between) -> [Expr; 2] {
    let Between {
        expr, low, high, ..
    } = between;
    let half = |op, bound: &Expr| binary_expr(expr.as_ref().clone(), op, bound.clone());
    [
        half(Operator::GtEq, low.as_ref()),
        half(Operator::LtEq, high.as_ref()),
    ]
}

/// Whether a day is a literal that nanoseconds reach.
fn is_near_day(expr: &Expr) -> bool {
    match literal_of(expr, &DataType::Date32) {
        Some(ScalarValue::Date32(day)) => {
            day.is_none_or(|day| !matches!(nanos_of_day(day), i64::MIN | i64::MAX))
        }
        _ => false,
    }
}

/// The value of a literal, also of one that is still a cast of its text.
fn literal_of(expr: &Expr, kind: &DataType) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) if value.data_type() == *kind => Some(value.clone()),
        Expr::Cast(cast) if cast.field.data_type() == kind => match cast.expr.as_ref() {
            Expr::Literal(text, _) if text.data_type().is_string() => text.cast_to(kind).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// A literal of nanoseconds that microseconds are enough for, as these.
fn in_micros(expr: &Expr) -> Option<Expr> {
    let kind = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let Some(ScalarValue::TimestampNanosecond(nanos, None)) = literal_of(expr, &kind) else {
        return None;
    };
    let is_whole = nanos.is_none_or(|nanos| nanos % 1_000 == 0);
    let micros = ScalarValue::TimestampMicrosecond(nanos.map(|nanos| nanos / 1_000), None);
    is_whole.then(|| Expr::Literal(micros, None))
}

/// Gives `operands` types that hold them all. False if they are left to DataFusion.
pub(in crate::optimizer::fixes) fn align(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    if !operands.iter().any(|operand| is_far_literal(operand)) {
        return false;
    }
    let kinds = operands.iter().map(|operand| operand.get_type(schema).ok());
    let kinds: Vec<Option<DataType>> = kinds.collect();
    let zone = kinds.iter().find_map(|kind| match kind {
        Some(DataType::Timestamp(_, zone)) => Some(zone.clone()),
        _ => None,
    });
    let Some(zone) = zone else {
        return false;
    };
    for (operand, kind) in operands.iter_mut().zip(kinds) {
        let zone = match kind {
            Some(DataType::Timestamp(TimeUnit::Nanosecond, zone)) => zone,
            Some(DataType::Date32 | DataType::Date64) => zone.clone(),
            Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
                if matches!(operand, Expr::Literal(..)) =>
            {
                zone.clone()
            }
            _ => continue,
        };
        let value = Box::new(std::mem::take(*operand));
        let to = DataType::Timestamp(TimeUnit::Microsecond, zone);
        **operand = Expr::Cast(Cast::new(value, to));
    }
    true
}

fn is_far_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => match value {
            ScalarValue::TimestampMicrosecond(Some(value), _) => value.checked_mul(1000).is_none(),
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)) => is_far(text),
            _ => false,
        },
        Expr::Cast(cast) => {
            let micro = matches!(
                cast.field.data_type(),
                DataType::Timestamp(TimeUnit::Microsecond, _)
            );
            micro && matches!(*cast.expr, Expr::Literal(..)) && is_far_literal(&cast.expr)
        }
        _ => false,
    }
}
