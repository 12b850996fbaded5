//! `max_by` and `min_by` with one state per group.
//!
//! In: x and y columns and the group of each row. Out: per group the x of its best row.
//! Invariant: y decides row by row in typed storage (native values, or order-preserving row bytes for every type that
//! is not fixed-width); x is copied once per batch, for the groups whose best row changed in it, so any x costs one
//! gather. Rows that were overtaken are swept out when they outnumber the groups.
//! Not here: which rows take part, see `arg_extreme.rs`.

use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
    UInt32Array, downcast_primitive,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, interleave, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use grouse_groupby::keys::decoded;

use super::arg_extreme::{
    Extreme, NULL_LAST, key_column, null_row, rows_of_their_own, rows_with_both,
};
use super::total_states::kept_rows;

/// Overtaken rows that may lie around before a sweep, beside as many as there are groups.
const OVERTAKEN_ROWS_MIN: usize = 8192;

/// The state for these argument types.
pub(super) fn group_extremes(
    extreme: Extreme,
    x: DataType,
    y: &DataType,
) -> Result<Box<dyn GroupsAccumulator>> {
    macro_rules! fixed_width {
        ($t:ty) => {
            Ok(Box::new(GroupExtremes::new(
                x,
                FixedKeys::<$t>::new(extreme, decoded(y).clone()),
            )))
        };
    }
    downcast_primitive! {
        decoded(y) => (fixed_width),
        _ => Ok(Box::new(GroupExtremes::new(x, RowKeys::new(extreme, decoded(y).clone())?)))
    }
}

/// The best y of each group.
trait Keys: Send + 'static {
    /// Makes room for `groups` groups; a new one has no meaningful key.
    fn resize(&mut self, groups: usize);
    /// Takes the y column of the next batch, of the key type.
    fn load(&mut self, column: &ArrayRef) -> Result<()>;
    /// Whether `row` of the loaded batch beats the key of `group`.
    fn beats(&self, row: usize, group: usize) -> bool;
    /// Makes `row` of the loaded batch the key of `group`.
    fn keep(&mut self, row: usize, group: usize);
    /// The keys of the groups that leave, NULL where `seen` is false.
    fn emit(&mut self, emit_to: EmitTo, seen: &[bool]) -> Result<ArrayRef>;
    fn bytes(&self) -> usize;
}

/// Fixed-width keys.
struct FixedKeys<T: ArrowPrimitiveType> {
    extreme: Extreme,
    data_type: DataType,
    best: Vec<T::Native>,
    batch: PrimitiveArray<T>,
}

impl<T: ArrowPrimitiveType> FixedKeys<T> {
    fn new(extreme: Extreme, data_type: DataType) -> Self {
        let batch = PrimitiveArray::new(vec![].into(), None);
        Self {
            extreme,
            data_type,
            best: Vec::new(),
            batch,
        }
    }
}

impl<T: ArrowPrimitiveType> Keys for FixedKeys<T> {
    fn resize(&mut self, groups: usize) {
        self.best.resize(groups, T::Native::ZERO);
    }

    fn load(&mut self, column: &ArrayRef) -> Result<()> {
        self.batch = column.as_primitive::<T>().clone();
        Ok(())
    }

    #[inline]
    fn beats(&self, row: usize, group: usize) -> bool {
        let (candidate, best) = (self.batch.values()[row], self.best[group]);
        match self.extreme {
            Extreme::Max => candidate.is_gt(best),
            Extreme::Min => candidate.is_lt(best),
        }
    }

    #[inline]
    fn keep(&mut self, row: usize, group: usize) {
        self.best[group] = self.batch.values()[row];
    }

    fn emit(&mut self, emit_to: EmitTo, seen: &[bool]) -> Result<ArrayRef> {
        let best = emit_to.take_needed(&mut self.best);
        let nulls = NullBuffer::from_iter(seen.iter().copied());
        let column = PrimitiveArray::<T>::new(best.into(), Some(nulls));
        Ok(Arc::new(column.with_data_type(self.data_type.clone())))
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<T::Native>()
    }
}

/// Keys of any other type, as row bytes whose order is that of the values.
struct RowKeys {
    extreme: Extreme,
    data_type: DataType,
    converter: RowConverter,
    best: Vec<Vec<u8>>,
    best_bytes: usize,
    batch: Rows,
}

impl RowKeys {
    fn new(extreme: Extreme, data_type: DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new_with_options(
            data_type.clone(),
            NULL_LAST,
        )])?;
        let batch = converter.empty_rows(0, 0);
        Ok(Self {
            extreme,
            data_type,
            converter,
            best: Vec::new(),
            best_bytes: 0,
            batch,
        })
    }
}

impl Keys for RowKeys {
    fn resize(&mut self, groups: usize) {
        self.best.resize_with(groups, Vec::new);
    }

    fn load(&mut self, column: &ArrayRef) -> Result<()> {
        self.batch.clear();
        self.converter
            .append(&mut self.batch, std::slice::from_ref(column))?;
        Ok(())
    }

    fn beats(&self, row: usize, group: usize) -> bool {
        self.extreme
            .prefers(self.batch.row(row).data().cmp(self.best[group].as_slice()))
    }

    fn keep(&mut self, row: usize, group: usize) {
        let best = &mut self.best[group];
        self.best_bytes -= best.capacity();
        best.clear();
        best.extend_from_slice(self.batch.row(row).data());
        self.best_bytes += best.capacity();
    }

    fn emit(&mut self, emit_to: EmitTo, seen: &[bool]) -> Result<ArrayRef> {
        let best = emit_to.take_needed(&mut self.best);
        self.best_bytes -= best.iter().map(Vec::capacity).sum::<usize>();
        let nothing = self
            .converter
            .convert_columns(&[null_row(&self.data_type)])?;
        let parser = self.converter.parser();
        let rows = best.iter().zip(seen).map(|(key, seen)| match seen {
            true => parser.parse(key),
            false => nothing.row(0),
        });
        let columns = self.converter.convert_rows(rows)?;
        let [column] = columns.as_slice() else {
            return internal_err!("one key column was encoded, {} came back", columns.len());
        };
        // The row format gives back a nested dictionary's values.
        Ok(match column.data_type() == &self.data_type {
            true => Arc::clone(column),
            false => cast(column, &self.data_type)?,
        })
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Vec<u8>>()
            + self.best_bytes
            + self.batch.size()
            + self.converter.size()
    }
}

/// The x of each group's best row: where it lies among the rows gathered so far.
struct Winners {
    /// The first chunk is one NULL row, where groups without a row point.
    chunks: Vec<ArrayRef>,
    places: Vec<(u32, u32)>,
    rows: usize,
}

impl Winners {
    fn new(x: &DataType) -> Self {
        Self {
            chunks: vec![null_row(x)],
            places: Vec::new(),
            rows: 0,
        }
    }

    /// Copies the given rows of `x` and points their groups at them.
    fn gather(&mut self, x: &ArrayRef, rows: Vec<u32>, groups: &[usize]) -> Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        let chunk = self.chunks.len() as u32;
        self.rows += rows.len();
        self.chunks
            .push(rows_of_their_own(take(x, &UInt32Array::from(rows), None)?));
        for (row, group) in groups.iter().enumerate() {
            self.places[*group] = (chunk, row as u32);
        }
        if self.rows > 2 * self.places.len() + OVERTAKEN_ROWS_MIN {
            self.sweep()?;
        }
        Ok(())
    }

    /// Drops the rows that were overtaken.
    fn sweep(&mut self) -> Result<()> {
        let kept = rows_of_their_own(self.column(&self.places)?);
        self.rows = kept.len();
        self.chunks.truncate(1);
        self.chunks.push(kept);
        for (row, place) in self.places.iter_mut().enumerate() {
            if place.0 != 0 {
                *place = (1, row as u32);
            }
        }
        Ok(())
    }

    fn column(&self, places: &[(u32, u32)]) -> Result<ArrayRef> {
        let chunks: Vec<&dyn Array> = self.chunks.iter().map(|chunk| chunk.as_ref()).collect();
        let places: Vec<_> = places
            .iter()
            .map(|(c, r)| (*c as usize, *r as usize))
            .collect();
        Ok(interleave(&chunks, &places)?)
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let places = emit_to.take_needed(&mut self.places);
        let column = self.column(&places)?;
        if self.places.is_empty() {
            self.chunks.truncate(1);
            self.rows = 0;
        } else {
            self.sweep()?;
        }
        Ok(column)
    }

    fn bytes(&self) -> usize {
        let chunks: usize = self
            .chunks
            .iter()
            .map(|chunk| chunk.get_array_memory_size())
            .sum();
        chunks + self.places.capacity() * size_of::<(u32, u32)>()
    }
}

/// The state of all groups.
struct GroupExtremes<K> {
    keys: K,
    winners: Winners,
    seen: Vec<bool>,
    /// Per group its winning row of the current batch; `NO_ROW` between batches.
    row_of: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl<K: Keys> GroupExtremes<K> {
    fn new(x: DataType, keys: K) -> Self {
        Self {
            keys,
            winners: Winners::new(&x),
            seen: Vec::new(),
            row_of: Vec::new(),
        }
    }

    fn resize(&mut self, groups: usize) {
        self.keys.resize(groups);
        self.winners.places.resize(groups, (0, 0));
        self.seen.resize(groups, false);
        self.row_of.resize(groups, NO_ROW);
    }

    /// Offers `row` to `group`; a group that changes for the first time in this batch joins `changed`.
    #[inline]
    fn offer(&mut self, row: usize, group: usize, changed: &mut Vec<usize>) {
        if self.seen[group] && !self.keys.beats(row, group) {
            return;
        }
        self.seen[group] = true;
        self.keys.keep(row, group);
        if self.row_of[group] == NO_ROW {
            changed.push(group);
        }
        self.row_of[group] = row as u32;
    }
}

impl<K: Keys> GroupsAccumulator for GroupExtremes<K> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.resize(total_num_groups);
        let (x, y) = (&values[0], key_column(&values[1])?);
        self.keys.load(&y)?;
        let kept = opt_filter.map(kept_rows);
        let rows = NullBuffer::union(rows_with_both(x, &y).as_ref(), kept.as_ref());
        let mut changed = Vec::new();
        match rows {
            Some(rows) => rows
                .valid_indices()
                .for_each(|row| self.offer(row, group_indices[row], &mut changed)),
            None => group_indices
                .iter()
                .enumerate()
                .for_each(|(row, group)| self.offer(row, *group, &mut changed)),
        }
        let rows = changed
            .iter()
            .map(|group| std::mem::replace(&mut self.row_of[*group], NO_ROW));
        let rows = rows.collect();
        self.winners.gather(x, rows, &changed)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::clone(&self.state(emit_to)?[0]))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let seen = emit_to.take_needed(&mut self.seen);
        emit_to.take_needed(&mut self.row_of);
        let y = self.keys.emit(emit_to, &seen)?;
        Ok(vec![self.winners.emit(emit_to)?, y])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let y = key_column(&values[1])?;
        let y = match opt_filter.map(kept_rows) {
            // A row that the filter drops must not take part: its y becomes NULL.
            Some(kept) => {
                let rows = UInt32Array::new((0..y.len() as u32).collect(), Some(kept));
                take(&y, &rows, None)?
            }
            None => y,
        };
        Ok(vec![Arc::clone(&values[0]), y])
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.keys.bytes()
            + self.winners.bytes()
            + self.seen.capacity()
            + self.row_of.capacity() * size_of::<u32>()
    }
}
