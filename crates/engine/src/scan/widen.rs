//! Widening: the schema that several Parquet files have in common.
//!
//! In: one schema per file.
//! Out: all columns by name, each of the narrowest type that holds the values of all files.
//! Invariant: no type is chosen in which a value of some file is another one, save integers beyond 2^53 beside floats. Timestamps
//! outside 1677 to 2262 beside nanoseconds have no such type and are an error where they are read (error_location.rs).
//! Not here: casting what is read; DataFusion's scans do that.

use std::fmt::Display;
use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, Fields, Schema, TimeUnit,
};
use datafusion::common::DataFusionError;

use crate::error::Error;
use crate::error::types::type_name;

/// The schema of one table over files with these schemas; a column that a file lacks is NULL there.
pub(crate) fn common_schema<F: Display>(files: &[(F, Schema)]) -> Result<Schema, DataFusionError> {
    let mut columns: Vec<(Field, &F)> = Vec::new();
    for (file, schema) in files {
        for field in schema.fields() {
            let known = columns
                .iter_mut()
                .find(|(column, _)| column.name() == field.name());
            let Some((column, first)) = known else {
                check_spelling(file, schema, field.name(), &columns)?;
                columns.push((field.as_ref().clone(), file));
                continue;
            };
            *column = common_field(column, field).ok_or_else(|| {
                DataFusionError::from(Error::bad_file(
                    format!("/{file}"),
                    format!(
                        "its column '{}' is {}, in '/{first}' it is {}; no type holds both",
                        field.name(),
                        type_name(field.data_type()),
                        type_name(column.data_type())
                    ),
                ))
            })?;
        }
    }
    let metadata = files.first().map(|(_, schema)| schema.metadata().clone());
    let is_everywhere =
        |name: &str| (files.iter()).all(|(_, schema)| schema.field_with_name(name).is_ok());
    let fields = columns.into_iter().map(|(field, _)| {
        let is_nullable = field.is_nullable() || !is_everywhere(field.name());
        field.with_nullable(is_nullable)
    });
    let fields: Vec<Field> = fields.collect();
    Ok(Schema::new_with_metadata(
        fields,
        metadata.unwrap_or_default(),
    ))
}

/// An error where a column that no file before has differs from one of theirs in nothing but case. Two columns would each be
/// NULL where the other is not, and no reader of SQL could tell why.
fn check_spelling<F: Display>(
    file: &F,
    schema: &Schema,
    name: &str,
    columns: &[(Field, &F)],
) -> Result<(), DataFusionError> {
    let is_apart = |known: &str| schema.field_with_name(known).is_ok();
    let other = columns
        .iter()
        .find(|(known, _)| is_other_case(known.name(), name) && !is_apart(known.name()));
    let Some((other, first)) = other else {
        return Ok(());
    };
    Err(Error::bad_file(format!("/{file}"), format!(
            "its column '{name}' is '{}' in '/{first}'; columns of several files have to be spelled the same: read the \
             files apart and put them together with UNION ALL BY NAME",
            other.name()
        ))
    .into())
}

/// Whether two names differ in case and in nothing else.
fn is_other_case(a: &str, b: &str) -> bool {
    a != b && a.to_lowercase() == b.to_lowercase()
}

fn common_field(a: &Field, b: &Field) -> Option<Field> {
    let kind = common_type(a.data_type(), b.data_type())?;
    let is_nullable = a.is_nullable() || b.is_nullable();
    Some(a.clone().with_data_type(kind).with_nullable(is_nullable))
}

/// The narrowest type that holds the values of both; `None` = there is none.
fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (DataType::Dictionary(_, value), other) | (other, DataType::Dictionary(_, value)) => {
            common_type(value, other)
        }
        (DataType::Struct(a), DataType::Struct(b)) => common_fields(a, b),
        (DataType::List(a), DataType::List(b)) => {
            Some(DataType::List(Arc::new(common_field(a, b)?)))
        }
        (DataType::LargeList(a), DataType::LargeList(b))
        | (DataType::LargeList(a), DataType::List(b))
        | (DataType::List(a), DataType::LargeList(b)) => {
            Some(DataType::LargeList(Arc::new(common_field(a, b)?)))
        }
        _ if a.is_numeric() && b.is_numeric() => common_number(a, b),
        _ if is_text_or_bytes(a) && is_text_or_bytes(b) => Some(common_bytes(a, b)),
        (DataType::Date32 | DataType::Date64, DataType::Date32 | DataType::Date64) => {
            Some(DataType::Date64)
        }
        (DataType::Date32, timestamp @ DataType::Timestamp(..))
        | (timestamp @ DataType::Timestamp(..), DataType::Date32) => Some(timestamp.clone()),
        (DataType::Timestamp(a, zone), DataType::Timestamp(b, other)) if zone == other => {
            Some(DataType::Timestamp(finer(*a, *b), zone.clone()))
        }
        (DataType::Time32(a) | DataType::Time64(a), DataType::Time32(b) | DataType::Time64(b)) => {
            Some(match finer(*a, *b) {
                unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
                unit => DataType::Time64(unit),
            })
        }
        _ => None,
    }
}

fn common_fields(a: &Fields, b: &Fields) -> Option<DataType> {
    let mut fields: Vec<Field> = a.iter().map(|field| field.as_ref().clone()).collect();
    for field in b {
        match fields.iter_mut().find(|known| known.name() == field.name()) {
            Some(known) => *known = common_field(known, field)?,
            None if a.iter().any(|known| {
                is_other_case(known.name(), field.name()) && b.find(known.name()).is_none()
            }) =>
            {
                return None;
            }
            None => fields.push(field.as_ref().clone().with_nullable(true)),
        }
    }
    for field in &mut fields {
        if !b.iter().any(|other| other.name() == field.name()) {
            *field = field.clone().with_nullable(true);
        }
    }
    Some(DataType::Struct(fields.into()))
}

/// The unit that keeps the digits of both; it may not reach as far as the coarser one.
fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    let digits = |unit: TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    if digits(a) >= digits(b) { a } else { b }
}

fn is_text_or_bytes(kind: &DataType) -> bool {
    kind.is_string() || kind.is_binary()
}

/// Bytes beside text are bytes: every text has bytes, not all bytes are text.
fn common_bytes(a: &DataType, b: &DataType) -> DataType {
    let is_text = a.is_string() && b.is_string();
    let is_large = [a, b]
        .iter()
        .any(|kind| matches!(kind, DataType::LargeUtf8 | DataType::LargeBinary));
    match (is_text, is_large) {
        (true, false) => DataType::Utf8,
        (true, true) => DataType::LargeUtf8,
        (false, false) => DataType::Binary,
        (false, true) => DataType::LargeBinary,
    }
}

fn common_number(a: &DataType, b: &DataType) -> Option<DataType> {
    if a.is_floating() || b.is_floating() {
        let is_narrow = |kind: &DataType| {
            use DataType::{Float16, Float32, Int8, Int16, UInt8, UInt16};
            matches!(kind, Float16 | Float32 | Int8 | Int16 | UInt8 | UInt16)
        };
        return Some(match is_narrow(a) && is_narrow(b) {
            true => DataType::Float32,
            false => DataType::Float64,
        });
    }
    if a.is_integer() && b.is_integer() {
        return Some(common_integer(a, b));
    }
    let ((a_whole, a_scale), (b_whole, b_scale)) = (digits(a)?, digits(b)?);
    let scale = a_scale.max(b_scale);
    let precision = u8::try_from(a_whole.max(b_whole) + scale).ok()?;
    let scale = i8::try_from(scale).ok()?;
    if precision <= DECIMAL128_MAX_PRECISION {
        return Some(DataType::Decimal128(precision, scale));
    }
    (precision <= DECIMAL256_MAX_PRECISION).then_some(DataType::Decimal256(precision, scale))
}

fn common_integer(a: &DataType, b: &DataType) -> DataType {
    let is_signed = a.is_signed_integer() || b.is_signed_integer();
    // Beside a signed type an unsigned one needs the next width.
    let width = |kind: &DataType| {
        let bytes = kind.primitive_width().unwrap_or_default();
        bytes
            * if is_signed && kind.is_unsigned_integer() {
                2
            } else {
                1
            }
    };
    match (is_signed, width(a).max(width(b))) {
        (true, 1) => DataType::Int8,
        (true, 2) => DataType::Int16,
        (true, 4) => DataType::Int32,
        (true, 8) => DataType::Int64,
        (true, _) => DataType::Decimal128(20, 0),
        (false, 1) => DataType::UInt8,
        (false, 2) => DataType::UInt16,
        (false, 4) => DataType::UInt32,
        (false, _) => DataType::UInt64,
    }
}

/// Digits before and after the point.
fn digits(kind: &DataType) -> Option<(i16, i16)> {
    let whole = match kind {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let (precision, scale) = (i16::from(*precision), i16::from(*scale));
            return Some((precision - scale, scale.max(0)));
        }
        _ => return None,
    };
    Some((whole, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_hold_the_values_of_both() {
        use DataType::*;
        let text = || Box::new(Utf8);
        for (a, b, expected) in [
            (Int32, Int64, Some(Int64)),
            (UInt8, Int8, Some(Int16)),
            (UInt64, Int64, Some(Decimal128(20, 0))),
            (UInt16, UInt32, Some(UInt32)),
            (Int16, Float32, Some(Float32)),
            (Int64, Float32, Some(Float64)),
            (Decimal128(10, 2), Decimal128(5, 4), Some(Decimal128(12, 4))),
            (Int64, Decimal128(15, 2), Some(Decimal128(21, 2))),
            (
                Decimal128(38, 0),
                Decimal128(38, 38),
                Some(Decimal256(76, 38)),
            ),
            (Decimal256(76, 0), Decimal128(38, 38), None),
            (Utf8, Binary, Some(Binary)),
            (Dictionary(Box::new(Int32), text()), Utf8, Some(Utf8)),
            (Null, Utf8, Some(Utf8)),
            (
                Date32,
                Timestamp(TimeUnit::Second, None),
                Some(Timestamp(TimeUnit::Second, None)),
            ),
            (Utf8, Int64, None),
            (Boolean, Int64, None),
        ] {
            assert_eq!(common_type(&a, &b), expected, "{a} and {b}");
            assert_eq!(common_type(&b, &a), expected, "{b} and {a}");
        }
    }
}
