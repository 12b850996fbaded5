//! Guesses: the types of columns, from a sample of their values.
//!
//! In: fields, as many as were asked for.
//! Out: for each column the narrowest type that every value of the sample has, and how its dates are written.
//! Invariant: a value of the sample is never changed by its type. A leading zero, a second 60, a day that there is not and
//! a date with two readings make the column text.
//! Not here: delimiters and headers (dialect.rs).

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};

use super::columns::{Cells, Forms};
use super::values::{self, DateForm, Order};

/// Digits of the integers that DECIMAL(38, 0) holds.
const WIDE_DIGITS: usize = 38;

/// Integers of so many digits are BIGINT.
const SHORT_DIGITS: usize = 18;

/// Digits of a fraction that the usual unit of timestamps holds.
const MICROSECOND_DIGITS: usize = 6;

/// Orders and separators of dates, the ones without doubt first.
const DATES: [(Order, u8); 8] = [
    (Order::YearMonthDay, b'-'),
    (Order::YearMonthDay, b'/'),
    (Order::YearMonthDay, b'.'),
    (Order::DayMonthYear, b'.'),
    (Order::DayMonthYear, b'/'),
    (Order::MonthDayYear, b'/'),
    (Order::DayMonthYear, b'-'),
    (Order::MonthDayYear, b'-'),
];

const BOOLEAN: u32 = 1;
const INTEGER: u32 = 1 << 1;
const UNSIGNED: u32 = 1 << 2;
const WIDE: u32 = 1 << 3;
const DOUBLE: u32 = 1 << 4;
const COMMA: u32 = 1 << 5;
const TIME: u32 = 1 << 6;
/// The first of [`DATES`]; the timestamps with these dates follow.
const DATE: u32 = 8;
const TIMESTAMP: u32 = DATE + DATES.len() as u32;
const ALL: u32 = (1 << (TIMESTAMP + DATES.len() as u32)) - 1;

/// What a column may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guess {
    possible: u32,
    has_values: bool,
    fraction_digits: usize,
    /// Some value has a comma that stands before a fraction and not between thousands.
    has_fraction_comma: bool,
    /// Some timestamp has a zone, some has none.
    has_zoned: bool,
    has_local: bool,
    /// The patterns that were asked for fit all values.
    fits_date: bool,
    fits_timestamp: bool,
}

impl Default for Guess {
    fn default() -> Guess {
        Guess {
            possible: ALL,
            has_values: false,
            fraction_digits: 0,
            has_fraction_comma: false,
            has_zoned: false,
            has_local: false,
            fits_date: true,
            fits_timestamp: true,
        }
    }
}

/// The type of a column and the form of its dates.
pub type Typed = (DataType, DateForm);

impl Guess {
    /// Another value of the column.
    pub fn see(&mut self, text: &str) {
        self.has_values = true;
        if self.possible == 0 {
            return;
        }
        let mut left = self.possible & among(text);
        let numbers = BOOLEAN | INTEGER | UNSIGNED | WIDE | DOUBLE | COMMA | TIME;
        if left & !(INTEGER | UNSIGNED | WIDE | DOUBLE | COMMA) == 0 && among(text) != ALL {
            self.possible = left;
            return;
        }
        for bit in (0..DATE)
            .map(|bit| 1 << bit)
            .filter(|bit| numbers & bit != 0)
        {
            if left & bit != 0 && !is_of(bit, text) {
                left &= !bit;
            }
        }
        for (index, (order, separator)) in DATES.iter().enumerate() {
            let (date, timestamp) = (1 << (DATE + index as u32), 1 << (TIMESTAMP + index as u32));
            let form = || DateForm::Parts(*order, *separator);
            if left & date != 0 && values::date(text, &form()).is_none() {
                left &= !date;
            }
            if left & timestamp != 0 && values::timestamp(text, &form()).is_none() {
                left &= !timestamp;
            }
        }
        if left >> TIMESTAMP != 0 {
            self.fraction_digits = self.fraction_digits.max(fraction_digits(text));
            let is_zoned = values::has_zone(text);
            self.has_zoned |= is_zoned;
            self.has_local |= !is_zoned;
        }
        if let Some((_, fraction)) = text.split_once(',') {
            self.has_fraction_comma |= left & COMMA != 0 && fraction.len() != 3;
        }
        self.possible = left;
    }

    /// What a column is that has the values of both.
    pub fn merge(&mut self, other: &Guess) {
        self.possible &= other.possible;
        self.has_values |= other.has_values;
        self.fraction_digits = self.fraction_digits.max(other.fraction_digits);
        self.has_fraction_comma |= other.has_fraction_comma;
        self.has_zoned |= other.has_zoned;
        self.has_local |= other.has_local;
        self.fits_date &= other.fits_date;
        self.fits_timestamp &= other.fits_timestamp;
    }

    /// Another value of the column, held against the patterns that were asked for.
    fn see_patterns(&mut self, text: &str, forms: &Forms) {
        if let Some(date) = forms.date.as_ref().filter(|_| self.fits_date) {
            self.fits_date = values::date(text, date).is_some();
        }
        if let Some(timestamp) = forms.timestamp.as_ref().filter(|_| self.fits_timestamp) {
            self.fits_timestamp = values::timestamp(text, timestamp).is_some();
        }
    }

    /// The type in a file with these forms.
    pub fn kind_in(&self, forms: &Forms) -> Typed {
        let found = self.kind(forms.decimal);
        let asked = match found.0 {
            DataType::Boolean | DataType::Float64 | DataType::Time64(_) => return found,
            DataType::Timestamp(..) => &forms.timestamp,
            _ if self.has_values && forms.date.is_some() && self.fits_date => &forms.date,
            _ if self.has_values && forms.timestamp.is_some() && self.fits_timestamp => {
                &forms.timestamp
            }
            DataType::Date32 => &forms.date,
            _ => return found,
        };
        match asked {
            None => found,
            Some(form) if self.fits_date && Some(form) == forms.date.as_ref() => {
                (DataType::Date32, form.clone())
            }
            Some(form) if self.fits_timestamp && Some(form) == forms.timestamp.as_ref() => (
                DataType::Timestamp(TimeUnit::Microsecond, None),
                form.clone(),
            ),
            // Dates of another form than the one that was asked for.
            Some(_) => (DataType::Utf8, DateForm::ISO),
        }
    }

    /// How dates are written in a column whose type the query says.
    pub fn form_of(&self, kind: &DataType) -> DateForm {
        let forms = match kind {
            DataType::Date32 => self.forms(DATE),
            _ => self.forms(TIMESTAMP),
        };
        match forms.as_slice() {
            [form] if self.has_values => form.clone(),
            _ => DateForm::ISO,
        }
    }

    /// With this value the column is still no text.
    pub fn takes(&self, text: &str) -> bool {
        let mut with = *self;
        with.see(text);
        !with.is_text()
    }

    /// Nothing but text, or nothing at all.
    pub fn is_text(&self) -> bool {
        [b'.', b',']
            .iter()
            .all(|decimal| self.kind(*decimal).0 == DataType::Utf8)
    }

    /// Numbers with a comma before their fraction, and no numbers otherwise.
    pub fn has_decimal_comma(&self) -> bool {
        self.has_values && self.has(COMMA) && !self.has(DOUBLE) && self.has_fraction_comma
    }

    fn has(&self, bit: u32) -> bool {
        self.possible & bit != 0
    }

    /// The type in a file with this decimal separator.
    pub fn kind(&self, decimal: u8) -> Typed {
        let simple = |kind| (kind, DateForm::ISO);
        if !self.has_values {
            // Nothing but empty fields so far: text takes whatever comes.
            return simple(DataType::Utf8);
        }
        for (bit, kind) in [
            (BOOLEAN, DataType::Boolean),
            (INTEGER, DataType::Int64),
            (UNSIGNED, DataType::UInt64),
            (WIDE, DataType::Decimal128(WIDE_DIGITS as u8, 0)),
            (TIME, DataType::Time64(TimeUnit::Nanosecond)),
        ] {
            if self.has(bit) {
                return simple(kind);
            }
        }
        let number = if decimal == b',' { COMMA } else { DOUBLE };
        if self.has(number) {
            return simple(DataType::Float64);
        }
        let dates = self.forms(DATE);
        if let [form] = dates.as_slice() {
            return (DataType::Date32, form.clone());
        }
        let timestamps = self.forms(TIMESTAMP);
        match timestamps.as_slice() {
            // Of timestamps with and without a zone nobody knows which is earlier.
            [form] if dates.is_empty() && !(self.has_zoned && self.has_local) => {
                let unit = match self.fraction_digits <= MICROSECOND_DIGITS {
                    true => TimeUnit::Microsecond,
                    false => TimeUnit::Nanosecond,
                };
                let zone = self.has_zoned.then(|| Arc::from("+00:00"));
                (DataType::Timestamp(unit, zone), form.clone())
            }
            _ => simple(DataType::Utf8),
        }
    }

    fn forms(&self, first: u32) -> Vec<DateForm> {
        let is_possible =
            |(index, _): &(usize, &(Order, u8))| self.has(1 << (first + *index as u32));
        let possible = DATES.iter().enumerate().filter(is_possible);
        possible
            .map(|(_, (order, separator))| DateForm::Parts(*order, *separator))
            .collect()
    }
}

/// What a text may be by its letters alone: most values are short integers, of which no more need be asked.
fn among(text: &str) -> u32 {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_short = digits.len() <= SHORT_DIGITS && is_plain(text);
    match is_short && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true if digits.len() == text.len() => INTEGER | UNSIGNED | WIDE | DOUBLE | COMMA,
        true => INTEGER | WIDE | DOUBLE | COMMA,
        false => ALL,
    }
}

fn is_of(bit: u32, text: &str) -> bool {
    let number = || text.trim_matches(' ');
    match bit {
        BOOLEAN => text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"),
        INTEGER => is_plain(number()) && values::integer(text).is_some(),
        UNSIGNED => is_plain(number()) && number().parse::<u64>().is_ok(),
        WIDE => {
            is_plain(number())
                && number().trim_start_matches('-').len() <= WIDE_DIGITS
                && values::wide_integer(text).is_some()
        }
        DOUBLE => is_double(number(), b'.'),
        COMMA => is_double(number(), b','),
        _ => text.len() >= "00:00:00".len() && values::time(text).is_some(),
    }
}

/// Without a plus and zeros in front, which are part of a code and not of a number.
fn is_plain(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number).as_bytes();
    let is_padded = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
    !is_padded && digits.first().is_some_and(u8::is_ascii_digit)
}

fn is_double(number: &str, decimal: u8) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    if ["nan", "inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
    {
        return decimal == b'.';
    }
    let begins_fraction = unsigned.as_bytes().first() == Some(&decimal);
    // An integer of too many digits for any type keeps them as text.
    let is_whole = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !is_whole || unsigned.len() <= WIDE_DIGITS;
    (is_plain(number) || begins_fraction) && fits && values::double(number, decimal).is_some()
}

fn fraction_digits(text: &str) -> usize {
    let Some((_, rest)) = text.rsplit_once('.') else {
        return 0;
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].trim_end_matches('0').len()
}

/// All columns of a table, by slot.
pub fn see_all(guesses: &mut [Guess], mut cells: Cells<'_>) {
    for (slot, guess) in guesses.iter_mut().enumerate() {
        cells.slot = slot;
        for row in 0..cells.table.rows() {
            if let Some(text) = cells.text(row) {
                guess.see(&text);
                guess.see_patterns(&text, cells.forms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(values: &[&str]) -> Guess {
        let mut guess = Guess::default();
        values.iter().for_each(|value| guess.see(value));
        guess
    }

    #[test]
    fn types_hold_every_value() {
        let timestamp = |unit| DataType::Timestamp(unit, None);
        for (values, expected) in [
            (&["1", "-2"][..], DataType::Int64),
            (&["1", "9223372036854775808"], DataType::UInt64),
            (&["-1", "9223372036854775808"], DataType::Decimal128(38, 0)),
            (&["1", "1.5", "1e5", "nan", "-inf"], DataType::Float64),
            (&["1", "007"], DataType::Utf8),
            (&["+7"], DataType::Utf8),
            (&["true", "FALSE"], DataType::Boolean),
            (&["true", "1"], DataType::Utf8),
            (&["2024-02-29"], DataType::Date32),
            (&["2024-02-30"], DataType::Utf8),
            (&["0000-00-00"], DataType::Utf8),
            (&["13/02/2024", "01/02/2024"], DataType::Date32),
            (&["01/02/2024"], DataType::Utf8),
            (&["01.02.2024"], DataType::Date32),
            (
                &["2024-02-29", "2024-02-29T10:00:00.5"],
                timestamp(TimeUnit::Microsecond),
            ),
            (&["2024-02-29", "2024-02-29T10:00:00.5Z"], DataType::Utf8),
            (
                &["2024-02-29 10:00:00.123456789"],
                timestamp(TimeUnit::Nanosecond),
            ),
            (&["2024-02-29 10:00:60"], DataType::Utf8),
            (&["10:00:00"], DataType::Time64(TimeUnit::Nanosecond)),
            (&["25:00:00"], DataType::Utf8),
            (&[], DataType::Utf8),
            (&["1", ""], DataType::Utf8),
        ] {
            assert_eq!(guess(values).kind(b'.').0, expected, "{values:?}");
        }
    }

    #[test]
    fn commas_before_fractions() {
        assert!(guess(&["1,5", "2"]).has_decimal_comma());
        assert!(!guess(&["1,500"]).has_decimal_comma());
        assert!(!guess(&["1,5", "2.5"]).has_decimal_comma());
        assert_eq!(guess(&["1,5", "2"]).kind(b',').0, DataType::Float64);
    }
}
