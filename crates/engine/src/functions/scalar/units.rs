//! Units of time by name, and how many of them lie between two timestamps.
//!
//! In: the name of a unit, two timestamps in microseconds. Out: the borders of the unit between them (`date_diff`), or the
//! whole units that have passed (`date_sub`).
//! Invariant: both are 0 of a timestamp and itself, and change their sign when the timestamps change places.
//! Not here: columns.

use chrono::{Datelike, NaiveDate};
use datafusion::common::Result;

use super::timestamps::{
    MICROS_PER_DAY, MICROS_PER_SECOND, date_of, days_of, month_length, split_day,
};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::functions) enum Unit {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
}

/// The names that people write.
const NAMES: [(Unit, &[&str]); 14] = [
    (
        Unit::Millennium,
        &[
            "millennium",
            "millennia",
            "mil",
            "mils",
            "millenniums",
            "millenium",
        ],
    ),
    (Unit::Century, &["century", "centuries", "cent", "c"]),
    (Unit::Decade, &["decade", "decades", "dec", "decs"]),
    (Unit::Year, &["year", "years", "yr", "yrs", "y"]),
    (Unit::IsoYear, &["isoyear"]),
    (Unit::Quarter, &["quarter", "quarters"]),
    (Unit::Month, &["month", "months", "mon", "mons"]),
    (Unit::Week, &["week", "weeks", "w", "weekofyear"]),
    (
        Unit::Day,
        &[
            "day",
            "days",
            "d",
            "dayofmonth",
            "dow",
            "isodow",
            "doy",
            "dayofyear",
        ],
    ),
    (Unit::Hour, &["hour", "hours", "hr", "hrs", "h"]),
    (Unit::Minute, &["minute", "minutes", "min", "mins", "m"]),
    (
        Unit::Second,
        &["second", "seconds", "sec", "secs", "s", "epoch"],
    ),
    (
        Unit::Millisecond,
        &["millisecond", "milliseconds", "msec", "msecs", "ms"],
    ),
    (
        Unit::Microsecond,
        &["microsecond", "microseconds", "usec", "usecs", "us"],
    ),
];

impl Unit {
    /// The unit of a name in any case.
    pub fn named(name: &str) -> Option<Unit> {
        let name = name.trim().to_lowercase();
        let mut names = NAMES.iter();
        let found = names.find(|(_, names)| names.contains(&name.as_str()));
        found.map(|(unit, _)| *unit)
    }

    /// The unit of an interval: parts of a date count nothing.
    pub(in crate::functions) fn of_interval(name: &str) -> Option<Unit> {
        const PARTS: [&str; 8] = [
            "isoyear",
            "weekofyear",
            "dayofmonth",
            "dow",
            "isodow",
            "doy",
            "dayofyear",
            "epoch",
        ];
        match PARTS.contains(&name) {
            true => None,
            false => Unit::named(name),
        }
    }

    /// Microseconds of a unit of fixed length.
    pub(in crate::functions) fn micros(self) -> Option<i64> {
        match self {
            Unit::Week => Some(7 * MICROS_PER_DAY),
            Unit::Day => Some(MICROS_PER_DAY),
            Unit::Hour => Some(3_600 * MICROS_PER_SECOND),
            Unit::Minute => Some(60 * MICROS_PER_SECOND),
            Unit::Second => Some(MICROS_PER_SECOND),
            Unit::Millisecond => Some(1_000),
            Unit::Microsecond => Some(1),
            _ => None,
        }
    }

    /// Months of a unit of months.
    pub(in crate::functions) fn months(self) -> i64 {
        match self {
            Unit::Millennium => 12_000,
            Unit::Century => 1_200,
            Unit::Decade => 120,
            Unit::Year | Unit::IsoYear => 12,
            Unit::Quarter => 3,
            _ => 1,
        }
    }
}

/// How many borders of the unit lie between two timestamps; of weeks, how many have passed.
pub(super) fn difference(unit: Unit, start: i64, end: i64) -> Result<i64> {
    if unit == Unit::Week {
        // As in DuckDB: weeks of seven days from the first day on, whichever day of the week that is.
        return Ok((split_day(end).0 - split_day(start).0) / 7);
    }
    if let Some(micros) = unit.micros() {
        let count = |timestamp: i64| timestamp.div_euclid(micros);
        return Ok(count(end) - count(start));
    }
    let (start, end) = (date_of(split_day(start).0)?, date_of(split_day(end).0)?);
    if unit == Unit::IsoYear {
        return Ok(i64::from(end.iso_week().year()) - i64::from(start.iso_week().year()));
    }
    let months = unit.months();
    Ok(month_number(end).div_euclid(months) - month_number(start).div_euclid(months))
}

/// Months since the year 0.
fn month_number(date: NaiveDate) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month0())
}

/// How many whole units have passed between two timestamps.
pub(super) fn whole_difference(unit: Unit, start: i64, end: i64) -> Result<i64> {
    match unit.micros() {
        Some(micros) => Ok(((i128::from(end) - i128::from(start)) / i128::from(micros)) as i64),
        None => Ok(whole_months(start, end)? / unit.months()),
    }
}

/// Whole months between two timestamps. The last day of a shorter month completes one that began on a later day.
fn whole_months(start: i64, end: i64) -> Result<i64> {
    if start > end {
        return Ok(-whole_months(end, start)?);
    }
    let ((start_day, start_time), (end_day, end_time)) = (split_day(start), split_day(end));
    let (start, end) = (date_of(start_day)?, date_of(end_day)?);
    let began = (start.day().min(month_length(end)), start_time);
    let complete = began <= (end.day(), end_time);
    let months = month_number(end) - month_number(start);
    Ok(if complete { months } else { months - 1 })
}

/// Years, months, days and microseconds from `start` to `end`, field by field as PostgreSQL's `age` counts them:
/// a missing day is borrowed from the month of the earlier timestamp.
pub(super) fn age(start: i64, end: i64) -> Result<(i64, i64, i64)> {
    if start > end {
        let (months, days, micros) = age(end, start)?;
        return Ok((-months, -days, -micros));
    }
    let ((start_day, start_time), (end_day, end_time)) = (split_day(start), split_day(end));
    let (start, end) = (date_of(start_day)?, date_of(end_day)?);
    let mut micros = end_time - start_time;
    let mut days = i64::from(end.day()) - i64::from(start.day());
    let mut months = month_number(end) - month_number(start);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        days += i64::from(month_length(start));
        months -= 1;
    }
    Ok((months, days, micros))
}

/// The first day of the bucket of `months` months in which a day lies; buckets count from the month of `origin`.
pub(super) fn month_bucket(months: i64, day: i64, origin: i64) -> Result<i64> {
    let (date, origin) = (date_of(day)?, date_of(origin)?);
    let origin = month_number(origin);
    let first = (month_number(date) - origin).div_euclid(months) * months + origin;
    let year = i32::try_from(first.div_euclid(12)).ok();
    let month0 = first.rem_euclid(12) as u32;
    let date = year.and_then(|year| NaiveDate::from_ymd_opt(year, month0 + 1, 1));
    date.map(days_of)
        .ok_or_else(super::timestamps::out_of_range)
}
