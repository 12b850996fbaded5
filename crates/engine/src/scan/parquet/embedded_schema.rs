//! The Arrow schema that a Parquet file may carry in its footer, looked through before types are made of it.
//!
//! In: a footer. Out: nothing, or what is wrong with its schema.
//! Invariant: Parquet's reader, which panics at a type that Arrow does not have, takes what passes; what is no schema at all
//! it refuses by itself.
//! Not here: what the types of columns become (plain_types.rs), schemas of Arrow files (ipc).

use datafusion::arrow::ipc::root_as_message;
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::file::metadata::FileMetaData;

use crate::scan::ipc::check_schema;

/// Marker and length before the message; old writers leave them out.
const PREFIX_BYTES: usize = 8;

/// What is wrong with the schema that a footer carries.
pub(super) fn unknown_type(file: &FileMetaData) -> Option<String> {
    let mut entries = file.key_value_metadata()?.iter();
    let entry = entries.find(|entry| entry.key == ARROW_SCHEMA_META_KEY)?;
    let bytes = decoded(entry.value.as_deref()?)?;
    let is_prefixed = bytes.len() > PREFIX_BYTES && bytes.starts_with(&[0xff; 4]);
    let message = if is_prefixed {
        &bytes[PREFIX_BYTES..]
    } else {
        &bytes
    };
    let message = root_as_message(message).ok()?;
    let is_sound = check_schema(message.header_as_schema()?).is_ok();
    (!is_sound).then(|| "the Arrow schema in its footer is damaged".to_string())
}

/// The bytes of base64; `None` if it is none.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 3);
    for four in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in four {
            bits = bits << 6 | u32::from(value_of(*digit)?);
        }
        bits <<= 6 * (4 - four.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

fn value_of(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    use datafusion::parquet::arrow::{
        ArrowSchemaConverter, encode_arrow_schema, parquet_to_arrow_schema,
    };
    use datafusion::parquet::file::metadata::KeyValue;

    use super::*;

    fn file(schema: &Schema, encoded: &str) -> FileMetaData {
        let columns = ArrowSchemaConverter::new().convert(schema);
        let entry = KeyValue::new(ARROW_SCHEMA_META_KEY.to_string(), encoded.to_string());
        let columns = Arc::new(columns.expect("columns"));
        FileMetaData::new(1, 0, None, Some(vec![entry]), columns, None)
    }

    #[test]
    fn base64_is_bytes() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
        ] {
            assert_eq!(decoded(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(decoded("Zm9*"), None);
    }

    /// Whatever digit is another one: the reader makes a schema or an error of what passes.
    #[test]
    fn what_passes_makes_no_reader_panic() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("l", DataType::new_list(DataType::UInt16, true), true),
            Field::new("d", DataType::Decimal128(12, 2), true),
            Field::new("t", time, true),
            Field::new("v", DataType::Utf8View, false),
        ]);
        let encoded = encode_arrow_schema(&schema);
        assert_eq!(unknown_type(&file(&schema, &encoded)), None);
        let mut refused = 0;
        for at in 0..encoded.len() {
            for digit in ["A", "B", "Q", "g", "/"] {
                let mut other = encoded.clone();
                other.replace_range(at..=at, digit);
                let file = file(&schema, &other);
                if unknown_type(&file).is_some() {
                    refused += 1;
                    continue;
                }
                let read = catch_unwind(|| {
                    let _ = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata());
                });
                assert!(read.is_ok(), "digit {at} is {digit}");
            }
        }
        assert!(refused > 5, "only {refused} were refused");
    }
}
