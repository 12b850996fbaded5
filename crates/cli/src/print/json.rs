//! Results as JSON: an array of objects, or one object per line.
//! In: batches. Out: Arrow's own encoding of values, with NULLs written out.
//! Invariant: the output is valid JSON whatever the values. NaN and the infinities are null, equal column names are numbered, map
//! keys are strings. Timestamps are ISO 8601, intervals as CAST writes them, bytes are hex digits, decimals are numbers.
//! Not here: nested values in csv, which use the same encoders from cells.rs.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, RecordBatch, StringViewArray, make_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, JsonFormat, NullableEncoder, Writer, WriterBuilder,
    make_encoder,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{PrintError, ResultWriter, with_unique_names};
use crate::output::Output;

/// `[{..},` newline `{..}]`
#[derive(Debug, Default)]
pub struct Objects;

/// `{..}` newline
#[derive(Debug, Default)]
pub struct ObjectPerLine;

impl JsonFormat for Objects {
    fn start_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"[")?)
    }

    fn start_row<W: Write>(&self, writer: &mut W, is_first: bool) -> Result<(), ArrowError> {
        if !is_first {
            writer.write_all(b",\n")?;
        }
        Ok(())
    }

    fn end_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"]\n")?)
    }
}

impl JsonFormat for ObjectPerLine {
    fn end_row<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"\n")?)
    }
}

/// Writes a result as JSON.
pub struct Json<'a, F: JsonFormat> {
    writer: Writer<&'a mut Output, F>,
    schema: SchemaRef,
}

impl<'a, F: JsonFormat> Json<'a, F> {
    /// For a result of this schema.
    pub fn new(schema: &SchemaRef, output: &'a mut Output) -> Self {
        let builder = WriterBuilder::new()
            .with_explicit_nulls(true)
            .with_encoder_factory(Arc::new(Fallback));
        Json {
            writer: builder.build(output),
            schema: with_unique_names(schema),
        }
    }
}

impl<F: JsonFormat> ResultWriter for Json<'_, F> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let batch = RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())?;
        Ok(self.writer.write(&batch)?)
    }

    fn finish(mut self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(self.writer.finish()?)
    }
}

/// Encoders for what Arrow's JSON writer refuses: maps whose keys are no strings, and unions.
#[derive(Debug)]
pub struct Fallback;

impl EncoderFactory for Fallback {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Map(_, _) => Box::new(MapEncoder::new(field, array.as_map(), options)?),
            DataType::Union(_, _) => Box::new(TextEncoder::new(array)?),
            DataType::Interval(_) | DataType::Duration(_) => {
                Box::new(Written(strings_of(&make_array(array.to_data()))?))
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.logical_nulls())))
    }
}

/// A map as an object; its keys as text.
struct MapEncoder<'a> {
    array: &'a MapArray,
    keys: TextEncoder<'a>,
    values: NullableEncoder<'a>,
}

impl<'a> MapEncoder<'a> {
    fn new(
        field: &'a FieldRef,
        array: &'a MapArray,
        options: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        let keys = TextEncoder::new(array.keys())?;
        let values = make_encoder(field, array.values(), options)?;
        Ok(MapEncoder {
            array,
            keys,
            values,
        })
    }
}

impl Encoder for MapEncoder<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let offsets = self.array.value_offsets();
        let entries = offsets[row] as usize..offsets[row + 1] as usize;
        out.push(b'{');
        for (nth, entry) in entries.enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            self.keys.encode(entry, out);
            out.push(b':');
            if self.values.is_null(entry) {
                out.extend_from_slice(b"null");
            } else {
                self.values.encode(entry, out);
            }
        }
        out.push(b'}');
    }
}

/// Values as CAST writes them.
struct Written(StringViewArray);

impl Encoder for Written {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        push_string(self.0.value(row), out);
    }
}

fn strings_of(array: &ArrayRef) -> Result<StringViewArray, ArrowError> {
    let strings = grouse::written(array);
    let strings = strings.map_err(|error| ArrowError::ExternalError(error.into()))?;
    Ok(cast(&strings, &DataType::Utf8View)?
        .as_string_view()
        .clone())
}

/// Any value as a string of its text.
struct TextEncoder<'a>(ArrayFormatter<'a>);

impl<'a> TextEncoder<'a> {
    fn new(array: &'a dyn Array) -> Result<Self, ArrowError> {
        Ok(TextEncoder(ArrayFormatter::try_new(
            array,
            &FormatOptions::new(),
        )?))
    }
}

impl Encoder for TextEncoder<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        push_string(&self.0.value(row).to_string(), out);
    }
}

/// Appends `text` as a JSON string.
fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c if c.is_control() && c.is_ascii() => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        push_string("a\"b\\c\nü", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#""a\"b\\c\u000aü""#);
    }
}
