//! Small integer keys, strings of few values, or products of several: the key addresses an array,
//! no hash, no compare.
//!
//! In: columns of integers, dates, times, booleans, strings (plain or as codes). Out: group ids, or `Full`
//! when the observed ranges no longer fit the array.
//! Invariant: ranges are observed while running and widened; ids of known groups never change.
//! Not here: rows whose keys all have groups (fast_path.rs); hashes, which are computed once per group when the table is drained.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, UInt8Array, UInt32Array, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::DataType;
use grouse_kernels::select::{Selected, Side};

use super::GroupId;
use super::columns::{is_bytes, is_integer};
use super::intern::{Full, Interner};
use crate::error::Result;

/// More columns than this are packed: each costs a pass over the batch.
const COLUMNS_MAX: usize = 6;
const EMPTY: u32 = u32::MAX;
/// Of a batch one row in so many may have a new group; with more of them, more are expected in the next.
const FEW: usize = 8;

/// True of keys that are one column of integers: every slot of its array is one value.
pub(crate) fn is_one_range(types: &[DataType]) -> bool {
    matches!(types, [only] if is_integer(only))
}

/// True if all of these types can address an array.
pub(crate) fn is_supported(types: &[DataType]) -> bool {
    (1..=COLUMNS_MAX).contains(&types.len())
        && types.iter().all(|of| is_integer(of) || is_bytes(of))
}

mod dimension;
mod space;
mod fast_path;

pub(crate) use dimension::ends;
use dimension::{Dimension, Observed, SLACK, SLACK_OF_ONE, lay_out};
use fast_path::ByKey;
pub(crate) use space::{AddressSpace, AddressTable, Move, is_dense};

/// An array of group ids addressed by key.
#[derive(Debug)]
pub struct DirectTable {
    dimensions: Vec<Dimension>,
    /// The codes of each string column.
    interners: Vec<Option<Interner>>,
    /// Group of each address; `EMPTY` where no row fell. Made when a row looks for its group.
    groups: Vec<u32>,
    slots: usize,
    /// Address of each group.
    addresses: Vec<u32>,
    /// More are not made now, or not ever: then not even followed.
    slots_max: usize,
    followed_max: usize,
    widened: usize,
    /// Address of each row of the current batch.
    scratch: Vec<u32>,
    /// Where all columns come as codes.
    by_key: ByKey,
    /// False after rows with many new groups, after which there are mostly more.
    is_settled: bool,
    /// True while each group's number is its address: keys came in ascending order without gaps.
    is_in_order: bool,
}

impl DirectTable {
    /// An empty table over columns of these types with at most `slots_max` addresses until `allow_all`, `followed_max` then.
    pub fn new(types: &[DataType], slots_max: usize, followed_max: usize) -> Self {
        let interner =
            |data_type: &DataType| is_bytes(data_type).then(|| Interner::new(types.len() == 1));
        Self {
            interners: types.iter().map(interner).collect(),
            dimensions: types.iter().map(Dimension::new).collect(),
            groups: Vec::new(),
            slots: 0,
            addresses: Vec::new(),
            slots_max,
            followed_max,
            widened: 0,
            scratch: Vec::new(),
            by_key: ByKey::default(),
            is_settled: false,
            is_in_order: true,
        }
    }

    /// Makes an array of as many slots as it may follow.
    pub fn allow_all(&mut self) {
        self.slots_max = self.followed_max;
    }

    /// Appends the group of each row to `out`; on `Full` nothing was appended or changed.
    pub fn assign(
        &mut self,
        columns: &[ArrayRef],
        out: &mut Vec<GroupId>,
    ) -> std::result::Result<(), Full> {
        let (from, rows) = (out.len(), columns[0].len());
        if rows == 0 {
            return Ok(());
        }
        let columns: Vec<_> = columns.iter().map(as_integers).collect();
        let columns = columns.as_slice();
        if self.is_settled && self.look_up(columns, out) {
            if let Some(others) = few_without_group(&out[from..]) {
                let assigned = self.assign_few(columns, others, &mut out[from..]);
                if assigned.is_err() {
                    out.truncate(from);
                }
                return assigned;
            }
            out.truncate(from);
        }
        let fresh = self.assign_all(columns, out)?;
        self.is_settled = fresh <= rows / FEW;
        Ok(())
    }

    /// Gives groups to these rows of a batch.
    fn assign_few(
        &mut self,
        columns: &[ArrayRef],
        rows: Vec<u32>,
        out: &mut [GroupId],
    ) -> std::result::Result<(), Full> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(rows);
        let columns = columns.iter().map(|column| take(column, &rows, None));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>();
        let mut groups = Vec::with_capacity(rows.len());
        self.assign_all(&columns.map_err(|_| Full)?, &mut groups)?;
        for (row, group) in rows.values().iter().zip(groups) {
            out[*row as usize] = group;
        }
        Ok(())
    }

    /// Appends the group of each row; how many rows had none before.
    fn assign_all(
        &mut self,
        columns: &[ArrayRef],
        out: &mut Vec<GroupId>,
    ) -> std::result::Result<usize, Full> {
        let rows = columns[0].len();
        self.widen_to(columns, self.slots_max)?;
        self.groups.resize(self.slots, EMPTY);
        self.scratch.clear();
        self.scratch.resize(rows, 0);
        let interners = self.interners.iter();
        for ((dimension, column), interner) in self.dimensions.iter().zip(columns).zip(interners) {
            match interner {
                None => dimension.add_addresses(column, &mut self.scratch),
                Some(interner) => add_codes(dimension, column, interner, &mut self.scratch),
            }
        }
        out.reserve(rows);
        let Self {
            groups,
            addresses,
            scratch,
            ..
        } = self;
        let from = out.len();
        let mut fresh = 0;
        out.extend(scratch.iter().map(|&address| {
            let group = groups[address as usize];
            fresh += usize::from(group == EMPTY);
            GroupId(group)
        }));
        // Most batches have no new group, and nothing but the lookup stands in their loop.
        if fresh > 0 {
            for (id, &address) in out[from..].iter_mut().zip(&*scratch) {
                let group = &mut groups[address as usize];
                if *group == EMPTY {
                    *group = addresses.len() as u32;
                    self.is_in_order &= *group == address;
                    addresses.push(address);
                }
                id.0 = *group;
            }
        }
        self.note_keys(columns, &out[from..]);
        Ok(fresh)
    }

    /// Makes the ranges hold the keys of a batch, whose rows may go elsewhere; on `Full` nothing was changed.
    pub fn follow(&mut self, columns: &[ArrayRef]) -> std::result::Result<(), Full> {
        let columns: Vec<_> = columns.iter().map(as_integers).collect();
        self.widen_to(&columns, self.followed_max)
    }

    fn widen_to(
        &mut self,
        columns: &[ArrayRef],
        slots_max: usize,
    ) -> std::result::Result<(), Full> {
        // Integers first: where they alone do not fit, no string needs a code.
        let mut observed = Vec::with_capacity(columns.len());
        let interners = self.interners.iter();
        for ((dimension, column), interner) in self.dimensions.iter().zip(columns).zip(interners) {
            observed.push(match interner {
                None => dimension.observe(column)?,
                Some(interner) => interner.observed(column),
            });
        }
        let strings = self.interners.iter().any(Option::is_some);
        if strings && self.slots_with(&observed) > slots_max {
            return Err(Full);
        }
        for (at, interner) in self.interners.iter_mut().enumerate() {
            if let Some(interner) = interner {
                interner.push(&columns[at], &self.dimensions[at].data_type)?;
                observed[at] = interner.observed(&columns[at]);
            }
        }
        self.widen(&observed, slots_max)
    }

    /// Addresses that the ranges would need with what was observed.
    fn slots_with(&self, observed: &[Observed]) -> usize {
        let mut wider = self.dimensions.clone();
        for (dimension, observed) in wider.iter_mut().zip(observed) {
            dimension.widen(observed, 0);
        }
        lay_out(&mut wider)
    }

    /// Makes the ranges hold what was observed, or leaves all as it was.
    fn widen(&mut self, observed: &[Observed], slots_max: usize) -> std::result::Result<(), Full> {
        // With room to grow where the array then still fits.
        let mut wider = self.dimensions.clone();
        let mut slots = usize::MAX;
        let slacks: &[u64] = match self.dimensions.len() {
            1 => &[SLACK_OF_ONE, SLACK, 0],
            _ => &[SLACK, 0],
        };
        for &slack_max in slacks {
            wider.clone_from(&self.dimensions);
            let mut changed = false;
            for (dimension, observed) in wider.iter_mut().zip(observed) {
                changed |= dimension.widen(observed, slack_max);
            }
            if !changed {
                self.reach(observed);
                return Ok(());
            }
            slots = lay_out(&mut wider);
            if slots <= slots_max {
                break;
            }
        }
        if slots > slots_max {
            return Err(Full);
        }
        self.widened += usize::from(self.slots > 0);
        if self.addresses.is_empty() || !keep_their_place(&self.dimensions, &wider) {
            self.groups.clear();
        }
        if !self.addresses.is_empty() && self.groups.is_empty() {
            self.groups.resize(slots, EMPTY);
            self.is_in_order = false;
            for (group, address) in self.addresses.iter_mut().enumerate() {
                let moved = self.dimensions.iter().zip(&wider);
                *address = moved
                    .map(|(old, new)| new.address(old.value(*address as usize, old.codes())))
                    .sum::<usize>() as u32;
                self.groups[*address as usize] = group as u32;
            }
        }
        self.slots = slots;
        self.dimensions = wider;
        self.reach(observed);
        Ok(())
    }

    fn reach(&mut self, observed: &[Observed]) {
        for (dimension, observed) in self.dimensions.iter_mut().zip(observed) {
            dimension.reach(observed);
        }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// True before the first group.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Slots of the array: there are no more groups.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The same without those that only leave room for the range to grow.
    pub fn reached_slots(&self) -> usize {
        let dimensions = self.dimensions.iter();
        let codes = dimensions.map(Dimension::reached_codes);
        codes.fold(1, usize::saturating_mul)
    }

    /// Gives the array back and keeps the ranges; there is no group.
    pub fn release(&mut self) {
        self.groups = Vec::new();
        self.addresses = Vec::new();
        self.scratch = Vec::new();
        self.by_key = ByKey::default();
        self.is_in_order = true;
    }

    /// How often the ranges grew after the first batch.
    pub fn widened(&self) -> usize {
        self.widened
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let interned: usize = self.interners.iter().flatten().map(Interner::bytes).sum();
        let held = self.groups.capacity() + self.addresses.capacity() + self.scratch.capacity();
        interned + held * 4 + self.by_key.bytes()
    }

    /// Bytes that lookups touch: of a sparse array a cache line per group.
    pub fn used_bytes(&self) -> usize {
        (self.groups.len() * 4).min(self.addresses.len() * 64) + self.addresses.len() * 4
    }

    /// The key columns in group order; the table is empty afterwards and keeps its ranges.
    pub fn drain(&mut self) -> Result<Vec<ArrayRef>> {
        let interners = self.interners.iter();
        let columns = self
            .dimensions
            .iter()
            .zip(interners)
            .map(|(dimension, interner)| {
                let Some(interner) = interner else {
                    let is_only = self.dimensions.len() == 1;
                    return Ok(column_of(dimension, is_only, &self.addresses));
                };
                let codes = dimension.codes();
                let addresses = self.addresses.iter();
                let values: Vec<_> = addresses
                    .map(|&address| dimension.value(address as usize, codes))
                    .collect();
                interner.column(&values, &dimension.data_type)
            });
        let columns = columns.collect::<Result<_>>()?;
        self.addresses.clear();
        self.groups.fill(EMPTY);
        self.by_key.clear();
        self.is_in_order = true;
        Ok(columns)
    }

    /// True if other tables' groups can be merged by address with these. The codes of strings are each table's own, and an
    /// array that is mostly empty is dear to look through.
    pub(crate) fn has_dense_addresses(&self) -> bool {
        let has_strings = self.interners.iter().any(Option::is_some);
        !has_strings && is_dense(self.slots, self.len())
    }

    /// The groups by ascending address; the table is empty afterwards, and may be used no more.
    pub(crate) fn take_addresses(&mut self) -> ByAddress {
        let (mut addresses, mut order) = (std::mem::take(&mut self.addresses), None);
        if !self.is_in_order {
            let groups = self.groups.iter().copied().zip(0..);
            let groups = groups.filter(|(group, _)| *group != EMPTY);
            let (by_address, ascending): (Vec<u32>, Vec<u32>) = groups.unzip();
            (addresses, order) = (ascending, Some(by_address));
        }
        let dimensions = std::mem::take(&mut self.dimensions);
        self.release();
        ByAddress {
            space: AddressSpace::new(dimensions),
            addresses,
            order,
        }
    }
}

/// The groups of a table by ascending address.
pub(crate) struct ByAddress {
    pub space: AddressSpace,
    pub addresses: Vec<u32>,
    /// The group of each address, where that is not its place.
    pub order: Option<Vec<u32>>,
}

/// The integers that addresses hold of one column.
fn column_of(dimension: &Dimension, is_only: bool, addresses: &[u32]) -> ArrayRef {
    if is_only && !dimension.null {
        let values = addresses.iter();
        let values = values.map(|&address| dimension.value_of(address as usize));
        return column(&dimension.data_type, values, None);
    }
    let codes = dimension.codes();
    let values = addresses.iter();
    let values: Vec<_> = values
        .map(|&address| dimension.value(address as usize, codes))
        .collect();
    nullable_column(&dimension.data_type, &values)
}

/// The column, booleans as bytes of 0 and 1.
pub(crate) fn as_integers(column: &ArrayRef) -> ArrayRef {
    let Some(booleans) = column.as_boolean_opt() else {
        return Arc::clone(column);
    };
    let words: Vec<u64> = booleans.values().bit_chunks().iter_padded().collect();
    let bytes = u8::select(&words, booleans.len(), Side::Value(1), Side::Value(0));
    Arc::new(UInt8Array::new(bytes.into(), booleans.nulls().cloned()))
}

/// The rows that found no group; `None` if they are many.
fn few_without_group(groups: &[GroupId]) -> Option<Vec<u32>> {
    let without = groups.iter().filter(|group| group.0 == EMPTY).count();
    if without > groups.len() / FEW {
        return None;
    }
    let mut rows = Vec::with_capacity(without);
    if without > 0 {
        let all = (0..).zip(groups);
        rows.extend(
            all.filter(|(_, group)| group.0 == EMPTY)
                .map(|(row, _)| row),
        );
    }
    Some(rows)
}

/// True where keys have the same addresses as before: the codes of a single column.
fn keep_their_place(old: &[Dimension], wider: &[Dimension]) -> bool {
    matches!((old, wider), ([old], [wider]) if old.keeps_codes(wider))
}

impl Interner {
    /// The range of the codes so far, in steps, and whether the column has NULLs.
    fn observed(&self, column: &ArrayRef) -> Observed {
        let codes = self.values().next_power_of_two().max(2);
        Observed {
            range: Some(0..=codes as i64 - 1),
            step: 1,
            null: column.logical_null_count() > 0,
        }
    }
}

/// The same for a column of strings.
fn add_codes(dimension: &Dimension, column: &ArrayRef, interner: &Interner, addresses: &mut [u32]) {
    let (null, stride) = (u32::from(dimension.null), dimension.stride as u32);
    for (address, &code) in addresses.iter_mut().zip(&interner.codes) {
        *address += (code + null) * stride;
    }
    let nulls = column.logical_nulls();
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        for (row, address) in addresses.iter_mut().enumerate() {
            if nulls.is_null(row) {
                // Its code was 0; NULL's is below that.
                *address -= stride;
            }
        }
    }
}

/// The same as `column` with NULLs.
fn nullable_column(data_type: &DataType, values: &[Option<i64>]) -> ArrayRef {
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    column(
        data_type,
        values.iter().map(|value| value.unwrap_or(0)),
        nulls,
    )
}

/// Integers as a column of one of the supported types.
fn column(
    data_type: &DataType,
    values: impl ExactSizeIterator<Item = i64>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    if *data_type == DataType::Boolean {
        let values = BooleanBuffer::from_iter(values.map(|value| value == 1));
        return Arc::new(BooleanArray::new(values, nulls));
    }
    let rows = values.len();
    let buffer = match data_type.primitive_width() {
        Some(1) => Buffer::from_iter(values.map(|value| value as u8)),
        Some(2) => Buffer::from_iter(values.map(|value| value as u16)),
        Some(4) => Buffer::from_iter(values.map(|value| value as u32)),
        _ => Buffer::from_iter(values),
    };
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .add_buffer(buffer)
        .nulls(nulls);
    make_array(data.build().expect("integers of the column's own width"))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn room_to_grow_is_not_reached() {
        let mut table = DirectTable::new(&[DataType::Int64], 1 << 20, 1 << 20);
        let mut slots = |end: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values([10, 11, end]));
            table.follow(&[column]).expect("a range that fits");
            (table.slots(), table.reached_slots())
        };
        assert_eq!(slots(1_009), (1_000, 1_000));
        let (wider, reached) = slots(8_009);
        assert!(wider > 8_000);
        assert_eq!(reached, 8_000);
        // Within the room that there is.
        assert_eq!(slots(8_010), (wider, 8_001));
    }

    #[test]
    fn keys_that_are_multiples_leave_no_gaps() {
        let mut table = DirectTable::new(&[DataType::Int64], 1 << 20, 1 << 20);
        let mut slots = |values: &[i64]| {
            let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
            table.follow(&[column]).expect("a range that fits");
            (table.slots(), table.reached_slots())
        };
        assert_eq!(slots(&[7_200]), (1, 1));
        assert_eq!(slots(&[0, 86_400, 3_600]).1, 25);
        let (wider, reached) = slots(&[-3_600, 86_400]);
        assert_eq!(reached, 26);
        assert!(wider < 100);
        // One that begins with another minute.
        assert_eq!(slots(&[5_460]).1, 90_000 / 60 + 1);
        assert_eq!(slots(&[5_461]).1, 90_001);
    }
}
