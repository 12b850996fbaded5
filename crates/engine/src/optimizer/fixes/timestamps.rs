//! Timestamps that nanoseconds do not reach, before 1677 and after 2262, beside others.
//!
//! In: operands that are to have one type. Out: beside such a timestamp, or a string of that kind, timestamps in nanoseconds are
//! compared as microseconds.
//! Invariant: a comparison loses nothing by that, because no nanosecond is as far.
//! Not here: literals (sql/far_timestamps.rs); timestamps within the range, which stay in nanoseconds.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use crate::sql::far_timestamps::is_far;

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
