//! Values that JSON has no form for.
//!
//! In: an array that is written as JSON. Out: what writes its values instead of Arrow's, which writes NULL and bare digits.
//! Invariant: what is written can be read back as the same value. `NaN`, `Infinity` and `-Infinity` are as `read_json`, DuckDB
//! and Python read them, bytes as casts of strings to BLOB do (blobs.rs), intervals as CAST writes them.
//! Not here: lines and fields (text.rs).

use datafusion::arrow::array::{
    Array, ArrowPrimitiveType, AsArray, BinaryArray, Float32Array, Float64Array, PrimitiveArray,
    StringViewArray, make_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder};
use grouse_text::blobs::write_bytes;

use crate::functions::strings_of_values;

/// Makes encoders of floats that are no numbers, and of bytes.
#[derive(Debug)]
pub(super) struct JsonValues;

impl EncoderFactory for JsonValues {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder> = match array.data_type() {
            DataType::Float16 | DataType::Float32 => {
                let values: Float32Array = cast(array, &DataType::Float32)?.as_primitive().clone();
                if values.values().iter().all(|value| value.is_finite()) {
                    return Ok(None);
                }
                Box::new(Floats(values))
            }
            DataType::Float64 => {
                let values: &Float64Array = array.as_primitive();
                if values.values().iter().all(|value| value.is_finite()) {
                    return Ok(None);
                }
                Box::new(Floats(values.clone()))
            }
            kind if kind.is_binary() => {
                let values = cast(array, &DataType::Binary)?;
                Box::new(BytesEncoder(values.as_binary().clone()))
            }
            DataType::Interval(_) | DataType::Duration(_) => {
                let strings = strings_of_values(&make_array(array.to_data()));
                let strings = strings.map_err(|error| ArrowError::ExternalError(error.into()))?;
                Box::new(StringsEncoder(strings))
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.logical_nulls())))
    }
}

/// Floats, some of which are not finite.
struct Floats<T: ArrowPrimitiveType>(PrimitiveArray<T>);

impl<T: ArrowPrimitiveType<Native: Into<f64>>> Encoder for Floats<T> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        let wide: f64 = value.into();
        match (wide.is_nan(), wide.is_infinite(), wide > 0.0) {
            (true, ..) => out.extend(b"NaN"),
            (_, true, true) => out.extend(b"Infinity"),
            (_, true, false) => out.extend(b"-Infinity"),
            // The fewest digits that are this value in its own width.
            _ => out.extend(format!("{value:?}").as_bytes()),
        }
    }
}

/// Strings in which nothing has to be escaped.
struct StringsEncoder(StringViewArray);

impl Encoder for StringsEncoder {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend(self.0.value(row).as_bytes());
        out.push(b'"');
    }
}

struct BytesEncoder(BinaryArray);

impl Encoder for BytesEncoder {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let mut text = String::new();
        write_bytes(self.0.value(row), &mut text);
        // Of what has to be escaped in JSON there are backslashes only.
        out.push(b'"');
        out.extend(text.replace('\\', "\\\\").as_bytes());
        out.push(b'"');
    }
}
