//! Keys of rows in memory, as bytes that are equal where SQL takes the values for the same.
//!
//! In: the columns of a PRIMARY KEY or UNIQUE, and rows. Out: the values of each row that has such a key.
//! Invariant: -0.0 is 0.0. A row with NULL has a key only in UNIQUE NULLS NOT DISTINCT.
//! Not here: what is done about rows of one key (checked_table.rs, conflicts.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;

use crate::scan::constraints::KeyKind;

/// The columns of a key, and how their values become bytes.
pub(super) struct RowKey<'a> {
    columns: &'a [usize],
    kind: KeyKind,
    converter: RowConverter,
}

impl RowKey<'_> {
    /// Of rows with these columns.
    pub(super) fn new<'a>(
        columns: &'a [usize],
        kind: KeyKind,
        schema: &Schema,
    ) -> Result<RowKey<'a>> {
        let types = columns
            .iter()
            .map(|&column| schema.field(column).data_type());
        let fields = types.map(|kind| SortField::new(kind.clone()));
        Ok(RowKey {
            columns,
            kind,
            converter: RowConverter::new(fields.collect())?,
        })
    }

    /// The columns of the key.
    pub(super) fn values(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        let columns = self.columns.iter();
        let columns = columns.map(|&column| without_negative_zero(rows.column(column)));
        columns.collect()
    }

    /// Gives `found` the place and the values of each row that has a key.
    pub(super) fn each(
        &self,
        rows: &RecordBatch,
        mut found: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let columns = self.values(rows);
        let converted = self.converter.convert_columns(&columns)?;
        let is_apart = self.kind != KeyKind::UniqueNulls
            && columns.iter().any(|column| column.null_count() > 0);
        for (place, values) in converted.iter().enumerate() {
            let has_null = || columns.iter().any(|column| column.is_null(place));
            if !(is_apart && has_null()) {
                found(place, values.as_ref())?;
            }
        }
        Ok(())
    }
}

/// -0.0 equals 0.0.
fn without_negative_zero(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let plain = values.as_primitive::<Float32Type>();
            Arc::new(plain.unary::<_, Float32Type>(|value| value + 0.0))
        }
        DataType::Float64 => {
            let plain = values.as_primitive::<Float64Type>();
            Arc::new(plain.unary::<_, Float64Type>(|value| value + 0.0))
        }
        _ => Arc::clone(values),
    }
}
