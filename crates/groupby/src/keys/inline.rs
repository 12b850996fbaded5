//! The table of keys of one or two words: the key lies in its slot, so that a hit costs one miss
//! of the cache.
//!
//! In: packed keys. Out: group ids; the keys in group order.
//! Invariant: at most half of the slots are taken; a slot's tag tells the NULL key from the zero
//! key, whose words are the same.
//! Not here: packing (`packed`), keys of more words (`wide`).

use grouse_kernels::prefetch::prefetch;

use super::slots::{AT_ONCE, EMPTY, NEAR_BYTES, Others, SLOTS_MIN, grown, has_tag, tag};
use super::words::is_equal;
use super::{DistinctKeys, EncodedKeys, GroupId, KeyRows, KeyTable, room};
use crate::error::Result;

/// One slot.
#[derive(Debug, Clone, Copy)]
struct Slot<const N: usize> {
    key: [u64; N],
    /// The hash's tag and the group, or `EMPTY`.
    tagged: u64,
}

/// A table of keys of `N` words.
#[derive(Debug)]
pub struct InlineTable<const N: usize> {
    slots: Vec<Slot<N>>,
    keys: Vec<[u64; N]>,
    hashes: Vec<u64>,
    collisions: u64,
    /// True after rows of which hardly any was known.
    mostly_new: bool,
}

impl<const N: usize> Slot<N> {
    #[inline(always)]
    fn holds(&self, key: &[u64; N], hash: u64) -> bool {
        is_equal(&self.key, key) && has_tag(self.tagged, hash)
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
    const VACANT: Slot<N> = Slot {
        key: [0; N],
        tagged: EMPTY,
    };

    /// First the rows whose first slot has their key, then all others.
    fn find_then_insert(&mut self, rows: &[[u64; N]], hashes: &[u64], out: &mut [GroupId]) {
        let mut others = Others::none();
        let mask = self.slots.len() - 1;
        let slots = &self.slots[..=mask];
        for (row, ((key, &hash), group)) in rows.iter().zip(hashes).zip(&mut *out).enumerate() {
            let slot = &slots[hash as usize & mask];
            *group = GroupId(slot.tagged as u32);
            let is_known = is_equal(&slot.key, key) & has_tag(slot.tagged, hash);
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
            let slot = &self.slots[at];
            if slot.holds(key, hash) {
                return GroupId(slot.tagged as u32);
            }
            if slot.tagged == EMPTY {
                return self.insert(at, key, hash);
            }
            at = (at + 1) & mask;
            self.collisions += 1;
        }
    }

    /// True if lookups miss the core's own cache.
    fn is_far(&self) -> bool {
        self.slots.len() * size_of::<Slot<N>>() > NEAR_BYTES
    }

    #[inline]
    fn insert(&mut self, at: usize, key: &[u64; N], hash: u64) -> GroupId {
        let group = self.keys.len();
        self.slots[at] = Slot {
            key: *key,
            tagged: tag(hash) | group as u64,
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
            while self.slots[at].tagged != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot {
                key,
                tagged: tag(hash) | group as u64,
            };
        }
    }
}

/// Keys that the table can take from and give back as an encoding.
pub(super) trait Inline: Sized {
    /// The keys of a borrowed range; the layout guarantees the width.
    fn of(keys: KeyRows<'_>) -> &[Self];
    /// Owned keys.
    fn encoded(keys: Vec<Self>) -> EncodedKeys;
}

macro_rules! inline {
    ($words:literal, $variant:ident) => {
        impl Inline for [u64; $words] {
            fn of(keys: KeyRows<'_>) -> &[Self] {
                match keys {
                    KeyRows::$variant(keys) => keys,
                    _ => unreachable!("the layout made keys of another width"),
                }
            }

            fn encoded(keys: Vec<Self>) -> EncodedKeys {
                EncodedKeys::$variant(keys)
            }
        }
    };
}
inline!(1, Packed1);
inline!(2, Packed2);

impl<const N: usize> KeyTable for InlineTable<N>
where
    [u64; N]: Inline,
{
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        let rows = <[u64; N]>::of(keys);
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
        self.slots.capacity() * size_of::<Slot<N>>()
            + self.keys.capacity() * N * 8
            + self.hashes.capacity() * 8
    }

    fn used_bytes(&self) -> usize {
        self.keys.len() * (2 * size_of::<Slot<N>>() + (N + 1) * 8)
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
            keys: <[u64; N]>::encoded(keys),
            hashes: std::mem::replace(&mut self.hashes, Vec::with_capacity(groups)),
        }
    }
}
