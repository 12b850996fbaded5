//! Phase 3: finished groups as batches of the caller's size.
//!
//! In: distinct keys and results of one merge task. Out: key columns, then result columns, those
//! that are asked for, of the groups that are wanted.
//! Invariant: keys are decoded slice by slice, so that a batch never exceeds Arrow's 32-bit offsets.
//! Not here: order between tasks; a GROUP BY has none.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;

use crate::error::Result;
use crate::first_groups::FirstGroups;
use crate::keys::{DistinctKeys, unpacked};
use crate::spec::Spec;
use crate::spill::PartitionLevel;

/// Groups that a condition is held against at once.
const GROUPS_AT_ONCE: usize = 8 << 10;

/// What has to hold of the groups that leave.
pub trait Condition {
    /// The columns that it reads, of their own types; keys are counted first, then aggregates.
    fn reads(&self) -> &[usize];
    /// Of which of `groups` groups it holds, by those columns.
    fn holds(&self, columns: Vec<ArrayRef>, groups: usize) -> Result<BooleanBuffer>;
}

/// The groups of one merge task.
pub struct Finished {
    spec: Arc<Spec>,
    keys: DistinctKeys,
    results: Vec<ArrayRef>,
    groups: usize,
    next: usize,
    /// Long strings of keys may be where blocks have them.
    _level: Arc<PartitionLevel>,
}

/// Columns of a batch: keys, then results, and the number of rows.
pub struct Emitted {
    /// Key columns, codes where the layout has a shared dictionary, then result columns.
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
        level: Arc<PartitionLevel>,
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
            _level: level,
        }
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Lets go of the groups of which `condition` does not hold, before their keys are decoded but for those that it reads.
    ///
    /// # Panics
    /// If some groups have left.
    pub fn keep(&mut self, condition: &dyn Condition) -> Result<()> {
        assert_eq!(self.next, 0, "conditions come before batches");
        let mut kept: Vec<u32> = Vec::new();
        let mut start = 0;
        while start < self.groups {
            let range = self.batch_from(start, GROUPS_AT_ONCE);
            let columns = self.columns_of(range.clone(), condition.reads())?;
            let columns = condition.reads().iter().zip(columns);
            let types = self.spec.keys.types();
            let columns = columns.map(|(&at, column)| match types.get(at) {
                Some(data_type) => unpacked(&column, data_type),
                None => Ok(column),
            });
            let columns = columns.collect::<Result<_>>()?;
            let holds = condition.holds(columns, range.len())?;
            kept.extend(holds.set_indices_u32().map(|group| group + start as u32));
            start = range.end;
        }
        self.pick(kept)
    }

    /// Lets go of the groups that are not chosen, if some are.
    ///
    /// # Panics
    /// If some groups have left.
    pub fn keep_chosen(&mut self, first: &FirstGroups) -> Result<()> {
        assert_eq!(self.next, 0, "conditions come before batches");
        let Some(chosen) = first.chosen() else {
            return Ok(());
        };
        let hashes = self.keys.hashes.iter().enumerate();
        let kept = hashes.filter(|(_, hash)| chosen.has(**hash));
        let kept = kept.map(|(group, _)| group as u32).collect();
        self.pick(kept)
    }

    fn pick(&mut self, kept: Vec<u32>) -> Result<()> {
        if kept.len() == self.groups {
            return Ok(());
        }
        self.keys = self.keys.picked(&kept);
        self.groups = kept.len();
        let kept = UInt32Array::from(kept);
        for result in &mut self.results {
            *result = take(result, &kept, None)?;
        }
        Ok(())
    }

    /// The next groups, at most `rows_max`; `None` at the end.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<Emitted>> {
        if self.next == self.groups {
            return Ok(None);
        }
        let range = self.batch_from(self.next, rows_max);
        self.next = range.end;
        let rows = range.len();
        let columns = self.columns_of(range, self.spec.emitted())?;
        Ok(Some(Emitted { columns, rows }))
    }

    /// As many groups from `start` on as fit a batch of at most `rows_max`.
    fn batch_from(&self, start: usize, rows_max: usize) -> Range<usize> {
        let end = (start + rows_max.max(1)).min(self.groups);
        let rows = match self.spec.keys.types() {
            [] => end - start,
            _ => self.spec.keys.fitting(&self.keys, start..end),
        };
        start..start + rows
    }

    /// These columns of the groups in `range`.
    fn columns_of(&self, range: Range<usize>, places: &[usize]) -> Result<Vec<ArrayRef>> {
        let keys = self.spec.keys.types().len();
        let wanted: Vec<usize> = places.iter().copied().filter(|&at| at < keys).collect();
        let decoded = self.spec.keys.decode(&self.keys, range.clone(), &wanted)?;
        let mut decoded = decoded.into_iter();
        let column = |&at: &usize| match at.checked_sub(keys) {
            Some(result) => self.results[result].slice(range.start, range.len()),
            None => decoded.next().expect("a column per key that is wanted"),
        };
        Ok(places.iter().map(column).collect())
    }
}
