//! A key table that notices keys chosen to collide, and from then on looks them up by hashes that nobody can foresee.
//!
//! In: keys and their hashes, which are the same everywhere and so known to everybody. Out: what the table behind it gives.
//! Invariant: groups, their numbers and the hashes that leave are the same, noticed or not; only the work differs. NULL
//! and the zero key have slots of different tags.
//! Not here: partitions, which go on by the hashes that came. Keys of one hash are merged by one worker.
//!
//! A million keys of one hash took minutes instead of 0.03 s. The look at the table's count of vain slots is one per call.

use std::mem;
use std::ops::Range;

use grouse_kernels::hash::{NULL_HASH, Seeds};

use super::bytes;
use super::fixed_width::{PackedRows, with_width};
use super::packed;
use super::slots::Slot;
use super::{DistinctKeys, GroupId, KeyRows, KeyTable};
use crate::error::Result;

/// Rows between two looks: keys of one hash cost the square of it once.
const ROWS: usize = 8192;
/// Slots looked at in vain per row that are beyond chance. Half of the slots are empty: 64 taken ones in a row come once in
/// 10^5 groups. They count for all rows of a call only where these are of one key.
const VAIN_PER_ROW: usize = 64;
/// Any call may look at so many in vain.
const VAIN: usize = 4096;

/// A table, and its own hashes once it needs them.
pub(super) struct GuardedTable {
    table: Box<dyn KeyTable>,
    /// The words at which views begin.
    views: Vec<usize>,
    own: Option<OwnHashes>,
}

/// Hashes by seeds of one table.
struct OwnHashes {
    seeds: Seeds,
    views: Vec<usize>,
    /// Of the rows of a call.
    hashes: Vec<u64>,
    /// The hashes that each group's key came with.
    given: Vec<u64>,
}

impl GuardedTable {
    /// Around an empty table of keys that have views at these words.
    pub(super) fn around(table: Box<dyn KeyTable>, views: &[usize]) -> Self {
        Self {
            table,
            views: views.to_vec(),
            own: None,
        }
    }

    fn assign_some(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        if let Some(own) = &mut self.own {
            return own.assign(&mut *self.table, keys, hashes, groups);
        }
        let before = self.table.collisions();
        self.table.assign(keys, hashes, groups)?;
        let vain = self.table.collisions() - before;
        match vain > (hashes.len() * VAIN_PER_ROW + VAIN) as u64 {
            true => self.hash_anew(),
            false => Ok(()),
        }
    }

    /// Puts all groups into the table once more, by hashes of its own.
    #[cold]
    fn hash_anew(&mut self) -> Result<()> {
        let mut own = OwnHashes::new(mem::take(&mut self.views));
        let DistinctKeys { keys, hashes } = self.table.drain();
        let mut groups = Vec::with_capacity(hashes.len());
        own.assign(&mut *self.table, keys.all(), &hashes, &mut groups)?;
        debug_assert!(
            groups
                .iter()
                .enumerate()
                .all(|(at, group)| group.0 as usize == at),
            "distinct keys keep their order"
        );
        self.own = Some(own);
        Ok(())
    }
}

impl OwnHashes {
    fn new(views: Vec<usize>) -> Self {
        Self {
            seeds: telling_seeds(),
            views,
            hashes: Vec::new(),
            given: Vec::new(),
        }
    }

    fn assign(
        &mut self,
        table: &mut dyn KeyTable,
        keys: KeyRows<'_>,
        given: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        self.hash(keys, given);
        let start = groups.len();
        table.assign(keys, &self.hashes, groups)?;
        for (group, &hash) in groups[start..].iter().zip(given) {
            if group.0 as usize == self.given.len() {
                self.given.push(hash);
            }
        }
        Ok(())
    }

    fn hash(&mut self, keys: KeyRows<'_>, given: &[u64]) {
        let Self {
            seeds,
            views: at,
            hashes,
            ..
        } = self;
        hashes.clear();
        match keys {
            KeyRows::None(rows) => hashes.resize(rows, 0),
            KeyRows::Packed(packed) => with_width!(packed, PackedRows(rows) => {
                let hash = |key| packed::hash_by(*seeds, key, rows.buffers, at);
                hashes.extend(rows.keys.iter().map(hash));
                keep_nulls(given, hashes, |row| rows.keys[row].iter().all(|word| *word == 0));
            }),
            KeyRows::Bytes(views, buffers) => {
                let hash = |view: &u128| bytes::hash_by(*seeds, *view, buffers);
                hashes.extend(views.iter().map(hash));
                keep_nulls(given, hashes, |row| views[row] == 0);
            }
        }
    }
}

/// NULL is told by its hash. Keys that were chosen to have it are not zero.
fn keep_nulls(given: &[u64], own: &mut [u64], is_zero: impl Fn(usize) -> bool) {
    for (row, (given, own)) in given.iter().zip(own).enumerate() {
        if *given == NULL_HASH && is_zero(row) {
            *own = NULL_HASH;
        }
    }
}

/// Random seeds by which no zero key has the tag of NULL.
fn telling_seeds() -> Seeds {
    loop {
        let seeds = Seeds::random();
        let zeros = [
            seeds.hash_words(&[0; 1]),
            seeds.hash_words(&[0; 2]),
            seeds.hash_words(&[0; 4]),
            seeds.hash_words(&[0; 8]),
            seeds.hash_words(&[0; 12]),
            seeds.hash_view(0),
        ];
        let null = Slot::new(NULL_HASH, 0);
        if !zeros.iter().any(|zero| null.has_tag(*zero)) {
            return seeds;
        }
    }
}

impl KeyTable for GuardedTable {
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        assert_eq!(keys.len(), hashes.len(), "one hash per key");
        let rows = hashes.len();
        if rows <= ROWS {
            return self.assign_some(keys, hashes, groups);
        }
        for start in (0..rows).step_by(ROWS) {
            let some: Range<usize> = start..(start + ROWS).min(rows);
            self.assign_some(keys.part(some.clone()), &hashes[some], groups)?;
        }
        Ok(())
    }

    fn expect(&mut self, groups: usize) {
        self.table.expect(groups);
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn bytes(&self) -> usize {
        let own = self.own.as_ref();
        let own = own.map_or(0, |own| own.given.capacity() + own.hashes.capacity());
        self.table.bytes() + own * 8
    }

    fn used_bytes(&self) -> usize {
        self.table.used_bytes()
    }

    fn collisions(&self) -> u64 {
        self.table.collisions()
    }

    fn drain(&mut self) -> DistinctKeys {
        let mut keys = self.table.drain();
        if let Some(own) = &mut self.own {
            keys.hashes = mem::take(&mut own.given);
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryViewArray, Int64Array, StringViewArray};
    use arrow::datatypes::{DataType, Field, FieldRef};

    use super::super::{KeyLayout, TableKind};
    use super::*;

    const KEYS: usize = 40_000;

    fn layout(types: &[DataType], table: TableKind) -> KeyLayout {
        let field = |of: &DataType| Arc::new(Field::new("k", of.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        KeyLayout::new(&fields, table).expect("keys")
    }

    /// Each key twice, all of one hash. Groups, decoded keys and hashes are those of a table whose keys differ in their
    /// hashes, and the work is not quadratic.
    fn check(layout: &KeyLayout, columns: &[ArrayRef], alike: u64) {
        let rows = columns[0].len();
        let mut hashes = Vec::new();
        let keys = layout.encode(columns, rows, &mut hashes).expect("keys");
        // As if they had been chosen; NULL stays what it is.
        let given: Vec<u64> = hashes
            .iter()
            .map(|hash| if *hash == NULL_HASH { *hash } else { alike })
            .collect();
        let (mut table, mut plain) = (layout.table(), layout.table());
        let (mut groups, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            table
                .assign(keys.all(), &given, &mut groups)
                .expect("groups");
            plain
                .assign(keys.all(), &hashes, &mut expected)
                .expect("groups");
        }
        assert!(groups == expected, "other groups");
        assert_eq!(table.len(), plain.len());
        let vain = table.collisions();
        assert!(vain < (ROWS * ROWS) as u64, "{vain} slots in vain");
        for round in 0..2 {
            let (found, known) = (table.drain(), plain.drain());
            assert_eq!(found.hashes.len(), rows);
            let is_given = |(at, hash): (usize, &u64)| *hash == given[at];
            assert!(
                found.hashes.iter().enumerate().all(is_given),
                "round {round}"
            );
            let wanted: Vec<usize> = (0..columns.len()).collect();
            let decoded = layout.decode(&found, 0..rows, &wanted).expect("columns");
            let others = layout.decode(&known, 0..rows, &wanted).expect("columns");
            assert!(decoded == others, "other keys");
            groups.clear();
            table
                .assign(keys.all(), &given, &mut groups)
                .expect("groups");
            plain
                .assign(keys.all(), &hashes, &mut groups)
                .expect("groups");
        }
        let later = table.collisions() - vain;
        assert!(later < (KEYS * 64) as u64, "emptied, it keeps its seeds");
    }

    #[test]
    fn keys_of_one_hash_are_told_apart_in_linear_time() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=KEYS as i64));
        let nullable = (0..KEYS as i64).map(|at| (at > 0).then_some(at - 1));
        let nullable: ArrayRef = Arc::new(Int64Array::from_iter(nullable));
        let values = (0..KEYS).map(|at| match at {
            0 => None,
            1 => Some(String::new()),
            _ if at % 2 == 0 => Some(format!("{at}")),
            _ => Some(format!("a text that lies outside of its view {at}")),
        });
        let values: Vec<Option<String>> = values.collect();
        let strings: ArrayRef = Arc::new(StringViewArray::from_iter(values.iter().cloned()));
        let bytes = values
            .iter()
            .map(|text| text.as_ref().map(String::as_bytes));
        let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter(bytes));
        let (number, string) = (DataType::Int64, DataType::Utf8View);
        let both = [Arc::clone(&strings), Arc::clone(&nullable)];
        for alike in [7, NULL_HASH] {
            let packed = layout(std::slice::from_ref(&number), TableKind::Packed);
            check(&packed, &[Arc::clone(&numbers)], alike);
            let pairs = layout(&[number.clone(), number.clone()], TableKind::Packed);
            check(
                &pairs,
                &[Arc::clone(&nullable), Arc::clone(&numbers)],
                alike,
            );
            let wide = layout(&[string.clone(), number.clone()], TableKind::Packed);
            check(&wide, &both, alike);
            let rows = layout(&[string.clone(), number.clone()], TableKind::Row);
            check(&rows, &both, alike);
        }
        // NULL is a key of one column beside zero and the empty string.
        let packed = layout(&[number], TableKind::Packed);
        check(&packed, &[nullable], 7);
        check(&layout(&[string], TableKind::Bytes), &[strings], 7);
        check(
            &layout(&[DataType::BinaryView], TableKind::Bytes),
            &[bytes],
            7,
        );
    }

    #[test]
    fn keys_as_they_come_are_looked_up_by_the_hashes_that_they_have() {
        let layout = layout(&[DataType::Int64], TableKind::Packed);
        for step in [1, 8, 4096, 1 << 32, 7919] {
            let values = (0..300_000).map(|at| (at % 100_000) * step);
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
            let (mut hashes, mut groups) = (Vec::new(), Vec::new());
            let keys = layout
                .encode(&[column], 300_000, &mut hashes)
                .expect("keys");
            let table = layout.table();
            let mut table = GuardedTable::around(table, &[]);
            table
                .assign(keys.all(), &hashes, &mut groups)
                .expect("groups");
            assert!(table.own.is_none(), "step {step}");
        }
    }
}
