//! Columns that only Arrow's row format knows: nested types, 256-bit decimals.
//!
//! In: a column. Out: one byte string per value, NULL included, and the way back.
//! Invariant: every float inside is canonical: Arrow's row format tells NaN from NaN and -0.0 from 0.0.
//! Not here: where the byte strings lie in a row (`row`).

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BinaryArray, MutableArrayData, make_array};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows};

use super::super::ByteKeys;
use super::super::bytes::{self, with_bytes};
use super::super::packed::{canonical_f16, canonical_f32, canonical_f64};
use crate::error::Result;

/// The values as byte strings.
pub fn encode(converter: &RowConverter, column: &ArrayRef) -> Result<ByteKeys> {
    let column = canonical_floats(column)?;
    let mut rows: Rows = converter.empty_rows(column.len(), 0);
    converter.append(&mut rows, std::slice::from_ref(&column))?;
    let binary = rows.try_into_binary()?;
    bytes::encode(&(Arc::new(binary) as ArrayRef))
}

/// Whether values of a type are floats or have floats in them.
pub fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => has_floats(field.data_type()),
        DataType::Union(fields, _) => fields
            .iter()
            .any(|(_, field)| has_floats(field.data_type())),
        DataType::Dictionary(_, values) => has_floats(values),
        other => other.is_floating(),
    }
}

/// The same values, every float in them canonical.
pub fn canonical_floats(column: &ArrayRef) -> Result<ArrayRef> {
    if !has_floats(column.data_type()) {
        return Ok(Arc::clone(column));
    }
    let mut data = column.to_data();
    if !data.child_data().is_empty() {
        // Only what the rows of a slice have: its children may be those of a whole table.
        let mut rows = MutableArrayData::new(vec![&data], false, data.len());
        rows.try_extend(0, 0, data.len())?;
        data = rows.freeze();
    }
    Ok(make_array(canonical_data(data)?))
}

fn canonical_data(data: ArrayData) -> Result<ArrayData> {
    let children = data.child_data().iter().cloned().map(canonical_data);
    let children = children.collect::<Result<Vec<_>>>()?;
    macro_rules! map {
        ($native:ty, $canonical:expr) => {{
            // Only the rows of a slice: its buffer may be that of a whole table.
            let values = &data.buffers()[0].typed_data::<$native>()[data.offset()..][..data.len()];
            let values = values.iter().map(|&value| $canonical(value)).collect();
            data.clone().into_builder().offset(0).buffers(vec![values])
        }};
    }
    let builder = match data.data_type() {
        DataType::Float16 => map!(u16, canonical_f16),
        DataType::Float32 => map!(f32, canonical_f32),
        DataType::Float64 => map!(f64, canonical_f64),
        _ => data.into_builder(),
    };
    Ok(builder.child_data(children).build()?)
}

/// The byte strings as a column.
pub fn decode(converter: &RowConverter, views: &[u128], buffers: &[Buffer]) -> Result<ArrayRef> {
    let mut values: Vec<u8> = Vec::new();
    let mut lengths = Vec::with_capacity(views.len());
    for &view in views {
        with_bytes(view, buffers, |bytes| values.extend_from_slice(bytes));
        lengths.push(view as u32 as usize);
    }
    let rows = BinaryArray::new(
        OffsetBuffer::from_lengths(lengths),
        Buffer::from_vec(values),
        None,
    );
    let rows = converter.from_binary(rows);
    Ok(converter.convert_rows(&rows)?.remove(0))
}
