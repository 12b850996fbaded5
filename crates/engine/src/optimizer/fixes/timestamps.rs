//! Timestamps that nanoseconds do not reach: before 1677 and after 2262; timestamps without seconds.
//!
//! In: a parsed statement; operands that are to have one type. Out: `TIMESTAMP '9999-12-31'` in microseconds; beside it,
//! or beside a string of that kind, timestamps in nanoseconds are compared as microseconds. `'2024-01-31 12:30'` as
//! `'2024-01-31 12:30:00'`, where it is a timestamp: the host reads no time without seconds.
//! Invariant: a comparison loses nothing by that, because no nanosecond is as far.
//! The host reads every timestamp as nanoseconds and calls this one an overflow, also beside a column of microseconds.
//! Not here: timestamps within the range, which stay in nanoseconds.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, lit};

use crate::sql::far_timestamps::{is_far, with_seconds};

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
