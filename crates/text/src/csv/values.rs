//! Values: what the text of a field is as a number, date or time.
//!
//! In: a field, the forms that its column has.
//! Out: the value, or `None` where the text is none of that type.
//! Invariant: nothing is rounded into range. The 30th of February, a second 60 and a fraction finer than the column's unit
//! are no values, and of two readings of a date none is guessed.
//! Not here: which column has which type (guess.rs), arrays (columns.rs).

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::TimeUnit;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
/// The day 0 of dates, counted as chrono does, from the year 1.
const EPOCH_DAY: i32 = 719_163;

/// In which order a date has its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `2024-12-31`.
    YearMonthDay,
    /// `31.12.2024`.
    DayMonthYear,
    /// `12/31/2024`.
    MonthDayYear,
}

/// How dates are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateForm {
    /// Numbers with one separator.
    Parts(Order, u8),
    /// A pattern of `%` letters.
    Pattern(Arc<str>),
}

impl DateForm {
    /// `2024-12-31`.
    pub const ISO: DateForm = DateForm::Parts(Order::YearMonthDay, b'-');

    /// The pattern that says the same.
    pub fn pattern(&self) -> String {
        match self {
            DateForm::Pattern(pattern) => pattern.to_string(),
            DateForm::Parts(order, separator) => {
                let letters = match order {
                    Order::YearMonthDay => ["%Y", "%m", "%d"],
                    Order::DayMonthYear => ["%d", "%m", "%Y"],
                    Order::MonthDayYear => ["%m", "%d", "%Y"],
                };
                letters.join(&char::from(*separator).to_string())
            }
        }
    }
}

/// The digits of an integer, without spaces around them.
pub fn integer(text: &str) -> Option<i64> {
    let text = trimmed(text);
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    // 18 digits always fit.
    if digits.len() > 18 {
        return text.parse().ok();
    }
    let mut value = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    (!digits.is_empty()).then_some(if is_negative { -value } else { value })
}

/// An integer of any width up to 38 digits.
pub fn wide_integer(text: &str) -> Option<i128> {
    trimmed(text).parse().ok()
}

/// A number with `.` before its fraction, whatever the file has there.
pub fn with_point(text: &str, decimal: u8) -> Option<Cow<'_, str>> {
    let text = trimmed(text);
    match decimal {
        b'.' => Some(Cow::Borrowed(text)),
        _ if text.contains('.') => None,
        _ => Some(Cow::Owned(text.replace(char::from(decimal), "."))),
    }
}

/// A floating-point number.
pub fn double(text: &str, decimal: u8) -> Option<f64> {
    with_point(text, decimal)?.parse().ok()
}

/// What people write for true and false.
pub fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "t", "1", "yes", "y"]) {
        return Some(true);
    }
    is(&["false", "f", "0", "no", "n"]).then_some(false)
}

fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [b' ', ..] | [.., b' '] => text.trim_matches(' '),
        _ => text,
    }
}

/// Days since 1970.
pub fn date(text: &str, form: &DateForm) -> Option<i32> {
    let date = match form {
        DateForm::Pattern(pattern) => NaiveDate::parse_from_str(text, pattern).ok()?,
        DateForm::Parts(order, separator) => date_of_parts(text, *order, *separator)?,
    };
    Some(days(date))
}

fn days(date: NaiveDate) -> i32 {
    use chrono::Datelike;
    date.num_days_from_ce() - EPOCH_DAY
}

fn date_of_parts(text: &str, order: Order, separator: u8) -> Option<NaiveDate> {
    let mut parts = text.split(char::from(separator));
    let parts = [
        parts.next()?,
        parts.next()?,
        parts.next().filter(|_| parts.next().is_none())?,
    ];
    let [year, month, day] = match order {
        Order::YearMonthDay => parts,
        Order::DayMonthYear => [parts[2], parts[1], parts[0]],
        Order::MonthDayYear => [parts[2], parts[0], parts[1]],
    };
    let year = digits(year, 4..=4)?;
    NaiveDate::from_ymd_opt(year as i32, digits(month, 1..=2)?, digits(day, 1..=2)?)
}

fn digits(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let is_number = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Nanoseconds of a day.
pub fn time(text: &str) -> Option<i64> {
    let (time, rest) = time_and_rest(text)?;
    rest.is_empty().then_some(time)
}

/// Nanoseconds of a day from `10:30[:00[.123456789]]`, and what follows.
fn time_and_rest(text: &str) -> Option<(i64, &str)> {
    let two = |at: usize| digits(text.get(at..at + 2)?, 2..=2).map(i64::from);
    let is_colon = |at: usize| text.as_bytes().get(at) == Some(&b':');
    let (hours, minutes) = (two(0)?, two(3).filter(|_| is_colon(2))?);
    let mut seconds = 0;
    let mut at = 5;
    let mut nanoseconds = 0;
    if is_colon(5) {
        seconds = two(6)?;
        at = 8;
        if text.as_bytes().get(8) == Some(&b'.') {
            let fraction = &text[9..];
            let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
            nanoseconds = fraction_ns(&fraction[..count])?;
            at = 9 + count;
        }
    }
    let is_time = hours < 24 && minutes < 60 && seconds < 60;
    let value = ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS + nanoseconds;
    is_time.then(|| (value, &text[at..]))
}

/// Of digits behind the point; finer than a nanosecond there may be only zeros.
fn fraction_ns(digits: &str) -> Option<i64> {
    let (kept, finer) = digits.split_at(digits.len().min(9));
    let is_exact = !kept.is_empty() && finer.bytes().all(|byte| byte == b'0');
    let value: i64 = kept.parse().ok()?;
    is_exact.then(|| value * 10i64.pow(9 - kept.len() as u32))
}

/// A timestamp: seconds since 1970 and nanoseconds of the second.
pub fn timestamp(text: &str, form: &DateForm) -> Option<(i64, u32)> {
    let (order, separator) = match form {
        DateForm::Pattern(pattern) => return timestamp_of_pattern(text, pattern),
        DateForm::Parts(order, separator) => (*order, *separator),
    };
    let end = text.find(['T', ' ']).unwrap_or(text.len());
    let seconds = i64::from(days(date_of_parts(&text[..end], order, separator)?)) * DAY_SECONDS;
    if end == text.len() {
        return Some((seconds, 0));
    }
    let (time, rest) = time_and_rest(&text[end + 1..])?;
    let seconds = seconds + time / SECOND_NS - offset_seconds(rest)?;
    Some((seconds, (time % SECOND_NS) as u32))
}

/// Whether a timestamp says its zone.
pub fn has_zone(text: &str) -> bool {
    let time = text.find(['T', ' ']).map(|at| &text[at + 1..]);
    time.is_some_and(|time| time.contains(['+', '-', 'Z', 'z', 'U']))
}

/// Of `Z`, `UTC`, `+01`, `+0100`, `+01:00`, or nothing.
fn offset_seconds(zone: &str) -> Option<i64> {
    let zone = zone.trim_start_matches(' ');
    if matches!(zone, "" | "Z" | "z" | "UTC") {
        return Some(0);
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let numbers = zone.get(1..)?.replacen(':', "", 1);
    let hours = digits(numbers.get(..2)?, 2..=2)?;
    let minutes = match &numbers[2..] {
        "" => 0,
        minutes => digits(minutes, 2..=2)?,
    };
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3_600 + minutes * 60))
}

fn timestamp_of_pattern(text: &str, pattern: &str) -> Option<(i64, u32)> {
    if let Ok(timestamp) = DateTime::parse_from_str(text, pattern) {
        return of_chrono(timestamp.naive_utc());
    }
    let timestamp = NaiveDateTime::parse_from_str(text, pattern).or_else(|_| {
        NaiveDate::parse_from_str(text, pattern).map(|date| date.and_time(NaiveTime::MIN))
    });
    of_chrono(timestamp.ok()?)
}

/// chrono keeps a second 60 as one of 59 with more than a second of nanoseconds.
fn of_chrono(timestamp: NaiveDateTime) -> Option<(i64, u32)> {
    let nanoseconds = timestamp.nanosecond();
    let seconds = timestamp.and_utc().timestamp();
    (i64::from(nanoseconds) < SECOND_NS).then_some((seconds, nanoseconds))
}

/// A timestamp in a unit; `None` if it is finer than that or does not fit.
pub fn in_unit((seconds, nanoseconds): (i64, u32), unit: TimeUnit) -> Option<i64> {
    let per_second = units_per_second(unit);
    let unit_ns = SECOND_NS / per_second;
    let part = i64::from(nanoseconds);
    let part = (part % unit_ns == 0).then_some(part / unit_ns)?;
    // Of a timestamp before 1970 the seconds alone may not fit where the sum does.
    i64::try_from(i128::from(seconds) * i128::from(per_second) + i128::from(part)).ok()
}

/// A time of a day in a unit; `None` if it is finer than that.
pub fn time_in_unit(time_ns: i64, unit: TimeUnit) -> Option<i64> {
    let unit_ns = SECOND_NS / units_per_second(unit);
    (time_ns % unit_ns == 0).then_some(time_ns / unit_ns)
}

fn units_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => SECOND_NS,
    }
}

/// The pattern in chrono's letters: a fraction there is one with its point.
pub fn pattern_of(text: &str) -> Arc<str> {
    let pattern = text
        .replace(".%f", "%.f")
        .replace(".%g", "%.3f")
        .replace(".%n", "%.9f");
    Arc::from(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("9223372036854775808"), None);
        for (text, expected) in [
            ("7", Some(7)),
            (" -7 ", Some(-7)),
            ("+7", Some(7)),
            ("-", None),
            ("", None),
            ("7a", None),
            ("1_0", None),
            ("٣", None),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
        assert_eq!(double("1,5", b','), Some(1.5));
        assert_eq!(double("1.5", b','), None);
        assert_eq!(double("1,5", b'.'), None);
    }

    #[test]
    fn days_that_there_are() {
        let parts = |order| DateForm::Parts(order, b'.');
        assert_eq!(date("1970-01-02", &DateForm::ISO), Some(1));
        assert_eq!(date("31.12.1969", &parts(Order::DayMonthYear)), Some(-1));
        assert_eq!(date("12.31.1969", &parts(Order::MonthDayYear)), Some(-1));
        for text in [
            "2024-02-30",
            "0000-00-00",
            "2024-1-1-1",
            "24-01-01",
            "2024-13-01",
            "+024-01-01",
        ] {
            assert_eq!(date(text, &DateForm::ISO), None, "{text}");
        }
        let pattern = DateForm::Pattern(pattern_of("%d %b %Y"));
        assert_eq!(date("02 Jan 1970", &pattern), Some(1));
    }

    #[test]
    fn timestamps_that_there_are() {
        for (text, expected) in [
            ("1970-01-01 00:00:01", Some((1, 0))),
            ("1970-01-01T00:00:01.25Z", Some((1, 250_000_000))),
            ("1970-01-01 01:00:00+01:00", Some((0, 0))),
            ("1970-01-01 00:00:00-0130", Some((5_400, 0))),
            ("1970-01-02", Some((86_400, 0))),
            ("1970-01-01 00:01", Some((60, 0))),
            ("1970-01-01 10:00:60", None),
            ("1970-01-01 25:00:00", None),
            ("1970-01-01 24:00:00", None),
            ("1970-01-01 00:00:00 x", None),
            ("1970-01-01 ", None),
        ] {
            assert_eq!(timestamp(text, &DateForm::ISO), expected, "{text}");
        }
        let pattern = DateForm::Pattern(pattern_of("%d.%m.%Y %H:%M:%S"));
        assert_eq!(timestamp("01.01.1970 00:00:01", &pattern), Some((1, 0)));
        assert_eq!(timestamp("01.01.1970 00:00:60", &pattern), None);
        assert_eq!(
            in_unit((-1, 500_000_000), TimeUnit::Millisecond),
            Some(-500)
        );
        assert_eq!(in_unit((1, 500), TimeUnit::Millisecond), None);
        assert_eq!(in_unit((i64::MAX, 0), TimeUnit::Nanosecond), None);
        assert_eq!(time("10:00:60"), None);
        assert_eq!(time("10:00:59.5"), Some(36_059_500_000_000));
    }
}
