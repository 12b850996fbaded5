//! Values as text, the same in every text format.
//! In: the columns of a batch. Out: the text of one value after the other.
//! Invariant: timestamps and intervals are as in a cast to VARCHAR, bytes are `\x` and hex digits. Nested values are JSON where
//! the reader is a program ([`Nested::Json`]) and Arrow's own short form where it is a person.
//! Not here: quoting and escaping, which differ by format.

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};
use arrow::util::display::{ArrayFormatter, ArrayFormatterFactory, FormatOptions};

use super::PrintError;
use super::json::Fallback;

/// The form of lists, structs and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nested {
    /// `[a, b]`, `{x: 1}`
    Short,
    /// `["a","b"]`, `{"x":1}`
    Json,
}

fn options() -> FormatOptions<'static> {
    FormatOptions::new()
        .with_display_error(false)
        .with_null("NULL")
        .with_formatter_factory(Some(&Bytes))
}

/// The columns of one batch, with what has to live as long as their formatters do.
pub struct Columns {
    columns: Vec<CellColumn>,
    json: EncoderOptions,
    nested: Nested,
}

struct CellColumn {
    field: FieldRef,
    array: ArrayRef,
    nulls: Option<NullBuffer>,
}

/// Gives the text of values.
pub struct Cells<'a> {
    cells: Vec<Cell<'a>>,
}

struct Cell<'a> {
    form: Form<'a>,
    nulls: Option<&'a NullBuffer>,
}

enum Form<'a> {
    Short(ArrayFormatter<'a>),
    Json(NullableEncoder<'a>),
}

impl Columns {
    /// The columns of `batch`.
    pub fn new(batch: &RecordBatch, nested: Nested) -> Result<Columns, PrintError> {
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| {
                let array = shown(array)?;
                let nulls = array.logical_nulls();
                Ok(CellColumn {
                    field: field.clone(),
                    array,
                    nulls,
                })
            });
        let columns = columns.collect::<Result<_, ArrowError>>()?;
        let json = EncoderOptions::default()
            .with_explicit_nulls(true)
            .with_encoder_factory(std::sync::Arc::new(Values));
        Ok(Columns {
            columns,
            json,
            nested,
        })
    }

    /// The values' formatters, made once per batch.
    pub fn cells(&self) -> Result<Cells<'_>, PrintError> {
        let cells = self.columns.iter().map(|column| {
            let array = column.array.as_ref();
            let as_json = self.nested == Nested::Json && array.data_type().is_nested();
            let form = if as_json {
                Form::Json(make_encoder(&column.field, array, &self.json)?)
            } else {
                Form::Short(top_formatter(array, &options())?)
            };
            Ok(Cell {
                form,
                nulls: column.nulls.as_ref(),
            })
        });
        Ok(Cells {
            cells: cells.collect::<Result<_, ArrowError>>()?,
        })
    }
}

impl Cells<'_> {
    /// Puts the text of a value into `text`, in place of what is there; false if the value is NULL.
    pub fn text(
        &mut self,
        column: usize,
        row: usize,
        text: &mut String,
    ) -> Result<bool, PrintError> {
        text.clear();
        let cell = &mut self.cells[column];
        if cell.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(false);
        }
        match &mut cell.form {
            Form::Short(formatter) => formatter.value(row).write(text)?,
            Form::Json(encoder) => {
                let mut bytes = Vec::new();
                encoder.encode(row, &mut bytes);
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        Ok(true)
    }
}

/// Encoders of floats some of which are not finite, which JSON has no form for: NaN and Infinity are what they are, as in files that
/// COPY writes.
#[derive(Debug)]
struct Values;

impl EncoderFactory for Values {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        if !array.data_type().is_floating() {
            return Fallback.make_default_encoder(field, array, options);
        }
        let floats = ArrayFormatter::try_new(array, &FormatOptions::new())?;
        let encoder = NullableEncoder::new(Box::new(Floats(floats)), array.logical_nulls());
        Ok(Some(encoder))
    }
}

struct Floats<'a>(ArrayFormatter<'a>);

impl Encoder for Floats<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let text = self.0.value(row).to_string();
        let text = match text.as_str() {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            other => other,
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// The array in a form that Arrow's formatters know: run-end encoded columns are laid out flat. Timestamps, times and intervals are
/// the strings that CAST makes of them.
fn shown(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let flat = match array.data_type() {
        DataType::RunEndEncoded(_, values) => cast(array, values.data_type())?,
        _ => array.clone(),
    };
    grouse::written(&flat).map_err(|error| ArrowError::ExternalError(error.into()))
}

/// Asks the factory for the column itself too: Arrow asks it for nested values only.
fn top_formatter<'a>(
    array: &'a dyn Array,
    options: &FormatOptions<'a>,
) -> Result<ArrayFormatter<'a>, ArrowError> {
    match Bytes.create_array_formatter(array, options, None)? {
        Some(formatter) => Ok(formatter),
        None => ArrayFormatter::try_new(array, options),
    }
}

/// Binary values as `\x` and hex digits, so that they cannot be taken for text.
#[derive(Debug)]
struct Bytes;

impl ArrayFormatterFactory for Bytes {
    fn create_array_formatter<'formatter>(
        &self,
        array: &'formatter dyn Array,
        options: &FormatOptions<'formatter>,
        _field: Option<&'formatter Field>,
    ) -> Result<Option<ArrayFormatter<'formatter>>, ArrowError> {
        use DataType::*;
        if !matches!(
            array.data_type(),
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_)
        ) {
            return Ok(None);
        }
        let plain = options.clone().with_formatter_factory(None).with_null("");
        let hex = Hex {
            inner: ArrayFormatter::try_new(array, &plain)?,
            array,
            null: options.null(),
        };
        Ok(Some(ArrayFormatter::new(Box::new(hex), options.safe())))
    }
}

struct Hex<'a> {
    inner: ArrayFormatter<'a>,
    array: &'a dyn Array,
    null: &'a str,
}

impl arrow::util::display::DisplayIndex for Hex<'_> {
    fn write(&self, row: usize, f: &mut dyn std::fmt::Write) -> arrow::util::display::FormatResult {
        if self.array.is_null(row) {
            f.write_str(self.null)?;
        } else {
            write!(f, "\\x{}", self.inner.value(row))?;
        }
        Ok(())
    }
}

/// `text` on one line and harmless to a terminal: control characters as escapes.
pub fn on_one_line(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() || is_direction(c)) {
        return text.into();
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if c.is_control() || is_direction(c) => {
                let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line.into()
}

/// Marks that turn the direction of what follows them, and so would move the table's border.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, Decimal128Array, Float64Array, ListArray, StringArray,
        TimestampMicrosecondArray,
    };
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    fn strings(array: ArrayRef, nested: Nested) -> Vec<Option<String>> {
        let rows = array.len();
        let batch = RecordBatch::try_from_iter([("c", array)]).unwrap();
        let columns = Columns::new(&batch, nested).unwrap();
        let mut cells = columns.cells().unwrap();
        let mut text = String::new();
        (0..rows)
            .map(|r| cells.text(0, r, &mut text).unwrap().then(|| text.clone()))
            .collect()
    }

    fn check(array: ArrayRef, nested: Nested, expected: &[Option<&str>]) {
        let found = strings(array, nested);
        let found: Vec<Option<&str>> = found.iter().map(|t| t.as_deref()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_of_each_kind() {
        let times = TimestampMicrosecondArray::from(vec![Some(1_500_000), None]);
        check(
            Arc::new(times.clone()),
            Nested::Short,
            &[Some("1970-01-01 00:00:01.5"), None],
        );
        let zoned = Arc::new(times.with_timezone("+02:00"));
        check(
            zoned,
            Nested::Short,
            &[Some("1970-01-01 02:00:01.5+02"), None],
        );
        let money = Decimal128Array::from(vec![-5, 1234])
            .with_precision_and_scale(10, 2)
            .unwrap();
        check(
            Arc::new(money),
            Nested::Short,
            &[Some("-0.05"), Some("12.34")],
        );
        let bytes = BinaryArray::from_opt_vec(vec![Some(b"\x00a"), None, Some(b"")]);
        check(
            Arc::new(bytes),
            Nested::Short,
            &[Some("\\x0061"), None, Some("\\x")],
        );
        let floats = Float64Array::from(vec![0.1, f64::NAN, f64::NEG_INFINITY]);
        check(
            Arc::new(floats),
            Nested::Short,
            &[Some("0.1"), Some("NaN"), Some("-inf")],
        );
    }

    #[test]
    fn lists_for_people_and_for_programs() {
        let rows = vec![Some(vec![Some(1), None]), None, Some(vec![])];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
        check(
            lists.clone(),
            Nested::Short,
            &[Some("[1, NULL]"), None, Some("[]")],
        );
        check(lists, Nested::Json, &[Some("[1,null]"), None, Some("[]")]);
    }

    #[test]
    fn a_null_within_a_dictionary_is_null() {
        let codes = arrow::array::Int32Array::from(vec![0, 1]);
        let values = StringArray::from(vec![Some("a"), None]);
        let array = arrow::array::DictionaryArray::new(codes, Arc::new(values));
        check(Arc::new(array), Nested::Short, &[Some("a"), None]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(on_one_line("a\tb\nc\u{1b}[2J"), "a\\tb\\nc\\u{1b}[2J");
        assert_eq!(on_one_line("plain ünïcödé"), "plain ünïcödé");
    }
}
