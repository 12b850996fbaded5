//! Dates and timestamps of any type as microseconds, and the calendar that they are counted by.
//!
//! In: columns of dates and timestamps. Out: microseconds since 1970, by the clock of the column's zone or of UTC; dates.
//! Invariant: what lies below a microsecond is cut off towards the past, never rounded into the next one.
//! Not here: functions.

use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDate, Offset, TimeZone};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNano, TimeUnit, TimestampNanosecondType,
};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};

/// Microseconds of a second and of a day.
pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Days from 0001-01-01, chrono's first, to 1970-01-01.
const DAYS_TO_1970: i64 = 719_163;

/// Microseconds since 1970 in UTC.
pub(super) fn utc_micros(timestamps: &ArrayRef) -> Result<Int64Array> {
    match timestamps.data_type() {
        DataType::Date32 => {
            let days = timestamps.as_primitive::<Date32Type>();
            Ok(days.try_unary(|day| {
                i64::from(day)
                    .checked_mul(MICROS_PER_DAY)
                    .ok_or_else(|| out_of_range().into_arrow())
            })?)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let nanos = timestamps.as_primitive::<TimestampNanosecondType>();
            Ok(nanos.unary(|nanos| nanos.div_euclid(1_000)))
        }
        DataType::Timestamp(_, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            let counted = cast(&cast(timestamps, &micros)?, &DataType::Int64)?;
            Ok(counted.as_primitive::<Int64Type>().clone())
        }
        other => Err(exec_datafusion_err!(
            "{} is no date or timestamp",
            crate::error::types::type_name(other)
        )),
    }
}

/// Microseconds since 1970 as the clock of the column's zone shows them.
pub(super) fn local_micros(timestamps: &ArrayRef) -> Result<Int64Array> {
    let utc = utc_micros(timestamps)?;
    let DataType::Timestamp(_, Some(zone)) = timestamps.data_type() else {
        return Ok(utc);
    };
    let zone = Tz::from_str(zone)?;
    Ok(utc.unary_opt::<_, Int64Type>(|micros| {
        let timestamp = DateTime::from_timestamp_micros(micros)?.naive_utc();
        let offset = zone.offset_from_utc_datetime(&timestamp).fix();
        micros.checked_add(i64::from(offset.local_minus_utc()) * MICROS_PER_SECOND)
    }))
}

/// Seconds east of UTC of a column's zone at a timestamp; 0 without a zone.
pub(super) fn offset_seconds(data_type: &DataType, utc_micros: i64) -> Result<i32> {
    let DataType::Timestamp(_, Some(zone)) = data_type else {
        return Ok(0);
    };
    let timestamp = DateTime::from_timestamp_micros(utc_micros).ok_or_else(out_of_range)?;
    let offset = Tz::from_str(zone)?.offset_from_utc_datetime(&timestamp.naive_utc());
    Ok(offset.fix().local_minus_utc())
}

/// The day of a number of microseconds, and what is left of it.
pub(super) fn split_day(micros: i64) -> (i64, i64) {
    (
        micros.div_euclid(MICROS_PER_DAY),
        micros.rem_euclid(MICROS_PER_DAY),
    )
}

/// The date of a day counted from 1970.
pub(super) fn date_of(day: i64) -> Result<NaiveDate> {
    let days = i32::try_from(day + DAYS_TO_1970).ok();
    days.and_then(NaiveDate::from_num_days_from_ce_opt)
        .ok_or_else(out_of_range)
}

/// The day of a date, counted from 1970.
pub(super) fn days_of(date: NaiveDate) -> i64 {
    i64::from(date.num_days_from_ce()) - DAYS_TO_1970
}

/// Days of the month of a date.
pub(super) fn month_length(date: NaiveDate) -> u32 {
    u32::from(date.num_days_in_month())
}

/// The length of an interval of days and less; `None` if it counts months or is too long.
pub(super) fn micros_of_interval(interval: IntervalMonthDayNano) -> Option<i64> {
    if interval.months != 0 {
        return None;
    }
    let days = i64::from(interval.days).checked_mul(MICROS_PER_DAY)?;
    days.checked_add(interval.nanoseconds.div_euclid(1_000))
}

/// The error of a date that no calendar of ours has.
pub(super) fn out_of_range() -> DataFusionError {
    exec_datafusion_err!("a date or timestamp is out of range")
}

/// An error of DataFusion on its way through Arrow.
trait IntoArrow {
    fn into_arrow(self) -> datafusion::arrow::error::ArrowError;
}

impl IntoArrow for DataFusionError {
    fn into_arrow(self) -> datafusion::arrow::error::ArrowError {
        datafusion::arrow::error::ArrowError::ExternalError(Box::new(self))
    }
}
