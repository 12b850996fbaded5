//! Timestamps with a zone and the clock of that zone.
//!
//! In: timestamps with a zone, or timestamps without one and days; intervals that are added to the former. Out: casts between
//! them, and sums, by the clock of the zone.
//! Invariant: of a clock that a zone skips it is the time with the offset of before, of one that it repeats the second, as in
//! PostgreSQL. DataFusion takes the clock of UTC in casts to TIMESTAMP, and fails where a clock is skipped or repeated.
//! Not here: zones that a string names (text_casts.rs); AT TIME ZONE (at_time_zone.rs).

use std::sync::Arc;

use chrono::{DateTime, Months, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::expr::columns::has_offset;
use crate::expr::function_methods::function_methods;
use crate::expr::units::per_second;
use crate::functions::{null_as_args, text_cast};
use crate::wire::{Portable, WireReader, WireValue};

/// Hours before a skipped clock in which there is one with the offset of before: Samoa skipped a day.
const SKIPPED_HOURS: i64 = 26;

/// True of casts between a clock and a zone that has offsets.
pub(crate) fn is_zone_cast(of: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    match (of, to) {
        (Timestamp(_, Some(zone)), Timestamp(_, None))
        | (Timestamp(_, None) | Date32 | Date64, Timestamp(_, Some(zone))) => has_offset(zone),
        _ => false,
    }
}

/// True of a sum that goes by the clock of a zone.
pub(crate) fn is_zone_sum(left: &DataType, right: &DataType) -> bool {
    matches!(left, DataType::Timestamp(_, Some(zone)) if has_offset(zone))
        && matches!(right, DataType::Interval(_))
}

/// The cast; `is_try`: NULL for what does not fit.
pub(crate) fn zone_cast(value: Expr, to: DataType, is_try: bool) -> Expr {
    let operation = Operation::Cast { to, is_try };
    ScalarUDF::new_from_impl(Zoned::new(operation)).call(vec![value])
}

/// The cast of strings, timestamps or days to a zone, whatever zone that is.
pub(in crate::functions) fn cast_to_zone(value: Expr, of: &DataType, to: DataType) -> Expr {
    match of {
        _ if of.is_string() => text_cast(value, to, false),
        _ if is_zone_cast(of, &to) => zone_cast(value, to, false),
        _ => Expr::Cast(Cast::new(Box::new(value), to)),
    }
}

/// The sum, or the difference.
pub(crate) fn zone_sum(timestamp: Expr, interval: Expr, is_minus: bool) -> Expr {
    let operation = Operation::Sum { is_minus };
    ScalarUDF::new_from_impl(Zoned::new(operation)).call(vec![timestamp, interval])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Zoned {
    operation: Operation,
    signature: Signature,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Operation {
    Cast { to: DataType, is_try: bool },
    Sum { is_minus: bool },
}

impl Zoned {
    fn new(operation: Operation) -> Zoned {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Zoned {
            operation,
            signature,
        }
    }
}

impl ScalarUDFImpl for Zoned {
    function_methods!();

    fn name(&self) -> &str {
        match self.operation {
            Operation::Cast { .. } => "cast in zone",
            Operation::Sum { is_minus: false } => "plus in zone",
            Operation::Sum { is_minus: true } => "minus in zone",
        }
    }

    /// As with any cast, what is cast: the columns of grouping sets keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names = args.iter().map(|arg| arg.schema_name().to_string());
        let sign = match self.operation {
            Operation::Sum { is_minus: true } => " - ",
            _ => " + ",
        };
        Ok(names.collect::<Vec<_>>().join(sign))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &self.operation {
            Operation::Cast { to, .. } => Ok(to.clone()),
            Operation::Sum { .. } => Ok(types[0].clone()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match &self.operation {
            Operation::Cast { to, is_try: true } => {
                Ok(Arc::new(Field::new(self.name(), to.clone(), true)))
            }
            Operation::Cast { to, .. } => Ok(null_as_args(self.name(), to.clone(), &args)),
            Operation::Sum { .. } => {
                let of = args.arg_fields[0].data_type().clone();
                Ok(null_as_args(self.name(), of, &args))
            }
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_value = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let is_one = args.args.iter().all(is_value);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let values = match (&self.operation, arrays.as_slice()) {
            (Operation::Cast { to, is_try }, [values]) => in_zone(values, to, *is_try)?,
            (Operation::Sum { is_minus }, [values, intervals]) => {
                moved(values, intervals, *is_minus)?
            }
            _ => return internal_err!("{} of {} values", self.name(), arrays.len()),
        };
        match is_one {
            true => Ok(ScalarValue::try_from_array(&values, 0)?.into()),
            false => Ok(ColumnarValue::Array(values)),
        }
    }
}

impl Portable for Zoned {
    const KIND: &'static str = "zoned";

    fn apart(&self) -> Vec<WireValue> {
        match &self.operation {
            Operation::Cast { to, is_try } => vec![true.into(), to.into(), (*is_try).into()],
            Operation::Sum { is_minus } => vec![false.into(), (*is_minus).into()],
        }
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let operation = match values.flag()? {
            true => Operation::Cast {
                to: values.data_type()?,
                is_try: values.flag()?,
            },
            false => Operation::Sum {
                is_minus: values.flag()?,
            },
        };
        Ok(Zoned::new(operation))
    }
}

/// The cast of timestamps or days.
pub(in crate::functions) fn in_zone(
    values: &ArrayRef,
    to: &DataType,
    is_try: bool,
) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: is_try,
        ..CastOptions::default()
    };
    match (values.data_type(), to) {
        (DataType::Timestamp(unit, Some(zone)), DataType::Timestamp(_, None)) => {
            let zone: Tz = zone.parse()?;
            let per_s = per_second(*unit);
            let clocks = units(values)?;
            let clocks = shifted(&clocks, is_try, |value| {
                value.checked_add(offset_at(value, per_s, zone)? * per_s)
            })?;
            let local = cast(&clocks, &DataType::Timestamp(*unit, None))?;
            Ok(cast_with_options(&local, to, &options)?)
        }
        (_, DataType::Timestamp(unit, Some(name))) => {
            let zone: Tz = name.parse()?;
            let per_s = per_second(*unit);
            let local = DataType::Timestamp(*unit, None);
            let clocks = units(&cast_with_options(values, &local, &options)?)?;
            let instants = shifted(&clocks, is_try, |clock| instant(clock, per_s, zone))?;
            Ok(cast(&instants, to)?)
        }
        (of, to) => internal_err!("no cast in a zone from {of} to {to}"),
    }
}

/// Timestamps with intervals added: months and days by the clock, the rest by the time that passes.
fn moved(values: &ArrayRef, intervals: &ArrayRef, is_minus: bool) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, Some(zone)) = values.data_type() else {
        return internal_err!("no sum in a zone of {}", values.data_type());
    };
    let zone: Tz = zone.parse()?;
    let per_s = per_second(*unit);
    let intervals = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let rows = units(values)?;
    let rows = rows.iter().zip(intervals);
    let moved = rows.map(|row| match row {
        (Some(value), Some(interval)) => match moved_by(value, interval, is_minus, per_s, zone) {
            Some(moved) => Ok(Some(moved)),
            None => exec_err!("timestamp out of range"),
        },
        _ => Ok(None),
    });
    let moved: Int64Array = moved.collect::<Result<_>>()?;
    Ok(cast(&moved, values.data_type())?)
}

/// The timestamps from `start` on, up to `stop` or, where `with_stop`, to it; `None` where they are more than `most`. Each is a step
/// after the one before, as in PostgreSQL: a clock that a zone skips moves all that follow.
pub(in crate::functions) fn series(
    [start, stop]: [i64; 2],
    step: IntervalMonthDayNano,
    zone: Tz,
    with_stop: bool,
    most: usize,
) -> Option<Vec<i64>> {
    let per_s = per_second(TimeUnit::Nanosecond);
    let next = |value: i64| moved_by(value, step, false, per_s, zone);
    let is_down = next(start)? < start;
    let is_in = |value: &i64| match (is_down, with_stop) {
        _ if *value == stop => with_stop,
        (false, _) => *value < stop,
        (true, _) => *value > stop,
    };
    let is_on = |from: i64, to: &i64| if is_down { *to < from } else { *to > from };
    let mut values = Vec::new();
    let mut reached = Some(start);
    while let Some(value) = reached.filter(is_in) {
        if values.len() == most {
            return None;
        }
        values.push(value);
        reached = next(value).filter(|next| is_on(value, next));
    }
    Some(values)
}

fn moved_by(
    value: i64,
    interval: IntervalMonthDayNano,
    is_minus: bool,
    per_s: i64,
    zone: Tz,
) -> Option<i64> {
    let sign: i64 = if is_minus { -1 } else { 1 };
    let mut moved = value;
    if interval.months != 0 || interval.days != 0 {
        let clock = value.checked_add(offset_at(value, per_s, zone)?.checked_mul(per_s)?)?;
        let months = i64::from(interval.months) * sign;
        let date = local_clock(clock, per_s)?;
        let count = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
        let date_moved = match months < 0 {
            true => date.checked_sub_months(count)?,
            false => date.checked_add_months(count)?,
        };
        let days = TimeDelta::try_days(i64::from(interval.days) * sign)?;
        let passed = date_moved.checked_add_signed(days)? - date;
        let clock = clock.checked_add(passed.num_seconds().checked_mul(per_s)?)?;
        moved = instant(clock, per_s, zone)?;
    }
    let nanos = i128::from(interval.nanoseconds) * i128::from(sign);
    let rest = nanos * i128::from(per_s) / 1_000_000_000;
    moved.checked_add(i64::try_from(rest).ok()?)
}

/// Values of timestamps.
fn units(values: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(values, &DataType::Int64)?
        .as_primitive::<Int64Type>()
        .clone())
}

fn shifted(
    values: &Int64Array,
    is_try: bool,
    shift: impl Fn(i64) -> Option<i64>,
) -> Result<Int64Array> {
    match is_try {
        true => Ok(values.unary_opt(shift)),
        false => values.try_unary(|value| match shift(value) {
            Some(shifted) => Ok(shifted),
            None => exec_err!("timestamp out of range"),
        }),
    }
}

fn local_clock(clock: i64, per_s: i64) -> Option<NaiveDateTime> {
    let second = DateTime::from_timestamp(clock.div_euclid(per_s), 0)?;
    Some(second.naive_utc())
}

/// Seconds between UTC and the clock of the zone at an instant.
fn offset_at(instant: i64, per_s: i64, zone: Tz) -> Option<i64> {
    let offset = zone.offset_from_utc_datetime(&local_clock(instant, per_s)?);
    Some(i64::from(offset.fix().local_minus_utc()))
}

/// The instant at which the zone's clock is so late.
fn instant(clock: i64, per_s: i64, zone: Tz) -> Option<i64> {
    let local = local_clock(clock, per_s)?;
    let offset = match zone.offset_from_local_datetime(&local).latest() {
        Some(offset) => offset,
        None => {
            let hours = (1..=SKIPPED_HOURS).map(TimeDelta::hours);
            let mut before = hours.filter_map(|hours| {
                let local = local.checked_sub_signed(hours)?;
                zone.offset_from_local_datetime(&local).latest()
            });
            before.next()?
        }
    };
    let seconds = i64::from(offset.fix().local_minus_utc());
    clock.checked_sub(seconds.checked_mul(per_s)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_a_zone_skips_or_repeats() {
        let clock = |text: &str| {
            let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
            local.and_utc().timestamp()
        };
        let utc = |zone: &str, text: &str| instant(clock(text), 1, zone.parse().unwrap()).unwrap();
        for (zone, local, expected) in [
            ("America/New_York", "2024-03-10 02:30", "2024-03-10 07:30"),
            ("America/New_York", "2024-11-03 01:30", "2024-11-03 06:30"),
            ("America/New_York", "2024-07-01 00:00", "2024-07-01 04:00"),
            ("Pacific/Apia", "2011-12-30 12:00", "2011-12-30 22:00"),
            ("+05:30", "2024-07-01 00:00", "2024-06-30 18:30"),
        ] {
            assert_eq!(utc(zone, local), clock(expected), "{zone} {local}");
        }
    }

    #[test]
    fn days_go_by_the_clock_and_hours_by_the_time() {
        let zone: Tz = "America/New_York".parse().unwrap();
        let day = IntervalMonthDayNano::new(0, 1, 0);
        let hours = IntervalMonthDayNano::new(0, 0, 24 * 3_600 * 1_000_000_000);
        // 2024-03-09 12:00 and 2024-03-10 12:00 in New York, which went from -05 to -04.
        let (noon, next) = (1_710_003_600, 1_710_086_400);
        assert_eq!(moved_by(noon, day, false, 1, zone), Some(next));
        assert_eq!(moved_by(noon, hours, false, 1, zone), Some(noon + 86_400));
        assert_eq!(moved_by(next, day, true, 1, zone), Some(noon));
    }
}
