//! Several columns as one: a struct whose fields are called by their places.
//!
//! In: columns or their types. Out: the struct, or its type.
//! Not here: who takes it apart.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, Fields};

use crate::error::Result;

fn fields<'a>(types: impl Iterator<Item = &'a DataType>) -> Fields {
    let field = |(at, of): (usize, &DataType)| Field::new(at.to_string(), of.clone(), true);
    types.enumerate().map(field).collect()
}

/// The type of columns of these types in a struct.
pub(super) fn struct_of<'a>(types: impl Iterator<Item = &'a DataType>) -> DataType {
    DataType::Struct(fields(types))
}

/// Columns in a struct, which is nowhere NULL itself.
pub(super) fn in_struct(columns: Vec<ArrayRef>) -> Result<ArrayRef> {
    let fields = fields(columns.iter().map(|column| column.data_type()));
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}
