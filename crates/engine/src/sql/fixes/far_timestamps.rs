//! Timestamp literals that nanoseconds do not reach: before 1677 and after 2262.
//!
//! In: a literal of a parsed statement. Out: `TIMESTAMP '9999-12-31'` in microseconds; DataFusion reads every timestamp as
//! nanoseconds and calls this one an overflow.
//! Not here: timestamps within the range, which stay in nanoseconds; comparisons (optimizer/fixes/types/timestamps.rs).

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

/// Gives a timestamp literal that nanoseconds do not hold the precision of microseconds.
pub(crate) fn far_timestamp(expr: &mut SqlExpr) {
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
