//! The group-by table of db-benchmark: three string keys, three integer keys, three values.
//!
//! In: rows N and groups K. Out: the table `G1_<N>_<K>_0_0`: no NULLs, not sorted.
//! Invariant: id1, id2, id4, id5 have K values, id3 and id6 have N / K.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

use crate::random::Bits;
use crate::write::{Batches, Table};

const ROW_GROUP_ROWS: u64 = 500_000;
const BATCH_ROWS: u64 = 16_384;
/// One stream of random bits a column.
const STREAM: u64 = 0x4731_0000;

/// The table's size; its rows are made on demand.
pub struct G1 {
    rows: u64,
    groups: u64,
    schema: SchemaRef,
}

impl G1 {
    /// `rows` rows, `groups` groups of the low-cardinality keys.
    pub fn new(rows: u64, groups: u64) -> Self {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let int = |name: &str| Field::new(name, DataType::Int32, true);
        let fields = vec![
            text("id1"),
            text("id2"),
            text("id3"),
            int("id4"),
            int("id5"),
            int("id6"),
            int("v1"),
            int("v2"),
            Field::new("v3", DataType::Float64, true),
        ];
        Self {
            rows,
            groups: groups.max(1),
            schema: Arc::new(Schema::new(fields)),
        }
    }

    fn batch(&self, first: u64, end: u64) -> Result<RecordBatch, ArrowError> {
        let small_groups = (self.rows / self.groups).max(1);
        let draw = |column: u64, bound: u64| {
            (first..end).map(move |row| 1 + Bits::of(STREAM + column, row).below(bound))
        };
        let ints = |column, bound| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(
                draw(column, bound).map(|value| value as i32),
            ))
        };
        let value = (first..end).map(|row| {
            let millionths = Bits::of(STREAM + 9, row).below(100_000_000);
            millionths as f64 / 1e6
        });
        RecordBatch::try_new(
            Arc::clone(&self.schema),
            vec![
                Arc::new(ids(draw(1, self.groups), 3)),
                Arc::new(ids(draw(2, self.groups), 3)),
                Arc::new(ids(draw(3, small_groups), 10)),
                ints(4, self.groups),
                ints(5, self.groups),
                ints(6, small_groups),
                ints(7, 5),
                ints(8, 15),
                Arc::new(Float64Array::from_iter_values(value)),
            ],
        )
    }
}

/// `id` and the number, zero-filled to `digits`.
fn ids(values: impl Iterator<Item = u64>, digits: usize) -> StringArray {
    let mut builder = StringBuilder::new();
    for value in values {
        write!(builder, "id{value:0digits$}").expect("a string builder never refuses");
        builder.append_value("");
    }
    builder.finish()
}

impl Table for G1 {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_groups(&self) -> usize {
        self.rows.div_ceil(ROW_GROUP_ROWS) as usize
    }

    fn batches(&self, row_group: usize) -> Batches<'_> {
        let first = row_group as u64 * ROW_GROUP_ROWS;
        let end = (first + ROW_GROUP_ROWS).min(self.rows);
        Box::new(
            (first..end)
                .step_by(BATCH_ROWS as usize)
                .map(move |start| self.batch(start, (start + BATCH_ROWS).min(end))),
        )
    }
}
