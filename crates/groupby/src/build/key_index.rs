//! Key rows -> groups of one worker: an array that keys address, as long as they allow it, else a hashed table.
//!
//! In: key columns. Out: a group per row; the distinct keys when it is emptied.
//! Invariant: all groups are in one of the two, and keep their numbers where they move from the array to the table.
//! Not here: states; when the index is emptied or rows go by it (`build`, `policy`).

use std::sync::Arc;

use arrow::array::ArrayRef;

use crate::batch::Batch;
use crate::error::Result;
use crate::keys::direct::{ByAddress, is_one_range};
use crate::keys::run_length;
use crate::keys::{CodeMaps, DirectTable, DistinctKeys, EncodedKeys, GroupId, KeyTable};
use crate::policy;
use crate::runtime::Counters;
use crate::runtime::counters::Stopwatch;
use crate::spec::Spec;

/// Bytes of an array's slot and of its group beside the states.
const ARRAY_GROUP_BYTES: usize = 8;
/// An array may take that part of a worker's share of memory.
const ARRAY_SHARE: usize = 8;

/// The array and what it is for now.
enum ArrayUse {
    /// Keys address it.
    Addressed(DirectTable),
    /// It is empty, and knows the range of the keys so far: they may address it again.
    Released(DirectTable),
    /// Keys cannot address one, or it was never worth it.
    Absent,
}

/// Numbers the keys of one worker.
pub(super) struct KeyIndex {
    spec: Arc<Spec>,
    array: ArrayUse,
    table: Box<dyn KeyTable>,
    code_maps: CodeMaps,
    hashes: Vec<u64>,
    /// Where runs of equal keys begin in the current batch, and the group of each.
    starts: Vec<u32>,
    runs: Vec<GroupId>,
}

impl KeyIndex {
    /// Without groups; `free` bytes of memory are nobody's.
    pub(super) fn new(spec: Arc<Spec>, free: usize) -> Self {
        let array = match spec.keys.direct() {
            true => ArrayUse::Addressed(new_array(&spec, free)),
            false => ArrayUse::Absent,
        };
        Self {
            array,
            table: spec.keys.table(),
            code_maps: CodeMaps::default(),
            hashes: Vec::new(),
            starts: Vec::new(),
            runs: Vec::new(),
            spec,
        }
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        match &self.array {
            ArrayUse::Addressed(array) => array.len(),
            ArrayUse::Released(_) | ArrayUse::Absent => self.table.len(),
        }
    }

    /// Bytes held, its share of the keys' shared dictionaries among them.
    pub(super) fn bytes(&self) -> usize {
        let array = match &self.array {
            ArrayUse::Addressed(array) | ArrayUse::Released(array) => array.bytes(),
            ArrayUse::Absent => 0,
        };
        self.spec.shared_bytes() + array + self.table.bytes()
    }

    /// Bytes that lookups touch.
    pub(super) fn used_bytes(&self) -> usize {
        match &self.array {
            ArrayUse::Addressed(array) => array.used_bytes(),
            ArrayUse::Released(_) | ArrayUse::Absent => self.table.used_bytes(),
        }
    }

    /// True while keys address the array.
    pub(super) fn is_addressed(&self) -> bool {
        matches!(self.array, ArrayUse::Addressed(_))
    }

    /// The array, as the policy sees it, while keys address it; states have so many bytes.
    pub(super) fn seen_array(&self, state_bytes: usize) -> Option<policy::Array> {
        let ArrayUse::Addressed(array) = &self.array else {
            return None;
        };
        let slots = array.reached_slots();
        let of_group = ARRAY_GROUP_BYTES + state_bytes / array.len().max(1);
        Some(policy::Array {
            slots,
            full_bytes: slots * of_group,
        })
    }

    /// The one group without GROUP BY.
    pub(super) fn assign_keyless(&mut self, rows: usize, groups: &mut Vec<GroupId>) -> Result<()> {
        let keys = EncodedKeys::None(rows);
        self.table.assign(keys.rows(0..1), &[0], groups)
    }

    /// Appends the groups of keys that address the array; false, and nothing was appended, if they do not.
    pub(super) fn address(&mut self, keys: &[ArrayRef], groups: &mut Vec<GroupId>) -> bool {
        match &mut self.array {
            ArrayUse::Addressed(array) => array.assign(keys, groups).is_ok(),
            ArrayUse::Released(_) | ArrayUse::Absent => false,
        }
    }

    /// Groups of a batch that are looked up by hash. How many lookups the policy counts: keys without aggregates and
    /// strings are one per run.
    pub(super) fn look_up(
        &mut self,
        batch: &Batch,
        groups: &mut Vec<GroupId>,
        stopwatch: &mut Stopwatch,
        counters: &mut Counters,
    ) -> Result<usize> {
        let (hashes, starts) = (&mut self.hashes, &mut self.starts);
        let layout = &self.spec.keys;
        let columns = layout.translated(&batch.keys, &mut self.code_maps)?;
        let keys = layout.encode_runs(&columns, batch.rows, hashes, starts)?;
        stopwatch.lap(&mut counters.hash_ns);
        let is_bare = self.spec.is_bare();
        if starts.is_empty() {
            self.table.assign(keys.all(), hashes, groups)?;
        } else {
            self.runs.clear();
            self.table.assign(keys.all(), hashes, &mut self.runs)?;
            if !is_bare {
                run_length::expand(&self.runs, starts, batch.rows, groups);
            }
        }
        counters.looked_up += hashes.len() as u64;
        Ok(match is_bare && !layout.has_strings() {
            true => hashes.len(),
            false => batch.rows,
        })
    }

    /// Keys of a batch and their hashes without a lookup; of runs one each where nothing else is asked of their rows.
    pub(super) fn encode(&mut self, batch: &Batch) -> Result<(EncodedKeys, Vec<u64>)> {
        let mut hashes = Vec::with_capacity(batch.rows);
        let layout = &self.spec.keys;
        let columns = layout.translated(&batch.keys, &mut self.code_maps)?;
        // Strings wait with the whole buffers of their batch, of which few runs would gather many.
        let keys = match self.spec.is_bare() && !layout.has_strings() {
            true => layout.encode_runs(&columns, batch.rows, &mut hashes, &mut self.starts)?,
            false => layout.encode(&columns, batch.rows, &mut hashes)?,
        };
        Ok((keys, hashes))
    }

    /// Moves the groups of the array to the hashed table, under their numbers: the keys' range outgrew the array.
    pub(super) fn leave_array(&mut self) -> Result<()> {
        let ArrayUse::Addressed(array) = &mut self.array else {
            return Ok(());
        };
        if !array.is_empty() {
            let (groups, columns) = (array.len(), array.drain()?);
            let keys = self.spec.keys.encode(&columns, groups, &mut self.hashes)?;
            let mut ids = Vec::with_capacity(groups);
            self.table.assign(keys.all(), &self.hashes, &mut ids)?;
            debug_assert!(
                ids.iter().enumerate().all(|(at, id)| id.0 as usize == at),
                "distinct keys keep their order"
            );
        }
        self.release();
        Ok(())
    }

    /// Keys address the array no longer; it has no groups.
    pub(super) fn release(&mut self) {
        self.array = match std::mem::replace(&mut self.array, ArrayUse::Absent) {
            ArrayUse::Addressed(mut array) | ArrayUse::Released(mut array) => {
                array.release();
                ArrayUse::Released(array)
            }
            ArrayUse::Absent => ArrayUse::Absent,
        };
    }

    /// Gives an array up for good, if it is addressed and large: one that was emptied in spite of the many rows before it is
    /// never worth it.
    pub(super) fn give_up_large(&mut self, counters: &mut Counters) {
        let few = self.spec.sizes.direct_slots;
        if matches!(&self.array, ArrayUse::Addressed(array) if array.slots() > few) {
            self.drop_array(counters);
        }
    }

    /// Widens the range of the array by keys that go by it.
    pub(super) fn follow(&mut self, keys: &[ArrayRef], counters: &mut Counters) {
        if let ArrayUse::Released(array) = &mut self.array
            && array.follow(keys).is_err()
        {
            self.drop_array(counters);
        }
    }

    /// Decides how keys are looked up from now on, after so many rows: a large array is worth it only after many.
    pub(super) fn resume(&mut self, rows: u64) {
        let few = self.spec.sizes.direct_slots;
        self.array = match std::mem::replace(&mut self.array, ArrayUse::Absent) {
            ArrayUse::Released(array) if array.slots() <= few => ArrayUse::Addressed(array),
            ArrayUse::Released(mut array) if policy::had_many(rows, array.reached_slots()) => {
                array.allow_all();
                ArrayUse::Addressed(array)
            }
            other => other,
        };
    }

    fn drop_array(&mut self, counters: &mut Counters) {
        let array = std::mem::replace(&mut self.array, ArrayUse::Absent);
        if let ArrayUse::Addressed(array) | ArrayUse::Released(array) = array {
            counters.widened += array.widened() as u64;
        }
    }

    /// The keys of all groups in their order; none is left.
    pub(super) fn drain(&mut self) -> Result<DistinctKeys> {
        let ArrayUse::Addressed(array) = &mut self.array else {
            return Ok(self.table.drain());
        };
        let groups = array.len();
        let columns = array.drain()?;
        let mut hashes = Vec::with_capacity(groups);
        Ok(DistinctKeys {
            keys: self.spec.keys.encode(&columns, groups, &mut hashes)?,
            hashes,
        })
    }

    /// True if all groups are in an array, and can be merged with those of other arrays by address.
    pub(super) fn has_dense_addresses(&self) -> bool {
        matches!(&self.array, ArrayUse::Addressed(array) if array.has_dense_addresses())
    }

    /// The groups of the array by address, at the end: it is used no more.
    pub(super) fn take_addresses(&mut self, counters: &mut Counters) -> Option<ByAddress> {
        match std::mem::replace(&mut self.array, ArrayUse::Absent) {
            ArrayUse::Addressed(mut array) => {
                counters.widened += array.widened() as u64;
                Some(array.take_addresses())
            }
            ArrayUse::Released(_) | ArrayUse::Absent => None,
        }
    }

    /// Gives back the room that an emptied index keeps.
    pub(super) fn begin_anew(&mut self, free: usize, counters: &mut Counters) {
        counters.probes += self.table.collisions();
        self.table = self.spec.keys.table();
        if let ArrayUse::Addressed(array) | ArrayUse::Released(array) = &mut self.array {
            counters.widened += array.widened() as u64;
            *array = new_array(&self.spec, free);
        }
    }
}

/// An array for small keys. That of one column of integers may become large where its share of memory allows it.
fn new_array(spec: &Spec, free: usize) -> DirectTable {
    let sizes = &spec.sizes;
    let ample = free / sizes.workers / ARRAY_SHARE / ARRAY_GROUP_BYTES;
    let most = match is_one_range(spec.keys.types()) {
        true => sizes.direct_range.min(ample).max(sizes.direct_slots),
        false => sizes.direct_slots,
    };
    DirectTable::new(spec.keys.types(), sizes.direct_slots, most)
}
