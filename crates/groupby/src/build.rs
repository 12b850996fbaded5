//! Phase 1: one per worker, nothing shared. Rows become groups of a hot table or, where looking
//! up does not pay, records of a partition.
//!
//! In: batches. Out: `Built`, blocks of records sorted by partition.
//! Invariant: every row is in exactly one place: a state of the table, a waiting row or a block, in memory or on disk.
//! Not here: what to do when the table is full (`policy`), threads, DataFusion.

mod repeats;
mod tallied;

use std::sync::Arc;

use crate::batch::{Arguments, Batch};
use crate::combine::{blame, new_states};
use crate::error::{Error, Result};
use crate::keys::direct::is_one_range;
use crate::keys::runs;
use crate::keys::{DirectTable, DistinctKeys, EncodedKeys, GroupId, KeyTable, Translations};
use crate::partition::{Block, Records, Unsorted};
use crate::policy::{self, Bounds, Decision, Seen};
use crate::runtime::counters::Lap;
use crate::runtime::{Counters, Grant};
use crate::spec::{Sizes, Spec};
use crate::spill::{Blocks, Spill, SpillFile, Stored};
use crate::states::{Bypass, GroupStates, Groups};
use repeats::NextLook;

/// Rows between two looks of the policy at hit rates.
const WINDOW_ROWS: u64 = 16 << 10;

/// What a worker holds in each phase, whatever the budget says: a table and a batch, a task's table and a page.
pub const WORKING_BYTES: usize = 8 << 20;

/// Bytes of an array's slot and of its group beside the states.
const ARRAY_GROUP_BYTES: usize = 8;
/// An array may take that part of a worker's share of memory.
const ARRAY_SHARE: usize = 8;

/// Groups of more bytes than this are large.
const LARGE_GROUP_BYTES: usize = 1 << 10;
/// Rows that are looked up at once at least.
const ROWS_AT_ONCE_MIN: usize = 256;

/// What tables of small groups held waits until it has so many bytes: a block costs the merge a step per task.
/// 10 M user ids, whose tables are emptied 190 times: 190 blocks before, 47 now.
const EMPTIED_BYTES: usize = 4 << 20;

/// Blocks of less are not worth writing because another worker needs memory.
const CALLED_BYTES: usize = 4 << 20;

/// A merge needs so many times the bytes of the records that it combines: their table, its states, the results.
pub(crate) const MERGE_FACTOR: usize = 3;

/// What one worker hands to the merge.
pub struct Built {
    pub(crate) blocks: Blocks,
    /// What the worker counted.
    pub counters: Counters,
    /// Covers the blocks until they are dropped, and until the merge is cut what it needs beside them.
    pub(crate) grant: Grant,
}

impl Built {
    /// Records sorted by partition.
    pub fn blocks(&self) -> impl Iterator<Item = &Stored> {
        self.blocks.stored.iter()
    }
}

/// Where the next rows go.
enum Route {
    /// Addressed by key.
    Direct,
    /// Looked up by hash.
    Hashed,
    /// To partitions without a lookup, for this many rows more.
    Bypass { rows_left: usize },
}

/// Records that become a block together.
#[derive(Default)]
struct Waiting {
    parts: Vec<Unsorted>,
    /// True of rows that came as partial states: a block has one kind.
    are_partial: bool,
    rows: usize,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, records: Unsorted) {
        self.rows += records.hashes.len();
        self.bytes += records.bytes();
        self.parts.push(records);
    }
}

/// One worker's build phase.
pub struct Build {
    spec: Arc<Spec>,
    route: Route,
    /// Where keys may address an array. While rows go by it is empty, and follows their range.
    array: Option<DirectTable>,
    table: Box<dyn KeyTable>,
    states: Vec<Box<dyn GroupStates>>,
    /// Groups that the states of each aggregate know of: all but for those whose batches were not for it.
    known: Vec<usize>,
    bypass: Option<Vec<Bypass>>,
    /// Rows that skipped the table, and what small tables held: each kind becomes a block once it is large enough.
    waiting: Waiting,
    emptied: Waiting,
    blocks: Vec<Block>,
    blocks_bytes: usize,
    spilled: Vec<Stored>,
    /// Where blocks go that memory does not hold.
    file: Option<SpillFile>,
    /// How many calls for memory this worker has answered.
    answered: usize,
    next_look: NextLook,
    /// False once blocks of two workers had little in common.
    may_hand: bool,
    seen: Seen,
    /// False once a table has grown beyond the cache in vain.
    may_grow: bool,
    /// Batches in a row that were to be added up by code and had to be looked at row by row.
    not_tallied: usize,
    grant: Grant,
    counters: Counters,
    groups: Vec<GroupId>,
    hashes: Vec<u64>,
    /// Where runs of equal keys begin in the current batch, and the group of each.
    starts: Vec<u32>,
    runs: Vec<GroupId>,
    translations: Translations,
}

impl Build {
    /// An empty build; without `spill` it ends where memory does.
    pub fn new(spec: Arc<Spec>, grant: Grant, spill: Option<Arc<Spill>>) -> Result<Self> {
        let states = new_states(&spec)?;
        let bypass: Vec<_> = spec.aggregates.iter().map(|a| a.bypass()).collect();
        let array = spec.keys.direct().then(|| new_array(&spec, &grant));
        let mut counters = Counters::default();
        counters.uses(spec.keys.kind());
        let keyless = spec.keys.types().is_empty();
        Ok(Self {
            route: match array {
                Some(_) => Route::Direct,
                None => Route::Hashed,
            },
            array,
            table: spec.keys.table(),
            known: vec![0; states.len()],
            states,
            bypass: (!keyless && !bypass.contains(&Bypass::Never)).then_some(bypass),
            waiting: Waiting::default(),
            emptied: Waiting::default(),
            blocks: Vec::new(),
            blocks_bytes: 0,
            spilled: Vec::new(),
            answered: spill.as_ref().map_or(0, |spill| spill.calls()),
            next_look: NextLook::first(&spec.sizes),
            may_hand: true,
            file: spill.map(SpillFile::new),
            seen: Seen::default(),
            may_grow: true,
            not_tallied: 0,
            grant,
            counters,
            groups: Vec::new(),
            hashes: Vec::new(),
            starts: Vec::new(),
            runs: Vec::new(),
            translations: Translations::default(),
            spec,
        })
    }

    /// What this worker counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Groups in the table now; all of them are different.
    pub fn groups(&self) -> usize {
        self.len()
    }

    /// Takes a batch in.
    pub fn push(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.counters.rows += batch.wanted_rows() as u64;
        self.counters.batches += 1;
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

    /// Rows after which memory is asked for: those of a batch, fewer where it is short and groups are large, since any
    /// row may double its group (sketches of groups that are equally frequent all grow at once).
    fn rows_at_once(&self) -> usize {
        if self.spec.keys.types().is_empty() || self.len() == 0 {
            return usize::MAX;
        }
        let states = self.states.iter();
        let bytes = states.map(|states| states.bytes().saturating_sub(states.appended_bytes()));
        let bytes: usize = bytes.sum();
        let of_group = bytes / self.len();
        let is_short = || self.grant.free() < bytes.saturating_mul(self.spec.sizes.workers);
        match of_group >= LARGE_GROUP_BYTES && is_short() {
            true => (WORKING_BYTES / of_group).max(ROWS_AT_ONCE_MIN),
            false => usize::MAX,
        }
    }

    fn push_rows(&mut self, batch: &Batch) -> Result<()> {
        match self.push_tallied(batch)? {
            None => self.decide(batch)?,
            Some(left) => self.push_one_by_one(&left)?,
        }
        self.combine_repeats()?;
        self.hold(0)
    }

    fn push_one_by_one(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if self.spec.keys.types().is_empty() {
            return self.push_keyless(batch);
        }
        if let Route::Bypass { .. } = self.route {
            self.push_bypassed(batch)?;
            self.pass(batch);
            return Ok(());
        }
        self.push_looked_up(batch)?;
        self.decide(batch)
    }

    /// Looks where keys go by, and whether it is time to look them up again.
    fn pass(&mut self, batch: &Batch) {
        let Route::Bypass { rows_left } = self.route else {
            return;
        };
        let array = self.array.as_mut();
        if array.is_some_and(|array| array.follow(&batch.keys).is_err()) {
            self.drop_array();
        }
        self.route = match rows_left.saturating_sub(batch.rows) {
            0 => self.looked_up(),
            rows_left => Route::Bypass { rows_left },
        };
    }

    /// How keys are looked up from now on: a large array is worth it only after many rows.
    fn looked_up(&mut self) -> Route {
        let (rows, few) = (self.counters.rows, self.spec.sizes.direct_slots);
        match &mut self.array {
            Some(array) if array.slots() <= few => Route::Direct,
            Some(array) if policy::had_many(rows, array.reached_slots()) => {
                array.allow_all();
                Route::Direct
            }
            _ => Route::Hashed,
        }
    }

    /// Covers what is held and `more`; what memory has no room for goes to disk.
    fn hold(&mut self, more: usize) -> Result<()> {
        let covered = self.cover(more);
        covered.map_err(|error| blame(error, &self.spec, &self.states, self.table_bytes()))
    }

    fn cover(&mut self, more: usize) -> Result<()> {
        let held = self.bytes();
        self.counters.holds(held);
        let Some(spill) = self.spill().cloned() else {
            return self.grant.hold(held);
        };
        if held > self.spec.sizes.held_bytes {
            self.write_blocks()?;
            return self.write_rest();
        }
        let calls = spill.calls();
        let is_called = std::mem::replace(&mut self.answered, calls) < calls;
        if is_called && self.blocks_bytes >= CALLED_BYTES {
            self.write_blocks()?;
        }
        let wanted = self.bytes() + more;
        match self.grant.hold_or_insist(wanted, WORKING_BYTES) {
            Err(Error::Memory { .. }) => {}
            done => return done,
        }
        let many = self.blocks_bytes > held / 2;
        self.take_handed(&spill);
        self.write_blocks()?;
        self.answered = spill.call();
        match self.grant.hold(self.bytes() + more) {
            Ok(()) if many => Ok(()),
            _ => self.write_rest(),
        }
    }

    fn spill(&self) -> Option<&Arc<Spill>> {
        self.file.as_ref().map(SpillFile::shared)
    }

    /// Everything goes to disk, the table's groups too; the table begins anew.
    fn write_rest(&mut self) -> Result<()> {
        self.flush()?;
        self.sort_waiting()?;
        self.write_blocks()?;
        self.begin_anew()?;
        let left = self.bytes();
        self.grant.hold_or_insist(left, WORKING_BYTES)
    }

    /// Gives back the room that table and states keep when they are emptied.
    fn begin_anew(&mut self) -> Result<()> {
        self.counters.probes += self.table.collisions();
        self.table = self.spec.keys.table();
        if let Some(array) = &mut self.array {
            self.counters.widened += array.widened() as u64;
            *array = new_array(&self.spec, &self.grant);
        }
        self.states = new_states(&self.spec)?;
        Ok(())
    }

    /// All blocks go to disk.
    fn write_blocks(&mut self) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let written = file.write(&self.blocks, &mut self.counters)?;
        self.spilled.extend(written);
        self.blocks.clear();
        self.blocks_bytes = 0;
        self.next_look = NextLook::first(&self.spec.sizes);
        Ok(())
    }

    /// No GROUP BY: one group, and kernels over whole columns.
    fn push_keyless(&mut self, batch: &Batch) -> Result<()> {
        let mut lap = Lap::start();
        let keys = EncodedKeys::None(batch.rows);
        self.groups.clear();
        self.table.assign(keys.rows(0..1), &[0], &mut self.groups)?;
        self.update(batch, 0, 1)?;
        lap.end(&mut self.counters.update_ns);
        Ok(())
    }

    /// Rows into the states of their groups, of those aggregates that they are for; `before` groups are none of these rows'.
    fn update(&mut self, batch: &Batch, before: usize, total: usize) -> Result<()> {
        let groups = match self.spec.keys.types().is_empty() {
            true => Groups::One(batch.rows),
            false => Groups::Ids(&self.groups),
        };
        let states = self.states.iter_mut().zip(&mut self.known);
        for ((states, known), arguments) in states.zip(&batch.arguments) {
            let Some(Arguments { columns, filter }) = arguments else {
                continue;
            };
            // States, DataFusion's too, take a group that is new to them to have a row in the batch, if only one that
            // FILTER leaves out.
            debug_assert!(
                *known >= before || !batch.are_partial,
                "all batches of rows are for it"
            );
            if *known < before && !batch.are_partial {
                let one_row: Vec<_> = columns.iter().map(|column| column.slice(0, 1)).collect();
                let last = Groups::Ids(&[GroupId(before as u32 - 1)]);
                states.update(&one_row, Some(&vec![false].into()), last, before)?;
            }
            match batch.are_partial {
                true => states.merge(columns, groups, total)?,
                false => states.update(columns, filter.as_ref(), groups, total)?,
            }
            *known = total;
        }
        Ok(())
    }

    fn push_looked_up(&mut self, batch: &Batch) -> Result<()> {
        let mut before = self.len();
        let mut lap = Lap::start();
        let is_bare = self.is_bare();
        let mut records = batch.rows;
        self.groups.clear();
        let is_direct = match (&self.route, &mut self.array) {
            (Route::Direct, Some(array)) => array.assign(&batch.keys, &mut self.groups).is_ok(),
            _ => false,
        };
        if !is_direct {
            self.leave_direct()?;
            before = self.len();
            let (hashes, starts) = (&mut self.hashes, &mut self.starts);
            let layout = &self.spec.keys;
            let columns = layout.translated(&batch.keys, &mut self.translations)?;
            let keys = layout.encode_runs(&columns, batch.rows, hashes, starts)?;
            lap.end(&mut self.counters.hash_ns);
            if starts.is_empty() {
                self.table.assign(keys.all(), hashes, &mut self.groups)?;
            } else {
                self.runs.clear();
                self.table.assign(keys.all(), hashes, &mut self.runs)?;
                if !is_bare {
                    runs::expand(&self.runs, starts, batch.rows, &mut self.groups);
                }
            }
            self.counters.looked_up += hashes.len() as u64;
            if is_bare && !self.spec.keys.has_texts() {
                records = hashes.len();
            }
        }
        lap.end(&mut self.counters.assign_ns);
        let total = self.len();
        self.update(batch, before, total)?;
        lap.end(&mut self.counters.update_ns);
        self.see(records as u64, (total - before) as u64);
        Ok(())
    }

    /// True of keys without aggregates: a run of equal keys is one record, whatever its length.
    fn is_bare(&self) -> bool {
        self.spec.aggregates.is_empty()
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

    /// The array, if keys address it now.
    fn addresses(&self) -> Option<&DirectTable> {
        match self.route {
            Route::Direct => self.array.as_ref(),
            Route::Hashed | Route::Bypass { .. } => None,
        }
    }

    /// The same to change it.
    fn addressed(&mut self) -> Option<&mut DirectTable> {
        match self.route {
            Route::Direct => self.array.as_mut(),
            Route::Hashed | Route::Bypass { .. } => None,
        }
    }

    /// The range outgrew the array: known groups keep their ids in the hashed table, or become a block where it has no
    /// room for them.
    fn leave_direct(&mut self) -> Result<()> {
        if !matches!(self.route, Route::Direct) {
            return Ok(());
        }
        if self.used_bytes() > self.spec.sizes.hot_bytes {
            self.flush()?;
        }
        let columns = match &mut self.array {
            Some(array) if !array.is_empty() => Some((array.len(), array.drain()?)),
            _ => None,
        };
        if let Some((groups, columns)) = columns {
            let keys = self.spec.keys.encode(&columns, groups, &mut self.hashes)?;
            let mut ids = Vec::with_capacity(groups);
            self.table.assign(keys.all(), &self.hashes, &mut ids)?;
            debug_assert!(
                ids.iter().enumerate().all(|(at, id)| id.0 as usize == at),
                "distinct keys keep their order"
            );
        }
        self.array.iter_mut().for_each(DirectTable::release);
        self.route = Route::Hashed;
        self.counters.uses(self.spec.keys.hashed_kind());
        Ok(())
    }

    fn decide(&mut self, batch: &Batch) -> Result<()> {
        if self.spec.keys.types().is_empty() {
            return Ok(());
        }
        self.seen.appended_bytes = self.states.iter().map(|s| s.appended_bytes()).sum();
        self.seen.bytes = self.used_bytes();
        // The policy asks for it only beyond the cache.
        let is_small = self.seen.bytes <= self.spec.sizes.hot_bytes;
        self.seen.array = match is_small {
            true => None,
            false => self.seen_array(),
        };
        let bounds = Bounds {
            hot_bytes: self.spec.sizes.hot_bytes,
            grown_bytes: self.spec.sizes.grown_bytes,
            array_bytes: match self.seen.array {
                Some(_) => self.spec.sizes.array_bytes.min(self.ample_bytes()),
                None => 0,
            },
            may_bypass: self.bypass.is_some() && self.spec.rows_mix(batch),
            may_grow: self.may_grow,
            has_texts: self.spec.keys.has_texts(),
        };
        let decision = policy::decide(self.seen, bounds);
        let grows = !matches!(decision, Decision::Flush | Decision::Bypass);
        if self.seen.expected_groups.is_some() && !grows {
            self.may_grow = false;
        }
        match decision {
            Decision::Keep => Ok(()),
            Decision::Grow { expected_groups } => {
                self.seen.expected_groups = Some(expected_groups);
                Ok(())
            }
            Decision::Shed => self.flush(),
            Decision::Flush => {
                self.flush()?;
                self.give_up_large_array();
                Ok(())
            }
            Decision::Bypass => {
                self.flush()?;
                self.give_up_large_array();
                self.array.iter_mut().for_each(DirectTable::release);
                self.counters.uses("partitions");
                self.route = Route::Bypass {
                    rows_left: self.spec.sizes.bypass_rows,
                };
                Ok(())
            }
        }
    }

    /// Half of this worker's share of memory, more or less.
    fn ample_bytes(&self) -> usize {
        self.grant.free().saturating_add(self.bytes()) / self.spec.sizes.workers / 2
    }

    /// One that was emptied in spite of the many rows before it is never worth it.
    fn give_up_large_array(&mut self) {
        let few = self.spec.sizes.direct_slots;
        if self.addressed().is_some_and(|array| array.slots() > few) {
            self.drop_array();
            self.route = Route::Hashed;
        }
    }

    fn drop_array(&mut self) {
        let array = self.array.take();
        self.counters.widened += array.map_or(0, |array| array.widened() as u64);
    }

    /// Rows as records of their partitions.
    fn push_bypassed(&mut self, batch: &Batch) -> Result<()> {
        let is_another_kind = batch.are_partial != self.waiting.are_partial;
        if is_another_kind && !self.waiting.parts.is_empty() {
            self.sort_waiting()?;
        }
        self.waiting.are_partial = batch.are_partial;
        let mut lap = Lap::start();
        let mut hashes = Vec::with_capacity(batch.rows);
        let layout = &self.spec.keys;
        let columns = layout.translated(&batch.keys, &mut self.translations)?;
        // Texts wait with the whole buffers of their batch, of which few runs would gather many.
        let keys = match self.is_bare() && !layout.has_texts() {
            true => layout.encode_runs(&columns, batch.rows, &mut hashes, &mut self.starts)?,
            false => layout.encode(&columns, batch.rows, &mut hashes)?,
        };
        lap.end(&mut self.counters.hash_ns);
        let bypass = self
            .bypass
            .as_ref()
            .expect("the route is taken only where all aggregates allow it");
        let mut aggregates = Vec::with_capacity(bypass.len());
        let all = self.spec.aggregates.iter().zip(&self.states);
        for ((how, (aggregate, states)), arguments) in bypass.iter().zip(all).zip(&batch.arguments)
        {
            let arguments = arguments
                .as_ref()
                .expect("rows that skip the table are for all aggregates");
            aggregates.push(match how {
                _ if batch.are_partial => Records::Partial(arguments.columns.clone()),
                Bypass::Convert => {
                    Records::Partial(states.convert(&arguments.columns, arguments.filter.as_ref())?)
                }
                Bypass::Rows | Bypass::Never => Records::Rows(aggregate.carried(arguments)?),
            });
        }
        self.counters.bypassed_rows += batch.rows as u64;
        let records = Unsorted {
            keys,
            hashes,
            aggregates,
            distinct: false,
        };
        self.waiting.push(records);
        lap.end(&mut self.counters.partition_ns);
        if self.waiting.rows >= self.spec.sizes.block_rows {
            self.sort_waiting()?;
        }
        Ok(())
    }

    /// All that waits becomes blocks.
    fn sort_waiting(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let groups = std::mem::take(&mut self.emptied);
        for Waiting { parts, .. } in [groups, rows] {
            if !parts.is_empty() {
                self.add_blocks(parts)?;
            }
        }
        Ok(())
    }

    /// Records become a block, or several where their keys are very long.
    fn add_blocks(&mut self, parts: Vec<Unsorted>) -> Result<()> {
        let bytes_max = self.spec.sizes.block_bytes;
        let (mut together, mut bytes) = (Vec::new(), 0);
        let views = self.spec.keys.views().to_vec();
        let pieces = parts
            .into_iter()
            .flat_map(|part| part.pieces(bytes_max, &views));
        for (part, part_bytes) in pieces {
            if !together.is_empty() && bytes + part_bytes > bytes_max {
                self.add_block(std::mem::take(&mut together))?;
                bytes = 0;
            }
            bytes += part_bytes;
            together.push(part);
        }
        self.add_block(together)
    }

    fn add_block(&mut self, parts: Vec<Unsorted>) -> Result<()> {
        let mut lap = Lap::start();
        let bits = self.spec.sizes.partitions.ilog2();
        let views = self.spec.keys.views();
        let block = Block::sort(parts, bits, views)?;
        self.blocks_bytes += block.bytes();
        self.blocks.push(block);
        self.counters.blocks += 1;
        lap.end(&mut self.counters.partition_ns);
        Ok(())
    }

    /// Empties the table into a block.
    fn flush(&mut self) -> Result<()> {
        let total = self.len();
        if total == 0 {
            return Ok(());
        }
        let DistinctKeys { keys, hashes } = match self.addressed() {
            Some(array) => {
                let columns = array.drain()?;
                let mut hashes = Vec::with_capacity(total);
                DistinctKeys {
                    keys: self.spec.keys.encode(&columns, total, &mut hashes)?,
                    hashes,
                }
            }
            None => self.table.drain(),
        };
        let mut lap = Lap::start();
        let mut aggregates = Vec::with_capacity(self.states.len());
        for states in &mut self.states {
            aggregates.push(Records::Partial(states.drain_partial(total)?));
        }
        self.known.fill(0);
        lap.end(&mut self.counters.partition_ns);
        self.seen = Seen::default();
        self.counters.flushes += 1;
        self.counters.built_groups += total as u64;
        let records = Unsorted {
            keys,
            hashes,
            aggregates,
            distinct: true,
        };
        if !records.mix() {
            return self.add_blocks(vec![records]);
        }
        self.emptied.push(records);
        let Sizes { block_rows, .. } = self.spec.sizes;
        if self.emptied.rows >= block_rows || self.emptied.bytes >= EMPTIED_BYTES {
            let parts = std::mem::take(&mut self.emptied).parts;
            self.add_blocks(parts)?;
        }
        Ok(())
    }

    /// All input is seen: everything becomes blocks.
    pub fn finish(mut self) -> Result<Built> {
        self.flush()?;
        self.sort_waiting()?;
        self.begin_anew()?;
        self.counters.probes += self.counters.looked_up;
        if let Some(spill) = self.spill().cloned() {
            self.take_handed(&spill);
        }
        self.leave_room()?;
        let mut blocks = self.spilled;
        blocks.extend(self.blocks.into_iter().map(Stored::Memory));
        Ok(Built {
            blocks: Blocks::new(blocks, self.spec.sizes.partitions),
            counters: self.counters,
            grant: self.grant,
        })
    }

    /// Blocks stay in memory only where the merge will have room beside them, which the grant covers until it begins.
    fn leave_room(&mut self) -> Result<()> {
        let partition = self.blocks_bytes / self.spec.sizes.partitions;
        self.hold(partition * MERGE_FACTOR * self.spec.sizes.workers)?;
        if !self.spilled.is_empty() {
            self.write_blocks()?;
        }
        Ok(())
    }

    /// Groups in the table.
    fn len(&self) -> usize {
        self.addresses()
            .map_or_else(|| self.table.len(), DirectTable::len)
    }

    fn table_bytes(&self) -> usize {
        let array = self.array.as_ref().map_or(0, DirectTable::bytes);
        let books = self.spec.book_bytes();
        books + array + self.table.bytes() + self.states.iter().map(|s| s.bytes()).sum::<usize>()
    }

    /// What lookups and updates touch.
    fn used_bytes(&self) -> usize {
        let array = self.addresses();
        let table = array.map_or_else(|| self.table.used_bytes(), DirectTable::used_bytes);
        table + self.states.iter().map(|s| s.used_bytes()).sum::<usize>()
    }

    /// The array, as the policy sees it.
    fn seen_array(&self) -> Option<policy::Array> {
        let array = self.addresses()?;
        let states: usize = self.states.iter().map(|s| s.used_bytes()).sum();
        let of_group = ARRAY_GROUP_BYTES + states / array.len().max(1);
        let slots = array.reached_slots();
        Some(policy::Array {
            slots,
            full_bytes: slots * of_group,
            rows: self.counters.rows,
        })
    }

    fn bytes(&self) -> usize {
        self.table_bytes() + allocated(self.blocks_bytes) + self.waiting.bytes + self.emptied.bytes
    }
}

/// An array for small keys. That of one column of integers may become large where its share of memory allows it.
fn new_array(spec: &Spec, grant: &Grant) -> DirectTable {
    let sizes = &spec.sizes;
    let ample = grant.free() / sizes.workers / ARRAY_SHARE / ARRAY_GROUP_BYTES;
    let most = match is_one_range(spec.keys.types()) {
        true => sizes.direct_range.min(ample).max(sizes.direct_slots),
        false => sizes.direct_slots,
    };
    DirectTable::new(spec.keys.types(), sizes.direct_slots, most)
}

/// What large buffers of so many bytes take: allocators round up, mimalloc from 512 KiB to 576.
pub(crate) fn allocated(bytes: usize) -> usize {
    bytes + bytes / 8
}
