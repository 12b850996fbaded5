//! The web-analytics table, in the likeness of ClickBench's `hits`: 105 columns, strings as plain
//! BINARY, no NULLs, sorted by counter, date and user, row groups of 450,000.
//!
//! In: a row count. Out: the table's row groups.
//! Invariant: shares of distinct values (users 18 %, addresses 18 %, phrases 6 %) hold at any size.

mod visits;
mod pages;
mod columns;
mod values;

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::schema::types::ColumnPath;

use crate::write::{Batches, Table};
use columns::COLUMNS;
use visits::Layout;

const ROW_GROUP_ROWS: u64 = 450_000;
const BATCH_ROWS: u64 = 16_384;
/// Near-unique columns: a dictionary would only be built to be thrown away.
const WITHOUT_DICTIONARY: [&str; 4] = ["WatchID", "HID", "URLHash", "RefererHash"];

/// The table's size and where its counters, days and users lie.
pub struct Hits {
    layout: Layout,
    schema: SchemaRef,
}

impl Hits {
    /// A table of `rows` rows.
    pub fn new(rows: u64) -> Self {
        let fields: Vec<Field> = COLUMNS
            .iter()
            .map(|column| Field::new(column.name, column.kind.data_type(), false))
            .collect();
        Self {
            layout: Layout::new(rows),
            schema: Arc::new(Schema::new(fields)),
        }
    }

    fn batch(&self, first: u64, end: u64) -> Result<RecordBatch, ArrowError> {
        let visits = self.layout.visits(first, end);
        let columns = (0_u64..)
            .zip(COLUMNS)
            .map(|(stream, column)| values::fill(column, stream, &self.layout, &visits))
            .collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

impl Table for Hits {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_groups(&self) -> usize {
        self.layout.rows().div_ceil(ROW_GROUP_ROWS) as usize
    }

    fn batches(&self, row_group: usize) -> Batches<'_> {
        let first = row_group as u64 * ROW_GROUP_ROWS;
        let end = (first + ROW_GROUP_ROWS).min(self.layout.rows());
        Box::new(
            (first..end)
                .step_by(BATCH_ROWS as usize)
                .map(move |start| self.batch(start, (start + BATCH_ROWS).min(end))),
        )
    }

    fn properties(&self, defaults: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        WITHOUT_DICTIONARY
            .iter()
            .fold(defaults, |properties, name| {
                properties.set_column_dictionary_enabled(ColumnPath::from(*name), false)
            })
    }
}
