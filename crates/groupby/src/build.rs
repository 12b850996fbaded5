//! Phase 1: one per worker, nothing shared. Rows become groups of a hot table or, where looking
//! up does not pay, tuples of a partition.
//!
//! In: batches. Out: `Built`, blocks of tuples sorted by partition.
//! Invariant: every row is in exactly one place: a state of the table, a waiting row or a block, in memory or on disk.
//! Not here: what to do when the table is full (`policy`), threads, DataFusion.

mod key_index;
mod all_states;
mod staging;
mod overflow;
mod repeats;
mod pre_aggregation;

use std::borrow::Cow;
use std::sync::Arc;

use crate::addressed::AddressedGroups;
use crate::batch::Batch;
use crate::error::Result;
use crate::first_groups::{Candidates, Chosen, FirstGroups};
use crate::keys::{DistinctKeys, GroupId};
use crate::partition::Unsorted;
use crate::policy::{self, Bounds, Decision, Seen};
use crate::runtime::counters::Stopwatch;
use crate::runtime::{Counters, Grant, allocated};
use crate::spec::Spec;
use crate::spill::{Blocks, Spill, Stored};
use crate::states::Groups;
use all_states::AllStates;
use key_index::KeyIndex;
use overflow::{Covered, Overflow};
use staging::Staging;

/// Rows between two looks of the policy at hit rates.
const WINDOW_ROWS: u64 = 16 << 10;

/// What a worker holds in each phase, whatever the budget says: a table and a batch, a task's table and a page.
pub const WORKING_BYTES: usize = 8 << 20;

/// Groups of more bytes than this are large.
const LARGE_GROUP_BYTES: usize = 1 << 10;
/// Rows that are looked up at once at least.
const ROWS_AT_ONCE_MIN: usize = 256;

/// A merge needs so many times the bytes of the tuples that it combines: their table, its states, the results.
pub(crate) const MERGE_FACTOR: usize = 3;

/// What one worker hands to the merge.
pub struct Built {
    pub(crate) blocks: Blocks,
    /// All groups by address, where there is no block.
    pub(crate) addressed: Option<AddressedGroups>,
    /// What the worker counted.
    pub counters: Counters,
    /// Covers the blocks until they are dropped, and until the merge is cut what it needs beside them.
    pub(crate) grant: Grant,
}

impl Built {
    /// Tuples sorted by partition.
    pub fn blocks(&self) -> impl Iterator<Item = &Stored> {
        self.blocks.stored.iter()
    }

    /// Number of tuples, in blocks or by address.
    pub fn tuples(&self) -> usize {
        let addressed = self.addressed.as_ref().map_or(0, AddressedGroups::len);
        addressed + self.blocks().map(Stored::len).sum::<usize>()
    }
}

/// One worker's build phase.
pub struct Build {
    spec: Arc<Spec>,
    index: KeyIndex,
    states: AllStates,
    staging: Staging,
    overflow: Overflow,
    /// Rows that go to partitions without a lookup, before keys are looked up again.
    bypass_rows: usize,
    seen: Seen,
    /// False once a table has grown beyond the cache in vain.
    may_grow: bool,
    /// Batches in a row that were to be pre-aggregated by code and had to be looked at row by row.
    not_pre_aggregated: usize,
    counters: Counters,
    groups: Vec<GroupId>,
    /// Groups of a LIMIT, and what this worker has seen of them.
    first: Option<(Arc<FirstGroups>, Candidates)>,
}

impl Build {
    /// An empty build; without `spill` it ends where memory does.
    pub fn new(spec: Arc<Spec>, grant: Grant, spill: Option<Arc<Spill>>) -> Result<Self> {
        let mut counters = Counters::default();
        counters.uses(spec.keys.kind());
        Ok(Self {
            index: KeyIndex::new(Arc::clone(&spec), grant.free()),
            states: AllStates::new(Arc::clone(&spec))?,
            staging: Staging::new(Arc::clone(&spec)),
            overflow: Overflow::new(Arc::clone(&spec), grant, spill),
            bypass_rows: 0,
            seen: Seen::default(),
            may_grow: true,
            not_pre_aggregated: 0,
            counters,
            groups: Vec::new(),
            first: None,
            spec,
        })
    }

    /// The same, of which only groups that are chosen are wanted once some are.
    ///
    /// # Panics
    /// Without aggregates: equal rows are not told apart then, and whoever has enough groups needs no further input.
    #[must_use]
    pub fn choosing(self, first: Arc<FirstGroups>) -> Self {
        assert!(
            !self.spec.is_bare(),
            "groups without aggregates are complete"
        );
        Self {
            first: Some((first, Candidates::default())),
            ..self
        }
    }

    /// What this worker counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Groups in the table now; all of them are different.
    pub fn groups(&self) -> usize {
        self.index.len()
    }

    /// Takes a batch in.
    pub fn push(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.counters.rows += batch.selected_rows() as u64;
        self.counters.batches += 1;
        let batch = self.wanted(batch)?;
        if batch.rows == 0 {
            return Ok(());
        }
        let batch = batch.as_ref();
        let at_once = self.rows_at_once();
        if batch.rows <= at_once {
            return self.push_rows(batch);
        }
        for start in (0..batch.rows).step_by(at_once) {
            let rows = start..(start + at_once).min(batch.rows);
            self.push_rows(&batch.slice(&rows))?;
        }
        Ok(())
    }

    /// The rows of groups that are wanted; before some are chosen, all are, and this worker may choose.
    fn wanted<'a>(&mut self, batch: &'a Batch) -> Result<Cow<'a, Batch>> {
        // The table may have been emptied, and rows may go by it.
        let groups = self.groups() + self.counters.built_groups as usize;
        let Some((first, candidates)) = &mut self.first else {
            return Ok(Cow::Borrowed(batch));
        };
        // An array's groups are few.
        let looks = !self.index.is_addressed() && candidates.looks(groups, first);
        if looks && first.chosen().is_none() {
            let (_, hashes) = self.index.encode(batch.kept()?.as_ref())?;
            candidates.see(&hashes, first);
        }
        if let Some(chosen) = first.chosen() {
            let mut stopwatch = Stopwatch::start();
            let kept = of_chosen(&mut self.index, chosen, batch)?;
            stopwatch.lap(&mut self.counters.hash_ns);
            self.counters.not_chosen_rows += (batch.selected_rows() - kept.rows) as u64;
            return Ok(Cow::Owned(kept));
        }
        Ok(Cow::Borrowed(batch))
    }

    /// Rows after which memory is asked for: those of a batch, fewer where it is short and groups are large. Any row may
    /// double its group: sketches of groups that are equally frequent all grow at once.
    fn rows_at_once(&self) -> usize {
        if self.spec.is_keyless() || self.groups() == 0 {
            return usize::MAX;
        }
        let bytes = self.states.group_bytes();
        let of_group = bytes / self.groups();
        let all_bytes = bytes.saturating_mul(self.spec.sizes.workers);
        match of_group >= LARGE_GROUP_BYTES && self.overflow.free() < all_bytes {
            true => (WORKING_BYTES / of_group).max(ROWS_AT_ONCE_MIN),
            false => usize::MAX,
        }
    }

    fn push_rows(&mut self, batch: &Batch) -> Result<()> {
        match self.push_pre_aggregated(batch)? {
            None => self.decide(batch)?,
            Some(left) => self.push_one_by_one(&left)?,
        }
        let beside = self.table_bytes();
        let (staging, counters) = (&mut self.staging, &mut self.counters);
        self.overflow.combine_repeats(beside, staging, counters)?;
        self.hold(0)
    }

    fn push_one_by_one(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if self.spec.is_keyless() {
            return self.push_keyless(batch);
        }
        if self.bypass_rows > 0 {
            self.push_bypassed(batch)?;
            self.pass(batch);
            return Ok(());
        }
        self.push_looked_up(batch)?;
        self.decide(batch)
    }

    /// Looks where keys go by, and whether it is time to look them up again.
    fn pass(&mut self, batch: &Batch) {
        self.index.follow(&batch.keys, &mut self.counters);
        self.bypass_rows = self.bypass_rows.saturating_sub(batch.rows);
        if self.bypass_rows == 0 {
            self.index.resume(self.counters.rows);
        }
    }

    /// Covers what is held and `more`; what memory has no room for goes to disk.
    fn hold(&mut self, more: usize) -> Result<()> {
        let covered = self.cover(more);
        covered.map_err(|error| self.states.name_aggregate(error, self.index.bytes()))
    }

    fn cover(&mut self, more: usize) -> Result<()> {
        let beside = self.table_bytes();
        let (staging, counters) = (&mut self.staging, &mut self.counters);
        match self.overflow.cover(beside, more, staging, counters)? {
            Covered::All => Ok(()),
            Covered::Blocks => self.write_rest(),
        }
    }

    /// Everything goes to disk, the table's groups too; the table begins anew.
    fn write_rest(&mut self) -> Result<()> {
        self.flush()?;
        self.staging.sort(&mut self.counters)?;
        let (staging, counters) = (&mut self.staging, &mut self.counters);
        self.overflow.write(staging, counters)?;
        self.begin_anew()?;
        self.overflow.cover_rest(self.bytes())
    }

    /// Gives back the room that table and states keep when they are emptied.
    fn begin_anew(&mut self) -> Result<()> {
        let free = self.overflow.free();
        self.index.begin_anew(free, &mut self.counters);
        self.states.begin_anew()
    }

    /// No GROUP BY: one group, and kernels over whole columns.
    fn push_keyless(&mut self, batch: &Batch) -> Result<()> {
        let mut stopwatch = Stopwatch::start();
        self.groups.clear();
        self.index.assign_keyless(batch.rows, &mut self.groups)?;
        let groups = Groups::One(batch.rows);
        self.states.update(batch, groups, 0, 1)?;
        stopwatch.lap(&mut self.counters.update_ns);
        Ok(())
    }

    fn push_looked_up(&mut self, batch: &Batch) -> Result<()> {
        let mut before = self.groups();
        let mut stopwatch = Stopwatch::start();
        let mut rows = batch.rows;
        self.groups.clear();
        if !self.index.address(&batch.keys, &mut self.groups) {
            self.leave_array()?;
            before = self.groups();
            let (groups, counters) = (&mut self.groups, &mut self.counters);
            rows = self
                .index
                .look_up(batch, groups, &mut stopwatch, counters)?;
        }
        stopwatch.lap(&mut self.counters.assign_ns);
        let total = self.groups();
        let groups = Groups::Ids(&self.groups);
        self.states.update(batch, groups, before, total)?;
        stopwatch.lap(&mut self.counters.update_ns);
        self.see(rows as u64, (total - before) as u64);
        Ok(())
    }

    fn see(&mut self, rows: u64, new_groups: u64) {
        if self.seen.window_rows >= WINDOW_ROWS {
            (self.seen.window_rows, self.seen.window_groups) = (0, 0);
        }
        self.seen.rows += rows;
        self.seen.groups += new_groups;
        self.seen.window_rows += rows;
        self.seen.window_groups += new_groups;
    }

    /// The range outgrew the array: known groups keep their ids in the hashed table, or become a block where it has no
    /// room for them.
    fn leave_array(&mut self) -> Result<()> {
        if !self.index.is_addressed() {
            return Ok(());
        }
        if self.used_bytes() > self.spec.sizes.hot_bytes {
            self.flush()?;
        }
        self.counters.uses(self.spec.keys.hashed_kind());
        self.index.leave_array()
    }

    fn decide(&mut self, batch: &Batch) -> Result<()> {
        if self.spec.is_keyless() {
            return Ok(());
        }
        self.seen.appended_bytes = self.states.appended_bytes();
        self.seen.bytes = self.used_bytes();
        // The policy asks for it only beyond the cache.
        let is_small = self.seen.bytes <= self.spec.sizes.hot_bytes;
        self.seen.array = match is_small {
            true => None,
            false => self.index.seen_array(self.states.used_bytes()),
        };
        self.seen.all_rows = self.counters.rows;
        let bounds = Bounds {
            hot_bytes: self.spec.sizes.hot_bytes,
            grown_bytes: self.spec.sizes.grown_bytes,
            array_bytes: match self.seen.array {
                Some(_) => self.spec.sizes.array_bytes.min(self.ample_bytes()),
                None => 0,
            },
            rows_assumed: policy::ROWS_ASSUMED / self.spec.sizes.workers as u64,
            may_bypass: self.states.may_bypass(batch),
            may_grow: self.may_grow,
            has_strings: self.spec.keys.has_strings(),
        };
        self.carry_out(policy::decide(self.seen, bounds))
    }

    fn carry_out(&mut self, decision: Decision) -> Result<()> {
        let grows = !matches!(decision, Decision::Flush | Decision::Bypass);
        if self.seen.expected_groups.is_some() && !grows {
            self.may_grow = false;
        }
        match decision {
            Decision::Keep => {}
            Decision::Grow { expected_groups } => self.seen.expected_groups = Some(expected_groups),
            Decision::Shed => self.flush()?,
            Decision::Flush => {
                self.flush()?;
                self.index.give_up_large(&mut self.counters);
            }
            Decision::Bypass => {
                self.flush()?;
                self.index.give_up_large(&mut self.counters);
                self.index.release();
                self.counters.uses("partitions");
                self.bypass_rows = self.spec.sizes.bypass_rows;
            }
        }
        Ok(())
    }

    /// Half of this worker's share of memory, more or less.
    fn ample_bytes(&self) -> usize {
        self.overflow.free().saturating_add(self.bytes()) / self.spec.sizes.workers / 2
    }

    /// Rows as tuples of their partitions.
    fn push_bypassed(&mut self, batch: &Batch) -> Result<()> {
        let mut stopwatch = Stopwatch::start();
        let (keys, hashes) = self.index.encode(batch)?;
        stopwatch.lap(&mut self.counters.hash_ns);
        let tuples = Unsorted {
            keys,
            hashes,
            aggregates: self.states.bypassed(batch)?,
            distinct: false,
        };
        self.counters.bypassed_rows += batch.rows as u64;
        stopwatch.lap(&mut self.counters.partition_ns);
        self.staging
            .push_rows(tuples, batch.are_partial, &mut self.counters)
    }

    /// Empties the table into a block.
    fn flush(&mut self) -> Result<()> {
        let total = self.groups();
        if total == 0 {
            return Ok(());
        }
        let DistinctKeys { keys, hashes } = self.index.drain()?;
        let mut stopwatch = Stopwatch::start();
        let tuples = Unsorted {
            keys,
            hashes,
            aggregates: self.states.drain(total)?,
            distinct: true,
        };
        stopwatch.lap(&mut self.counters.partition_ns);
        self.seen = Seen::default();
        self.counters.flushes += 1;
        self.counters.built_groups += total as u64;
        self.staging.push_groups(tuples, &mut self.counters)
    }

    /// All input is seen: the groups of an array stay in the order of its addresses, all else becomes blocks.
    pub fn finish(mut self) -> Result<Built> {
        self.overflow.take_rest(&mut self.staging)?;
        let mut addressed = match self.may_stay_addressed() {
            true => self.take_addressed()?,
            false => None,
        };
        self.flush()?;
        self.staging.sort(&mut self.counters)?;
        self.begin_anew()?;
        self.counters.probes += self.counters.looked_up;
        if let Some(groups) = addressed.take_if(|groups| !self.has_room_for(groups)) {
            let tuples = groups.tuples(&self.spec, 0..groups.len())?;
            self.staging.push_groups(tuples, &mut self.counters)?;
            self.staging.sort(&mut self.counters)?;
        }
        if addressed.is_none() {
            self.leave_room()?;
        }
        let (blocks, grant) = self.overflow.finish(self.staging);
        Ok(Built {
            blocks: Blocks::new(blocks, self.spec.sizes.partitions),
            addressed,
            counters: self.counters,
            grant,
        })
    }

    /// Groups stay addressed where they are all that the worker has; whether the others' are, too, is seen when all are there
    /// (`Merge::new`).
    fn may_stay_addressed(&self) -> bool {
        self.index.has_dense_addresses()
            && self.groups() > 0
            && self.staging.is_empty()
            && !self.overflow.is_on_disk()
    }

    fn take_addressed(&mut self) -> Result<Option<AddressedGroups>> {
        let mut stopwatch = Stopwatch::start();
        let total = self.groups();
        let Some(groups) = self.index.take_addresses(&mut self.counters) else {
            return Ok(None);
        };
        let states = self.states.drain(total)?;
        let addressed = AddressedGroups::new(groups, states)?;
        stopwatch.lap(&mut self.counters.partition_ns);
        self.counters.built_groups += total as u64;
        Ok(Some(addressed))
    }

    /// Whether memory has room for these, and for what the merge needs beside them.
    fn has_room_for(&mut self, groups: &AddressedGroups) -> bool {
        let held = self.table_bytes() + allocated(groups.bytes());
        let more = self.beside_merge(groups.bytes());
        self.overflow.has_room(held, more)
    }

    /// What a merge of so many bytes of each worker needs beside them.
    fn beside_merge(&self, bytes: usize) -> usize {
        bytes / self.spec.sizes.partitions * MERGE_FACTOR * self.spec.sizes.workers
    }

    /// Blocks stay in memory only where the merge will have room beside them, which the grant covers until it begins.
    fn leave_room(&mut self) -> Result<()> {
        self.hold(self.beside_merge(self.staging.block_bytes()))?;
        if self.overflow.is_on_disk() {
            let (staging, counters) = (&mut self.staging, &mut self.counters);
            self.overflow.write(staging, counters)?;
        }
        Ok(())
    }

    fn table_bytes(&self) -> usize {
        self.index.bytes() + self.states.bytes()
    }

    /// What lookups and updates touch.
    fn used_bytes(&self) -> usize {
        self.index.used_bytes() + self.states.used_bytes()
    }

    fn bytes(&self) -> usize {
        self.table_bytes() + self.staging.bytes()
    }
}

/// The rows of chosen groups.
fn of_chosen(index: &mut KeyIndex, chosen: &Chosen, batch: &Batch) -> Result<Batch> {
    let batch = batch.kept()?;
    let (_, hashes) = index.encode(&batch)?;
    let rows = chosen.rows(&hashes);
    Ok(batch.into_owned().selecting(rows).kept()?.into_owned())
}
