//! Casts of strings that DataFusion does in another way than SQL.
//!
//! In: strings, and the type that CAST or TRY_CAST names. Out: lists of what `[1, 2]` holds, structs of `{a: 1}`, maps of
//! `{k=1}`; intervals; bytes of `\xAA`. Times, which no bare number is; dates and timestamps (written_times.rs); decimals of
//! `1.5e3`; floats, which `1e400` is none of.
//! Invariant: a text that cannot be read is an error that shows it, or NULL with TRY_CAST. DataFusion makes a list of one text of
//! any text, months of a bare number, midnight of '11', and infinity of 1e400.
//! Not here: strings in files (scan/); UUIDs (uuid_text.rs); casts to strings (value_text.rs); what an interval's text means
//! (intervals.rs).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, ListArray, StringViewArray,
    StringViewBuilder, StructArray, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, is_not_null, not, nullif};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Float64Type, TimeUnit};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::Expr;

use crate::error::types::type_name;
use crate::expr::columns::has_offset;
use crate::functions::casts::coarser_times::nearest;
use crate::functions::casts::intervals::Interval;
use crate::functions::casts::map_keys::MapParts;
use crate::functions::casts::own_cast::{OwnCast, own_cast};
use crate::functions::casts::written_times;
use crate::functions::casts::zones::in_zone;
use crate::wire::portable;
use grouse_text::blobs::bytes_of;

/// Digits before and behind the point of a number, beyond those of any decimal.
const EXPONENT_MAX: i64 = 100;

/// True of casts of strings that are ours.
pub(crate) fn is_text_cast(of: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Decimal32, Decimal64, Decimal128, Decimal256, FixedSizeList, Float32,
        Float64, Interval, LargeBinary, LargeList, List, Map, Struct, Time32, Time64,
    };
    let is_ours = matches!(
        to,
        List(_)
            | LargeList(_)
            | FixedSizeList(..)
            | Struct(_)
            | Map(..)
            | Interval(_)
            | Binary
            | LargeBinary
            | BinaryView
            | Time32(_)
            | Time64(_)
            | Decimal32(..)
            | Decimal64(..)
            | Decimal128(..)
            | Decimal256(..)
            | Float32
            | Float64
    );
    of.is_string() && (is_ours || written_times::is_date_or_timestamp(to))
}

/// The cast; `is_try`: NULL for what cannot be read.
pub(crate) fn text_cast(text: Expr, to: DataType, is_try: bool) -> Expr {
    own_cast(TextCast { to, is_try }, text)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct TextCast {
    to: DataType,
    is_try: bool,
}

impl OwnCast for TextCast {
    fn name(&self) -> &'static str {
        match self.is_try {
            true => "try_cast of text",
            false => "cast of text",
        }
    }

    fn to(&self) -> &DataType {
        &self.to
    }

    fn is_try(&self) -> bool {
        self.is_try
    }

    fn compute(&self, text: &ArrayRef) -> Result<ArrayRef> {
        read_strings(text, &self.to, self.is_try)
    }
}

portable!(TextCast, "text_cast", to: data_type, is_try: flag);

/// What strings say; `is_try`: NULL for what cannot be read.
pub(crate) fn read_strings(strings: &ArrayRef, to: &DataType, is_try: bool) -> Result<ArrayRef> {
    let strings = cast(strings, &DataType::Utf8View)?;
    StringCast { is_try }.values(strings.as_string_view(), to)
}

/// True of a text with more than six digits behind a point.
fn has_nanos(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count() > 6
}

struct StringCast {
    is_try: bool,
}

impl StringCast {
    fn values(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        match to {
            _ if strings.null_count() == strings.len() => Ok(new_null_array(to, strings.len())),
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                self.lists(strings, to)
            }
            DataType::Timestamp(unit, Some(zone))
                if has_offset(zone) && !strings.iter().flatten().all(written_times::names_zone) =>
            {
                let local = DataType::Timestamp(*unit, None);
                let is_named: BooleanArray = strings
                    .iter()
                    .map(|text| Some(text.is_some_and(written_times::names_zone)))
                    .collect();
                let without = nullif(strings, &is_named)?;
                let named = nullif(strings, &not(&is_named)?)?;
                let clocks = self.values(without.as_string_view(), &local)?;
                let named = self.values(named.as_string_view(), to)?;
                Ok(zip(&is_named, &named, &in_zone(&clocks, to, self.is_try)?)?)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _)
                if strings.iter().flatten().any(has_nanos) =>
            {
                self.micros(strings, to)
            }
            DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
                let finer = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                Ok(cast(&nearest(&self.values(strings, &finer)?, to)?, to)?)
            }
            DataType::Struct(fields) => self.structs(strings, fields, to),
            DataType::Map(entries, is_sorted) => self.maps(strings, (entries, *is_sorted), to),
            to if written_times::is_date_or_timestamp(to) => self.times(strings, to),
            DataType::Interval(_) => {
                let readable =
                    self.each(strings, to, |text| Some(Interval::read(text)?.plain()))?;
                self.by_datafusion(&readable, to)
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let readable = self.each(strings, to, time_of_two_digits)?;
                self.by_datafusion(&readable, to)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                let mut bytes: Vec<Option<Vec<u8>>> = Vec::with_capacity(strings.len());
                for text in strings {
                    bytes.push(match text {
                        None => None,
                        Some(text) => match bytes_of(text) {
                            None if !self.is_try => return unreadable(text, to),
                            bytes => bytes,
                        },
                    });
                }
                let bytes: BinaryArray = bytes.iter().map(Option::as_deref).collect();
                Ok(cast(&bytes, to)?)
            }
            DataType::Float32 | DataType::Float64 => self.floats(strings, to),
            to if to.is_decimal() => self.decimals(strings, to),
            other => self.by_datafusion(strings, other),
        }
    }

    /// Dates and timestamps, of which DataFusion cuts digits that the type does not have.
    fn times(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let read = |text: &str| written_times::readable(text, to);
        let is_other = |text: Option<&str>| text.and_then(&read).is_some();
        if !strings.iter().any(is_other) {
            return self.by_datafusion(strings, to);
        }
        let readable = self.each(strings, to, |text| {
            Some(read(text).unwrap_or_else(|| text.to_owned()))
        })?;
        self.by_datafusion(&readable, to)
    }

    /// Timestamps of microseconds, rounded where the text has more digits and nanoseconds reach them.
    fn micros(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let cut = self.times(strings, to)?;
        let DataType::Timestamp(_, zone) = to else {
            return Ok(cut);
        };
        let finer = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
        let nanos = StringCast { is_try: true }.times(strings, &finer)?;
        let rounded = cast(&nearest(&nanos, to)?, to)?;
        Ok(zip(&is_not_null(&rounded)?, &rounded, &cut)?)
    }

    /// Floats; DataFusion makes infinity of a number that is too large.
    fn floats(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let floats = self.by_datafusion(strings, to)?;
        let doubles = cast(&floats, &DataType::Float64)?;
        let doubles = doubles.as_primitive::<Float64Type>();
        let is_beyond = |(number, text): (Option<f64>, Option<&str>)| {
            number.is_some_and(f64::is_infinite)
                && text.is_some_and(|text| text.contains(|digit: char| digit.is_ascii_digit()))
        };
        let beyond: BooleanArray = doubles
            .iter()
            .zip(strings)
            .map(|pair| Some(is_beyond(pair)))
            .collect();
        match (beyond.values().iter().position(|is| is), self.is_try) {
            (None, _) => Ok(floats),
            (Some(_), true) => Ok(nullif(&floats, &beyond)?),
            (Some(row), false) => unreadable(strings.value(row), to),
        }
    }

    /// Decimals; DataFusion reads no exponents.
    fn decimals(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let has_exponent = |text: &str| text.contains(['e', 'E']);
        let readable = match strings.iter().flatten().any(has_exponent) {
            false => self.by_datafusion_or_null(strings, to)?,
            true => {
                let plain = self.each(strings, to, |text| match has_exponent(text) {
                    true => without_exponent(text),
                    false => Some(text.to_owned()),
                })?;
                self.by_datafusion_or_null(&plain, to)?
            }
        };
        let mut rows = 0..strings.len();
        let unread = rows.find(|row| strings.is_valid(*row) && readable.is_null(*row));
        match unread {
            Some(row) if !self.is_try => unreadable(strings.value(row), to),
            _ => Ok(readable),
        }
    }

    fn by_datafusion_or_null(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        Ok(cast(&cast(strings, &DataType::Utf8)?, to)?)
    }

    /// What `read` makes of each text, which DataFusion can read.
    fn each(
        &self,
        strings: &StringViewArray,
        to: &DataType,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<StringViewArray> {
        let mut readable = StringViewBuilder::with_capacity(strings.len());
        for text in strings {
            match text.map(|text| (text, read(text))) {
                None => readable.append_null(),
                Some((_, Some(other))) => readable.append_value(other),
                Some((_, None)) if self.is_try => readable.append_null(),
                Some((text, None)) => return unreadable(text, to),
            }
        }
        Ok(readable.finish())
    }

    fn by_datafusion(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let options = CastOptions {
            safe: self.is_try,
            ..CastOptions::default()
        };
        // DataFusion reads text in more types from a column with offsets.
        let strings = cast(strings, &DataType::Utf8)?;
        Ok(cast_with_options(&strings, to, &options)?)
    }

    /// What `read` makes of a text; an error, or nothing with TRY_CAST, where that is nothing.
    fn read<T>(
        &self,
        text: Option<&str>,
        to: &DataType,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        match text.map(|text| (text, read(text))) {
            Some((text, None)) if !self.is_try => unreadable(text, to),
            Some((_, value)) => Ok(value),
            None => Ok(None),
        }
    }

    /// Structs of members with the names of the fields, in any order; a field without a member is NULL.
    fn structs(
        &self,
        strings: &StringViewArray,
        fields: &Fields,
        to: &DataType,
    ) -> Result<ArrayRef> {
        let place = |name: &str| {
            let is_it = |field: &FieldRef| field.name().eq_ignore_ascii_case(name);
            fields.iter().position(is_it)
        };
        let placed = |text: &str| {
            let mut values = vec![None; fields.len()];
            for (name, value) in members(text, ':')? {
                values[place(&name?)?] = value;
            }
            Some(values)
        };
        let mut valid = Vec::with_capacity(strings.len());
        let mut columns: Vec<_> = fields.iter().map(|_| StringViewBuilder::new()).collect();
        for text in strings {
            let values = self.read(text, to, placed)?;
            valid.push(values.is_some());
            let values = values.unwrap_or_else(|| vec![None; fields.len()]);
            for (column, value) in columns.iter_mut().zip(values) {
                column.append_option(value);
            }
        }
        let columns = columns.iter_mut().zip(fields);
        let columns =
            columns.map(|(strings, field)| self.values(&strings.finish(), field.data_type()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let nulls = Some(NullBuffer::from(valid));
        let structs =
            StructArray::try_new_with_length(fields.clone(), columns, nulls, strings.len())?;
        Ok(Arc::new(structs))
    }

    fn maps(
        &self,
        strings: &StringViewArray,
        (entries, is_sorted): (&FieldRef, bool),
        to: &DataType,
    ) -> Result<ArrayRef> {
        let DataType::Struct(fields) = entries.data_type() else {
            return internal_err!("a map of {entries}");
        };
        let known = |text: &str| {
            let members = members(text, '=').or_else(|| members(text, ':'))?;
            members
                .iter()
                .all(|(key, _)| key.is_some())
                .then_some(members)
        };
        let (mut keys, mut values) = (StringViewBuilder::new(), StringViewBuilder::new());
        let mut lengths = Vec::with_capacity(strings.len());
        let mut valid = Vec::with_capacity(strings.len());
        for text in strings {
            let members = self.read(text, to, known)?;
            valid.push(members.is_some());
            let members = members.unwrap_or_default();
            lengths.push(members.len());
            for (key, value) in members {
                keys.append_option(key);
                values.append_option(value);
            }
        }
        let keys = self.values(&keys.finish(), fields[0].data_type())?;
        let values = self.values(&values.finish(), fields[1].data_type())?;
        let parts = MapParts {
            valid,
            lengths,
            keys,
            values,
        };
        parts.maps(entries, is_sorted, self.is_try)
    }

    fn lists(&self, strings: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let (DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)) = to
        else {
            return internal_err!("a list of type {to}");
        };
        let mut lengths = Vec::with_capacity(strings.len());
        let mut valid = Vec::with_capacity(strings.len());
        let mut parts = StringViewBuilder::new();
        for text in strings {
            let items = self.read(text, to, items)?;
            valid.push(items.is_some());
            let items = items.unwrap_or_default();
            lengths.push(items.len());
            parts.extend(items);
        }
        let parts = self.values(&parts.finish(), field.data_type())?;
        let lists = ListArray::try_new(
            Arc::clone(field),
            OffsetBuffer::from_lengths(lengths),
            parts,
            Some(NullBuffer::from(valid)),
        )?;
        match to {
            DataType::List(_) => Ok(Arc::new(lists)),
            to => {
                let safe = self.is_try;
                let options = CastOptions {
                    safe,
                    ..CastOptions::default()
                };
                Ok(cast_with_options(&lists, to, &options)?)
            }
        }
    }
}

fn unreadable<T>(text: &str, to: &DataType) -> Result<T> {
    let to = type_name(to);
    exec_err!("Cannot cast string '{text}' to value of {to} type; TRY_CAST gives NULL for it")
}

/// `01:02:03` for `1:2:3`; `None` if there is no colon.
fn time_of_two_digits(text: &str) -> Option<String> {
    let (hours, rest) = text.trim().split_once(':')?;
    let parts = std::iter::once(hours).chain(rest.split(':'));
    let is_short = |part: &str| {
        let digits = part.split('.').next().unwrap_or(part);
        digits.len() == 1 && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    let parts = parts.map(|part| match is_short(part) {
        true => format!("0{part}"),
        false => part.to_owned(),
    });
    Some(parts.collect::<Vec<_>>().join(":"))
}

/// `1500` for `1.5e3`; `None` if it is no number, or one with hundreds of digits.
fn without_exponent(text: &str) -> Option<String> {
    let (number, exponent) = text.trim().split_once(['e', 'E'])?;
    let exponent: i64 = exponent.parse().ok()?;
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let sign = if number.starts_with('-') { "-" } else { "" };
    let (whole, places) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{places}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    if digits.bytes().all(|digit| digit == b'0') {
        return Some("0".to_owned());
    }
    let point = i64::try_from(whole.len()).ok()? + exponent;
    if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&point) {
        return (point < 0).then(|| "0".to_owned());
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
    let digits = format!("{}{digits}", zeros(-point));
    let whole = usize::try_from(point).unwrap_or_default();
    let digits = format!("{digits}{}", zeros(point - digits.len() as i64));
    let (whole, places) = digits.split_at(whole);
    Some(format!("{sign}{whole}.{places}"))
}

/// The items of `[a, "b, c", NULL, [1, 2]]`, lists and structs within it as they are; `None` if it is no such text.
fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let parts = parts(inside, ',')?;
    Some(parts.into_iter().map(item).collect())
}

/// A name and its value.
type Member = (Option<String>, Option<String>);

/// The members of `{a: 1, 'b c': [1, 2]}`; `None` if it is no such text.
fn members(text: &str, separator: char) -> Option<Vec<Member>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let member = |part: &str| match parts(part, separator)?.as_slice() {
        [name, _, ..] => {
            let value = &part[name.len() + separator.len_utf8()..];
            Some((item(name), item(value)))
        }
        _ => None,
    };
    parts(inside, ',')?.into_iter().map(member).collect()
}

/// What stands between separators that are in no quotes or brackets; `None` where these do not match.
fn parts(inside: &str, separator: char) -> Option<Vec<&str>> {
    if inside.trim().is_empty() {
        return Some(Vec::new());
    }
    let mut parts = Vec::new();
    let (mut depth, mut start, mut quote) = (0_usize, 0, None);
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            c if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(c),
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.checked_sub(1)?,
            c if depth == 0 && c == separator => {
                parts.push(&inside[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    (depth == 0 && quote.is_none()).then_some(parts)
}

/// An item without its quotes; a backslash in front of a quote, and before any character within quotes, is none of it.
fn item(text: &str) -> Option<String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("null") {
        return None;
    }
    if text.starts_with(['[', '{', '(']) {
        return Some(text.to_owned());
    }
    let mut value = String::new();
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next) if quote.is_some() || matches!(next, '"' | '\'') => value.push(next),
                next => {
                    value.push(c);
                    value.extend(next);
                }
            },
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            c => value.push(c),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_lists() {
        let all = |text| items(text).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(all(" [ ] "), []);
        assert_eq!(all("[a b,, null]"), [some("a b"), some(""), None]);
        assert_eq!(
            all(r#"["a, \"b", 'NULL']"#),
            [some(r#"a, "b"#), some("NULL")]
        );
        assert_eq!(
            all("[[1, 2], {a: [3]}]"),
            [some("[1, 2]"), some("{a: [3]}")]
        );
        assert_eq!(items("1, 2"), None);
        assert_eq!(items("[[1, 2]"), None);
        assert_eq!(items("[it's]"), None);
    }

    #[test]
    fn numbers_without_exponents() {
        let read = |text| without_exponent(text).unwrap_or_default();
        assert_eq!(read("1.5e3"), "1500.");
        assert_eq!(read(" -12.5E-3"), "-.0125");
        assert_eq!(read("12.345e1"), "123.45");
        assert_eq!(read(".5e+1"), "5.");
        assert_eq!(read("0e999"), "0");
        assert_eq!(read("1e-999"), "0");
        assert_eq!(without_exponent("1e999"), None);
        assert_eq!(without_exponent("e3"), None);
        assert_eq!(without_exponent("1.2.3e3"), None);
    }
}
