//! count(*) and count(x, ...): rows, or rows where no argument is NULL.
//!
//! In: any columns; only their validity is read. Out: Int64, never NULL.
//! Not here: distinct counts.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::lanes::add_up;
use super::native::native;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;
use crate::keys::GroupId;

/// `count` of the rows where no argument column is NULL; without columns of all rows.
pub fn count(name: &str) -> Option<Arc<dyn Aggregate>> {
    Some(native(name, &DataType::Int64, Count::default))
}

/// Counts the rows of few groups.
pub(super) fn add_rows(counts: &mut [i64], ids: &[GroupId], total: usize) {
    let add = |count: &mut i64, _| *count += 1;
    add_up(ids, ids, total, add, |group, count| counts[group] += count);
}

#[derive(Debug, Default)]
struct Count {
    counts: Vec<i64>,
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
        self.counts.resize(total.max(self.counts.len()), 0);
        let counts = self.counts.as_mut_slice();
        if let Groups::One(_) = groups {
            counts[0] += rows.live() as i64;
        } else if let Some(ids) = rows.few(total) {
            add_rows(counts, ids, total);
        } else {
            rows.for_each_group(|group| counts[group] += 1);
        }
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        self.counts.resize(total.max(self.counts.len()), 0);
        let counts = self.counts.as_mut_slice();
        rows.for_each(
            partial[0].as_primitive::<Int64Type>().values(),
            |group, n| {
                counts[group] += n;
            },
        );
        Ok(())
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.drain_final(total)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.counts.resize(total, 0);
        Ok(Arc::new(Int64Array::from(std::mem::take(&mut self.counts))))
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
