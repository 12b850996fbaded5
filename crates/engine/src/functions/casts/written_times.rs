//! Strings of dates and timestamps in the forms that people write, as DataFusion reads them.
//!
//! In: `2024/1/5`, ` 2024-01-05 `, `2024-01-05T10:30`, `2024-01-05 24:00:00`, a zone or offset behind it. Out: `2024-01-05 10:30:00`.
//! Invariant: a timestamp without a zone is the clock that is written, as in PostgreSQL: DataFusion moves it by the offset. A date
//! is the day that is written. What is none of these forms stays as it is, so that DataFusion says what is wrong with it.
//! Not here: times of the day, intervals (text_casts.rs).

use chrono::{Days, NaiveDate};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::DataType;

/// True of types whose strings are read here.
pub(in crate::functions) fn is_date_or_timestamp(to: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    matches!(to, Date32 | Date64 | Timestamp(..))
}

/// A string that DataFusion reads as `to` rightly; `None` if that is the string itself.
pub(crate) fn readable(text: &str, to: &DataType) -> Option<String> {
    let is_date = matches!(to, DataType::Date32 | DataType::Date64);
    match is_plain(text.as_bytes()) {
        true if is_date => text
            .get(..10)
            .filter(|_| text.len() > 10)
            .map(str::to_owned),
        true => None,
        false => rewritten(text, to),
    }
}

/// True of `2024-01-05` and `2024-01-05 10:30:00.5`: most are, and nothing is to be done for them.
fn is_plain(text: &[u8]) -> bool {
    let is_like = |text: &[u8], form: &[u8]| {
        let fits = |(byte, form): (&u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b' ' | b'T'),
            other => byte == other,
        };
        text.len() == form.len() && text.iter().zip(form).all(fits)
    };
    let (clock, fraction) = text.split_at(text.len().min(19));
    let is_fraction = match fraction {
        [] => true,
        [b'.', digits @ ..] => {
            (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    is_like(text, b"0000-00-00")
        || is_fraction && is_like(clock, b"0000-00-00T00:00:00") && &clock[11..13] != b"24"
}

/// True of a timestamp that names its zone or offset.
pub(in crate::functions) fn names_zone(text: &str) -> bool {
    let read = || {
        let (_, rest) = date(text.trim())?;
        let (_, (_, zone)) = clock(rest.trim_start_matches(['T', 't', ' ']))?;
        Some(!zone.trim().is_empty())
    };
    !is_plain(text.as_bytes()) && read().unwrap_or(false)
}

fn rewritten(text: &str, to: &DataType) -> Option<String> {
    let (date, rest) = date(text.trim())?;
    let rest = match rest.strip_prefix(['T', 't']) {
        Some(time) => time,
        None if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim_start(),
        None => return None,
    };
    let (clock, zone) = match rest.is_empty() {
        true => ([0, 0, 0], ("", "")),
        false => clock(rest)?,
    };
    let (fraction, zone) = zone;
    let zone = zone.trim();
    let is_zone = zone.is_empty() || zone.eq_ignore_ascii_case("z") || zone.parse::<Tz>().is_ok();
    if !is_zone {
        return None;
    }
    let [hour, minute, second] = clock;
    let is_midnight = hour == 24 && minute == 0 && second == 0;
    let (date, hour) = match is_midnight && fraction.trim_matches(['.', '0']).is_empty() {
        true => (date.checked_add_days(Days::new(1))?, 0),
        false => (date, hour),
    };
    let date = date.format("%Y-%m-%d");
    Some(match to {
        DataType::Date32 | DataType::Date64 if hour < 24 => date.to_string(),
        DataType::Timestamp(_, Some(_)) => {
            format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}{zone}")
        }
        _ => format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}"),
    })
}

/// `2024-01-05` or `2024/1/5`, and what follows it.
fn date(text: &str) -> Option<(NaiveDate, &str)> {
    let (year, rest) = number(text, 4..=4)?;
    let separator = rest.chars().next().filter(|c| matches!(c, '-' | '/'))?;
    let (month, rest) = number(&rest[1..], 1..=2)?;
    let (day, rest) = number(rest.strip_prefix(separator)?, 1..=2)?;
    Some((NaiveDate::from_ymd_opt(year as i32, month, day)?, rest))
}

/// Hours, minutes and seconds, and the text of a fraction and of what follows it.
fn clock(text: &str) -> Option<([u32; 3], (&str, &str))> {
    let (hour, rest) = number(text, 1..=2)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2..=2)?;
    let Some(seconds) = rest.strip_prefix(':') else {
        return in_day([hour, minute, 0]).map(|clock| (clock, ("", rest)));
    };
    let (second, rest) = number(seconds, 2..=2)?;
    let fraction = rest.strip_prefix('.').map_or(0, |digits| {
        1 + digits.bytes().take_while(u8::is_ascii_digit).count()
    });
    in_day([hour, minute, second]).map(|clock| (clock, rest.split_at(fraction)))
}

fn in_day(clock: [u32; 3]) -> Option<[u32; 3]> {
    let [hour, minute, second] = clock;
    let is_in_day = hour < 24 && minute < 60 && second < 60 || clock == [24, 0, 0];
    debug_assert!(hour < 100);
    is_in_day.then_some(clock)
}

/// A number of so many digits, and what follows it.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(u32, &str)> {
    let most = *digits.end();
    let found = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    let (number, rest) = text.split_at(found);
    let number = digits.contains(&found).then(|| number.parse().ok())??;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn forms_of_timestamps() {
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let read = |text: &str, to: &DataType| readable(text, to).unwrap_or(text.to_owned());
        for (text, clock) in [
            ("2024-01-05", "2024-01-05"),
            (" 2024/1/5 ", "2024-01-05 00:00:00"),
            ("2024-01-05T10:30", "2024-01-05 10:30:00"),
            ("2024-01-05 9:30:00.25", "2024-01-05 09:30:00.25"),
            ("2024-12-31 24:00:00", "2025-01-01 00:00:00"),
            ("2024-01-05 10:30:00+02", "2024-01-05 10:30:00"),
            ("2024-01-05 10:30:00 Europe/Berlin", "2024-01-05 10:30:00"),
            ("2024-01-05T10:30:00Z", "2024-01-05 10:30:00"),
            ("2024-02-30 10:30", "2024-02-30 10:30"),
            ("2024-01-05 10:30 x", "2024-01-05 10:30 x"),
            ("2024-01-05 24:30", "2024-01-05 24:30"),
            ("20240105", "20240105"),
            ("2024-01-31 12:30", "2024-01-31 12:30:00"),
            ("2024-01-31 12:30:15", "2024-01-31 12:30:15"),
            ("2024-01-31 12", "2024-01-31 12"),
            ("see 12:30", "see 12:30"),
        ] {
            assert_eq!(read(text, &local), clock);
        }
        assert_eq!(
            read("2024-01-05 10:30+02", &zoned),
            "2024-01-05 10:30:00+02"
        );
        assert_eq!(
            read(" 2024-01-31T9:30+02 ", &zoned),
            "2024-01-31 09:30:00+02"
        );
        assert_eq!(
            read("2024-01-01T23:30:00-02:00", &DataType::Date32),
            "2024-01-01"
        );
    }
}
