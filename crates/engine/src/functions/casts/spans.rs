//! What lies between two timestamps, as an interval: whole days and the rest of one, `69 days 05:00:00`.
//!
//! In: durations, which differences of timestamps are to DataFusion. Out: intervals without months, as in PostgreSQL.
//! Invariant: the length stays. DataFusion's cast has no days: `extract(day FROM …)` of it was 0, and its hours were 1661.
//! Not here: which differences become intervals (optimizer/fixes/types/own_casts.rs); text of durations (value_text.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit,
};
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::logical_expr::Expr;

use crate::functions::casts::intervals::NANOS_PER_DAY;
use crate::functions::casts::own_cast::{OwnCast, own_cast};
use crate::wire::{Portable, WireReader, WireValue};

/// The interval of a duration.
pub(crate) fn interval_of_span(span: Expr) -> Expr {
    own_cast(IntervalOfSpan, span)
}

/// True of a cast that [`interval_of_span`] is.
pub(crate) fn is_span_cast(of: &DataType, to: &DataType) -> bool {
    matches!(of, DataType::Duration(_)) && to == IntervalOfSpan.to()
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct IntervalOfSpan;

impl OwnCast for IntervalOfSpan {
    fn name(&self) -> &'static str {
        "interval of span"
    }

    fn to(&self) -> &DataType {
        &DataType::Interval(IntervalUnit::MonthDayNano)
    }

    fn compute(&self, spans: &ArrayRef) -> Result<ArrayRef> {
        let DataType::Duration(unit) = spans.data_type() else {
            return internal_err!("an interval of {}", spans.data_type());
        };
        let unit_ns = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        let counts = cast(spans, &DataType::Int64)?;
        let counts: &Int64Array = counts.as_primitive::<Int64Type>();
        let intervals = counts
            .iter()
            .map(|count| count.map(|count| interval(count, unit_ns)).transpose());
        let intervals = intervals.collect::<Result<IntervalMonthDayNanoArray>>()?;
        Ok(Arc::new(intervals))
    }
}

/// The interval of so many units.
fn interval(count: i64, unit_ns: i64) -> Result<IntervalMonthDayNano> {
    let units_per_day = NANOS_PER_DAY / unit_ns;
    let days = i32::try_from(count / units_per_day).map_err(|_| {
        exec_datafusion_err!(
            "a span of {} days is too long for an interval",
            count / units_per_day
        )
    })?;
    let rest_ns = count % units_per_day * unit_ns;
    Ok(IntervalMonthDayNano::new(0, days, rest_ns))
}

impl Portable for IntervalOfSpan {
    const KIND: &'static str = "interval_of_span";

    fn apart(&self) -> Vec<WireValue> {
        Vec::new()
    }

    fn whole(_: &mut WireReader) -> Result<Self> {
        Ok(IntervalOfSpan)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DurationMicrosecondArray, DurationSecondArray};

    use super::*;

    #[test]
    fn whole_days_and_the_rest_of_one() {
        let hour = 3_600_000_000;
        let spans = vec![Some(29 * hour), Some(-29 * hour), None, Some(i64::MAX)];
        let spans: ArrayRef = Arc::new(DurationMicrosecondArray::from(spans));
        let intervals = IntervalOfSpan.compute(&spans).unwrap();
        let expected = IntervalMonthDayNanoArray::from(vec![
            Some(IntervalMonthDayNano::new(0, 1, 5 * hour * 1000)),
            Some(IntervalMonthDayNano::new(0, -1, -5 * hour * 1000)),
            None,
            Some(IntervalMonthDayNano::new(
                0,
                106_751_991,
                14_454_775_807_000,
            )),
        ]);
        assert_eq!(intervals.as_ref(), &expected as &dyn Array);
        let long: ArrayRef = Arc::new(DurationSecondArray::from(vec![i64::MAX]));
        assert!(IntervalOfSpan.compute(&long).is_err());
    }
}
