//! `strftime`, `strptime` and `try_strptime`: dates as strings of a format, and back.
//!
//! In: a timestamp and a format, or a text and a format or several of them. Out: a text, or a timestamp.
//! Invariant: a text is read as a whole or not at all; what the format does not say is the first of January 1900, midnight.
//! Not here: strings that a CAST reads; `to_char`, DataFusion's, whose formats have more letters.

use std::fmt::Write;

use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::TimestampMicrosecondArray;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{CallArguments, CallForm, rows};
use super::kinds::{ParameterKind, TIMESTAMP};
use super::timestamps::{
    MICROS_PER_DAY, MICROS_PER_SECOND, date_of, days_of, local_micros, offset_seconds, split_day,
    utc_micros,
};

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    const FORMATTED: &[CallForm] = &[
        &[ParameterKind::Timestamp, ParameterKind::Text],
        &[ParameterKind::Text, ParameterKind::Timestamp],
    ];
    const READ: &[CallForm] = &[
        &[ParameterKind::Text, ParameterKind::Text],
        &[ParameterKind::Text, ParameterKind::Strings],
    ];
    vec![
        rows("strftime", FORMATTED, |_| Ok(DataType::Utf8View), strftime).into(),
        rows(
            "strptime",
            READ,
            |_| Ok(TIMESTAMP),
            |call| {
                strptime(call, |call, text, format| {
                    Err(call.invalid(format!("cannot read '{text}' by the format '{format}'")))
                })
            },
        )
        .into(),
        rows(
            "try_strptime",
            READ,
            |_| Ok(TIMESTAMP),
            |call| strptime(call, |_, _, _| Ok(None)),
        )
        .into(),
    ]
}

/// A piece of a format.
#[derive(Debug, Clone, PartialEq)]
enum DateFormatPiece {
    /// Text that stands for itself.
    Literal(String),
    /// A letter after `%`; with `-` numbers have no leading zeros.
    Field { letter: char, is_bare: bool },
}

/// The letters that formats know.
const LETTERS: &str = "aAwudbhBmyYHIpMSfgnzZjUWcxXGVs";

/// The format in pieces, or the letter that it does not know.
fn pieces(format: &str) -> std::result::Result<Vec<DateFormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            literal.push(c);
            continue;
        }
        let mut letter = chars.next();
        let is_bare = letter == Some('-');
        if is_bare {
            letter = chars.next();
        }
        match letter {
            Some('%') if !is_bare => literal.push('%'),
            Some(letter) if LETTERS.contains(letter) => {
                if !literal.is_empty() {
                    pieces.push(DateFormatPiece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(DateFormatPiece::Field { letter, is_bare });
            }
            Some(letter) => return Err(format!("%{letter}")),
            None => return Err("%".to_owned()),
        }
    }
    if !literal.is_empty() {
        pieces.push(DateFormatPiece::Literal(literal));
    }
    Ok(pieces)
}

/// The format that was read last: most columns have one.
#[derive(Default)]
struct LastFormat {
    text: String,
    pieces: Vec<DateFormatPiece>,
}

impl LastFormat {
    fn pieces(&mut self, call: &CallArguments, format: &str) -> Result<&[DateFormatPiece]> {
        if self.text != format || self.pieces.is_empty() {
            self.pieces = pieces(format).map_err(|unknown| {
                call.invalid(format!(
                    "the format '{format}' has {unknown}, which is no field"
                ))
            })?;
            self.text = format.to_owned();
        }
        Ok(&self.pieces)
    }
}

fn strftime(call: &CallArguments) -> Result<ArrayRef> {
    let timestamp_at = usize::from(call.args[0].data_type() == &DataType::Utf8View);
    let timestamps = &call.args[timestamp_at];
    let formats = call.strings(1 - timestamp_at);
    let (local, utc) = (local_micros(timestamps)?, utc_micros(timestamps)?);
    let nanos_below = nanos_below_micros(timestamps);
    let zone = match timestamps.data_type() {
        DataType::Timestamp(_, Some(zone)) => zone.as_ref(),
        _ => "",
    };
    let mut last = LastFormat::default();
    let mut text = String::new();
    call.each::<StringViewArray, _>(|row| {
        let timestamp = LocalTimestamp {
            date: date_of(split_day(local.value(row)).0)?,
            micros: split_day(local.value(row)).1,
            nanos_below: nanos_below.as_ref().map_or(0, |nanos| nanos[row]),
            offset: offset_seconds(timestamps.data_type(), utc.value(row))?,
            zone,
        };
        text.clear();
        for piece in last.pieces(call, formats.value(row))? {
            match piece {
                DateFormatPiece::Literal(literal) => text.push_str(literal),
                DateFormatPiece::Field { letter, is_bare } => {
                    timestamp.write(*letter, *is_bare, &mut text)
                }
            }
        }
        Ok(Some(text.clone()))
    })
}

/// What timestamps of nanoseconds have below a microsecond.
fn nanos_below_micros(timestamps: &ArrayRef) -> Option<Vec<i64>> {
    let nanos =
        timestamps.as_primitive_opt::<datafusion::arrow::datatypes::TimestampNanosecondType>()?;
    Some(
        nanos
            .values()
            .iter()
            .map(|nanos| nanos.rem_euclid(1_000))
            .collect(),
    )
}

/// A timestamp by the clock of its zone.
struct LocalTimestamp<'a> {
    date: NaiveDate,
    /// Since midnight.
    micros: i64,
    nanos_below: i64,
    /// Seconds east of UTC.
    offset: i32,
    /// The zone's name; none of a timestamp without a zone.
    zone: &'a str,
}

impl LocalTimestamp<'_> {
    fn write(&self, letter: char, is_bare: bool, text: &mut String) {
        let date = self.date;
        let seconds = self.micros / MICROS_PER_SECOND;
        let below = self.micros % MICROS_PER_SECOND;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        let mut number = |value: i64, width: usize| {
            let width = if is_bare { 1 } else { width };
            // Writing to a String cannot fail.
            let _ = write!(text, "{value:0width$}");
        };
        match letter {
            'd' => number(date.day().into(), 2),
            'm' => number(date.month().into(), 2),
            'y' => number(i64::from(date.year()).rem_euclid(100), 2),
            'Y' => number(date.year().into(), 4),
            'G' => number(date.iso_week().year().into(), 4),
            'V' => number(date.iso_week().week().into(), 2),
            'H' => number(hour, 2),
            'I' => number(hour12, 2),
            'M' => number(minute, 2),
            'S' => number(second, 2),
            'f' => number(below, 6),
            'g' => number(below / 1_000, 3),
            'n' => number(below * 1_000 + self.nanos_below, 9),
            'j' => number(date.ordinal().into(), 3),
            'w' => number(date.weekday().num_days_from_sunday().into(), 1),
            'u' => number(date.weekday().number_from_monday().into(), 1),
            'U' => number(week_of_year(date, date.weekday().num_days_from_sunday()), 2),
            'W' => number(week_of_year(date, date.weekday().num_days_from_monday()), 2),
            's' => number(days_of(date) * 86_400 + seconds - i64::from(self.offset), 1),
            _ => self.write_words(letter, [hour, minute, second], text),
        }
    }

    fn write_words(&self, letter: char, time: [i64; 3], text: &mut String) {
        let date = self.date;
        let weekday = WEEKDAYS[date.weekday().num_days_from_sunday() as usize];
        let month = MONTHS[date.month0() as usize];
        let [hour, minute, second] = time;
        let _ = match letter {
            'a' => write!(text, "{}", &weekday[..3]),
            'A' => write!(text, "{weekday}"),
            'b' | 'h' => write!(text, "{}", &month[..3]),
            'B' => write!(text, "{month}"),
            'p' => write!(text, "{}", if hour < 12 { "AM" } else { "PM" }),
            'x' => write!(text, "{}", date.format("%Y-%m-%d")),
            'X' => write!(text, "{hour:02}:{minute:02}:{second:02}"),
            'c' => write!(
                text,
                "{} {hour:02}:{minute:02}:{second:02}",
                date.format("%Y-%m-%d")
            ),
            'z' => {
                let minutes = self.offset.abs() / 60;
                let sign = if self.offset < 0 { '-' } else { '+' };
                match minutes % 60 {
                    0 => write!(text, "{sign}{:02}", minutes / 60),
                    rest => write!(text, "{sign}{:02}:{rest:02}", minutes / 60),
                }
            }
            'Z' => write!(text, "{}", self.zone),
            _ => Ok(()),
        };
    }
}

/// The week of the year in which weeks begin on the first such day of it; days before are in week 0.
fn week_of_year(date: NaiveDate, weekday: u32) -> i64 {
    i64::from((date.ordinal0() + 7 - weekday) / 7)
}

fn strptime(
    call: &CallArguments,
    failed: fn(&CallArguments, &str, &str) -> Result<Option<i64>>,
) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let formats = call.args[1].as_string_view_opt();
    let mut last = LastFormat::default();
    call.each::<TimestampMicrosecondArray, _>(|row| {
        let text = strings.value(row);
        if let Some(formats) = formats {
            let format = formats.value(row);
            let read = DateReader::read(text, last.pieces(call, format)?);
            return read.map_or_else(|| failed(call, text, format), |micros| Ok(Some(micros)));
        }
        let formats = call.lists(1).value(row);
        let formats = formats.as_string_view();
        for format in formats.iter().flatten() {
            if let Some(micros) = DateReader::read(text, last.pieces(call, format)?) {
                return Ok(Some(micros));
            }
        }
        failed(
            call,
            text,
            &formats.iter().flatten().collect::<Vec<_>>().join("', '"),
        )
    })
}

/// What has been read of a text.
struct DateReader<'a> {
    rest: &'a str,
    year: i32,
    month: u32,
    day: u32,
    day_of_year: Option<u32>,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// `%p`: whether it is after noon.
    is_afternoon: Option<bool>,
    /// Seconds east of UTC.
    offset: i64,
    /// `%s`, seconds since 1970.
    epoch: Option<i64>,
}

impl<'a> DateReader<'a> {
    /// Microseconds since 1970 of a text of this format; `None` if it is not of it.
    fn read(text: &'a str, pieces: &[DateFormatPiece]) -> Option<i64> {
        let mut reader = DateReader {
            rest: text.trim_start(),
            year: 1900,
            month: 1,
            day: 1,
            day_of_year: None,
            hour: 0,
            minute: 0,
            second: 0,
            micros: 0,
            is_afternoon: None,
            offset: 0,
            epoch: None,
        };
        for piece in pieces {
            match piece {
                DateFormatPiece::Literal(literal) => reader.literal(literal)?,
                DateFormatPiece::Field { letter, .. } => reader.field(*letter)?,
            }
        }
        reader.rest.trim_end().is_empty().then_some(())?;
        reader.finish()
    }

    /// A space of the format stands for any white space of the text.
    fn literal(&mut self, literal: &str) -> Option<()> {
        for c in literal.chars() {
            self.rest = match c.is_whitespace() {
                true => self.rest.strip_prefix(char::is_whitespace)?.trim_start(),
                false => self.rest.strip_prefix(c)?,
            };
        }
        Some(())
    }

    fn number(&mut self, digits_max: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let digits = self
            .rest
            .bytes()
            .take(digits_max)
            .take_while(u8::is_ascii_digit)
            .count();
        let (number, rest) = self.rest.split_at(digits);
        let number = number
            .parse()
            .ok()
            .filter(|number| range.contains(number))?;
        self.rest = rest;
        Some(number)
    }

    /// The fraction of a second, of which digits may be left out at the end.
    fn fraction(&mut self, digits_max: u32) -> Option<i64> {
        let before = self.rest.len();
        let number = self.number(digits_max as usize, 0..=999_999_999)?;
        let digits = (before - self.rest.len()) as u32;
        match digits <= 6 {
            true => Some(number * 10_i64.pow(6 - digits)),
            false => Some(number / 10_i64.pow(digits - 6)),
        }
    }

    /// The place of the word that comes next among `words`, of which the first three letters may stand alone.
    fn word(&mut self, words: &[&str]) -> Option<usize> {
        let starts = |word: &str| {
            let head = self.rest.get(..word.len())?;
            head.eq_ignore_ascii_case(word).then_some(word.len())
        };
        let found = words.iter().enumerate().find_map(|(at, word)| {
            let length = starts(word).or_else(|| starts(&word[..3]))?;
            Some((at, length))
        });
        let (at, length) = found?;
        self.rest = &self.rest[length..];
        Some(at)
    }

    fn field(&mut self, letter: char) -> Option<()> {
        match letter {
            'Y' | 'G' => {
                let sign = if self.rest.starts_with('-') { -1 } else { 1 };
                self.rest = self.rest.strip_prefix('-').unwrap_or(self.rest);
                self.year = sign * self.number(4, 0..=9_999)? as i32;
            }
            'y' => {
                let year = self.number(2, 0..=99)? as i32;
                self.year = year + if year < 69 { 2000 } else { 1900 };
            }
            'm' => self.month = self.number(2, 1..=12)? as u32,
            'd' => self.day = self.number(2, 1..=31)? as u32,
            'j' => self.day_of_year = Some(self.number(3, 1..=366)? as u32),
            'H' => self.hour = self.number(2, 0..=23)?,
            'I' => self.hour = self.number(2, 1..=12)?,
            'M' => self.minute = self.number(2, 0..=59)?,
            'S' => self.second = self.number(2, 0..=59)?,
            'f' => self.micros = self.fraction(6)?,
            'g' => self.micros = self.fraction(3)?,
            'n' => self.micros = self.fraction(9)?,
            's' => self.epoch = Some(self.number(12, 0..=i64::MAX / MICROS_PER_SECOND)?),
            'b' | 'h' | 'B' => self.month = self.word(&MONTHS)? as u32 + 1,
            // A day of the week is read and says nothing: the date decides.
            'a' | 'A' => {
                self.word(&WEEKDAYS)?;
            }
            'w' | 'u' => {
                self.number(1, 0..=7)?;
            }
            'p' => self.is_afternoon = Some(self.half()? == 1),
            'z' => self.zone()?,
            'x' => "Y-m-d".chars().try_for_each(|c| self.composed(c))?,
            'X' => "H:M:S".chars().try_for_each(|c| self.composed(c))?,
            'c' => "Y-m-d H:M:S".chars().try_for_each(|c| self.composed(c))?,
            // Weeks without a day name no date; zones by name are not known.
            _ => return None,
        }
        Some(())
    }

    fn half(&mut self) -> Option<usize> {
        let half = self.rest.get(..2)?;
        let at = ["am", "pm"]
            .iter()
            .position(|one| half.eq_ignore_ascii_case(one))?;
        self.rest = &self.rest[2..];
        Some(at)
    }

    fn composed(&mut self, c: char) -> Option<()> {
        match c.is_ascii_alphabetic() {
            true => self.field(c),
            false => self.literal(c.encode_utf8(&mut [0; 4])),
        }
    }

    /// `+HH`, `+HHMM`, `+HH:MM` or `Z`.
    fn zone(&mut self) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix(['Z', 'z']) {
            self.rest = rest;
            return Some(());
        }
        let sign = match self.rest.chars().next()? {
            '+' => 1,
            '-' => -1,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        let hours = self.number(2, 0..=15)?;
        let minutes = match self.rest.strip_prefix(':') {
            Some(rest) => {
                self.rest = rest;
                self.number(2, 0..=59)?
            }
            None => self.number(2, 0..=59).unwrap_or(0),
        };
        self.offset = sign * (hours * 60 + minutes) * 60;
        Some(())
    }

    fn finish(self) -> Option<i64> {
        if let Some(epoch) = self.epoch {
            return Some(epoch * MICROS_PER_SECOND + self.micros);
        }
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(self.year, day)?,
            None => NaiveDate::from_ymd_opt(self.year, self.month, self.day)?,
        };
        let hour = match self.is_afternoon {
            None => self.hour,
            Some(is_afternoon) if self.hour <= 12 => {
                self.hour % 12 + if is_afternoon { 12 } else { 0 }
            }
            Some(_) => return None,
        };
        let seconds = hour * 3_600 + self.minute * 60 + self.second - self.offset;
        let time = seconds * MICROS_PER_SECOND + self.micros;
        days_of(date).checked_mul(MICROS_PER_DAY)?.checked_add(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: &str) -> Option<i64> {
        DateReader::read(text, &pieces(format).unwrap())
    }

    #[test]
    fn strings_are_read_whole_or_not_at_all() {
        assert_eq!(read("1970-01-02", "%Y-%m-%d"), Some(MICROS_PER_DAY));
        assert_eq!(read("19700102", "%Y%m%d"), Some(MICROS_PER_DAY));
        assert_eq!(read("1970-01-02x", "%Y-%m-%d"), None);
        assert_eq!(read("1970-02-30", "%Y-%m-%d"), None);
        assert_eq!(
            read("02.01.70 1 pm", "%d.%m.%y %I %p"),
            Some(MICROS_PER_DAY + 13 * 3_600_000_000)
        );
        assert_eq!(
            read("1970-01-01T02:00:00.5+02:00", "%Y-%m-%dT%H:%M:%S.%f%z"),
            Some(500_000)
        );
    }

    #[test]
    fn unknown_letters_are_named() {
        assert_eq!(pieces("%Y %q"), Err("%q".to_owned()));
        assert_eq!(pieces("100%"), Err("%".to_owned()));
    }
}
