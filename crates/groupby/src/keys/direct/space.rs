//! The addresses of direct tables whose groups are taken: what keys they are, and where they are among those of other tables.
//!
//! In: the ranges of tables without strings. Out: a space with addresses for the keys of all of them, and the way into it.
//! Invariant: addresses keep their order on that way. Columns have their factors in the same order in each space, and codes
//! follow the values; that of NULL is below them.
//! Not here: which rows have an address (direct.rs); states.

use std::ops::Range;

use arrow::array::ArrayRef;

use super::dimension::{Dimension, lay_out};
use super::{EMPTY, GroupId, column_of};

/// Addresses for a group, and for any number of them, up to which looking through them costs less than hashing keys.
const SLOTS_PER_GROUP: usize = 8;
const SLOTS_FREE: usize = 4 << 10;

/// True of so many addresses that are worth looking through for so many groups, and are numbers of 32 bits.
pub(crate) fn is_dense(slots: usize, groups: usize) -> bool {
    slots < EMPTY as usize && slots <= groups.saturating_mul(SLOTS_PER_GROUP) + SLOTS_FREE
}

/// What addresses stand for.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    dimensions: Vec<Dimension>,
    slots: usize,
}

impl AddressSpace {
    /// That of a table's columns, whose factors are set.
    pub(super) fn new(dimensions: Vec<Dimension>) -> Self {
        let codes = dimensions.iter().map(Dimension::codes);
        Self {
            slots: codes.fold(1, usize::saturating_mul),
            dimensions,
        }
    }

    /// The smallest that has the keys of all of these.
    pub(crate) fn of_all<'a>(mut spaces: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let none = |of: &Dimension| Dimension::new(&of.data_type);
        let first = spaces.next()?;
        let mut dimensions: Vec<_> = first.dimensions.iter().map(none).collect();
        for space in std::iter::once(first).chain(spaces) {
            for (dimension, other) in dimensions.iter_mut().zip(&space.dimensions) {
                dimension.join(other);
            }
        }
        let slots = lay_out(&mut dimensions);
        Some(Self { dimensions, slots })
    }

    /// Its addresses.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The key columns of these addresses.
    pub(crate) fn columns(&self, addresses: &[u32]) -> Vec<ArrayRef> {
        let is_only = self.dimensions.len() == 1;
        let dimensions = self.dimensions.iter();
        dimensions
            .map(|dimension| column_of(dimension, is_only, addresses))
            .collect()
    }

    /// The way from here into a space that has all keys of this one.
    pub(crate) fn way_into(&self, wider: &Self) -> Move {
        let columns = self.dimensions.iter().zip(&wider.dimensions);
        Move(
            columns
                .map(|(from, to)| ColumnMove::new(from, to))
                .collect(),
        )
    }
}

/// From addresses of one space to those of another.
#[derive(Debug)]
pub(crate) struct Move(Vec<ColumnMove>);

/// The part of one column in both addresses; codes are numbers of 32 bits, as addresses are.
#[derive(Debug, Clone, Copy)]
struct ColumnMove {
    stride: u32,
    codes: u32,
    /// 1 if code 0 is NULL, which it then is in both.
    nulls: u32,
    /// Of the first value.
    first: u32,
    factor: u32,
    to_stride: u32,
}

impl ColumnMove {
    fn new(from: &Dimension, to: &Dimension) -> Self {
        // Room to grow may begin before all values of the wider one: it has no groups, and numbers wrap around.
        let apart = from.start().wrapping_sub(to.start());
        let first = apart / to.step().size() as i64 + i64::from(to.null);
        Self {
            stride: from.stride as u32,
            codes: from.codes() as u32,
            nulls: u32::from(from.null),
            first: first as u32,
            factor: (from.step().size() / to.step().size()) as u32,
            to_stride: to.stride as u32,
        }
    }

    #[inline(always)]
    fn of_code(&self, code: u32) -> u32 {
        let moved = code.wrapping_sub(self.nulls);
        let moved = moved.wrapping_mul(self.factor).wrapping_add(self.first);
        let is_null = code < self.nulls;
        (if is_null { 0 } else { moved }) * self.to_stride
    }
}

impl Move {
    /// Calls `each` with the new address of each of these.
    #[inline(always)]
    fn for_each(&self, addresses: &[u32], mut each: impl FnMut(u32)) {
        match self.0.as_slice() {
            [only] => {
                let only = *only;
                addresses.iter().for_each(|&of| each(only.of_code(of)));
            }
            _ => addresses.iter().for_each(|&of| each(self.of(of))),
        }
    }

    /// The new address.
    pub(crate) fn of(&self, address: u32) -> u32 {
        let columns = self.0.iter();
        columns
            .map(|column| column.of_code(address / column.stride % column.codes))
            .sum()
    }

    /// How many of some ascending addresses, whose new ones go from `ends.start` to just before `ends.end`, become less than `bound`.
    pub(crate) fn before(&self, addresses: &[u32], ends: &Range<usize>, bound: usize) -> usize {
        // Of addresses without gaps this is known without a look at them: no cache holds those of many workers.
        let most = bound.saturating_sub(ends.start).min(addresses.len());
        let beyond = ends.end.saturating_sub(bound).min(addresses.len());
        let least = (addresses.len() - beyond).min(most);
        let unknown = &addresses[least..most];
        least + unknown.partition_point(|&of| (self.of(of) as usize) < bound)
    }
}

/// The groups of some neighbouring addresses, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct AddressTable {
    first: u32,
    /// Group of each address.
    groups: Vec<u32>,
    /// Address of each group.
    addresses: Vec<u32>,
}

impl AddressTable {
    /// Forgets all groups; the next ones have addresses in `range`.
    pub(crate) fn begin(&mut self, range: &Range<usize>) {
        self.first = range.start as u32;
        self.addresses.clear();
        self.groups.clear();
        self.groups.resize(range.len(), EMPTY);
    }

    /// Appends the groups of `addresses` on their way here.
    pub(crate) fn assign(&mut self, addresses: &[u32], way: &Move, out: &mut Vec<GroupId>) {
        out.reserve(addresses.len());
        let Self {
            first,
            groups,
            addresses: known,
        } = self;
        way.for_each(addresses, |address| {
            let group = &mut groups[(address - *first) as usize];
            if *group == EMPTY {
                *group = known.len() as u32;
                known.push(address);
            }
            out.push(GroupId(*group));
        });
    }

    /// Address of each group.
    pub(crate) fn addresses(&self) -> &[u32] {
        &self.addresses
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        (self.groups.capacity() + self.addresses.capacity()) * 4
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, UInt8Array};
    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::super::{ByAddress, DirectTable};
    use super::*;

    /// Rows of one worker: values of both columns.
    type Keys = Vec<(Option<i64>, Option<u8>)>;

    /// Multiples of a step from somewhere on; few workers have a NULL.
    fn keys() -> impl Strategy<Value = Keys> {
        let step = prop_oneof![Just(1i64), Just(60), Just(90), Just(3_600)];
        let nulls = prop_oneof![3 => Just(0.001), 1 => Just(0.3)];
        (step, -40i64..40, nulls).prop_flat_map(|(step, first, nulls)| {
            let value = move || (0i64..50).prop_map(move |at| (first + at) * step);
            let value = proptest::option::weighted(1.0 - nulls, value());
            let second = proptest::option::weighted(1.0 - nulls, 3u8..9);
            prop::collection::vec((value, second), 1..60)
        })
    }

    fn columns_of(keys: &Keys, columns: usize) -> Vec<ArrayRef> {
        let first: Int64Array = keys.iter().map(|key| key.0).collect();
        let second: UInt8Array = keys.iter().map(|key| key.1).collect();
        let mut all: Vec<ArrayRef> = vec![Arc::new(first), Arc::new(second)];
        all.truncate(columns);
        all
    }

    /// The groups of a table that has seen these, batch by batch.
    fn by_address(keys: &Keys, columns: usize) -> ByAddress {
        let types = &[DataType::Int64, DataType::UInt8][..columns];
        let mut table = DirectTable::new(types, 1 << 20, 1 << 20);
        let mut groups = Vec::new();
        for batch in keys.chunks(7) {
            let batch = columns_of(&batch.to_vec(), columns);
            table
                .assign(&batch, &mut groups)
                .expect("a range that fits");
        }
        let known = table.len();
        let taken = table.take_addresses();
        assert_eq!(taken.addresses.len(), known);
        assert!(taken.addresses.is_sorted_by(|one, next| one < next));
        // The group of each address is that of the first row with its keys.
        let found = rows(&taken.space.columns(&taken.addresses));
        let all = rows(&columns_of(keys, columns));
        for (place, key) in found.iter().enumerate() {
            let row = all.iter().position(|other| other == key);
            let group = taken
                .order
                .as_ref()
                .map_or(place as u32, |order| order[place]);
            assert_eq!(groups[row.expect("a row of it")].0, group);
        }
        taken
    }

    fn rows(columns: &[ArrayRef]) -> Vec<Vec<String>> {
        use arrow::util::display::array_value_to_string;
        let row = |row| {
            let cells = columns.iter();
            let cells = cells.map(|column| array_value_to_string(column, row).expect("a number"));
            cells.collect()
        };
        (0..columns[0].len()).map(row).collect()
    }

    proptest! {
        #[test]
        fn all_keys_keep_their_order_on_the_way_into_one_space(
            workers in prop::collection::vec(keys(), 1..5),
            columns in 1usize..3,
            bounds in prop::collection::vec(0usize..20_000, 4),
        ) {
            let taken: Vec<_> = workers.iter().map(|keys| by_address(keys, columns)).collect();
            let space = AddressSpace::of_all(taken.iter().map(|one| &one.space)).expect("a worker");
            let mut table = AddressTable::default();
            table.begin(&(0..space.slots()));
            let mut all = Vec::new();
            for ByAddress { space: own, addresses, .. } in &taken {
                let way = own.way_into(&space);
                let moved: Vec<u32> = addresses.iter().map(|&address| way.of(address)).collect();
                prop_assert!(moved.is_sorted_by(|one, next| one < next));
                prop_assert!(moved.iter().all(|&address| (address as usize) < space.slots()));
                prop_assert_eq!(rows(&space.columns(&moved)), rows(&own.columns(addresses)));
                let ends = moved[0] as usize..moved[moved.len() - 1] as usize + 1;
                for &bound in bounds.iter().chain([&ends.start, &ends.end]) {
                    let expected = moved.iter().filter(|&&address| (address as usize) < bound);
                    prop_assert_eq!(way.before(addresses, &ends, bound), expected.count());
                }
                let mut groups = Vec::new();
                table.assign(addresses, &way, &mut groups);
                prop_assert_eq!(groups.len(), moved.len());
                for (group, address) in groups.iter().zip(&moved) {
                    prop_assert_eq!(table.addresses()[group.0 as usize], *address);
                }
                all.extend(moved);
            }
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(table.addresses().len(), all.len());
            // One column begins and ends with keys that there are.
            let least = usize::from(columns == 1);
            prop_assert!(least == 0 || all.last().is_some_and(|&last| last as usize == space.slots() - 1));
        }
    }
}
