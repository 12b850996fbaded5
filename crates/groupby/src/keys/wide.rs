//! The table of keys of four words and more; byte strings among their columns are views.
//!
//! In: packed keys, the buffers that their views point into. Out: group ids; the keys in group
//! order, their long strings in arenas of the table's own.
//! Invariant: a string of up to 12 bytes is compared as two words of the key, a longer one by length and prefix before
//! its bytes. Bytes are copied once per distinct key, never per row.
//! Not here: packing (`packed`), keys that fit a slot (`inline`).

use arrow::buffer::Buffer;

use super::bytes::Arena;
use super::fixed_width::{FixedWidth, FixedWidthRows, PackedKeys, is_equal, view_of};
use super::slots::Slots;
use super::views::{is_long, long_bytes};
use super::{DistinctKeys, EncodedKeys, GroupId, KeyRows, KeyTable, room};
use crate::error::Result;

/// A table of keys of `N` words.
#[derive(Debug)]
pub(super) struct WideTable<const N: usize> {
    slots: Slots,
    keys: Vec<[u64; N]>,
    /// The first words of the views.
    views: Vec<usize>,
    arena: Arena,
}

impl<const N: usize> WideTable<N> {
    /// An empty table of keys that have views at these words.
    pub(super) fn new(views: Vec<usize>) -> Self {
        Self {
            slots: Slots::default(),
            keys: Vec::new(),
            views,
            arena: Arena::default(),
        }
    }

    /// Keys of which no string is long: equal keys have equal words.
    fn assign_words(&mut self, rows: &[[u64; N]], hashes: &[u64], out: &mut [GroupId]) {
        let far = self.slots.is_far();
        for (row, group) in out.iter_mut().enumerate() {
            if far {
                self.slots.fetch_ahead(hashes, row, &self.keys);
            }
            let (key, hash) = (&rows[row], hashes[row]);
            let same = |own: &[u64; N]| is_equal(own, key);
            *group = match self.slots.held_first(hash, &self.keys, same) {
                Some(known) => known,
                None => self.search_words(key, hash),
            };
        }
    }

    #[inline(never)]
    fn search_words(&mut self, key: &[u64; N], hash: u64) -> GroupId {
        let keys = &self.keys;
        let same = |group: GroupId| is_equal(&keys[group.0 as usize], key);
        self.slots.find_or_insert(hash, same).unwrap_or_else(|| {
            self.keys.push(*key);
            GroupId(self.keys.len() as u32 - 1)
        })
    }

    /// Keys of which some string is long.
    fn assign_views(
        &mut self,
        rows: &[[u64; N]],
        buffers: &[Buffer],
        hashes: &[u64],
        out: &mut [GroupId],
    ) -> Result<()> {
        let far = self.slots.is_far();
        for (row, group) in out.iter_mut().enumerate() {
            if far {
                self.slots.fetch_ahead(hashes, row, &self.keys);
            }
            let (key, keys, hash) = (&rows[row], &self.keys, hashes[row]);
            let (views, chunks) = (&self.views, self.arena.chunks());
            let same =
                |group: GroupId| is_same(&keys[group.0 as usize], chunks, key, buffers, views);
            *group = match self.slots.find_or_insert(hash, same) {
                Some(group) => group,
                None => {
                    let group = self.keys.len();
                    self.keys.push(*key);
                    for &word in &self.views {
                        let view = view_of(key, word);
                        if is_long(view) {
                            self.keys[group][word + 1] =
                                self.arena.place(long_bytes(view, buffers))?;
                        }
                    }
                    GroupId(group as u32)
                }
            };
        }
        Ok(())
    }
}

/// Compares two keys wherever their long strings lie; equal places mean nothing, they are places
/// in different buffers.
#[inline]
fn is_same<const N: usize>(
    own: &[u64; N],
    own_chunks: &[Vec<u8>],
    other: &[u64; N],
    other_buffers: &[Buffer],
    views: &[usize],
) -> bool {
    // The second words of long strings are places; whatever else differs tells the keys apart.
    let mut places = 0u32;
    for &word in views {
        places |= u32::from(is_long(view_of(own, word))) << (word + 1);
    }
    for word in 0..N {
        if own[word] != other[word] && places >> word & 1 == 0 {
            return false;
        }
    }
    views.iter().all(|&word| {
        let (own, other) = (view_of(own, word), view_of(other, word));
        !is_long(own) || long_bytes(own, own_chunks) == long_bytes(other, other_buffers)
    })
}

impl<const N: usize> KeyTable for WideTable<N>
where
    PackedKeys: FixedWidth<N>,
{
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        let KeyRows::Packed(rows) = keys else {
            unreachable!("the layout made keys of another kind")
        };
        let FixedWidthRows { keys, buffers } = PackedKeys::rows_of(rows);
        assert_eq!(keys.len(), hashes.len(), "one hash per key");
        let out = room(groups, keys.len());
        if buffers.is_empty() {
            self.assign_words(keys, hashes, out);
            Ok(())
        } else {
            self.assign_views(keys, buffers, hashes, out)
        }
    }

    fn expect(&mut self, groups: usize) {
        self.slots.expect(groups);
        self.keys.reserve(groups);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn bytes(&self) -> usize {
        self.slots.bytes() + self.keys.capacity() * N * 8 + self.arena.bytes()
    }

    fn used_bytes(&self) -> usize {
        self.slots.used_bytes() + self.keys.len() * N * 8 + self.arena.bytes()
    }

    fn collisions(&self) -> u64 {
        self.slots.collisions()
    }

    fn drain(&mut self) -> DistinctKeys {
        let groups = self.keys.capacity();
        let keys = std::mem::replace(&mut self.keys, Vec::with_capacity(groups));
        let buffers = std::mem::take(&mut self.arena).into_buffers();
        DistinctKeys {
            keys: EncodedKeys::of_fixed_width(keys, buffers),
            hashes: self.slots.drain(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringViewArray};
    use arrow::datatypes::{DataType, Field};

    use crate::keys::TableKind;
    use crate::keys::{GroupId, KeyLayout};

    /// Strings of one length and prefix at the same places of different buffers.
    #[test]
    fn long_strings_are_told_apart_by_their_bytes() {
        let fields = [
            Arc::new(Field::new("s", DataType::Utf8View, true)),
            Arc::new(Field::new("n", DataType::Int64, true)),
        ];
        let layout = KeyLayout::new(&fields, TableKind::Packed).unwrap();
        assert_eq!(layout.kind(), "packed");
        let mut table = layout.table();
        let mut hashes = Vec::new();
        let mut groups = Vec::new();
        for end in ["one", "two", "one"] {
            let strings = [format!("the same beginning {end}"), "short".to_string()];
            let columns: [ArrayRef; 2] = [
                Arc::new(StringViewArray::from_iter_values(strings)),
                Arc::new(Int64Array::from(vec![1, 1])),
            ];
            let keys = layout.encode(&columns, 2, &mut hashes).unwrap();
            // As if their hashes were the same: only the bytes are left.
            hashes.fill(7);
            table.assign(keys.all(), &hashes, &mut groups).unwrap();
        }
        assert_eq!(groups, [0, 1, 2, 1, 0, 1].map(GroupId));
    }
}
