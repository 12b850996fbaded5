//! Timestamp literals that nanoseconds do not reach: before 1677 and after 2262.
//!
//! In: a literal of a parsed statement. Out: `TIMESTAMP '9999-12-31'` in microseconds; DataFusion reads every timestamp as
//! nanoseconds and calls this one an overflow.
//! Not here: timestamps within the range, which stay in nanoseconds; comparisons (optimizer/fixes/timestamps.rs).

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, TypedString, Value, ValueWithSpan,
};

use crate::functions::readable;

/// The precision of microseconds.
const MICROSECONDS: u64 = 6;

/// Whether `text` is a timestamp that microseconds hold and nanoseconds do not.
pub(crate) fn is_far(text: &str) -> bool {
    let to = DataType::Timestamp(TimeUnit::Microsecond, None);
    let readable = readable(text, &to);
    let text = readable.as_deref().unwrap_or(text);
    let time = "+00:00"
        .parse()
        .and_then(|utc: Tz| string_to_datetime(&utc, text));
    time.is_ok_and(|time| time.timestamp_nanos_opt().is_none())
}

fn is_far_text(value: &ValueWithSpan) -> bool {
    match &value.value {
        Value::SingleQuotedString(text) => is_far(text),
        _ => false,
    }
}

/// `2024-01-31 12:30:00` for `2024-01-31 12:30`, with its zone; `None` if it has seconds, or is no timestamp.
pub(crate) fn with_seconds(text: &str) -> Option<String> {
    let (date, time) = text.trim().split_once([' ', 'T'])?;
    let is_date = date.starts_with(|c: char| c.is_ascii_digit()) && date.contains('-');
    let end = time.find(|c: char| !c.is_ascii_digit() && c != ':');
    let (clock, zone) = time.split_at(end.unwrap_or(time.len()));
    let (hours, minutes) = clock.split_once(':')?;
    let has_digits = matches!(hours.len(), 1 | 2) && minutes.len() == 2;
    let is_clock = has_digits && !zone.starts_with('.') && !minutes.contains(':');
    (is_date && is_clock).then(|| format!("{date} {hours:0>2}:{minutes}:00{zone}"))
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

/// Gives a timestamp literal its seconds, and one that nanoseconds do not hold the precision of microseconds.
pub(crate) fn far_timestamp(expr: &mut SqlExpr) {
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
