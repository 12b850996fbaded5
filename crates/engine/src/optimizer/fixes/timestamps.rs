//! Timestamps beside others: with and without a zone, and those that nanoseconds do not reach, before 1677 and after 2262.
//!
//! In: operands that are to have one type. Out: all have a zone if one has; beside such a timestamp, or a string of that kind, timestamps in nanoseconds are
//! compared as microseconds.
//! Invariant: a comparison loses nothing by that, because no nanosecond is as far.
//! Not here: literals (sql/far_timestamps.rs); timestamps within the range, which stay in nanoseconds.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use crate::sql::far_timestamps::is_far;

/// Gives days and timestamps without a zone, beside one with a zone, its type: DataFusion leaves the zone out beside a day.
pub(super) fn in_one_zone(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
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

/// Gives `operands` types that hold them all. False if they are left to DataFusion.
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
