//! Functions of dates, times and intervals that DuckDB has: parts, differences, buckets, and how they are made.
//!
//! In: dates, timestamps, times and intervals. Out: numbers, strings, dates and timestamps.
//! Invariant: a timestamp with a time zone counts by that zone's clock, except in differences and buckets of fixed
//! length, which count what has passed.
//! Not here: formats (date_formats.rs), units (units.rs), DataFusion's own `date_part`, `date_trunc`, `date_bin`.

use std::sync::Arc;

use chrono::{Datelike, Months, NaiveDate};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array, Int64Array};
use datafusion::arrow::array::{Float64Array, IntervalMonthDayNanoArray, StringViewArray};
use datafusion::arrow::array::{
    Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
    TimeUnit,
};
use datafusion::common::Result;
use datafusion::functions::datetime::expr_fn::{current_date, date_part, now};
use datafusion::logical_expr::{Expr, ScalarUDF, cast as cast_to, lit};

use super::definition::{CallArguments, CallForm, Definition, only, rows, stands};
use super::kinds::{ParameterKind, TIMESTAMP};
use super::timestamps::{
    MICROS_PER_DAY, MICROS_PER_SECOND, date_of, days_of, local_micros, micros_of_interval,
    month_length, offset_seconds, out_of_range, split_day, utc_micros,
};
use super::units::{Unit, age, difference, month_bucket, whole_difference};
use crate::error::Error;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The day that buckets of days and less begin at, 2000-01-03, a Monday, and the one of buckets of months, 2000-01-01.
const FIRST_MONDAY: i64 = 10_959;
const FIRST_MONTH: i64 = 10_957;

const OF_TIMESTAMP: &[CallForm] = &[&[ParameterKind::Timestamp]];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let parts = parts().into_iter().chain(counts()).chain(epochs());
    let rest = differences().into_iter().chain(made()).chain(intervals());
    parts.chain(rest).map(ScalarUDF::from).collect()
}

/// A part as DataFusion's `date_part` knows it, as BIGINT.
macro_rules! part {
    ($name:literal, $part:literal) => {
        stands(
            $name,
            &[
                &[ParameterKind::Timestamp],
                &[ParameterKind::Time],
                &[ParameterKind::Interval],
            ],
            |args| Ok(bigint(date_part(lit($part), only(args)))),
        )
    };
}

/// Seconds with their fraction in units of so many nanoseconds. Of intervals DataFusion leaves fractions out.
macro_rules! fraction {
    ($name:literal, $nanos:literal) => {
        stands(
            $name,
            &[&[ParameterKind::Timestamp], &[ParameterKind::Time]],
            |args| Ok(bigint(date_part(lit($name), only(args)))),
        )
        .or_rows(
            &[ParameterKind::Interval],
            |_| Ok(DataType::Int64),
            |call| {
                const MINUTE: i64 = 60_000_000_000;
                let intervals = call.args[0].as_primitive::<IntervalMonthDayNanoType>();
                call.each::<Int64Array, _>(|row| {
                    Ok(Some(intervals.value(row).nanoseconds % MINUTE / $nanos))
                })
            },
        )
    };
}

fn parts() -> Vec<Definition> {
    vec![
        part!("year", "year"),
        part!("quarter", "quarter"),
        part!("month", "month"),
        part!("week", "week"),
        part!("weekofyear", "week"),
        part!("day", "day"),
        part!("dayofmonth", "day"),
        part!("dayofweek", "dow"),
        part!("weekday", "dow"),
        part!("isodow", "isodow"),
        part!("dayofyear", "doy"),
        part!("isoyear", "isoyear"),
        part!("hour", "hour"),
        part!("minute", "minute"),
        part!("second", "second"),
        fraction!("millisecond", 1_000_000),
        fraction!("microsecond", 1_000),
        fraction!("nanosecond", 1),
        stands("yearweek", OF_TIMESTAMP, |args| {
            let timestamp = only(args);
            let year = bigint(date_part(lit("isoyear"), timestamp.clone()));
            Ok(year * lit(100_i64) + bigint(date_part(lit("week"), timestamp)))
        }),
    ]
}

fn bigint(expr: Expr) -> Expr {
    cast_to(expr, DataType::Int64)
}

/// What is counted from the date itself, and names.
fn counts() -> Vec<Definition> {
    let int = |_: &[DataType]| Ok(DataType::Int64);
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    vec![
        rows("century", OF_TIMESTAMP, int, |call| {
            of_date(call, |date| {
                (i64::from(date.year()) - 1).div_euclid(100) + 1
            })
        }),
        rows("decade", OF_TIMESTAMP, int, |call| {
            of_date(call, |date| i64::from(date.year()).div_euclid(10))
        }),
        rows("millennium", OF_TIMESTAMP, int, |call| {
            of_date(call, |date| {
                (i64::from(date.year()) - 1).div_euclid(1000) + 1
            })
        }),
        rows("era", OF_TIMESTAMP, int, |call| {
            of_date(call, |date| i64::from(date.year() > 0))
        }),
        rows("timezone", OF_TIMESTAMP, int, |call| {
            of_zone(call, |east| east)
        }),
        rows("timezone_hour", OF_TIMESTAMP, int, |call| {
            of_zone(call, |east| east / 3_600)
        }),
        rows("timezone_minute", OF_TIMESTAMP, int, |call| {
            of_zone(call, |east| east % 3_600 / 60)
        }),
        rows("days_in_month", OF_TIMESTAMP, int, |call| {
            of_date(call, |date| month_length(date).into())
        }),
        rows("dayname", OF_TIMESTAMP, text, |call| name_of(call, "%A")),
        rows("monthname", OF_TIMESTAMP, text, |call| name_of(call, "%B")),
        rows("last_day", OF_TIMESTAMP, |_| Ok(DataType::Date32), last_day),
        rows("julian", OF_TIMESTAMP, |_| Ok(DataType::Float64), julian),
    ]
}

fn of_date(call: &CallArguments, count: fn(NaiveDate) -> i64) -> Result<ArrayRef> {
    let micros = local_micros(&call.args[0])?;
    call.each::<Int64Array, _>(|row| Ok(Some(count(date_of(split_day(micros.value(row)).0)?))))
}

/// What is said of the seconds by which the zone's clock is before that of UTC.
fn of_zone(call: &CallArguments, part: fn(i64) -> i64) -> Result<ArrayRef> {
    let utc = utc_micros(&call.args[0])?;
    let of = call.args[0].data_type();
    call.each::<Int64Array, _>(|row| {
        let east = offset_seconds(of, utc.value(row))?;
        Ok(Some(part(i64::from(east))))
    })
}

fn name_of(call: &CallArguments, format: &str) -> Result<ArrayRef> {
    let micros = local_micros(&call.args[0])?;
    call.each::<StringViewArray, _>(|row| {
        let date = date_of(split_day(micros.value(row)).0)?;
        Ok(Some(date.format(format).to_string()))
    })
}

fn last_day(call: &CallArguments) -> Result<ArrayRef> {
    let micros = local_micros(&call.args[0])?;
    call.each::<Date32Array, _>(|row| {
        let day = split_day(micros.value(row)).0;
        let date = date_of(day)?;
        Ok(Some(
            (day + i64::from(month_length(date) - date.day())) as i32,
        ))
    })
}

/// Days since noon of 24 November 4714 BC, as a fraction that begins at midnight as DuckDB's does.
fn julian(call: &CallArguments) -> Result<ArrayRef> {
    /// The number of 1970-01-01.
    const JULIAN_1970: f64 = 2_440_588.0;
    let micros = local_micros(&call.args[0])?;
    call.each::<Float64Array, _>(|row| {
        Ok(Some(
            JULIAN_1970 + micros.value(row) as f64 / MICROS_PER_DAY as f64,
        ))
    })
}

/// Time since 1970, and back.
fn epochs() -> Vec<Definition> {
    let int = |_: &[DataType]| Ok(DataType::Int64);
    const ALL: &[CallForm] = &[
        &[ParameterKind::Timestamp],
        &[ParameterKind::Time],
        &[ParameterKind::Interval],
    ];
    vec![
        rows(
            "epoch",
            ALL,
            |_| Ok(DataType::Float64),
            |call| {
                let micros = passed_micros(call)?;
                call.each::<Float64Array, _>(|row| {
                    Ok(Some(micros.value(row) as f64 / MICROS_PER_SECOND as f64))
                })
            },
        ),
        rows(
            "epoch_ms",
            &[
                &[ParameterKind::Integer],
                &[ParameterKind::Timestamp],
                &[ParameterKind::Time],
                &[ParameterKind::Interval],
            ],
            |types| match types {
                [DataType::Int64] => Ok(DataType::Timestamp(TimeUnit::Millisecond, None)),
                _ => Ok(DataType::Int64),
            },
            epoch_ms,
        ),
        rows("epoch_us", ALL, int, |call| {
            Ok(Arc::new(passed_micros(call)?))
        }),
        rows("epoch_ns", ALL, int, |call| {
            if let DataType::Timestamp(TimeUnit::Nanosecond, _) = call.args[0].data_type() {
                return Ok(cast(&call.args[0], &DataType::Int64)?);
            }
            let micros = passed_micros(call)?;
            call.each::<Int64Array, _>(|row| {
                let nanos = micros.value(row).checked_mul(1_000);
                nanos.map(Some).ok_or_else(out_of_range)
            })
        }),
        rows(
            "make_timestamp",
            MADE_TIMESTAMP,
            |_| Ok(TIMESTAMP),
            make_timestamp,
        ),
        rows(
            "make_time",
            &[&[
                ParameterKind::Integer,
                ParameterKind::Integer,
                ParameterKind::Double,
            ]],
            |_| Ok(DataType::Time64(TimeUnit::Nanosecond)),
            make_time,
        ),
    ]
}

/// Microseconds since 1970, since midnight, or of an interval, whose years have 365.25 days as in PostgreSQL.
fn passed_micros(call: &CallArguments) -> Result<Int64Array> {
    let argument = &call.args[0];
    match argument.data_type() {
        DataType::Time64(_) => {
            let micros = argument.as_primitive::<Time64MicrosecondType>();
            Ok(micros.unary(|micros| micros))
        }
        DataType::Interval(_) => {
            let intervals = argument.as_primitive::<IntervalMonthDayNanoType>();
            Ok(intervals.unary(|interval| {
                let (years, months) = (interval.months / 12, interval.months % 12);
                let hours = i64::from(years) * 8_766 + i64::from(months) * 720;
                (hours + i64::from(interval.days) * 24) * 3_600 * MICROS_PER_SECOND
                    + interval.nanoseconds / 1_000
            }))
        }
        _ => utc_micros(argument),
    }
}

fn epoch_ms(call: &CallArguments) -> Result<ArrayRef> {
    if call.args[0].data_type() == &DataType::Int64 {
        let millis = call.integers(0);
        return call.each::<TimestampMillisecondArray, _>(|row| Ok(Some(millis.value(row))));
    }
    let micros = passed_micros(call)?;
    call.each::<Int64Array, _>(|row| {
        let rounded = micros
            .value(row)
            .checked_add(500)
            .ok_or_else(out_of_range)?;
        Ok(Some(rounded.div_euclid(1_000)))
    })
}

const MADE_TIMESTAMP: &[CallForm] = &[
    &[ParameterKind::Integer],
    &[
        ParameterKind::Integer,
        ParameterKind::Integer,
        ParameterKind::Integer,
        ParameterKind::Integer,
        ParameterKind::Integer,
        ParameterKind::Double,
    ],
];

fn make_timestamp(call: &CallArguments) -> Result<ArrayRef> {
    let of_micros = call.args.len() == 1;
    call.each::<TimestampMicrosecondArray, _>(|row| {
        let part = |at: usize| call.integers(at).value(row);
        if of_micros {
            return Ok(Some(part(0)));
        }
        let seconds = call.doubles(5).value(row);
        let timestamp = timestamp_of([part(0), part(1), part(2), part(3), part(4)], seconds);
        let invalid = || {
            let (year, month, day) = (part(0), part(1), part(2));
            let (hour, minute) = (part(3), part(4));
            call.invalid(format!(
                "there is no timestamp {year}-{month}-{day} {hour}:{minute}:{seconds}"
            ))
        };
        timestamp.map(Some).ok_or_else(invalid)
    })
}

fn timestamp_of(parts: [i64; 5], seconds: f64) -> Option<i64> {
    let [year, month, day, hour, minute] = parts;
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let time = micros_of_day([hour, minute], seconds)?;
    days_of(date).checked_mul(MICROS_PER_DAY)?.checked_add(time)
}

/// Microseconds since midnight.
fn micros_of_day([hour, minute]: [i64; 2], seconds: f64) -> Option<i64> {
    let in_day = (0..24).contains(&hour) && (0..60).contains(&minute);
    if !in_day || !(0.0..60.0).contains(&seconds) {
        return None;
    }
    let micros = (seconds * MICROS_PER_SECOND as f64).round() as i64;
    Some((hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros)
}

/// DataFusion's takes whole seconds, and has them as its unit, which no other TIME has.
fn make_time(call: &CallArguments) -> Result<ArrayRef> {
    call.each::<Time64NanosecondArray, _>(|row| {
        let [hour, minute] = [0, 1].map(|at| call.integers(at).value(row));
        let seconds = call.doubles(2).value(row);
        let micros = micros_of_day([hour, minute], seconds);
        match micros.filter(|micros| *micros < MICROS_PER_DAY) {
            Some(micros) => Ok(Some(micros * 1_000)),
            None => Err(call.invalid(format!("there is no time {hour}:{minute}:{seconds}"))),
        }
    })
}

fn differences() -> Vec<Definition> {
    let int = |_: &[DataType]| Ok(DataType::Int64);
    const BETWEEN: &[CallForm] = &[
        &[
            ParameterKind::Text,
            ParameterKind::Timestamp,
            ParameterKind::Timestamp,
        ],
        &[
            ParameterKind::Text,
            ParameterKind::Time,
            ParameterKind::Time,
        ],
    ];
    let date_diff = rows("date_diff", BETWEEN, int, |call| between(call, difference));
    let date_sub = rows("date_sub", BETWEEN, int, |call| {
        between(call, whole_difference)
    });
    vec![
        date_diff.also("datediff"),
        date_sub.also("datesub"),
        date_diff,
        date_sub,
        rows(
            "date_add",
            &[&[ParameterKind::Timestamp, ParameterKind::Interval]],
            added_type,
            date_add,
        ),
        ages().or(&[ParameterKind::Timestamp], |args| {
            Ok(ScalarUDF::from(ages()).call(vec![cast_to(current_date(), TIMESTAMP), only(args)]))
        }),
        rows("time_bucket", BUCKETS, bucket_type, time_bucket),
        stands("ago", &[&[ParameterKind::Interval]], |args| {
            Ok(now() - only(args))
        }),
    ]
}

/// `age` of two timestamps.
fn ages() -> Definition {
    rows(
        "age",
        &[&[ParameterKind::Timestamp, ParameterKind::Timestamp]],
        |_| Ok(INTERVAL),
        |call| {
            let (end, start) = (local_micros(&call.args[0])?, local_micros(&call.args[1])?);
            call.each::<IntervalMonthDayNanoArray, _>(|row| {
                age(start.value(row), end.value(row))
                    .and_then(|age| interval(call, age))
                    .map(Some)
            })
        },
    )
}

/// An interval so many times.
pub(in crate::functions) fn interval_times() -> ScalarUDF {
    let times = rows(
        "interval_times",
        &[&[ParameterKind::Interval, ParameterKind::Integer]],
        |_| Ok(INTERVAL),
        |call| {
            let intervals = call.args[0].as_primitive::<IntervalMonthDayNanoType>();
            call.each::<IntervalMonthDayNanoArray, _>(|row| {
                let (one, times) = (intervals.value(row), call.integers(1).value(row));
                let parts = i64::from(one.months)
                    .checked_mul(times)
                    .zip(i64::from(one.days).checked_mul(times))
                    .zip(one.nanoseconds.checked_mul(times));
                let ((months, days), nanos) = parts.ok_or_else(out_of_range)?;
                let parts = (i32::try_from(months), i32::try_from(days));
                match parts {
                    (Ok(months), Ok(days)) => {
                        Ok(Some(IntervalMonthDayNano::new(months, days, nanos)))
                    }
                    _ => Err(call.invalid("the interval is too long")),
                }
            })
        },
    );
    let times = times.or_rows(
        &[ParameterKind::Interval, ParameterKind::Double],
        |_| Ok(INTERVAL),
        |call| scaled(call, |part, by| part * by),
    );
    ScalarUDF::from(times)
}

/// An interval divided by a number.
pub(in crate::functions) fn interval_by() -> ScalarUDF {
    ScalarUDF::from(rows(
        "interval_by",
        &[&[ParameterKind::Interval, ParameterKind::Double]],
        |_| Ok(INTERVAL),
        |call| match call.doubles(1).iter().flatten().any(|by| by == 0.0) {
            true => Err(Error::Execution("division by zero".to_owned()).into()),
            false => scaled(call, |part, by| part / by),
        },
    ))
}

/// Intervals with each part scaled.
fn scaled(call: &CallArguments, scale: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (intervals, by) = (
        call.args[0].as_primitive::<IntervalMonthDayNanoType>(),
        call.doubles(1),
    );
    call.each::<IntervalMonthDayNanoArray, _>(|row| {
        let (one, by) = (intervals.value(row), by.value(row));
        let [months, days] = [one.months, one.days].map(|part| scale(part.into(), by));
        let nanos = scale(one.nanoseconds as f64, by).round();
        match interval_of_parts(months, days, nanos as i128) {
            Some(interval) => Ok(Some(interval)),
            None => Err(call.invalid("the interval is too long")),
        }
    })
}

/// The interval of parts that are no whole numbers: of a part of a month 30 days are one, of a part of a day the time is kept.
/// `None` if it is too long.
pub(in crate::functions) fn interval_of_parts(
    months: f64,
    days: f64,
    nanos: i128,
) -> Option<IntervalMonthDayNano> {
    const NANOS_PER_DAY: f64 = 86_400e9;
    let months = snapped(months);
    let days = snapped(days + months.fract() * 30.0);
    let nanos = nanos.checked_add((days.fract() * NANOS_PER_DAY).round() as i128)?;
    let fits = |part: f64| part.abs() <= f64::from(i32::MAX);
    (fits(months) && fits(days)).then_some(())?;
    let nanos = i64::try_from(nanos).ok()?;
    Some(IntervalMonthDayNano::new(
        months.trunc() as i32,
        days.trunc() as i32,
        nanos,
    ))
}

/// The whole number that a sum of thirds misses.
fn snapped(number: f64) -> f64 {
    match (number - number.round()).abs() < 1e-9 {
        true => number.round(),
        false => number,
    }
}

/// A date plus an interval is a timestamp, because the interval may have hours.
fn added_type(types: &[DataType]) -> Result<DataType> {
    Ok(match &types[0] {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        _ => TIMESTAMP,
    })
}

fn date_add(call: &CallArguments) -> Result<ArrayRef> {
    let timestamps = utc_micros(&call.args[0])?;
    let intervals = call.args[1].as_primitive::<IntervalMonthDayNanoType>();
    let sums = call.each::<Int64Array, _>(|row| {
        let sum = shifted(timestamps.value(row), intervals.value(row), 1);
        sum.map(Some).ok_or_else(out_of_range)
    })?;
    Ok(cast(&sums, call.returns)?)
}

fn between(call: &CallArguments, count: fn(Unit, i64, i64) -> Result<i64>) -> Result<ArrayRef> {
    let micros = |at: usize| match call.args[at].data_type() {
        DataType::Time64(_) => {
            let times = call.args[at].as_primitive::<Time64MicrosecondType>();
            Ok(times.unary(|micros| micros))
        }
        _ => local_micros(&call.args[at]),
    };
    let (units, start, end) = (call.strings(0), micros(1)?, micros(2)?);
    let instants = (instants(&call.args[1])?, instants(&call.args[2])?);
    call.each::<Int64Array, _>(|row| {
        let unit = unit_named(call, units.value(row))?;
        let is_short = unit.micros().is_some_and(|micros| micros < MICROS_PER_DAY);
        let start = start.value(row);
        let end = match &instants {
            // Clocks may be put back in between: hours and less pass by the clock of the start.
            (Some(from), Some(to)) if is_short => start + to.value(row) - from.value(row),
            _ => end.value(row),
        };
        count(unit, start, end).map(Some)
    })
}

/// Microseconds of the one clock of timestamps with a zone; none of others.
fn instants(column: &ArrayRef) -> Result<Option<TimestampMicrosecondArray>> {
    let DataType::Timestamp(_, Some(zone)) = column.data_type() else {
        return Ok(None);
    };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(zone)));
    let column = cast(column, &micros)?;
    Ok(Some(column.as_primitive().clone()))
}

fn unit_named(call: &CallArguments, name: &str) -> Result<Unit> {
    let unknown = || {
        call.invalid(format!(
            "'{name}' is no unit of time; write 'year', 'month', 'day', 'hour', 'minute' or 'second'"
        ))
    };
    Unit::named(name).ok_or_else(unknown)
}

fn interval(call: &CallArguments, parts: (i64, i64, i64)) -> Result<IntervalMonthDayNano> {
    let (months, days, micros) = parts;
    let all = (
        i32::try_from(months),
        i32::try_from(days),
        micros.checked_mul(1_000),
    );
    match all {
        (Ok(months), Ok(days), Some(nanos)) => Ok(IntervalMonthDayNano::new(months, days, nanos)),
        _ => Err(call.invalid("the interval is too long")),
    }
}

const BUCKETS: &[CallForm] = &[
    &[ParameterKind::Interval, ParameterKind::Timestamp],
    &[
        ParameterKind::Interval,
        ParameterKind::Timestamp,
        ParameterKind::Interval,
    ],
    &[
        ParameterKind::Interval,
        ParameterKind::Timestamp,
        ParameterKind::Timestamp,
    ],
];

fn bucket_type(types: &[DataType]) -> Result<DataType> {
    Ok(match &types[1] {
        DataType::Date32 => DataType::Date32,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        _ => TIMESTAMP,
    })
}

fn time_bucket(call: &CallArguments) -> Result<ArrayRef> {
    let widths = call.args[0].as_primitive::<IntervalMonthDayNanoType>();
    let timestamps = utc_micros(&call.args[1])?;
    let third = call.args.get(2);
    let offsets = third.and_then(|third| third.as_primitive_opt::<IntervalMonthDayNanoType>());
    let origins = match (third, offsets) {
        (Some(origins), None) => Some(utc_micros(origins)?),
        _ => None,
    };
    let buckets = call.each::<Int64Array, _>(|row| {
        let (width, timestamp) = (widths.value(row), timestamps.value(row));
        let origin = origins.as_ref().map(|origins| origins.value(row));
        let bucket = match offsets.map(|offsets| offsets.value(row)) {
            None => bucket(width, timestamp, origin),
            Some(offset) => shifted(timestamp, offset, -1)
                .and_then(|timestamp| bucket(width, timestamp, origin))
                .and_then(|bucket| shifted(bucket, offset, 1)),
        };
        let invalid = || {
            call.invalid(
                "the width has to be longer than 0, and of months or of days and less, not of both",
            )
        };
        bucket.map(Some).ok_or_else(invalid)
    })?;
    match call.returns {
        DataType::Date32 => {
            let micros = buckets.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
            call.each::<Date32Array, _>(|row| Ok(Some(split_day(micros.value(row)).0 as i32)))
        }
        returns => Ok(cast(&buckets, returns)?),
    }
}

/// The beginning of the bucket of a timestamp; `None` if the width is none or the result out of range.
fn bucket(width: IntervalMonthDayNano, timestamp: i64, origin: Option<i64>) -> Option<i64> {
    if width.months == 0 {
        let width = micros_of_interval(width).filter(|width| *width > 0)?;
        let origin = origin.unwrap_or(FIRST_MONDAY * MICROS_PER_DAY);
        return (timestamp - origin.rem_euclid(width))
            .div_euclid(width)
            .checked_mul(width)?
            .checked_add(origin.rem_euclid(width));
    }
    if width.days != 0 || width.nanoseconds != 0 || width.months < 0 {
        return None;
    }
    let origin = origin.map_or(FIRST_MONTH, |origin| split_day(origin).0);
    let first = month_bucket(width.months.into(), split_day(timestamp).0, origin).ok()?;
    first.checked_mul(MICROS_PER_DAY)
}

/// A timestamp later, or with -1 earlier, by an interval.
fn shifted(timestamp: i64, by: IntervalMonthDayNano, sign: i64) -> Option<i64> {
    let (day, time) = split_day(timestamp);
    let date = date_of(day).ok()?;
    let months = Months::new(by.months.unsigned_abs());
    let date = match i64::from(by.months) * sign >= 0 {
        true => date.checked_add_months(months)?,
        false => date.checked_sub_months(months)?,
    };
    let days = days_of(date) + i64::from(by.days) * sign;
    let time = time + by.nanoseconds.div_euclid(1_000) * sign;
    days.checked_mul(MICROS_PER_DAY)?.checked_add(time)
}

fn made() -> Vec<Definition> {
    let now_is = |name| stands(name, &[&[]], |_| Ok(now()));
    vec![
        now_is("get_current_timestamp"),
        now_is("transaction_timestamp"),
        stands("current_localtimestamp", &[&[]], |_| {
            Ok(cast_to(now(), TIMESTAMP))
        }),
        stands("current_localtime", &[&[]], |_| {
            let time = DataType::Time64(TimeUnit::Nanosecond);
            Ok(cast_to(cast_to(now(), TIMESTAMP), time))
        }),
        stands("get_current_date", &[&[]], |_| Ok(current_date())),
    ]
}

/// An interval of a number of units: months, days and microseconds of one.
macro_rules! interval_of {
    ($name:literal, $months:literal, $days:literal, $micros:expr) => {
        rows(
            $name,
            &[&[ParameterKind::Double]],
            |_| Ok(INTERVAL),
            |call| made_interval(call, [$months, $days, $micros]),
        )
    };
}

fn intervals() -> Vec<Definition> {
    vec![
        interval_of!("to_millennia", 12_000, 0, 0),
        interval_of!("to_centuries", 1_200, 0, 0),
        interval_of!("to_decades", 120, 0, 0),
        interval_of!("to_years", 12, 0, 0),
        interval_of!("to_quarters", 3, 0, 0),
        interval_of!("to_months", 1, 0, 0),
        interval_of!("to_weeks", 0, 7, 0),
        interval_of!("to_days", 0, 1, 0),
        interval_of!("to_hours", 0, 0, 3_600 * MICROS_PER_SECOND),
        interval_of!("to_minutes", 0, 0, 60 * MICROS_PER_SECOND),
        interval_of!("to_seconds", 0, 0, MICROS_PER_SECOND),
        interval_of!("to_milliseconds", 0, 0, 1_000),
        interval_of!("to_microseconds", 0, 0, 1),
    ]
}

/// Months and days are whole numbers; what is left of hours and less is microseconds.
fn made_interval(call: &CallArguments, unit: [i64; 3]) -> Result<ArrayRef> {
    let numbers = call.doubles(0);
    let [months, days, micros] = unit;
    call.each::<IntervalMonthDayNanoArray, _>(|row| {
        let number = numbers.value(row);
        if micros == 0 && number.fract() != 0.0 {
            return Err(call.invalid(format!("{number} is no whole number")));
        }
        let of = |unit: i64| (number * unit as f64).round();
        let total = [of(months), of(days), of(micros)];
        if total.iter().any(|part| part.abs() >= 9.0e15) {
            return Err(call.invalid("the interval is too long"));
        }
        let [months, days, micros] = total.map(|part| part as i64);
        interval(call, (months, days, micros)).map(Some)
    })
}
