//! What the driver says of itself and its database.
//!
//! In: ADBC's codes. Out: a batch of codes and values, of ADBC's schema.
//! Invariant: a code that is not known has no row.
//! Not here: tables (objects.rs).

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::constants::ADBC_VERSION_1_1_0;
use adbc_core::options::InfoCode;
use adbc_core::schemas::GET_INFO_SCHEMA;
use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray,
    new_empty_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;

use crate::error::Result;

/// The numbers of the kinds of values in ADBC's union.
const TEXT: i8 = 0;
const FLAG: i8 = 1;
const NUMBER: i8 = 2;

/// A value of one kind.
enum Value {
    Text(&'static str),
    Flag(bool),
    Number(i64),
}

const VALUES: &[(InfoCode, Value)] = &[
    (InfoCode::VendorName, Value::Text("grouse")),
    (
        InfoCode::VendorVersion,
        Value::Text(env!("CARGO_PKG_VERSION")),
    ),
    (
        InfoCode::VendorArrowVersion,
        Value::Text(arrow::ARROW_VERSION),
    ),
    (InfoCode::VendorSql, Value::Flag(true)),
    (InfoCode::VendorSubstrait, Value::Flag(false)),
    (InfoCode::DriverName, Value::Text("ADBC driver of grouse")),
    (
        InfoCode::DriverVersion,
        Value::Text(env!("CARGO_PKG_VERSION")),
    ),
    (
        InfoCode::DriverArrowVersion,
        Value::Text(arrow::ARROW_VERSION),
    ),
    (
        InfoCode::DriverAdbcVersion,
        Value::Number(ADBC_VERSION_1_1_0 as i64),
    ),
];

/// The values of the codes that are wanted; all of them by default.
pub fn info(wanted: Option<HashSet<InfoCode>>) -> Result<RecordBatch> {
    let is_wanted = |code: &InfoCode| wanted.as_ref().is_none_or(|wanted| wanted.contains(code));
    let found = VALUES.iter().filter(|(code, _)| is_wanted(code));
    let (mut codes, mut kinds, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let (mut texts, mut flags, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in found {
        let (kind, place) = match value {
            Value::Text(text) => (TEXT, pushed(&mut texts, *text)),
            Value::Flag(flag) => (FLAG, pushed(&mut flags, *flag)),
            Value::Number(number) => (NUMBER, pushed(&mut numbers, *number)),
        };
        codes.push(u32::from(code));
        kinds.push(kind);
        places.push(place);
    }
    let values: [ArrayRef; 3] = [
        Arc::new(StringArray::from(texts)),
        Arc::new(BooleanArray::from(flags)),
        Arc::new(Int64Array::from(numbers)),
    ];
    let values = union(kinds, places, &values)?;
    let codes = Arc::new(UInt32Array::from(codes));
    let columns: Vec<ArrayRef> = vec![codes, Arc::new(values)];
    Ok(RecordBatch::try_new(Arc::clone(&GET_INFO_SCHEMA), columns)?)
}

/// Puts a value at the end, and says where that was.
fn pushed<T>(values: &mut Vec<T>, value: T) -> i32 {
    values.push(value);
    values.len() as i32 - 1
}

/// ADBC's union of values, whose further kinds are empty.
fn union(
    kinds: Vec<i8>,
    places: Vec<i32>,
    values: &[ArrayRef],
) -> std::result::Result<UnionArray, ArrowError> {
    let info_value: &Field = GET_INFO_SCHEMA.field(1);
    let DataType::Union(fields, _) = info_value.data_type() else {
        return Err(ArrowError::SchemaError(
            "values that are no union".to_string(),
        ));
    };
    let children = fields
        .iter()
        .map(|(kind, field)| match values.get(kind as usize) {
            Some(values) => Arc::clone(values),
            None => new_empty_array(field.data_type()),
        });
    UnionArray::try_new(
        fields.clone(),
        ScalarBuffer::from(kinds),
        Some(ScalarBuffer::from(places)),
        children.collect(),
    )
}
