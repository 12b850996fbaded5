//! JSON schemas: column names and types of JSON files, from their beginnings.
//!
//! In: the first bytes of the files of a table.
//! Out: one schema, and whether a field is of several types.
//! Invariant: a type holds every sampled value: integers beyond BIGINT stay integers, fields of several scalar types
//! are text.
//! Not here: reading (lines.rs for fields of several types, else the host).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::reader::{ValueIter, infer_json_schema_from_iterator};

use super::format::{Beginning, Kind, TextOptions};
use super::location::{File, named};
use super::mend::JsonRecords;
use super::text::{Extent, SAMPLE_ROWS};
use crate::error::{Error, Result};

/// A value of the reader, whose crate nothing else here needs.
type Value = <Record as Success>::Value;
type Record = <ValueIter<&'static [u8]> as Iterator>::Item;

trait Success {
    type Value;
}

impl<T, E> Success for Result<T, E> {
    type Value = T;
}

/// Digits of the integers from the least BIGINT to the greatest BIGINT UNSIGNED.
const INTEGER_DIGITS: u8 = 20;

/// Stands for the elements of an array in the path of a field; no name contains it.
const ELEMENT: &str = "\0[]";

/// What a sample of JSON records says.
pub(crate) struct JsonColumns {
    pub(crate) schema: SchemaRef,
    /// Some field is text because it is of several types: the host's reader refuses it.
    pub(crate) has_mixed: bool,
}

/// Which scalars a field has.
#[derive(Debug, Clone, Copy, Default)]
struct Scalars {
    text: bool,
    boolean: bool,
    number: bool,
    negative: bool,
    /// An integer beyond BIGINT that BIGINT UNSIGNED holds.
    unsigned: bool,
    /// Anything that is no integer of 64 bits.
    fraction: bool,
}

/// Scalars by the path of their field.
type Seen = HashMap<String, Scalars>;

/// Objects in the first bytes of a file, one per line; the last one is left out if it is cut.
pub(crate) fn records(bytes: &[u8], extent: Extent) -> Cow<'_, [u8]> {
    let is_array = Beginning::of(Kind::Json, bytes, b'"').is_json_array;
    let mut records = match is_array {
        true => Cow::Owned(JsonRecords::default().mend(bytes)),
        false => Cow::Borrowed(bytes),
    };
    if extent == Extent::Part {
        let end = records.iter().rposition(|&byte| byte == b'\n');
        let end = end.map_or(0, |end| end + 1);
        match &mut records {
            Cow::Owned(records) => records.truncate(end),
            Cow::Borrowed(records) => *records = &records[..end],
        }
    }
    records
}

/// The schema of JSON files from `(file, its first bytes, whether these are the whole file)`.
pub(crate) fn json_schema(
    options: &TextOptions,
    beginnings: &[(&File, Vec<u8>, Extent)],
) -> Result<JsonColumns> {
    let mut rows_left = options.sample_rows.unwrap_or(SAMPLE_ROWS).max(1);
    let (mut seen, mut values) = (Seen::new(), Vec::new());
    for (file, bytes, extent) in beginnings {
        let bad = |error: ArrowError| named(Error::from(error), &file.name);
        let records = records(bytes, *extent);
        let one: Vec<Value> = ValueIter::new(records.as_ref(), Some(rows_left))
            .collect::<Result<_, ArrowError>>()
            .map_err(bad)?;
        // By itself first, so that an error names the file.
        infer_json_schema_from_iterator(one.iter().map(Ok)).map_err(bad)?;
        rows_left -= one.len();
        values.extend(one);
        if rows_left == 0 {
            break;
        }
    }
    for value in &values {
        look(value, "", &mut seen);
    }
    let names = || {
        let names: Vec<&str> = beginnings
            .iter()
            .take(2)
            .map(|(file, ..)| file.name.as_str())
            .collect();
        names.join(", ")
    };
    let schema = infer_json_schema_from_iterator(values.iter().map(Ok));
    let schema = schema.map_err(|error| named(Error::from(error), &names()))?;
    let fields = schema.fields().iter().map(|field| typed(field, "", &seen));
    Ok(JsonColumns {
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        has_mixed: seen.values().any(|scalars| scalars.are_mixed()),
    })
}

impl Scalars {
    fn are_mixed(&self) -> bool {
        [self.text, self.boolean, self.number]
            .iter()
            .filter(|seen| **seen)
            .count()
            > 1
    }
}

/// Notes the scalars below a value.
fn look(value: &Value, path: &str, seen: &mut Seen) {
    if let Some(fields) = value.as_object() {
        for (name, value) in fields {
            look(value, &format!("{path}\0{name}"), seen);
        }
        return;
    }
    if let Some(elements) = value.as_array() {
        let path = format!("{path}{ELEMENT}");
        for value in elements {
            look(value, &path, seen);
        }
        return;
    }
    let Some(scalars) = scalars_at(path, value, seen) else {
        return;
    };
    scalars.text |= value.is_string();
    scalars.boolean |= value.is_boolean();
    scalars.number |= value.is_number();
    scalars.negative |= value.as_i64().is_some_and(|number| number < 0);
    scalars.unsigned |= value.is_u64() && !value.is_i64();
    scalars.fraction |= value.is_number() && !value.is_u64() && !value.is_i64();
}

fn scalars_at<'a>(path: &str, value: &Value, seen: &'a mut Seen) -> Option<&'a mut Scalars> {
    if value.is_null() {
        return None;
    }
    if !seen.contains_key(path) {
        seen.insert(path.to_string(), Scalars::default());
    }
    seen.get_mut(path)
}

/// The field with the types of its integers, which the host takes for floats where BIGINT does not hold them.
fn typed(field: &FieldRef, path: &str, seen: &Seen) -> Field {
    let kind = type_at(
        field.data_type(),
        &format!("{path}\0{}", field.name()),
        seen,
    );
    field.as_ref().clone().with_data_type(kind)
}

fn type_at(kind: &DataType, path: &str, seen: &Seen) -> DataType {
    match kind {
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| typed(field, path, seen));
            DataType::Struct(fields.collect())
        }
        DataType::List(field) => {
            let kind = type_at(field.data_type(), &format!("{path}{ELEMENT}"), seen);
            DataType::List(Arc::new(field.as_ref().clone().with_data_type(kind)))
        }
        DataType::Float64 => match seen.get(path) {
            Some(scalars) if scalars.unsigned && !scalars.fraction => match scalars.negative {
                true => DataType::Decimal128(INTEGER_DIGITS, 0),
                false => DataType::UInt64,
            },
            _ => DataType::Float64,
        },
        other => other.clone(),
    }
}
