//! Dates and times in JSON strings.
//!
//! In: a string. Out: the timestamp that it names, to its last digit.
//! Invariant: only whole strings of one fixed form; a day that no calendar has is no date; no digit is lost.
//! Not here: when a column is of such a type (shape.rs).

use arrow::datatypes::TimeUnit;

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

const NANOS: i64 = 1_000_000_000;

/// What a string names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temporal {
    /// Days since 1970-01-01.
    Date(i32),
    /// A time of day.
    Time {
        /// Since midnight.
        seconds: i64,
        /// Behind the second.
        nanos: u32,
        /// Digits that the fraction was written with.
        digits: u8,
    },
    /// Seconds since 1970, in UTC or wherever.
    Timestamp {
        /// Since 1970 in UTC.
        seconds: i64,
        /// Behind the second.
        nanos: u32,
        /// Digits that the fraction was written with.
        digits: u8,
        /// Whether an offset was written.
        is_zoned: bool,
    },
}

/// The timestamp that `text` names in one of the forms `2024-01-31`, `10:20:30[.5]` or both with ` ` or `T` between them and,
/// after them, `Z` or `+02:00`.
pub fn timestamp(text: &str) -> Option<Temporal> {
    let bytes = text.as_bytes();
    // Quick: most strings are no timestamps.
    if !(8..=40).contains(&bytes.len()) || !bytes[0].is_ascii_digit() {
        return None;
    }
    if bytes[2] == b':' {
        let (seconds, nanos, digits, rest) = time(bytes)?;
        return rest.is_empty().then_some(Temporal::Time {
            seconds,
            nanos,
            digits,
        });
    }
    let days = date(bytes.get(..10)?)?;
    if bytes.len() == 10 {
        return i32::try_from(days).ok().map(Temporal::Date);
    }
    if !matches!(bytes[10], b' ' | b'T') {
        return None;
    }
    let (seconds, nanos, digits, rest) = time(&bytes[11..])?;
    let (is_zoned, shift) = match rest {
        [] => (false, 0),
        [b'Z'] => (true, 0),
        zone => (true, offset(zone)?),
    };
    Some(Temporal::Timestamp {
        seconds: days * 86_400 + seconds - shift,
        nanos,
        digits,
        is_zoned,
    })
}

/// Whether a text is a day of the calendar.
pub fn is_date(text: &str) -> bool {
    matches!(timestamp(text), Some(Temporal::Date(_)))
}

/// The digits of a number.
fn number(bytes: &[u8]) -> Option<i64> {
    let are_digits = bytes.iter().all(u8::is_ascii_digit);
    let value = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |value, byte| value * 10 + i64::from(byte - b'0'))
    };
    are_digits.then(|| value(bytes))
}

fn date(bytes: &[u8]) -> Option<i64> {
    let [_, _, _, _, b'-', _, _, b'-', _, _] = bytes else {
        return None;
    };
    let (year, month, day) = (
        number(&bytes[..4])?,
        number(&bytes[5..7])?,
        number(&bytes[8..])?,
    );
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        _ => return None,
    };
    if !(1..=days).contains(&day) {
        return None;
    }
    // Years that begin in March end with the leap day.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(era * 146_097 + days - DAYS_TO_EPOCH)
}

/// Seconds, nanoseconds, digits of the fraction, and what follows.
fn time(bytes: &[u8]) -> Option<(i64, u32, u8, &[u8])> {
    let [_, _, b':', _, _, b':', _, _, rest @ ..] = bytes else {
        return None;
    };
    let (hour, minute, second) = (
        number(&bytes[..2])?,
        number(&bytes[3..5])?,
        number(&bytes[6..8])?,
    );
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = hour * 3_600 + minute * 60 + second;
    let [b'.', fraction @ ..] = rest else {
        return Some((seconds, 0, 0, rest));
    };
    let digits = fraction
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let nanos = number(&fraction[..digits])? * 10_i64.pow(9 - u32::try_from(digits).ok()?);
    Some((
        seconds,
        u32::try_from(nanos).ok()?,
        u8::try_from(digits).ok()?,
        &fraction[digits..],
    ))
}

/// Seconds that a zone is ahead of UTC: `+02`, `+0200` or `+02:00`.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = match zone {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [_, _] => (number(digits)?, 0),
        [_, _, _, _] => (number(&digits[..2])?, number(&digits[2..])?),
        [_, _, b':', _, _] => (number(&digits[..2])?, number(&digits[3..])?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// A timestamp in a unit; `None` = the unit would lose digits or does not reach so far.
pub fn in_unit(seconds: i64, nanos: u32, unit: TimeUnit) -> Option<i64> {
    let per_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOS,
    };
    let part = NANOS / per_second;
    if i64::from(nanos) % part != 0 {
        return None;
    }
    let whole = i128::from(seconds) * i128::from(per_second) + i128::from(i64::from(nanos) / part);
    i64::try_from(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(timestamp("1970-01-01"), Some(Temporal::Date(0)));
        assert_eq!(timestamp("2024-02-29"), Some(Temporal::Date(19_782)));
        assert_eq!(timestamp("0000-01-01"), Some(Temporal::Date(-719_528)));
        assert_eq!(timestamp("9999-12-31"), Some(Temporal::Date(2_932_896)));
        let at = |text: &str| match timestamp(text) {
            Some(Temporal::Timestamp {
                seconds,
                nanos,
                is_zoned,
                ..
            }) => Some((seconds, nanos, is_zoned)),
            _ => None,
        };
        assert_eq!(at("1970-01-01 00:00:01"), Some((1, 0, false)));
        assert_eq!(
            at("1970-01-01T02:00:00.5+02:00"),
            Some((0, 500_000_000, true))
        );
        assert_eq!(at("1970-01-01T00:00:00Z"), Some((0, 0, true)));
        for no in [
            "2024-02-30",
            "0000-00-00",
            "2024-1-1",
            "2024-01-01 25:00:00",
            "2024-01-01 10:00",
            "2024-01-01 10:00:60",
            "2024-01-01x10:00:00",
            "10:00:00Z",
            "20240101",
            "2024-01-01 10:00:00.",
            "2024-01-01 10:00:00.1234567890",
            "2024-01-01 10:00:00 UTC",
        ] {
            assert_eq!(timestamp(no), None, "{no}");
        }
    }

    #[test]
    fn no_digit_is_lost() {
        assert_eq!(
            in_unit(1, 500_000_000, TimeUnit::Microsecond),
            Some(1_500_000)
        );
        assert_eq!(in_unit(1, 1, TimeUnit::Microsecond), None);
        assert_eq!(in_unit(-1, 1, TimeUnit::Nanosecond), Some(-999_999_999));
        assert_eq!(in_unit(i64::MAX / 1_000, 0, TimeUnit::Nanosecond), None);
    }
}
