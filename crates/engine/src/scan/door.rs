//! The door for Arrow data of others: checked, and in types that the engine computes with.
//!
//! In: batches from a C interface, which are taken on trust by Arrow. Out: the same rows.
//! Invariant: text is UTF-8, or there is an error that names column and row; an empty column has no places; types are plain.
//! Not here: which types are plain (plain_types.rs), who owns the memory, objects that are no Arrow data (the Python package).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericByteArray, GenericByteViewArray, GenericStringArray,
    OffsetSizeTrait, RecordBatch, RecordBatchOptions, make_array, new_empty_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, GenericBinaryType, GenericStringType, Schema, SchemaRef, StringViewType,
};
use datafusion::arrow::error::ArrowError;
use shared_simdutf8::basic::from_utf8;

use super::names::with_names_once;
use super::plain_types::{plain_schema, with_null_codes};

/// The schema of data that has come in, each name once; what a library says about the whole stays behind.
pub fn admitted_schema(schema: &Schema) -> SchemaRef {
    let schema = with_names_once(&plain_schema(schema));
    Arc::new(Schema::new(schema.fields().clone()))
}

/// Whether somebody has seen to it that text is UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// A library that cannot have other text.
    Valid,
    /// Nobody that we know of.
    Unknown,
}

/// A batch of this schema.
pub fn admit(
    batch: &RecordBatch,
    schema: &SchemaRef,
    text: Text,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        let column = match text {
            Text::Valid => Arc::clone(column),
            Text::Unknown => checked(column, field.name())?,
        };
        as_plain(with_null_codes(&column)?, field)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn as_plain(column: ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    match column.data_type() == field.data_type() {
        true => Ok(column),
        false => cast(&column, field.data_type()),
    }
}

/// The same array, all of whose text is UTF-8.
fn checked(array: &ArrayRef, name: &str) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Utf8 => checked_text::<i32>(array, name),
        DataType::LargeUtf8 => checked_text::<i64>(array, name),
        DataType::Utf8View => checked_views(array, name),
        DataType::Binary | DataType::LargeBinary if array.is_empty() => {
            Ok(new_empty_array(array.data_type()))
        }
        kind if has_places(kind) => {
            let data = array.to_data();
            let children = data.child_data().iter();
            let children = children.map(|child| {
                let child = make_array(child.clone());
                checked(&child, name).map(|child| child.to_data())
            });
            let children = children.collect::<Result<Vec<_>, ArrowError>>()?;
            if children
                .iter()
                .zip(data.child_data())
                .all(|(new, old)| new.ptr_eq(old))
            {
                return Ok(Arc::clone(array));
            }
            Ok(make_array(
                data.into_builder().child_data(children).build()?,
            ))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// Whether there are places of text in it, or of bytes.
fn has_places(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary => true,
        DataType::Dictionary(_, values) => has_places(values),
        DataType::RunEndEncoded(_, field)
        | DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_places(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_places(field.data_type())),
        DataType::Union(fields, _) => fields
            .iter()
            .any(|(_, field)| has_places(field.data_type())),
        _ => false,
    }
}

fn checked_text<O: OffsetSizeTrait>(array: &ArrayRef, name: &str) -> Result<ArrayRef, ArrowError> {
    // Of an empty slice Arrow takes over the places, but not the text.
    if array.is_empty() {
        return Ok(new_empty_array(array.data_type()));
    }
    let text: &GenericByteArray<GenericStringType<O>> = array.as_bytes();
    let offsets = text.value_offsets();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Ok(Arc::clone(array));
    };
    let bytes = text.value_data();
    let used = bytes.get(first.as_usize()..last.as_usize());
    let used = used.ok_or_else(|| damaged(name))?;
    // Of plain ASCII every place is the beginning of a character.
    if used.is_ascii() && offsets.is_sorted() {
        return Ok(Arc::clone(array));
    }
    let begins = |offset: &O| {
        bytes
            .get(offset.as_usize())
            .is_none_or(|byte| byte & 0xC0 != 0x80)
    };
    if offsets.is_sorted() && from_utf8(used).is_ok() && offsets.iter().all(begins) {
        return Ok(Arc::clone(array));
    }
    // Row by row: what stands under a NULL is nobody's text, but functions would read it.
    let rows: &GenericByteArray<GenericBinaryType<O>> = &GenericByteArray::try_new(
        text.offsets().clone(),
        text.values().clone(),
        text.nulls().cloned(),
    )?;
    let mut whole = Vec::with_capacity(rows.len());
    for (row, value) in rows.iter().enumerate() {
        let value = value.map(|value| std::str::from_utf8(value).map_err(|_| not_text(name, row)));
        whole.push(value.transpose()?);
    }
    Ok(Arc::new(GenericStringArray::<O>::from(whole)))
}

fn checked_views(array: &ArrayRef, name: &str) -> Result<ArrayRef, ArrowError> {
    let text = array.as_byte_view::<StringViewType>();
    // A view of text that is not valid is found here: the array itself was made without a look.
    let bytes = text.clone().to_binary_view();
    let mut has_garbage = false;
    for row in 0..bytes.len() {
        let is_text = from_utf8(bytes.value(row)).is_ok();
        if !is_text && bytes.is_valid(row) {
            return Err(not_text(name, row));
        }
        has_garbage |= !is_text;
    }
    if !has_garbage {
        return Ok(Arc::clone(array));
    }
    let values = (0..bytes.len()).map(|row| {
        let value = bytes.is_valid(row).then(|| bytes.value(row));
        value.and_then(|value| std::str::from_utf8(value).ok())
    });
    Ok(Arc::new(
        values.collect::<GenericByteViewArray<StringViewType>>(),
    ))
}

fn not_text(name: &str, row: usize) -> ArrowError {
    ArrowError::InvalidArgumentError(format!(
        "column '{name}' has text that is not UTF-8 (in row {row} of a batch); make it bytes, or decode it first"
    ))
}

fn damaged(name: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("column '{name}' points beyond its own text"))
}
