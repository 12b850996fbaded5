//! Values as strings: what a cast to VARCHAR makes of timestamps, times, intervals, lists, structs and maps, and what the shell and
//! files of text have.
//!
//! In: such values. Out: `2024-01-31 12:00:00.5`, with a zone `2024-01-31 12:00:00+00`; `1 year 2 mons -3 days 04:05:06`; `[1,
//! NULL]`, `{'a': 1}`, `{k=1}`.
//! Invariant: what is written can be read again. Within a list, struct or map a value is written as it is alone, but a string
//! that could be taken for another thing stands in quotes. DataFusion writes a T between date and time, zeros after a fraction,
//! and the hours of an interval as words.
//! Not here: the shell's tables, files, and the brackets of lists in them.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::types::{
    DurationMicrosecondType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, StringViewArray, StringViewBuilder, StructArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalUnit, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{
    ArrayFormatter, ArrayFormatterFactory, DisplayIndex, FormatOptions, FormatResult,
};
use datafusion::common::Result;
use datafusion::logical_expr::Expr;

use crate::functions::casts::intervals::NANOS_PER_DAY;
use crate::functions::casts::own_cast::{OwnCast, own_cast};
use crate::wire::portable;

const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S%.f";
const TIMESTAMP_ZONED: &str = "%Y-%m-%d %H:%M:%S%.f%:z";
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Characters that a string without quotes does not have.
const SPECIAL: [char; 14] = [
    ',', '[', ']', '{', '}', '(', ')', '\'', '"', '=', ':', '\\', '\n', '\t',
];

/// True of values that DataFusion writes in another way.
pub(crate) fn is_written_here(of: &DataType) -> bool {
    use DataType::{Duration, Interval, Map, Struct, Time32, Time64, Timestamp};
    match of {
        Timestamp(..) | Time32(_) | Time64(_) | Interval(_) | Duration(_) => true,
        Struct(_) | Map(..) => true,
        DataType::Dictionary(_, values) => is_written_here(values),
        of => of.is_list(),
    }
}

/// The string of a value, of a type that `is_written_here`.
pub(crate) fn text_of_value(value: Expr, to: DataType) -> Expr {
    own_cast(TextOfValue { to }, value)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct TextOfValue {
    to: DataType,
}

impl OwnCast for TextOfValue {
    fn name(&self) -> &'static str {
        "text of value"
    }

    fn to(&self) -> &DataType {
        &self.to
    }

    fn compute(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(cast(&strings_of_values(values)?, &self.to)?)
    }
}

portable!(TextOfValue, "text_of_value", to: data_type);

/// The strings of values of any type.
pub(crate) fn strings_of_values(values: &ArrayRef) -> Result<StringViewArray> {
    if let DataType::Dictionary(_, of) = values.data_type() {
        return strings_of_values(&cast(values, of)?);
    }
    let options = FormatOptions::new()
        .with_display_error(false)
        .with_null("NULL")
        .with_timestamp_format(Some(TIMESTAMP))
        .with_timestamp_tz_format(Some(TIMESTAMP_ZONED))
        .with_formatter_factory(Some(&WrittenFormatters));
    let formatter = formatter_of(values, &options)?;
    let mut strings = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            strings.append_null();
            continue;
        }
        text.clear();
        formatter.value(row).write(&mut text)?;
        strings.append_value(&text);
    }
    Ok(strings.finish())
}

/// A column whose timestamps, times and intervals, also those in lists, structs and maps, are the strings that CAST makes of them.
pub fn written(column: &ArrayRef) -> Result<ArrayRef> {
    use DataType::{Duration, Interval, Time32, Time64, Timestamp};
    let renamed = |item: &FieldRef, values: &ArrayRef| {
        Arc::new(
            item.as_ref()
                .clone()
                .with_data_type(values.data_type().clone()),
        )
    };
    let changed: ArrayRef = match column.data_type() {
        Timestamp(..) | Time32(_) | Time64(_) | Interval(_) | Duration(_) => {
            return Ok(Arc::new(strings_of_values(column)?));
        }
        DataType::Dictionary(_, of) if is_written_here(of) => return written(&cast(column, of)?),
        DataType::List(item) => {
            let (_, offsets, values, nulls) = column.as_list::<i32>().clone().into_parts();
            let values = written(&values)?;
            Arc::new(ListArray::try_new(
                renamed(item, &values),
                offsets,
                values,
                nulls,
            )?)
        }
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            return written(&cast(column, &DataType::List(Arc::clone(item)))?);
        }
        DataType::Struct(_) => {
            let (fields, columns, nulls) = column.as_struct().clone().into_parts();
            let columns = columns.iter().map(written).collect::<Result<Vec<_>>>()?;
            let fields = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| renamed(field, column));
            let (fields, rows) = (fields.collect(), column.len());
            Arc::new(StructArray::try_new_with_length(
                fields, columns, nulls, rows,
            )?)
        }
        DataType::Map(item, _) => {
            let (_, offsets, entries, nulls, ordered) = column.as_map().clone().into_parts();
            let entries = written(&(Arc::new(entries) as ArrayRef))?;
            let item = renamed(item, &entries);
            let entries = entries.as_struct().clone();
            Arc::new(MapArray::try_new(item, offsets, entries, nulls, ordered)?)
        }
        _ => return Ok(Arc::clone(column)),
    };
    // Nothing in it was one of these.
    match changed.data_type() == column.data_type() {
        true => Ok(Arc::clone(column)),
        false => Ok(changed),
    }
}

/// Asks the factory for the values themselves too: Arrow asks it for nested ones only.
fn formatter_of<'a>(
    values: &'a dyn Array,
    options: &FormatOptions<'a>,
) -> Result<ArrayFormatter<'a>, ArrowError> {
    match WrittenFormatters.create_array_formatter(values, options, None)? {
        Some(formatter) => Ok(formatter),
        None => ArrayFormatter::try_new(values, options),
    }
}

#[derive(Debug)]
struct WrittenFormatters;

impl ArrayFormatterFactory for WrittenFormatters {
    fn create_array_formatter<'formatter>(
        &self,
        array: &'formatter dyn Array,
        options: &FormatOptions<'formatter>,
        _field: Option<&'formatter Field>,
    ) -> Result<Option<ArrayFormatter<'formatter>>, ArrowError> {
        use DataType::{Duration, Interval, Map, Struct, Time32, Time64, Timestamp};
        let plain = || {
            let plain = options.clone().with_formatter_factory(None);
            ArrayFormatter::try_new(array, &plain)
        };
        let null = options.null();
        let written: Box<dyn DisplayIndex + 'formatter> = match array.data_type() {
            Timestamp(..) | Time32(_) | Time64(_) => Box::new(ClockFormatter {
                inner: plain()?,
                array,
                null,
            }),
            Interval(_) | Duration(_) => Box::new(Intervals {
                intervals: intervals(array)?,
                null,
            }),
            Struct(_) => Box::new(StructFormatter::new(array.as_struct(), options)?),
            Map(..) => Box::new(Entries::new(array.as_map(), options)?),
            of if of.is_string() => Box::new(StringsFormatter {
                inner: plain()?,
                array,
                null,
            }),
            _ => return Ok(None),
        };
        Ok(Some(ArrayFormatter::new(written, options.safe())))
    }
}

/// Strings within lists, structs and maps.
struct StringsFormatter<'a> {
    inner: ArrayFormatter<'a>,
    array: &'a dyn Array,
    null: &'a str,
}

impl DisplayIndex for StringsFormatter<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.array.is_null(row) {
            return Ok(f.write_str(self.null)?);
        }
        let text = self.inner.value(row).try_to_string()?;
        match needs_quotes(&text) {
            true => write_quoted(&text, f)?,
            false => f.write_str(&text)?,
        }
        Ok(())
    }
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.contains(SPECIAL)
        || text.trim().len() < text.len()
        || text.eq_ignore_ascii_case("null")
}

fn write_quoted(text: &str, f: &mut dyn Write) -> std::fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('\'')
}

/// Timestamps and times.
struct ClockFormatter<'a> {
    inner: ArrayFormatter<'a>,
    array: &'a dyn Array,
    null: &'a str,
}

impl DisplayIndex for ClockFormatter<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.array.is_null(row) {
            return Ok(f.write_str(self.null)?);
        }
        let text = self.inner.value(row).try_to_string()?;
        let (mut clock, mut zone) = (text.as_str(), "");
        if matches!(self.array.data_type(), DataType::Timestamp(_, Some(_))) {
            // `+01:00`
            (clock, zone) = text.split_at(text.len() - 6);
            zone = zone.strip_suffix(":00").unwrap_or(zone);
        }
        if clock.contains('.') {
            clock = clock.trim_end_matches('0').trim_end_matches('.');
        }
        f.write_str(clock)?;
        Ok(f.write_str(zone)?)
    }
}

/// Intervals of any unit as those that hold all others.
fn intervals(array: &dyn Array) -> Result<Vec<Option<IntervalMonthDayNano>>, ArrowError> {
    let of_nanos = |nanos: i64, days: i64| {
        let days = i32::try_from(days).unwrap_or(i32::MAX);
        IntervalMonthDayNano::new(0, days, nanos)
    };
    Ok(match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            let months = array.as_primitive::<IntervalYearMonthType>().iter();
            let of = |months| IntervalMonthDayNano::new(months, 0, 0);
            months.map(|months| months.map(of)).collect()
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let parts = array.as_primitive::<IntervalDayTimeType>().iter();
            parts
                .map(|parts| {
                    let parts = parts?;
                    let nanos = i64::from(parts.milliseconds) * 1_000_000;
                    Some(of_nanos(nanos, parts.days.into()))
                })
                .collect()
        }
        DataType::Interval(_) => {
            let all = array.as_primitive::<IntervalMonthDayNanoType>();
            all.iter().collect()
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            let array = cast(&array.slice(0, array.len()), &DataType::Int64)?;
            let nanos = array.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
            let of = |nanos: i64| of_nanos(nanos % NANOS_PER_DAY, nanos / NANOS_PER_DAY);
            nanos.iter().map(|nanos| nanos.map(of)).collect()
        }
        _ => {
            const DAY: i64 = 86_400_000_000;
            let to = DataType::Duration(TimeUnit::Microsecond);
            let array = cast(&array.slice(0, array.len()), &to)?;
            let micros = array.as_primitive::<DurationMicrosecondType>();
            let of = |micros: i64| of_nanos(micros % DAY * 1_000, micros / DAY);
            micros.iter().map(|micros| micros.map(of)).collect()
        }
    })
}

struct Intervals<'a> {
    intervals: Vec<Option<IntervalMonthDayNano>>,
    null: &'a str,
}

impl DisplayIndex for Intervals<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        match self.intervals[row] {
            None => Ok(f.write_str(self.null)?),
            Some(interval) => Ok(write_interval(interval, f)?),
        }
    }
}

/// `1 year 2 mons -3 days 04:05:06.5`, in which what is zero is left out.
fn write_interval(interval: IntervalMonthDayNano, f: &mut dyn Write) -> std::fmt::Result {
    let mut separator = "";
    let counts = [
        (interval.months / 12, "year"),
        (interval.months % 12, "mon"),
        (interval.days, "day"),
    ];
    for (count, unit) in counts.into_iter().filter(|(count, _)| *count != 0) {
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{separator}{count} {unit}{plural}")?;
        separator = " ";
    }
    if interval.nanoseconds == 0 && !separator.is_empty() {
        return Ok(());
    }
    let sign = if interval.nanoseconds < 0 { "-" } else { "" };
    let nanos = interval.nanoseconds.unsigned_abs();
    let (seconds, fraction) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    write!(
        f,
        "{separator}{sign}{hours:02}:{minutes:02}:{:02}",
        seconds % 60
    )?;
    if fraction != 0 {
        let digits = format!(".{fraction:09}");
        f.write_str(digits.trim_end_matches('0'))?;
    }
    Ok(())
}

/// A struct: `{'a': 1}`.
struct StructFormatter<'a> {
    fields: Vec<(&'a str, ArrayFormatter<'a>)>,
    of: &'a StructArray,
    null: &'a str,
}

impl<'a> StructFormatter<'a> {
    fn new(of: &'a StructArray, options: &FormatOptions<'a>) -> Result<Self, ArrowError> {
        let fields = of.fields().iter().zip(of.columns());
        let fields = fields
            .map(|(field, column)| Ok((field.name().as_str(), formatter_of(column, options)?)));
        Ok(Self {
            fields: fields.collect::<Result<_, ArrowError>>()?,
            of,
            null: options.null(),
        })
    }
}

impl DisplayIndex for StructFormatter<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.of.is_null(row) {
            return Ok(f.write_str(self.null)?);
        }
        let mut separator = "{";
        for (name, value) in &self.fields {
            f.write_str(separator)?;
            write_quoted(name, f)?;
            f.write_str(": ")?;
            value.value(row).write(f)?;
            separator = ", ";
        }
        Ok(f.write_str(if self.fields.is_empty() { "{}" } else { "}" })?)
    }
}

/// A map: `{k=1}`.
struct Entries<'a> {
    keys: ArrayFormatter<'a>,
    values: ArrayFormatter<'a>,
    of: &'a MapArray,
    null: &'a str,
}

impl<'a> Entries<'a> {
    fn new(of: &'a MapArray, options: &FormatOptions<'a>) -> Result<Self, ArrowError> {
        Ok(Self {
            keys: formatter_of(of.keys(), options)?,
            values: formatter_of(of.values(), options)?,
            of,
            null: options.null(),
        })
    }
}

impl DisplayIndex for Entries<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.of.is_null(row) {
            return Ok(f.write_str(self.null)?);
        }
        f.write_str("{")?;
        let offsets = self.of.value_offsets();
        for entry in offsets[row] as usize..offsets[row + 1] as usize {
            if entry > offsets[row] as usize {
                f.write_str(", ")?;
            }
            self.keys.value(entry).write(f)?;
            f.write_str("=")?;
            self.values.value(entry).write(f)?;
        }
        Ok(f.write_str("}")?)
    }
}
