//! The arguments of a partition's rows, to be aggregated range by range.
//!
//! In: columns of arguments, and of a FILTER. Out: an accumulator that has seen the rows of a range.
//! Invariant: rows come in their order.
//! A range of many rows is put together from states of chunks, so that n frames of n rows cost n * (n / CHUNK_ROWS + CHUNK_ROWS) steps.
//! Aggregates whose states grow with the rows (lists, medians, DISTINCT), or do not add up, read each row of each frame: n * n.
//! Not here: which ranges (left_rows.rs).

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::filter;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use crate::functions::aggregates::recomputed::Making;

/// Near the square root of a partition of a quarter of a million rows.
const CHUNK_ROWS: usize = 512;

/// The arguments.
#[derive(Debug)]
pub(super) struct ChunkedArguments {
    columns: Vec<ArrayRef>,
    /// With a FILTER, how many rows that it leaves stand before each row; at last, how many there are.
    before: Option<Vec<usize>>,
    chunks: ChunkStates,
}

/// States of all whole chunks.
#[derive(Debug)]
enum ChunkStates {
    /// Nobody has asked for them.
    Unknown,
    /// They say no less than the rows.
    Useless,
    /// A column of each part of a state, with a row of each chunk.
    States(Vec<ArrayRef>),
}

impl ChunkedArguments {
    /// The arguments of the rows that the call's FILTER leaves.
    pub(super) fn new(columns: &[ArrayRef], mask: Option<&ArrayRef>) -> Result<ChunkedArguments> {
        let (columns, before) = match mask {
            Some(mask) => {
                let mask = as_boolean_array(mask)?;
                let mut rows = 0;
                let mut before = Vec::with_capacity(mask.len() + 1);
                before.push(rows);
                for row in 0..mask.len() {
                    rows += usize::from(mask.is_valid(row) && mask.value(row));
                    before.push(rows);
                }
                let left = columns.iter().map(|column| filter(column, mask));
                (left.collect::<Result<_, _>>()?, Some(before))
            }
            None => (columns.to_vec(), None),
        };
        Ok(ChunkedArguments {
            columns,
            before,
            chunks: ChunkStates::Unknown,
        })
    }

    /// Shows the accumulator these rows of the partition.
    pub(super) fn aggregate(
        &mut self,
        rows: Range<usize>,
        making: &Making,
        accumulator: &mut dyn Accumulator,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows = match &self.before {
            Some(before) => before[rows.start]..before[rows.end],
            None => rows,
        };
        let whole = rows.start.div_ceil(CHUNK_ROWS)..rows.end / CHUNK_ROWS;
        if whole.is_empty() || !self.has_states(making)? {
            return self.update(rows, accumulator);
        }
        self.update(rows.start..whole.start * CHUNK_ROWS, accumulator)?;
        if let ChunkStates::States(states) = &self.chunks {
            accumulator.merge_batch(&sliced(states, &whole))?;
        }
        self.update(whole.end * CHUNK_ROWS..rows.end, accumulator)
    }

    fn update(&self, rows: Range<usize>, accumulator: &mut dyn Accumulator) -> Result<()> {
        match rows.is_empty() {
            true => Ok(()),
            false => accumulator.update_batch(&sliced(&self.columns, &rows)),
        }
    }

    /// Whether chunks have states that are smaller than their rows.
    fn has_states(&mut self, making: &Making) -> Result<bool> {
        if let ChunkStates::Unknown = self.chunks {
            self.chunks = match making.merges() {
                true => self.states(making)?,
                false => ChunkStates::Useless,
            };
        }
        Ok(matches!(self.chunks, ChunkStates::States(_)))
    }

    fn states(&self, making: &Making) -> Result<ChunkStates> {
        let chunks = self.columns.first().map_or(0, |column| column.len()) / CHUNK_ROWS;
        let mut parts: Vec<Vec<ScalarValue>> = Vec::new();
        for chunk in 0..chunks {
            let rows = chunk * CHUNK_ROWS..(chunk + 1) * CHUNK_ROWS;
            let state = making.state(&sliced(&self.columns, &rows))?;
            if state.iter().any(|part| part.data_type().is_nested()) {
                return Ok(ChunkStates::Useless);
            }
            parts.resize_with(state.len(), Vec::new);
            for (part, value) in parts.iter_mut().zip(state) {
                part.push(value);
            }
        }
        let columns = parts.into_iter().map(ScalarValue::iter_to_array);
        Ok(ChunkStates::States(columns.collect::<Result<_>>()?))
    }
}

fn sliced(columns: &[ArrayRef], rows: &Range<usize>) -> Vec<ArrayRef> {
    let columns = columns.iter();
    columns
        .map(|column| column.slice(rows.start, rows.len()))
        .collect()
}
