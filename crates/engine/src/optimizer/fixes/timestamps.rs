//! Timestamps that nanoseconds do not reach: before 1677 and after 2262; timestamps without seconds.
//!
//! In: a parsed statement; operands that are to have one type. Out: `TIMESTAMP '9999-12-31'` in microseconds; beside it,
//! or beside a string of that kind, timestamps in nanoseconds are compared as microseconds. `'2024-01-31 12:30'` as
//! `'2024-01-31 12:30:00'`, where it is a timestamp: the host reads no time without seconds.
//! Invariant: a comparison loses nothing by that, because no nanosecond is as far.
//! The host reads every timestamp as nanoseconds and calls this one an overflow, also beside a column of microseconds.
//! Not here: timestamps within the range, which stay in nanoseconds.

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, lit};
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, TypedString, Value, ValueWithSpan,
};

use crate::functions::readable;

/// The precision of microseconds.
const MICROSECONDS: u64 = 6;

/// Whether `text` is a timestamp that microseconds hold and nanoseconds do not.
fn is_far(text: &str) -> bool {
    let to = DataType::Timestamp(TimeUnit::Microsecond, None);
    let readable = readable(text, &to);
    let text = readable.as_deref().unwrap_or(text);
    let time = "+00:00"
        .parse()
        .and_then(|utc: Tz| string_to_datetime(&utc, text));
    time.is_ok_and(|time| time.timestamp_nanos_opt().is_none())
}

/// `2024-01-31 12:30:00` for `2024-01-31 12:30`, with its zone; `None` if it has seconds, or is no timestamp.
fn with_seconds(text: &str) -> Option<String> {
    let (date, time) = text.trim().split_once([' ', 'T'])?;
    let is_date = date.starts_with(|c: char| c.is_ascii_digit()) && date.contains('-');
    let end = time.find(|c: char| !c.is_ascii_digit() && c != ':');
    let (clock, zone) = time.split_at(end.unwrap_or(time.len()));
    let (hours, minutes) = clock.split_once(':')?;
    let has_digits = matches!(hours.len(), 1 | 2) && minutes.len() == 2;
    let is_clock = has_digits && !zone.starts_with('.') && !minutes.contains(':');
    (is_date && is_clock).then(|| format!("{date} {hours:0>2}:{minutes}:00{zone}"))
}

/// Gives a timestamp literal its seconds, and one that nanoseconds do not hold the precision of microseconds.
pub fn far_timestamp(expr: &mut SqlExpr) {
    complete(expr);
    let (far, kind) = match expr {
        SqlExpr::TypedString(TypedString {
            data_type, value, ..
        }) => (is_far_text(value), data_type),
        SqlExpr::Cast {
            expr, data_type, ..
        } => match expr.as_ref() {
            SqlExpr::Value(value) => (is_far_text(value), data_type),
            _ => return,
        },
        _ => return,
    };
    if let SqlType::Timestamp(precision @ None, _) = kind
        && far
    {
        *precision = Some(MICROSECONDS);
    }
}

fn complete(expr: &mut SqlExpr) {
    let (value, kind) = match expr {
        SqlExpr::TypedString(TypedString {
            data_type, value, ..
        }) => (value, data_type),
        SqlExpr::Cast {
            expr, data_type, ..
        } => match expr.as_mut() {
            SqlExpr::Value(value) => (value, data_type),
            _ => return,
        },
        _ => return,
    };
    if let SqlType::Timestamp(..) | SqlType::Datetime(_) | SqlType::TimestampNtz(_) = kind
        && let Value::SingleQuotedString(text) = &mut value.value
        && let Some(whole) = with_seconds(text)
    {
        *text = whole;
    }
}

/// Gives strings beside timestamps their seconds; false if they have them.
pub(super) fn complete_beside(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let lacks_seconds = |operand: &&mut Expr| seconds_of(operand).is_some();
    let is_timestamp = |operand: &&mut Expr| {
        let of = operand.get_type(schema);
        of.is_ok_and(|of| matches!(of, DataType::Timestamp(..)))
    };
    if !operands.iter().any(lacks_seconds) || !operands.iter().any(is_timestamp) {
        return false;
    }
    for operand in operands {
        if let Some(whole) = seconds_of(operand) {
            **operand = lit(whole);
        }
    }
    true
}

fn seconds_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(value, _) => with_seconds(value.try_as_str()??),
        _ => None,
    }
}

fn is_far_text(value: &ValueWithSpan) -> bool {
    match &value.value {
        Value::SingleQuotedString(text) => is_far(text),
        _ => false,
    }
}

/// Gives `operands` types that hold them all. False if they are left to the host.
pub(super) fn align(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_seconds() {
        let whole = |text| with_seconds(text).unwrap_or_default();
        assert_eq!(whole("2024-01-31 12:30"), "2024-01-31 12:30:00");
        assert_eq!(whole(" 2024-01-31T9:30+02 "), "2024-01-31 09:30:00+02");
        assert_eq!(with_seconds("2024-01-31 12:30:15"), None);
        assert_eq!(with_seconds("2024-01-31 12"), None);
        assert_eq!(with_seconds("see 12:30"), None);
    }
}
