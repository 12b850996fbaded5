//! Sum and count of values side by side, what every average keeps: one cache miss per row instead of two.
//!
//! In: sums and counts. Out: the same, added up, and as columns.
//! Not here: carries of sums (`avg_integers`), the division.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};

/// A group's sum and how many values it has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean<S> {
    pub sum: S,
    pub count: i64,
}

/// The counts as a column.
pub(super) fn counts_of<S>(means: &[Mean<S>]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        means.iter().map(|mean| mean.count),
    ))
}

/// Groups without values are NULL.
pub(super) fn not_zero(counts: impl Iterator<Item = i64>) -> Option<NullBuffer> {
    let nulls = NullBuffer::new(counts.map(|count| count != 0).collect::<BooleanBuffer>());
    (nulls.null_count() > 0).then_some(nulls)
}
