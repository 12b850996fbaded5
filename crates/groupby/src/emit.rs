//! Phase 3: finished groups as batches of the caller's size.
//!
//! In: distinct keys and results of one merge task. Out: key columns, then result columns, those
//! that are asked for.
//! Invariant: keys are decoded slice by slice, so that a batch never exceeds Arrow's 32-bit offsets.
//! Not here: order between tasks; a GROUP BY has none.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;

use crate::error::Result;
use crate::keys::DistinctKeys;
use crate::spec::Spec;

/// The groups of one merge task.
pub struct Finished {
    spec: Arc<Spec>,
    keys: DistinctKeys,
    results: Vec<ArrayRef>,
    groups: usize,
    next: usize,
}

/// Columns of a batch: keys, then results, and the number of rows.
pub struct Emitted {
    /// Key columns, then result columns.
    pub columns: Vec<ArrayRef>,
    /// Number of groups in the batch.
    pub rows: usize,
}

impl Finished {
    pub(crate) fn new(
        spec: Arc<Spec>,
        keys: DistinctKeys,
        results: Vec<ArrayRef>,
        groups: usize,
    ) -> Self {
        for result in &results {
            assert_eq!(result.len(), groups, "one result per group");
        }
        Self {
            spec,
            keys,
            results,
            groups,
            next: 0,
        }
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The next groups, at most `rows_max`; `None` at the end.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<Emitted>> {
        let end = (self.next + rows_max.max(1)).min(self.groups);
        if self.next == end {
            return Ok(None);
        }
        let rows = if self.spec.keys.types().is_empty() {
            end - self.next
        } else {
            self.spec.keys.fitting(&self.keys, self.next..end)
        };
        let range = self.next..self.next + rows;
        let columns = self.columns(range)?;
        self.next += rows;
        Ok(Some(Emitted { columns, rows }))
    }

    /// The columns of the groups in `range` that somebody reads.
    fn columns(&self, range: Range<usize>) -> Result<Vec<ArrayRef>> {
        let (emitted, keys) = (self.spec.emitted(), self.spec.keys.types().len());
        let wanted: Vec<usize> = emitted.iter().copied().filter(|&at| at < keys).collect();
        let decoded = self.spec.keys.decode(&self.keys, range.clone(), &wanted)?;
        let mut decoded = decoded.into_iter();
        let column = |&at: &usize| match at.checked_sub(keys) {
            Some(result) => self.results[result].slice(range.start, range.len()),
            None => decoded.next().expect("a column per key that is wanted"),
        };
        Ok(emitted.iter().map(column).collect())
    }
}
