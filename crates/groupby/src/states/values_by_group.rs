//! All values of a group: kept as they come, each with its group, until they are wanted side by side.
//!
//! In: a value per live row, or lists of values, which are partial states. Out: the values of each group, or such lists.
//! Invariant: a row costs one append; values meet their group in one counting sort, which keeps the order in which they came
//! within rows and within each list.
//! Not here: what is made of them (`quantile`, `t_digest`).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, LargeListViewArray, PrimitiveArray};
use arrow::datatypes::{ArrowNativeType, Field};

use super::Groups;
use super::rows::Rows;
use crate::error::Result;

/// Values of one chunk: large enough that chunks are few, small enough that a half-filled one is nothing.
const CHUNK_VALUES: usize = 64 << 10;

/// Values in the order in which they came.
pub(super) struct ValuesByGroup<T: ArrowPrimitiveType> {
    chunks: Vec<ValueChunk<T::Native>>,
    lists: Vec<Lists>,
    held: usize,
}

struct ValueChunk<N> {
    /// The group of each; empty where all belong to group 0 (no GROUP BY).
    ids: Vec<u32>,
    values: Vec<N>,
}

/// Partial states: the group of each list, and the lists.
struct Lists {
    ids: Vec<u32>,
    lists: LargeListViewArray,
}

/// The values of group `g` are `values[starts[g]..starts[g + 1]]`.
pub(super) struct ByGroup<N> {
    pub starts: Vec<usize>,
    pub values: Vec<N>,
}

impl<T: ArrowPrimitiveType> ValuesByGroup<T> {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            lists: Vec::new(),
            held: 0,
        }
    }

    /// Number of values.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Takes in the live rows of a batch: `word` is what is kept of each of its `values`.
    pub(super) fn push<V: Copy>(
        &mut self,
        values: &[V],
        rows: &Rows<'_>,
        groups: Groups<'_>,
        word: impl Fn(V) -> T::Native,
    ) {
        if rows.live() == 0 {
            return;
        }
        let chunk = self.room(rows.live());
        match groups {
            _ if rows.live() < rows.count() => {
                let keyless = matches!(groups, Groups::One(_));
                rows.for_each(values, |group, value| {
                    chunk.values.push(word(value));
                    if !keyless {
                        chunk.ids.push(group as u32);
                    }
                });
            }
            Groups::Ids(ids) => {
                chunk.values.extend(values.iter().map(|value| word(*value)));
                chunk.ids.extend(ids.iter().map(|id| id.0));
            }
            Groups::One(_) => chunk.values.extend(values.iter().map(|value| word(*value))),
        }
    }

    /// A chunk with room for `rows` values more.
    fn room(&mut self, rows: usize) -> &mut ValueChunk<T::Native> {
        let fits = |chunk: &ValueChunk<_>| chunk.values.capacity() - chunk.values.len() >= rows;
        if !self.chunks.last().is_some_and(fits) {
            // Small states stay small: a chunk has at most as much room as there is already.
            let capacity = rows.max(self.held.min(CHUNK_VALUES));
            self.chunks.push(ValueChunk {
                ids: Vec::new(),
                values: Vec::with_capacity(capacity),
            });
        }
        self.held += rows;
        self.chunks.last_mut().expect("pushed above")
    }

    /// Takes in one list per row.
    pub(super) fn push_lists(&mut self, lists: &ArrayRef, groups: Groups<'_>) {
        let lists = lists.as_list_view::<i64>().clone();
        self.held += lists.sizes().iter().sum::<i64>() as usize;
        let ids = groups.to_vec();
        self.lists.push(Lists { ids, lists });
    }

    /// All values by group, for `total` groups; none are left.
    pub(super) fn by_group(&mut self, total: usize) -> ByGroup<T::Native> {
        let mut starts = vec![0; total + 1];
        // Counted one place further on, so that adding up makes them starts.
        self.count(&mut starts[1..]);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut values = vec![T::Native::default(); sum];
        // Chunk by chunk they give their memory back.
        let chunks = self.chunks.drain(..);
        chunks.for_each(|chunk| chunk.place(&mut next, &mut values));
        for Lists { ids, lists } in self.lists.drain(..) {
            let from = lists.values().as_primitive::<T>().values();
            let places = lists.offsets().iter().zip(lists.sizes());
            for (id, (offset, size)) in ids.iter().zip(places) {
                let (to, offset, size) =
                    (&mut next[*id as usize], *offset as usize, *size as usize);
                values[*to..*to + size].copy_from_slice(&from[offset..offset + size]);
                *to += size;
            }
        }
        self.held = 0;
        ByGroup { starts, values }
    }

    /// Adds to each group's count how many values it has.
    fn count(&self, counts: &mut [usize]) {
        for ValueChunk { ids, values } in &self.chunks {
            if ids.is_empty() {
                counts[0] += values.len();
            }
            ids.iter().for_each(|id| counts[*id as usize] += 1);
        }
        for Lists { ids, lists } in &self.lists {
            for (id, size) in ids.iter().zip(lists.sizes()) {
                counts[*id as usize] += *size as usize;
            }
        }
    }

    /// Bytes held, and those that sorting the values of `groups` takes: a second place for each, and two ends of each group.
    pub(super) fn bytes(&self, groups: usize) -> usize {
        let chunk = |chunk: &ValueChunk<_>| {
            chunk.values.capacity() * size_of::<T::Native>() + chunk.ids.capacity() * 4
        };
        let chunks: usize = self.chunks.iter().map(chunk).sum();
        let lists = self.lists.iter().map(|lists| lists.ids.capacity() * 4);
        let sorted = self.held * size_of::<T::Native>() + groups * 2 * size_of::<usize>();
        chunks + lists.sum::<usize>() + sorted
    }
}

impl<N: Copy> ValueChunk<N> {
    /// Writes each value to the next place of its group.
    fn place(self, next: &mut [usize], values: &mut [N]) {
        if self.ids.is_empty() {
            let to = next[0];
            values[to..to + self.values.len()].copy_from_slice(&self.values);
            next[0] += self.values.len();
        }
        for (id, value) in self.ids.iter().zip(&self.values) {
            let to = &mut next[*id as usize];
            values[*to] = *value;
            *to += 1;
        }
    }
}

impl<N: ArrowNativeType> ByGroup<N> {
    /// Where each group's values are.
    pub(super) fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        self.starts.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// A list per group; they share one buffer.
    pub(super) fn into_lists<T: ArrowPrimitiveType<Native = N>>(self) -> Result<ArrayRef> {
        let sizes: Vec<_> = self.groups().map(|group| group.len() as i64).collect();
        let offsets: Vec<_> = self.groups().map(|group| group.start as i64).collect();
        let values = PrimitiveArray::<T>::new(self.values.into(), None);
        let lists = LargeListViewArray::try_new(
            Arc::new(Field::new_list_field(T::DATA_TYPE, false)),
            offsets.into(),
            sizes.into(),
            Arc::new(values),
            None,
        )?;
        Ok(Arc::new(lists))
    }
}
