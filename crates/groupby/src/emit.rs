//! Phase 3: finished groups as batches of the caller's size.
//!
//! In: distinct keys and results of one merge task. Out: key columns, then result columns.
//! Invariant: keys are decoded slice by slice, so that a batch never exceeds Arrow's 32-bit offsets.
//! Not here: order between tasks; a GROUP BY has none.

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
        let mut columns = if self.spec.keys.types().is_empty() {
            Vec::new()
        } else {
            self.spec.keys.decode(&self.keys, range)?
        };
        columns.extend(
            self.results
                .iter()
                .map(|result| result.slice(self.next, rows)),
        );
        self.next += rows;
        Ok(Some(Emitted { columns, rows }))
    }
}
