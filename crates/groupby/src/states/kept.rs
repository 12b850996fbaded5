//! Columns of the rows that groups hold, and of some that were overtaken since.
//!
//! In: rows of batches. Out: rows by their number.
//! Invariant: what is kept are copies: no buffer of a batch is held.
//! Not here: which rows are live (`arg_rows`, top_rows/slots.rs).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::DataType;

use crate::batch::is_plain;
use crate::error::Result;

/// Overtaken rows that may lie around before a sweep, beside as many as there are live ones.
const OVERTAKEN_ROWS_MIN: usize = 8192;

/// Rows in the order in which they came.
#[derive(Default)]
pub(super) struct Kept {
    /// The columns of each chunk of rows.
    chunks: Vec<Vec<ArrayRef>>,
    rows: usize,
    bytes: usize,
}

/// True for types whose rows can be copied out of a batch and stand beside those of others.
pub(super) fn is_copied(data_type: &DataType) -> bool {
    is_plain(data_type) && (is_view(data_type) || !holds_views(data_type))
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

/// Views within other values would go on holding the batch's buffers.
fn holds_views(data_type: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    match data_type {
        List(field)
        | ListView(field)
        | LargeList(field)
        | LargeListView(field)
        | FixedSizeList(field, _)
        | Map(field, _) => holds_views(field.data_type()),
        Struct(fields) => fields.iter().any(|field| holds_views(field.data_type())),
        other => is_view(other),
    }
}

impl Kept {
    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// True if so many were overtaken that only the `live` ones should be kept.
    pub(super) fn has_many_beside(&self, live: usize) -> bool {
        self.rows > 2 * live + OVERTAKEN_ROWS_MIN
    }

    /// Copies rows of a batch.
    pub(super) fn add(&mut self, columns: &[ArrayRef], rows: Vec<u32>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.rows += rows.len();
        let rows = UInt32Array::from(rows);
        let chunk = columns
            .iter()
            .map(|column| copied(column, &rows))
            .collect::<Result<Vec<_>>>()?;
        let bytes: usize = chunk.iter().map(|c| c.get_array_memory_size()).sum();
        self.bytes += bytes;
        self.chunks.push(chunk);
        Ok(())
    }

    /// Keeps the given rows, in this order.
    pub(super) fn keep(&mut self, rows: Vec<u32>) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let columns = self.joined()?;
        *self = Self::default();
        self.add(&columns, rows)
    }

    /// The given rows, in this order, as columns of these types; NULL for a row that is NULL.
    pub(super) fn take<'a>(
        mut self,
        rows: UInt32Array,
        types: impl Iterator<Item = &'a DataType>,
    ) -> Result<Vec<ArrayRef>> {
        if self.rows == 0 {
            return Ok(types.map(|of| new_null_array(of, rows.len())).collect());
        }
        let columns = self.joined()?;
        columns.iter().map(|column| copied(column, &rows)).collect()
    }

    /// All rows in one chunk.
    fn joined(&mut self) -> Result<Vec<ArrayRef>> {
        let chunks = std::mem::take(&mut self.chunks);
        if let [one] = chunks.as_slice() {
            return Ok(one.clone());
        }
        let width = chunks.first().map_or(0, Vec::len);
        let column = |at: usize| {
            let parts: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk[at].as_ref()).collect();
            Ok(concat(&parts)?)
        };
        (0..width).map(column).collect()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Rows of a column in buffers of their own.
fn copied(column: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    let rows = take(column, rows, None)?;
    Ok(match rows.data_type() {
        DataType::Utf8View => Arc::new(rows.as_string_view().gc()),
        DataType::BinaryView => Arc::new(rows.as_binary_view().gc()),
        _ => rows,
    })
}
