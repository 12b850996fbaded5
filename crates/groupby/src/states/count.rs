//! count(*) and count(x, ...): rows, or rows where no argument is NULL.
//!
//! In: any columns; only their validity is read. Out: Int64, never NULL.
//! Not here: distinct counts.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::lanes::add_up;
use super::per_group::PerGroup;
use super::rows::{Rows, mask};
use super::{Aggregate, CodeSums, GroupStates, Groups, PreAggregated, PreAggregator};
use crate::batch::Arguments;
use crate::error::Result;

/// `count` of the rows where no argument column is NULL; without columns of all rows.
pub fn count(name: &str) -> Option<Arc<dyn Aggregate>> {
    Some(Arc::new(Counts {
        name: name.to_owned(),
    }))
}

#[derive(Debug)]
struct Counts {
    name: String,
}

impl Aggregate for Counts {
    fn name(&self) -> &str {
        &self.name
    }

    fn result_type(&self) -> DataType {
        DataType::Int64
    }

    fn states(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Count::default()))
    }

    /// A bit per row at most, not the values.
    fn carried(&self, arguments: &Arguments) -> Result<Arguments> {
        let live = mask(&arguments.columns, arguments.filter.as_ref());
        Ok(Arguments {
            columns: Vec::new(),
            filter: live.map(|live| BooleanArray::new(live, None)),
        })
    }

    fn carried_mix(&self, _arguments: &Arguments) -> bool {
        true
    }
}

/// Counts the live rows of each group.
pub(super) fn count_rows(counts: &mut [i64], rows: &Rows<'_>, groups: Groups<'_>, total: usize) {
    if let Groups::One(_) = groups {
        counts[0] += rows.live() as i64;
    } else if let Some(ids) = rows.few(total) {
        let add = |count: &mut i64, _| *count += 1;
        add_up(ids, ids, total, add, |group, count| counts[group] += count);
    } else {
        rows.for_each_group(|group| counts[group] += 1);
    }
}

/// Adds the counts of partial states to those of their groups.
pub(super) fn add_counts(counts: &mut [i64], rows: &Rows<'_>, partial: &ArrayRef) {
    let values = partial.as_primitive::<Int64Type>().values();
    rows.for_each(values, |group, count| counts[group] += count);
}

#[derive(Debug, Default)]
struct Count {
    counts: PerGroup<i64>,
}

impl GroupStates for Count {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        count_rows(self.counts.grow(total), &rows, groups, total);
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        add_counts(self.counts.grow(total), &rows, &partial[0]);
        Ok(())
    }

    fn pre_aggregate(
        &self,
        _columns: &[ArrayRef],
        _by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        Ok(Some(CodeSums::None))
    }

    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        pre_aggregated.count(self.counts.grow(total));
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.drain_final(total)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(self.counts.take(total))))
    }

    fn bytes(&self) -> usize {
        self.counts.bytes()
    }
}
