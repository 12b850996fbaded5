//! The open-addressing core of the key tables whose keys lie elsewhere: tagged slots, linear
//! probing.
//!
//! In: a hash and a test "is group g this key?". Out: a group id, known or new.
//! Invariant: at most half of the slots are taken. A slot holds 31 hash bits and a group id, so that a foreign key is
//! almost never compared and growth never touches a key.
//! Not here: keys. The slot's position comes from the hash's low bits, the tag from its middle, the partition from its
//! top. No bit does two jobs while a table has at most 2^25 slots and there are at most 256 partitions.
//!
//! Tried and rejected: making room for a whole batch beforehand (100 groups then lie in 16,384
//! slots, beyond the first-level cache). Buckets of eight with their tags compared at once (1,000 groups 4.6 -> 6.1 ns a
//! row, 100,000 groups 18 -> 19).

use grouse_kernels::prefetch::prefetch;

use super::GroupId;

pub(super) const SLOTS_MIN: usize = 64;
const SLOTS_SMALL: usize = 1 << 11;
/// From here on half of the slots may be taken, below a quarter: 100,000 strings of 9 bytes take 0.94 of the time. Keys that
/// lie in their slot have none to spare: of 10 M keys of one word, all new, 1.17 of the time.
const SLOTS_MANY: usize = 1 << 19;
/// Tables that lie in the second-level cache anyway are not prefetched.
pub(super) const NEAR_BYTES: usize = 1 << 20;
/// Rows between asking for a slot and reading it: enough for the latency of memory.
const AHEAD: usize = 24;

/// Rows between the pass over those that are known and that over the others.
pub(super) const AT_ONCE: usize = 256;

/// Rows whose key is not in the slot that it looks at first. Which they are is not foreseen where many keys are new, so
/// that nothing branches on it. 1,000 groups: 3.0 -> 1.75 ns a row. Merges of 10 M rows of 3 M keys: 56 -> 39 ms. Keys
/// that lie
/// elsewhere than in their slot, of several words or long, took 1.03 to 1.1 of the time.
pub(super) struct Others {
    rows: [u16; AT_ONCE],
    count: usize,
}

impl Others {
    pub(super) fn none() -> Self {
        Self {
            rows: [0; AT_ONCE],
            count: 0,
        }
    }

    /// Adds `row`, if it `is_other`. No more than `AT_ONCE` are asked for.
    #[inline(always)]
    pub(super) fn add(&mut self, row: usize, is_other: bool) {
        self.rows[self.count % AT_ONCE] = row as u16;
        self.count += usize::from(is_other);
    }

    /// In their order.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> {
        self.rows[..self.count].iter().map(|&row| usize::from(row))
    }
}

/// The group that lies here and a tag of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Slot(u64);

impl Slot {
    /// No group: numbers of groups stay below this.
    pub(super) const EMPTY: Self = Self(u64::MAX);
    /// One bit short of all, so that no tag looks like that of `EMPTY`.
    const TAG_BITS: u64 = 0xffff_fffe_0000_0000;

    /// The slot of a group whose key has that hash.
    #[inline(always)]
    pub(super) fn new(hash: u64, group: usize) -> Self {
        Self(Self::tag(hash) | group as u64)
    }

    /// The bits of a hash that a slot keeps.
    #[inline(always)]
    fn tag(hash: u64) -> u64 {
        (hash << 8) & Self::TAG_BITS
    }

    /// True if it keeps the tag of `hash`; an empty one keeps none.
    #[inline(always)]
    pub(super) fn has_tag(self, hash: u64) -> bool {
        (self.0 ^ Self::tag(hash)) >> 32 == 0
    }

    /// True of no group.
    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Its group; of no group one beyond all.
    #[inline(always)]
    pub(super) fn group(self) -> GroupId {
        GroupId(self.0 as u32)
    }
}

/// Slots of one table and the hashes of its groups.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    hashes: Vec<u64>,
    collisions: u64,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            slots: vec![Slot::EMPTY; SLOTS_MIN],
            hashes: Vec::new(),
            collisions: 0,
        }
    }
}

/// How many slots a table of `groups` groups has that so far had `slots` and wants `per_group` of them for each group. Small
/// tables are kept sparser: a slot taken by another key costs a branch that is not foreseen.
#[inline(always)]
pub(super) fn grown(slots: usize, groups: usize, per_group: usize) -> Option<usize> {
    let (per_group, step) = if slots < SLOTS_SMALL {
        (8, 4)
    } else {
        (per_group, 2)
    };
    (groups * per_group > slots).then_some(slots * step)
}

impl Slots {
    /// The slot that a hash looks at first.
    #[inline(always)]
    fn first(&self, hash: u64) -> Slot {
        self.slots[hash as usize & (self.slots.len() - 1)]
    }

    /// The group of a key: `same(g)` says whether group `g` has it. `None`: the key is the new
    /// group `len() - 1`, and the caller keeps it.
    #[inline(always)]
    pub(super) fn find_or_insert(
        &mut self,
        hash: u64,
        mut same: impl FnMut(GroupId) -> bool,
    ) -> Option<GroupId> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.is_empty() {
                self.insert(at, hash);
                return None;
            }
            if slot.has_tag(hash) && same(slot.group()) {
                return Some(slot.group());
            }
            at = (at + 1) & mask;
            self.collisions += 1;
        }
    }

    /// The group of a key; `None` if it has none.
    pub(super) fn find_one(
        &self,
        hash: u64,
        mut same: impl FnMut(GroupId) -> bool,
    ) -> Option<GroupId> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.is_empty() {
                return None;
            }
            if slot.has_tag(hash) && same(slot.group()) {
                return Some(slot.group());
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn insert(&mut self, at: usize, hash: u64) {
        self.slots[at] = Slot::new(hash, self.hashes.len());
        self.hashes.push(hash);
        let per_group = if self.slots.len() < SLOTS_MANY { 4 } else { 2 };
        if let Some(slots) = grown(self.slots.len(), self.hashes.len(), per_group) {
            self.grow(slots);
        }
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, Slot::EMPTY);
        let mask = slots - 1;
        for (group, &hash) in self.hashes.iter().enumerate() {
            let mut at = hash as usize & mask;
            while !self.slots[at].is_empty() {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot::new(hash, group);
        }
    }

    /// Makes room for so many groups in all.
    pub(super) fn expect(&mut self, groups: usize) {
        let slots = (groups * 2).next_power_of_two();
        if slots > self.slots.len() {
            self.grow(slots);
        }
        self.hashes.reserve(groups);
    }

    /// True if lookups miss the core's own cache.
    pub(super) fn is_far(&self) -> bool {
        self.slots.len() * 8 > NEAR_BYTES
    }

    /// The first pass over up to `AT_ONCE` rows: gives each the group that its first slot holds, and says of which that was
    /// not it. `same(row, key)` compares with a group's key.
    #[inline(always)]
    pub(super) fn find<K>(
        &self,
        keys: &[K],
        hashes: &[u64],
        out: &mut [GroupId],
        same: impl Fn(usize, &K) -> bool,
    ) -> Others {
        let mut others = Others::none();
        if self.is_far() {
            for &hash in hashes {
                prefetch(&self.slots, hash as usize & (self.slots.len() - 1));
            }
            for &hash in hashes {
                prefetch(keys, self.first(hash).group().0 as usize);
            }
        }
        for (row, (&hash, group)) in hashes.iter().zip(out).enumerate() {
            let slot = self.first(hash);
            *group = slot.group();
            // What no group has is beyond them all.
            let is_known = match keys.get(group.0 as usize) {
                Some(key) => slot.has_tag(hash) & same(row, key),
                None => false,
            };
            others.add(row, !is_known);
        }
        others
    }

    /// The group in the slot that a hash looks at first, if it has the tag and `same` says that its key is the one.
    #[inline(always)]
    pub(super) fn held_first<K>(
        &self,
        hash: u64,
        keys: &[K],
        same: impl Fn(&K) -> bool,
    ) -> Option<GroupId> {
        let slot = self.first(hash);
        let group = slot.group();
        (slot.has_tag(hash) && same(&keys[group.0 as usize])).then_some(group)
    }

    /// Asks for what rows to come will read: their slots, and behind those their keys.
    #[inline(always)]
    pub(super) fn fetch_ahead<K>(&self, hashes: &[u64], row: usize, keys: &[K]) {
        if let Some(&hash) = hashes.get(row + 2 * AHEAD) {
            prefetch(&self.slots, hash as usize & (self.slots.len() - 1));
        }
        if let Some(&hash) = hashes.get(row + AHEAD) {
            prefetch(keys, self.first(hash).group().0 as usize);
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        (self.slots.capacity() + self.hashes.capacity()) * 8
    }

    /// Bytes of the groups that are there: two slots and a hash each.
    pub(super) fn used_bytes(&self) -> usize {
        self.hashes.len() * 24
    }

    /// Slots looked at in vain so far.
    pub(super) fn collisions(&self) -> u64 {
        self.collisions
    }

    /// The hashes in group order; no group is left, the memory stays.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        if self.is_far() {
            self.slots.truncate(SLOTS_MIN);
        }
        self.slots.fill(Slot::EMPTY);
        let capacity = self.hashes.capacity();
        std::mem::replace(&mut self.hashes, Vec::with_capacity(capacity))
    }
}
