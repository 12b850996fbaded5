//! The open-addressing core of every hashed key table: tagged slots, linear probing.
//!
//! In: a hash and a test "is group g this key?". Out: a group id, known or new.
//! Invariant: at most half of the slots are taken; a slot holds 32 hash bits and a group id, so
//! that a foreign key is almost never compared and growth never touches a key.
//! Not here: keys. The slot's position comes from the hash's low bits, the tag from its middle,
//! the partition from its top: no bit does two jobs while a table has fewer than 2^24 slots.

use super::GroupId;

const SLOTS_MIN: usize = 64;
/// No group: ids stay below this.
const EMPTY: u64 = u64::MAX;

/// Slots of one table and the hashes of its groups.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<u64>,
    hashes: Vec<u64>,
    probes: u64,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            slots: vec![EMPTY; SLOTS_MIN],
            hashes: Vec::new(),
            probes: 0,
        }
    }
}

/// The 32 hash bits that a slot keeps.
#[inline(always)]
pub fn tag(hash: u64) -> u64 {
    (hash << 8) & 0xffff_ffff_0000_0000
}

impl Slots {
    /// The group of a key: `same(g)` says whether group `g` has it. `None`: the caller adds the
    /// key as the group `len() - 1` that this call has made room for.
    #[inline(always)]
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        mut same: impl FnMut(GroupId) -> bool,
    ) -> Option<GroupId> {
        let mask = self.slots.len() - 1;
        let tag = tag(hash);
        let mut at = hash as usize & mask;
        loop {
            self.probes += 1;
            let slot = self.slots[at];
            if slot == EMPTY {
                self.slots[at] = tag | self.hashes.len() as u64;
                self.hashes.push(hash);
                return None;
            }
            if slot & 0xffff_ffff_0000_0000 == tag {
                let group = GroupId(slot as u32);
                if same(group) {
                    return Some(group);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Makes room for `rows` further groups, so that no insert of a batch has to grow.
    pub fn reserve(&mut self, rows: usize) {
        let wanted = (self.hashes.len() + rows) * 2;
        if wanted > self.slots.len() {
            self.grow(wanted.next_power_of_two());
        }
    }

    fn grow(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        let mask = slots - 1;
        for (group, &hash) in self.hashes.iter().enumerate() {
            let mut at = hash as usize & mask;
            while self.slots[at] != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = tag(hash) | group as u64;
        }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.slots.capacity() + self.hashes.capacity()) * 8
    }

    /// Bytes of the groups that are there: two slots and a hash each.
    pub fn used_bytes(&self) -> usize {
        self.hashes.len() * 24
    }

    /// Slots looked at so far.
    pub fn probes(&self) -> u64 {
        self.probes
    }

    /// The hashes in group order; no group is left, the slots stay allocated.
    pub fn drain(&mut self) -> Vec<u64> {
        self.slots.fill(EMPTY);
        let capacity = self.hashes.capacity();
        std::mem::replace(&mut self.hashes, Vec::with_capacity(capacity))
    }
}
