//! Timestamps that nanoseconds do not reach: before 1677 and after 2262.
//!
//! In: a parsed statement; operands that are to have one type. Out: `TIMESTAMP '9999-12-31'` in microseconds; beside it,
//! or beside a string of that kind, timestamps in nanoseconds are compared as microseconds.
//! Invariant: a comparison loses nothing by that, because no nanosecond is as far.
//! The host reads every timestamp as nanoseconds and calls this one an overflow, also beside a column of microseconds.
//! Not here: timestamps within the range, which stay in nanoseconds.

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
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

/// Gives a timestamp literal that nanoseconds do not hold the precision of microseconds.
pub fn far_timestamp(expr: &mut SqlExpr) {
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
