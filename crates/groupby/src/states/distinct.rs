//! count(DISTINCT x): one table of pairs of group and value for all groups.
//!
//! In: a column of any type that can be grouped by. Out: BIGINT.
//! Partial: a list of different values per group; the lists of a batch share one child.
//! Invariant: a pair is in the table once, and its group has counted it. NULL is no value; -0.0 is 0.0 and all NaN are
//! one value, as in keys.
//! Not here: approximate counts (`uniq`).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, LargeListViewArray, UInt32Array,
    UInt64Array,
};
use arrow::compute::{filter as only, take};
use arrow::datatypes::{DataType, Field, FieldRef, UInt32Type};

use super::native::native;
use super::per_group::PerGroup;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::{Error, Result};
use crate::keys::{GroupId, KeyLayout, KeyTable};
use crate::spec::TableKind;

/// Values of lists that are looked up at a time.
const MERGED_ROWS: usize = 8 << 10;

/// The number of different values of a column of `data_type`; `None` if it cannot be grouped by.
pub fn count_distinct(name: &str, data_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    let value_type = match data_type {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let fields: [FieldRef; 2] = [
        Arc::new(Field::new("group", DataType::UInt32, false)),
        Arc::new(Field::new("value", value_type.clone(), false)),
    ];
    let layout = Arc::new(KeyLayout::new(&fields, TableKind::Auto).ok()?);
    Some(native(name, &DataType::Int64, move || Distinct {
        pairs: layout.table(),
        layout: Arc::clone(&layout),
        counts: PerGroup::default(),
        hashes: Vec::new(),
        found: Vec::new(),
    }))
}

struct Distinct {
    layout: Arc<KeyLayout>,
    pairs: Box<dyn KeyTable>,
    /// Pairs of each group.
    counts: PerGroup<i64>,
    /// Hashes of the current batch.
    hashes: Vec<u64>,
    /// Pairs of the current batch.
    found: Vec<GroupId>,
}

impl Distinct {
    /// Counts the values that are new to their groups, which exist.
    fn add(&mut self, groups: Vec<u32>, values: ArrayRef) -> Result<()> {
        let rows = groups.len();
        let mut known = self.pairs.len();
        if known + rows > u32::MAX as usize {
            let pairs = "more than 4 billion pairs of group and value in one worker's table";
            return Err(Error::TooLarge(pairs.to_string()));
        }
        let groups = UInt32Array::from(groups);
        let columns: [ArrayRef; 2] = [Arc::new(groups.clone()), values];
        let keys = self.layout.encode(&columns, rows, &mut self.hashes)?;
        self.found.clear();
        self.pairs
            .assign(keys.all(), &self.hashes, &mut self.found)?;
        let counts = self.counts.grow(0);
        for (pair, group) in self.found.iter().zip(groups.values()) {
            // New pairs are numbered in the order of their rows.
            if pair.0 as usize == known {
                counts[*group as usize] += 1;
                known += 1;
            }
        }
        Ok(())
    }
}

impl GroupStates for Distinct {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        self.counts.grow(total);
        let rows = Rows::new(columns, filter, groups);
        let Some(mask) = rows.mask() else {
            return self.add(groups.to_vec(), Arc::clone(&columns[0]));
        };
        let live = mask.set_indices();
        let live = match groups {
            Groups::Ids(ids) => live.map(|row| ids[row].0).collect(),
            Groups::One(_) => vec![0; rows.live()],
        };
        let mask = BooleanArray::new(mask.clone(), None);
        self.add(live, only(&columns[0], &mask)?)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.counts.grow(total);
        let lists = partial[0].as_list_view::<i64>();
        let (mut of, mut places) = (Vec::new(), Vec::new());
        let ranges = lists.offsets().iter().zip(lists.sizes());
        for (group, (offset, size)) in groups.to_vec().into_iter().zip(ranges) {
            let mut range = *offset as u64..(*offset + *size) as u64;
            while !range.is_empty() {
                let room = (MERGED_ROWS - of.len()) as u64;
                let part = range.start..range.end.min(range.start + room);
                range.start = part.end;
                of.extend(part.clone().map(|_| group));
                places.extend(part);
                if of.len() == MERGED_ROWS {
                    let places = UInt64Array::from(std::mem::take(&mut places));
                    let values = take(lists.values(), &places, None)?;
                    self.add(std::mem::take(&mut of), values)?;
                }
            }
        }
        let values = take(lists.values(), &UInt64Array::from(places), None)?;
        self.add(of, values)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let sizes = self.counts.take(total);
        let mut next = 0;
        let start = |size: &i64| {
            next += size;
            next - size
        };
        let offsets: Vec<i64> = sizes.iter().map(start).collect();
        let pairs = self.pairs.drain();
        let rows = pairs.hashes.len();
        if self.layout.fitting(&pairs, 0..rows) < rows {
            let values = "the different values of one worker take more than 2 GiB";
            return Err(Error::TooLarge(values.to_string()));
        }
        let columns = self.layout.decode(&pairs, 0..rows, &[0, 1])?;
        let mut places = offsets.clone();
        let mut order = vec![0u32; rows];
        let groups = columns[0].as_primitive::<UInt32Type>().values();
        for (row, group) in groups.iter().enumerate() {
            let place = &mut places[*group as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        let values = take(&columns[1], &UInt32Array::from(order), None)?;
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let lists = LargeListViewArray::try_new(field, offsets.into(), sizes.into(), values, None)?;
        Ok(vec![Arc::new(lists)])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.pairs.drain();
        Ok(Arc::new(Int64Array::from(self.counts.take(total))))
    }

    fn bytes(&self) -> usize {
        let batch = self.hashes.capacity() * 8 + self.found.capacity() * 4;
        self.pairs.bytes() + self.counts.bytes() + batch
    }

    /// Pairs are looked up, but their number says nothing of that of the groups.
    fn appended_bytes(&self) -> usize {
        self.pairs.used_bytes()
    }

    fn used_bytes(&self) -> usize {
        self.counts.bytes()
    }
}
