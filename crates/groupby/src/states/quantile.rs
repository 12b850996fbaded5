//! median(x) and percentile_cont(x, p): exact, from all values of a group.
//!
//! In: floats, for the median decimals, too (the host casts others). Out: the same type, NULL without values.
//! Partial: a list per group; the lists of a batch share one buffer.
//! Invariant: a row costs one append; values meet their group when they are drained, in one counting sort. All NaN
//! are one value and the greatest, -0.0 comes before 0.0.
//! Not here: distinct values, approximations.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::array::{ArrowPrimitiveType, LargeListViewArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow::datatypes::{Field, Float16Type, Float32Type, Float64Type};

use super::element::{Element, Float, Word};
use super::fixed::{column_of, values_of};
use super::native::native;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// Values of one chunk: large enough that chunks are few, small enough that a half-filled one is nothing.
const CHUNK_VALUES: usize = 64 << 10;
/// What a share between two values is rounded down to, as the host does.
const SHARE_STEPS: f64 = 1e6;

/// The middle value of a column of `input_type`, or the mean of both; `None` if it is not native.
pub fn median(name: &str, input_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    match input_type {
        DataType::Float16 => of::<Float16Type>(name, input_type, middle::<Float16Type>),
        DataType::Float32 => of::<Float32Type>(name, input_type, middle::<Float32Type>),
        DataType::Float64 => of::<Float64Type>(name, input_type, middle::<Float64Type>),
        DataType::Decimal32(..) => of::<Decimal32Type>(name, input_type, middle::<Decimal32Type>),
        DataType::Decimal64(..) => of::<Decimal64Type>(name, input_type, middle::<Decimal64Type>),
        DataType::Decimal128(..) => {
            of::<Decimal128Type>(name, input_type, middle::<Decimal128Type>)
        }
        DataType::Decimal256(..) => {
            of::<Decimal256Type>(name, input_type, middle::<Decimal256Type>)
        }
        _ => None,
    }
}

/// The value that a `share` of a column of `input_type` lies below, interpolated; `None` if it is not native.
pub fn percentile(name: &str, share: f64, input_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    assert!((0.0..=1.0).contains(&share), "a share of {share}");
    macro_rules! float {
        ($float:ty) => {
            of::<$float>(name, input_type, move |values| at::<$float>(values, share))
        };
    }
    match input_type {
        DataType::Float16 => float!(Float16Type),
        DataType::Float32 => float!(Float32Type),
        DataType::Float64 => float!(Float64Type),
        _ => None,
    }
}

/// An aggregate whose result `pick` finds among a group's values, of which there is at least one.
fn of<E: Element>(
    name: &str,
    input_type: &DataType,
    pick: impl Fn(&mut [Word<E>]) -> E::Native + Send + Sync + 'static,
) -> Option<Arc<dyn Aggregate>> {
    let pick: Pick<E> = Arc::new(pick);
    let data_type = input_type.clone();
    Some(native(name, input_type, move || Values::<E> {
        data_type: data_type.clone(),
        pick: Arc::clone(&pick),
        chunks: Vec::new(),
        lists: Vec::new(),
        held: 0,
        groups: 0,
    }))
}

type Pick<E> =
    Arc<dyn Fn(&mut [Word<E>]) -> <E as ArrowPrimitiveType>::Native + Send + Sync + 'static>;

fn middle<E: Element>(values: &mut [Word<E>]) -> E::Native {
    let odd = values.len() % 2 == 1;
    let (below, high, _) = values.select_nth_unstable(values.len() / 2);
    match below.iter().max() {
        Some(low) if !odd => E::between(E::value(*low), E::value(*high)),
        _ => E::value(*high),
    }
}

fn at<E: Float>(values: &mut [Word<E>], share: f64) -> E::Native {
    let position = share * (values.len() - 1) as f64;
    let (_, low, above) = values.select_nth_unstable(position.floor() as usize);
    let low = E::value(*low);
    let high = match above.iter().min() {
        Some(high) if position.fract() > 0.0 => E::value(*high),
        _ => return low,
    };
    if low == high {
        // Two infinities have no difference.
        return low;
    }
    let weight = (position.fract() * SHARE_STEPS).floor() / SHARE_STEPS;
    let (low, high) = (E::wide(low), E::wide(high));
    E::narrow(low + (high - low) * weight)
}

/// Values in the order in which they came.
struct Chunk<N> {
    /// The group of each; empty where all belong to group 0 (no GROUP BY).
    ids: Vec<u32>,
    values: Vec<N>,
}

/// Partial states: the group of each list, and the lists.
struct Lists {
    ids: Vec<u32>,
    lists: LargeListViewArray,
}

struct Values<E: Element> {
    data_type: DataType,
    pick: Pick<E>,
    chunks: Vec<Chunk<Word<E>>>,
    lists: Vec<Lists>,
    /// Values in chunks and lists.
    held: usize,
    groups: usize,
}

/// The values of group `g` are `values[starts[g]..starts[g + 1]]`.
struct Sorted<N> {
    starts: Vec<usize>,
    values: Vec<N>,
}

impl<E: Element> Values<E> {
    /// A chunk with room for `rows` values more.
    fn room(&mut self, rows: usize) -> &mut Chunk<Word<E>> {
        let fits = |chunk: &Chunk<_>| chunk.values.capacity() - chunk.values.len() >= rows;
        if !self.chunks.last().is_some_and(fits) {
            // Small states stay small: a chunk has at most as much room as there is already.
            let capacity = rows.max(self.held.min(CHUNK_VALUES));
            self.chunks.push(Chunk {
                ids: Vec::new(),
                values: Vec::with_capacity(capacity),
            });
        }
        self.held += rows;
        self.chunks.last_mut().expect("pushed above")
    }

    /// All values by group, for `total` groups; none are left.
    fn sort(&mut self, total: usize) -> Sorted<Word<E>> {
        let mut starts = vec![0; total + 1];
        // Counted one place further on, so that adding up makes them starts.
        let counts = &mut starts[1..];
        for Chunk { ids, values } in &self.chunks {
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
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut values = vec![Word::<E>::default(); sum];
        // Chunk by chunk they give their memory back.
        self.chunks
            .drain(..)
            .for_each(|chunk| chunk.place(&mut next, &mut values));
        for Lists { ids, lists } in self.lists.drain(..) {
            let from = lists.values().as_primitive::<E::Words>().values();
            let places = lists.offsets().iter().zip(lists.sizes());
            for (id, (offset, size)) in ids.iter().zip(places) {
                let (to, offset, size) =
                    (&mut next[*id as usize], *offset as usize, *size as usize);
                values[*to..*to + size].copy_from_slice(&from[offset..offset + size]);
                *to += size;
            }
        }
        self.held = 0;
        self.groups = 0;
        Sorted { starts, values }
    }
}

impl<N: Copy> Chunk<N> {
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

impl<E: Element> GroupStates for Values<E> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        let values = values_of::<E::Native>(&columns[0])?;
        self.groups = total.max(self.groups);
        if rows.live() == 0 {
            return Ok(());
        }
        let chunk = self.room(rows.live());
        let words = values.iter().map(|value| E::word(*value));
        match groups {
            _ if rows.live() < rows.count() => {
                let keyless = matches!(groups, Groups::One(_));
                rows.for_each(&values, |group, value| {
                    chunk.values.push(E::word(value));
                    if !keyless {
                        chunk.ids.push(group as u32);
                    }
                });
            }
            Groups::Ids(ids) => {
                chunk.values.extend(words);
                chunk.ids.extend(ids.iter().map(|id| id.0));
            }
            Groups::One(_) => chunk.values.extend(words),
        }
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let lists = partial[0].as_list_view::<i64>().clone();
        self.groups = total.max(self.groups);
        self.held += lists.sizes().iter().sum::<i64>() as usize;
        let ids = groups.to_vec();
        self.lists.push(Lists { ids, lists });
        Ok(())
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let Sorted { starts, values } = self.sort(total);
        let sizes: Vec<_> = starts
            .windows(2)
            .map(|ends| (ends[1] - ends[0]) as i64)
            .collect();
        let offsets: Vec<_> = starts[..total].iter().map(|start| *start as i64).collect();
        let field = Field::new_list_field(E::Words::DATA_TYPE, false);
        let values = PrimitiveArray::<E::Words>::new(values.into(), None);
        let lists = LargeListViewArray::try_new(
            Arc::new(field),
            offsets.into(),
            sizes.into(),
            Arc::new(values),
            None,
        )?;
        Ok(vec![Arc::new(lists)])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let Sorted { starts, mut values } = self.sort(total);
        let groups = || starts.windows(2).map(|ends| ends[0]..ends[1]);
        let picked = groups().map(|group| match group.is_empty() {
            true => E::Native::default(),
            false => (self.pick)(&mut values[group]),
        });
        let picked: Vec<_> = picked.collect();
        let nulls = NullBuffer::new(
            groups()
                .map(|group| !group.is_empty())
                .collect::<BooleanBuffer>(),
        );
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        column_of(picked, nulls, &self.data_type)
    }

    fn bytes(&self) -> usize {
        let chunk = |chunk: &Chunk<_>| {
            chunk.values.capacity() * size_of::<Word<E>>() + chunk.ids.capacity() * 4
        };
        let chunks: usize = self.chunks.iter().map(chunk).sum();
        let lists: usize = self
            .lists
            .iter()
            .map(|lists| lists.ids.capacity() * 4)
            .sum();
        // Sorting takes a second place for each value, and two ends of each group.
        let sorted = self.held * size_of::<Word<E>>() + self.groups * 2 * size_of::<usize>();
        chunks + lists + sorted
    }

    fn appended_bytes(&self) -> usize {
        self.bytes()
    }
}
