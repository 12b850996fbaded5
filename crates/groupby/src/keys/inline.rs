//! The table of keys of one or two words: the key lies in its slot, so that a hit costs one miss
//! of the cache.
//!
//! In: packed keys. Out: group ids; the keys in group order.
//! Invariant: at most half of the slots are taken; a slot's tag tells the NULL key from the zero
//! key, whose words are the same.
//! Not here: packing (`packed`), keys of more words (`wide`).

use grouse_kernels::prefetch::prefetch;

use super::fixed_width::{FixedWidth, PackedKeys, is_equal};
use super::slots::{AT_ONCE, NEAR_BYTES, Others, SLOTS_MIN, Slot, grown};
use super::{DistinctKeys, EncodedKeys, GroupId, KeyRows, KeyTable, room};
use crate::error::Result;

/// A slot with the key of its group.
#[derive(Debug, Clone, Copy)]
struct KeyedSlot<const N: usize> {
    key: [u64; N],
    slot: Slot,
}

/// A table of keys of `N` words.
#[derive(Debug)]
pub(super) struct InlineTable<const N: usize> {
    slots: Vec<KeyedSlot<N>>,
    keys: Vec<[u64; N]>,
    hashes: Vec<u64>,
    collisions: u64,
    /// True after rows of which hardly any was known.
    mostly_new: bool,
}

impl<const N: usize> KeyedSlot<N> {
    #[inline(always)]
    fn holds(&self, key: &[u64; N], hash: u64) -> bool {
        is_equal(&self.key, key) && self.slot.has_tag(hash)
    }
}

impl<const N: usize> Default for InlineTable<N> {
    fn default() -> Self {
        Self {
            slots: vec![Self::VACANT; SLOTS_MIN],
            keys: Vec::new(),
            hashes: Vec::new(),
            collisions: 0,
            mostly_new: false,
        }
    }
}

impl<const N: usize> InlineTable<N> {
    const VACANT: KeyedSlot<N> = KeyedSlot {
        key: [0; N],
        slot: Slot::EMPTY,
    };

    /// First the rows whose first slot has their key, then all others.
    fn find_then_insert(&mut self, rows: &[[u64; N]], hashes: &[u64], out: &mut [GroupId]) {
        let mut others = Others::none();
        let mask = self.slots.len() - 1;
        let slots = &self.slots[..=mask];
        for (row, ((key, &hash), group)) in rows.iter().zip(hashes).zip(&mut *out).enumerate() {
            let KeyedSlot { key: own, slot } = &slots[hash as usize & mask];
            *group = slot.group();
            let is_known = is_equal(own, key) & slot.has_tag(hash);
            others.add(row, !is_known);
        }
        for row in others.rows() {
            out[row] = self.search(&rows[row], hashes[row]);
        }
    }

    fn search_all(&mut self, rows: &[[u64; N]], hashes: &[u64], out: &mut [GroupId]) {
        for ((group, key), &hash) in out.iter_mut().zip(rows).zip(hashes) {
            *group = self.search(key, hash);
        }
    }

    /// From the first slot on. Not inlined: the loop over rows is short.
    #[inline(never)]
    fn search(&mut self, key: &[u64; N], hash: u64) -> GroupId {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let keyed = &self.slots[at];
            if keyed.holds(key, hash) {
                return keyed.slot.group();
            }
            if keyed.slot.is_empty() {
                return self.insert(at, key, hash);
            }
            at = (at + 1) & mask;
            self.collisions += 1;
        }
    }

    /// True if lookups miss the core's own cache.
    fn is_far(&self) -> bool {
        self.slots.len() * size_of::<KeyedSlot<N>>() > NEAR_BYTES
    }

    #[inline]
    fn insert(&mut self, at: usize, key: &[u64; N], hash: u64) -> GroupId {
        let group = self.keys.len();
        self.slots[at] = KeyedSlot {
            key: *key,
            slot: Slot::new(hash, group),
        };
        self.keys.push(*key);
        self.hashes.push(hash);
        if let Some(slots) = grown(self.slots.len(), self.keys.len(), 2) {
            self.grow(slots);
        }
        GroupId(group as u32)
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, Self::VACANT);
        let mask = slots - 1;
        for (group, (&key, &hash)) in self.keys.iter().zip(&self.hashes).enumerate() {
            let mut at = hash as usize & mask;
            while !self.slots[at].slot.is_empty() {
                at = (at + 1) & mask;
            }
            let slot = Slot::new(hash, group);
            self.slots[at] = KeyedSlot { key, slot };
        }
    }
}

impl<const N: usize> KeyTable for InlineTable<N>
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
        let rows = PackedKeys::rows_of(rows).keys;
        assert_eq!(rows.len(), hashes.len(), "one hash per key");
        let out = room(groups, rows.len());
        let chunks = out.chunks_mut(AT_ONCE).zip(rows.chunks(AT_ONCE));
        for ((out, rows), hashes) in chunks.zip(hashes.chunks(AT_ONCE)) {
            if self.is_far() {
                let mask = self.slots.len() - 1;
                for &hash in hashes {
                    prefetch(&self.slots, hash as usize & mask);
                }
            }
            let before = self.keys.len();
            match self.mostly_new {
                true => self.search_all(rows, hashes, out),
                false => self.find_then_insert(rows, hashes, out),
            }
            self.mostly_new = (self.keys.len() - before) * 8 > rows.len() * 7;
        }
        Ok(())
    }

    fn expect(&mut self, groups: usize) {
        let slots = (groups * 2).next_power_of_two();
        if slots > self.slots.len() {
            self.grow(slots);
        }
        self.keys.reserve(groups);
        self.hashes.reserve(groups);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<KeyedSlot<N>>()
            + self.keys.capacity() * N * 8
            + self.hashes.capacity() * 8
    }

    fn used_bytes(&self) -> usize {
        self.keys.len() * (2 * size_of::<KeyedSlot<N>>() + (N + 1) * 8)
    }

    fn collisions(&self) -> u64 {
        self.collisions
    }

    fn drain(&mut self) -> DistinctKeys {
        if self.is_far() {
            self.slots.truncate(SLOTS_MIN);
        }
        self.slots.fill(Self::VACANT);
        let groups = self.keys.capacity();
        let keys = std::mem::replace(&mut self.keys, Vec::with_capacity(groups));
        DistinctKeys {
            keys: EncodedKeys::of_fixed_width(keys, Vec::new()),
            hashes: std::mem::replace(&mut self.hashes, Vec::with_capacity(groups)),
        }
    }
}
