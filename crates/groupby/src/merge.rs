//! Phase 2: ranges of partitions, each aggregated once, by any number of workers that never meet.
//!
//! In: the blocks of all builds, in memory or on disk. Out: `Finished` groups, one per task.
//! Invariant: a task's partitions are in no other task. The largest task is handed out first, but sub-partitions of a
//! task that memory has no room for come at once. A task that is more than a worker's share comes in pieces (`pieces`).
//! Tried and rejected: blocks of a quarter of the partitions each, whose memory is free when that quarter is merged. One query
//! of hits held 212 MB instead of 252, others 2 to 4 % more.
//! Not here: threads; a caller makes one `MergeWorker` per thread.

mod by_address;
mod pieces;
mod settling;

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::addressed::{AddressedGroups, SideBySide};
use crate::build::{Built, MERGE_FACTOR, WORKING_BYTES};
use crate::combine::{Combiner, fair_tuples};
use crate::emit::Finished;
use crate::error::{Error, Result};
use crate::keys::direct::AddressTable;
use crate::keys::{DistinctKeys, KeyTable};
use crate::partition::{Block, Size, neighbours};
use crate::runtime::counters::Stopwatch;
use crate::runtime::{Counters, Grant, allocated};
use crate::spec::Spec;
use crate::spill::{Blocks, PartitionLevel, Spill, SpillFile, Stored, StoredRange};
use pieces::{Piece, PieceResult, Rest};
use settling::Settling;

/// Bytes of a tuple that is not counted as several: keys and states of the usual kinds are smaller.
/// Sketches are not; a task of few of them is worth handing out, and fits a core's cache.
const TUPLE_BYTES: usize = 128;

/// A task may have so many bytes of tuples in any case.
const ROOM_BYTES_MIN: usize = 1 << 20;

/// A task that memory has no room for becomes 64 sub-partitions at once at most: pages of fewer tuples are dear to read.
const REPARTITION_BITS_MAX: u32 = 6;
/// No task is repartitioned by bits of the hash beyond these.
const HASH_BITS: u32 = 60;

/// Where the table of a task turned out too large: how much, nobody knows.
const REFUSED_BITS: u32 = 3;

/// Tuples between two looks whether anybody still wants them: some milliseconds.
const LOOK_TUPLES: usize = 256 << 10;

/// Sub-partitions are written together until they have so many bytes, or more where memory has room.
const SUB_PARTITIONS_BYTES: usize = WORKING_BYTES / 2;

/// A range of partitions to aggregate, or a piece of it.
pub struct MergeTask {
    level: Arc<PartitionLevel>,
    partitions: Range<usize>,
    size: Size,
    piece: Option<Piece>,
}

/// The merge's input: what builds handed over so far. All workers wait for the last one, so each adds its own when it comes.
#[derive(Default)]
pub struct MergeInput {
    blocks: Blocks,
    addressed: Vec<AddressedGroups>,
    grant: Option<Grant>,
}

impl MergeInput {
    /// Takes one worker's blocks in, whose memory is from the budget of those before.
    pub fn add(&mut self, built: Built) {
        self.blocks.join(built.blocks);
        self.addressed.extend(built.addressed);
        match &mut self.grant {
            Some(grant) => grant.join(built.grant),
            None => self.grant = Some(built.grant),
        }
    }
}

impl FromIterator<Built> for MergeInput {
    fn from_iter<I: IntoIterator<Item = Built>>(all: I) -> Self {
        let mut input = Self::default();
        all.into_iter().for_each(|built| input.add(built));
        input
    }
}

/// How blocks are cut into tasks.
struct TaskPlanner<'a> {
    spec: &'a Spec,
    bits: u32,
    of_tuples: usize,
    /// Bytes of tuples that a task may have.
    room: usize,
    /// Covers the blocks.
    grant: Option<Grant>,
}

impl<'a> TaskPlanner<'a> {
    /// Of what builds made.
    fn top(spec: &'a Spec, room: usize, grant: Option<Grant>) -> Self {
        Self {
            spec,
            bits: spec.sizes.partitions.ilog2(),
            of_tuples: usize::MAX,
            room,
            grant,
        }
    }

    /// Tasks of neighbouring partitions, the largest last. Each has enough tuples, or their bytes, or as many as there is
    /// room for; of one that has more than a worker's share its pieces are tasks.
    fn tasks(self, blocks: Blocks) -> Vec<MergeTask> {
        let all = blocks.sizes.iter().copied();
        let all = all.fold(Size::default(), Size::plus);
        let (tuples_min, bytes_min) = match self.room {
            usize::MAX => {
                let tuples = self.spec.sizes.task_tuples;
                (tuples, tuples * TUPLE_BYTES)
            }
            // Neighbouring partitions share pages on disk.
            room => {
                let share = all.bytes / (4 * self.spec.sizes.workers);
                (usize::MAX, room.min(share).max(1))
            }
        };
        let is_enough = |size: Size| size.tuples >= tuples_min || size.bytes >= bytes_min;
        let mut ranges = neighbours(&blocks.sizes, is_enough, self.room);
        // Without GROUP BY there is one group, also when no row came.
        if ranges.is_empty() && self.spec.is_keyless() {
            ranges.push((0..blocks.sizes.len(), Size::default()));
        }
        let level = Arc::new(PartitionLevel {
            blocks,
            by_address: None,
            bits: self.bits,
            tuples: all.tuples,
            of_tuples: self.of_tuples,
            _grant: self.grant,
        });
        let task = |(partitions, size)| MergeTask {
            level: Arc::clone(&level),
            partitions,
            size,
            piece: None,
        };
        let whole = ranges.into_iter().map(task);
        let tasks = whole.flat_map(|task| pieces::split(task, self.spec, self.room));
        let mut tasks: Vec<_> = tasks.collect();
        tasks.sort_unstable_by_key(|task| task.size.tuples);
        tasks
    }
}

impl MergeTask {
    /// Number of tuples to aggregate.
    pub fn tuples(&self) -> usize {
        self.size.tuples
    }

    /// False where repartitioning again would not help: bits are used up, or almost all tuples came into one sub-partition, as those
    /// of one key do.
    fn may_repartition(&self) -> bool {
        let level = &self.level;
        level.bits + REPARTITION_BITS_MAX <= HASH_BITS && self.size.tuples < level.of_tuples / 4 * 3
    }
}

/// What became of a task.
pub enum Merged {
    /// Its groups.
    Groups(Finished),
    /// Memory has no room for them all: its sub-partitions are tasks now.
    Repartitioned,
    /// It was a piece of one; the groups are with the last piece.
    Piece,
    /// Nobody wants it any more.
    Cancelled,
}

impl Merged {
    /// The groups; `None` for all else.
    pub fn groups(self) -> Option<Finished> {
        match self {
            Self::Groups(finished) => Some(finished),
            Self::Repartitioned | Self::Piece | Self::Cancelled => None,
        }
    }
}

/// The merge phase, shared by its workers.
pub struct Merge {
    spec: Arc<Spec>,
    /// The next one last: sub-partitions come to the others as they are made.
    tasks: Mutex<Vec<MergeTask>>,
    /// How many there were at first.
    cut: usize,
    /// Where not all workers have addressed groups: those that have become blocks before there are tasks.
    settling: Settling,
    /// Where sub-partitions go.
    spill: Option<Arc<Spill>>,
    /// Bytes of tuples that a task may have: all where all are in memory.
    room: usize,
}

impl Merge {
    /// Cuts the partitions into tasks. Once something had to leave memory, a task has as many bytes of tuples as memory
    /// allows. Where all workers have nothing but groups by address, and these are near each other, they are merged so.
    pub fn new(spec: Arc<Spec>, input: MergeInput, spill: Option<Arc<Spill>>) -> Self {
        let MergeInput {
            mut blocks,
            addressed,
            mut grant,
        } = input;
        // Of no build none are known.
        blocks.sizes.resize(spec.sizes.partitions, Size::default());
        // What was held for the merge beside the blocks is free to be taken.
        let addressed_bytes: usize = addressed.iter().map(AddressedGroups::bytes).sum();
        if let Some(grant) = &mut grant {
            grant.keep(allocated(blocks.bytes_in_memory + addressed_bytes));
        }
        let room = match grant.as_ref().filter(|_| blocks.is_on_disk) {
            Some(grant) => (grant.free() / spec.sizes.workers / MERGE_FACTOR)
                .max(ROOM_BYTES_MIN)
                .min(spec.sizes.room_bytes),
            None => usize::MAX,
        };
        let by_address = match blocks.stored.is_empty() {
            true => SideBySide::new(addressed),
            false => Err(addressed),
        };
        let (tasks, settling) = match by_address {
            Ok(all) => (by_address::tasks(all, &spec, grant), Settling::none()),
            Err(none) if none.is_empty() => {
                let planner = TaskPlanner::top(&spec, room, grant);
                (planner.tasks(blocks), Settling::none())
            }
            Err(addressed) => (Vec::new(), Settling::new(addressed, blocks, grant)),
        };
        Self {
            spec,
            cut: tasks.len(),
            tasks: Mutex::new(tasks),
            settling,
            spill,
            room,
        }
    }

    /// Number of tasks that the partitions were cut into, pieces among them; 0 where that has to wait for blocks.
    pub fn tasks(&self) -> usize {
        self.cut
    }

    /// The next task, which is the caller's alone: its blocks are gone with the last one that reads them.
    pub fn next(&self) -> Result<Option<MergeTask>> {
        self.settle()?;
        // One lock per task, not per row: at most a few thousand a query.
        Ok(self.tasks.lock().pop())
    }

    /// A worker's tables, kept from task to task.
    pub fn worker(&self, grant: Grant) -> Result<MergeWorker> {
        let refers = self.room == usize::MAX;
        let table = new_table(&self.spec, refers);
        Ok(MergeWorker {
            refers,
            combiner: Combiner::new(Arc::clone(&self.spec), table)?,
            addresses: AddressTable::default(),
            spec: Arc::clone(&self.spec),
            grant,
            counters: Counters::default(),
            yielded: (0, 0),
        })
    }
}

/// One merge worker.
pub struct MergeWorker {
    spec: Arc<Spec>,
    combiner: Combiner,
    /// In the place of the combiner's table where groups are merged by address.
    addresses: AddressTable,
    /// True of a table that refers to keys: it would keep all pages of a task that is read from disk.
    refers: bool,
    grant: Grant,
    counters: Counters,
    /// Groups and tuples of the tasks so far.
    yielded: (usize, usize),
}

impl MergeWorker {
    /// What this worker counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Aggregates the tuples of `task`, or repartitions them where memory has no room; looks between two pieces of it whether
    /// it is `cancelled`.
    pub fn run(
        &mut self,
        merge: &Merge,
        task: &MergeTask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Merged> {
        let mut stopwatch = Stopwatch::start();
        let emit_ns = self.counters.emit_ns;
        let merged = match &task.piece {
            Some(piece) => self.run_piece(merge, task, piece, cancelled),
            None => self.run_whole(merge, task, cancelled),
        };
        self.counters.looked_up = self.combiner.looked_up;
        self.counters.probes = self.combiner.probes();
        stopwatch.lap(&mut self.counters.merge_ns);
        self.counters.merge_ns -= self.counters.emit_ns - emit_ns;
        merged
    }

    fn run_whole(
        &mut self,
        merge: &Merge,
        task: &MergeTask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Merged> {
        let is_sub_partition = !task.level.is_top();
        if is_sub_partition && (std::mem::take(&mut self.refers) || !task.may_repartition()) {
            self.combiner.begin_anew(self.spec.keys.table())?;
        }
        let keyless = self.spec.is_keyless();
        let spill = merge.spill.as_ref();
        let spill = spill.filter(|_| !keyless && task.may_repartition());
        match spill {
            Some(spill) if self.expected_bytes(task) > merge.room => {
                let parts = (task.size.bytes / merge.room + 1).next_power_of_two();
                self.repartition(merge, spill, task, parts.ilog2(), cancelled)
            }
            Some(spill) => match self.groups(task, cancelled) {
                Err(Error::Memory { .. }) => {
                    self.repartition(merge, spill, task, REFUSED_BITS, cancelled)
                }
                merged => merged,
            },
            None => self.groups(task, cancelled),
        }
    }

    /// Combines a piece; after the last one of its task, merges the results.
    fn run_piece(
        &mut self,
        merge: &Merge,
        task: &MergeTask,
        piece: &Piece,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Merged> {
        let result = match piece.of.is_wanted() {
            true => self.combined_piece(merge, task, piece, cancelled),
            false => Ok(None),
        };
        let result = match result {
            Err(Error::Cancelled) => return Ok(Merged::Cancelled),
            // The whole task may do without what a piece asked for, or goes to disk.
            Err(Error::Memory { .. } | Error::TooLarge(_) | Error::Arrow(_)) => {
                self.begin_anew()?;
                None
            }
            result => result?,
        };
        self.counters.pieces += 1;
        match piece.end(result) {
            Rest::Pieces => Ok(Merged::Piece),
            Rest::Whole => self.run_whole(merge, &piece.of.whole, cancelled),
            Rest::Results(results) => match self.groups(&results, cancelled) {
                Err(Error::Memory { .. }) => {
                    drop(results);
                    self.begin_anew()?;
                    self.run_whole(merge, &piece.of.whole, cancelled)
                }
                merged => merged,
            },
        }
    }

    /// The groups of a piece as tuples; `None` where there is no room for them beside those of other pieces.
    fn combined_piece(
        &mut self,
        merge: &Merge,
        task: &MergeTask,
        piece: &Piece,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<PieceResult>> {
        self.expect(even_tuples(&piece.of.whole) / piece.of.pieces);
        let blocks: Vec<&Stored> = task.level.blocks.stored.iter().collect();
        if !self.absorb(&piece.of(sources(&blocks, task)), cancelled)? {
            return Err(Error::Cancelled);
        }
        let block = self.combiner.block()?;
        let all_bytes = piece.of.with_result(allocated(block.bytes()));
        // Merging them takes memory, and so do other tasks meanwhile.
        if all_bytes > merge.room.min(self.grant.free() / MERGE_FACTOR) {
            return Ok(None);
        }
        let mut grant = self.grant.sibling();
        grant.hold(allocated(block.bytes()))?;
        Ok(Some(PieceResult { block, grant }))
    }

    /// Forgets all groups and gives their memory back.
    fn begin_anew(&mut self) -> Result<()> {
        self.combiner
            .begin_anew(new_table(&self.spec, self.refers))?;
        self.grant.keep(self.combiner.bytes());
        Ok(())
    }

    /// Bytes of tuples that are left once those of one key are one: as in the tasks before, all in the first.
    fn expected_bytes(&self, task: &MergeTask) -> usize {
        match self.yielded {
            (_, 0) => task.size.bytes,
            (groups, tuples) => (task.size.bytes as f64 * groups as f64 / tuples as f64) as usize,
        }
    }

    fn groups(&mut self, task: &MergeTask, cancelled: &dyn Fn() -> bool) -> Result<Merged> {
        if let Some(all) = &task.level.by_address {
            return self.groups_by_address(all, task, cancelled);
        }
        let blocks = task.level.blocks.stored.iter();
        let with_tuples = blocks.filter(|stored| !stored.tuples(&task.partitions).is_empty());
        let stored: Vec<&Stored> = with_tuples.collect();
        let sources: Vec<StoredRange<'_>> = sources(&stored, task).collect();
        let keyless = self.spec.is_keyless();
        let keys = match (stored.as_slice(), sources.as_slice()) {
            ([stored], [source]) if stored.distinct() && !keyless => self.take_over(source)?,
            _ => match self.combine(&sources, task, cancelled)? {
                Some(keys) => keys,
                None => return Ok(Merged::Cancelled),
            },
        };
        self.finish(keys, &task.level).map(Merged::Groups)
    }

    /// Tuples that are one per key already.
    fn take_over(&mut self, source: &StoredRange<'_>) -> Result<DistinctKeys> {
        let (block, tuples) = source.open(&mut self.counters)?;
        let keys = self.combiner.take_over(&block.slice(tuples))?;
        self.hold(block.bytes())?;
        Ok(keys)
    }

    /// One group per key of all the tuples; `None` if `cancelled`.
    fn combine(
        &mut self,
        sources: &[StoredRange<'_>],
        task: &MergeTask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<DistinctKeys>> {
        // What cannot be repartitioned is mostly of one key, and a table for many could be refused for nothing.
        self.expect(match task.may_repartition() {
            true => even_tuples(task),
            false => 0,
        });
        if !self.absorb(sources, cancelled)? {
            return Ok(None);
        }
        self.yielded.0 += self.combiner.len();
        self.yielded.1 += task.size.tuples;
        Ok(Some(self.combiner.keys()))
    }

    /// Makes room for the groups of so many tuples: as many of each as in the tasks before; half of them in the first.
    fn expect(&mut self, likely: usize) {
        let (groups, tuples) = self.yielded;
        self.combiner.expect(likely * (groups + 1) / (tuples + 2));
    }

    /// Aggregates all tuples of `sources`; false if `cancelled`.
    fn absorb(
        &mut self,
        sources: &[StoredRange<'_>],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<bool> {
        for source in sources {
            if cancelled() {
                return Ok(false);
            }
            let (block, tuples) = source.open(&mut self.counters)?;
            for start in tuples.clone().step_by(LOOK_TUPLES) {
                if start > tuples.start && cancelled() {
                    return Ok(false);
                }
                let some = start..(start + LOOK_TUPLES).min(tuples.end);
                self.combiner.absorb(&block, some)?;
            }
            self.hold(block.bytes())?;
        }
        Ok(true)
    }

    /// The tuples of `task` go to disk once more, sorted by the next `bits` bits of their hash.
    fn repartition(
        &mut self,
        merge: &Merge,
        spill: &Arc<Spill>,
        task: &MergeTask,
        bits: u32,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Merged> {
        self.refers = false;
        self.combiner.begin_anew(self.spec.keys.table())?;
        if let Some(all) = &task.level.by_address {
            return self.blocks_of_addresses(all, merge, task);
        }
        let bits = bits.clamp(1, REPARTITION_BITS_MAX);
        let above = task.level.bits;
        let views = self.spec.keys.views().to_vec();
        let write_bytes = SUB_PARTITIONS_BYTES.max(merge.room.min(8 * SUB_PARTITIONS_BYTES));
        let mut file = SpillFile::new(Arc::clone(spill));
        let (mut stored, mut waiting, mut waiting_bytes) = (Vec::new(), Vec::new(), 0);
        let blocks: Vec<&Stored> = task.level.blocks.stored.iter().collect();
        for source in sources(&blocks, task) {
            if cancelled() {
                return Ok(Merged::Cancelled);
            }
            let (block, tuples) = source.open(&mut self.counters)?;
            let repartitioned: Block = block.slice(tuples).repartitioned(above, bits, &views)?;
            waiting_bytes += repartitioned.bytes();
            waiting.push(repartitioned);
            let held = self.hold(waiting_bytes + block.bytes());
            if waiting_bytes >= write_bytes || held.is_err() {
                stored.extend(file.write(&waiting, &mut self.counters)?);
                waiting.clear();
                waiting_bytes = 0;
                self.hold(block.bytes())?;
            }
        }
        stored.extend(file.write(&waiting, &mut self.counters)?);
        self.counters.repartitioned += 1;
        let blocks = Blocks::new(stored, 1 << bits);
        // As small as the sub-partitions are: what was refused once would be as large again.
        let room = merge.room.min(task.size.bytes / 4).max(1);
        let planner = TaskPlanner {
            spec: &self.spec,
            bits: above + bits,
            of_tuples: task.size.tuples,
            room,
            grant: None,
        };
        let tasks = planner.tasks(blocks);
        merge.tasks.lock().extend(tasks);
        Ok(Merged::Repartitioned)
    }

    /// Covers the tables, their states and `read` bytes of tuples.
    fn hold(&mut self, read: usize) -> Result<()> {
        let tables = self.combiner.bytes() + self.addresses.bytes();
        let bytes = tables + self.spec.shared_bytes() + read;
        self.counters.holds(bytes);
        let held = self.grant.hold_or_insist(bytes, WORKING_BYTES);
        held.map_err(|error| self.combiner.name_aggregate(error))
    }

    fn finish(&mut self, keys: DistinctKeys, level: &Arc<PartitionLevel>) -> Result<Finished> {
        let mut stopwatch = Stopwatch::start();
        // Without GROUP BY there is one group, also when no row came.
        let keyless = self.spec.is_keyless();
        let groups = if keyless { 1 } else { keys.keys.len() };
        let results = self.combiner.results(groups)?;
        self.counters.groups += groups as u64;
        stopwatch.lap(&mut self.counters.emit_ns);
        let level = Arc::clone(level);
        Ok(Finished::new(
            Arc::clone(&self.spec),
            keys,
            results,
            groups,
            level,
        ))
    }
}

/// Tuples of a task, were no key more frequent than others.
fn even_tuples(task: &MergeTask) -> usize {
    let level = &task.level;
    let partitions = level.blocks.sizes.len();
    let fair = fair_tuples(level.tuples, task.partitions.len(), partitions);
    task.size.tuples.min(fair)
}

/// A table for the tuples of a task; one that `refers` to their keys would keep all pages that are read from disk.
fn new_table(spec: &Spec, refers: bool) -> Box<dyn KeyTable> {
    match refers {
        true => spec.keys.merge_table(),
        false => spec.keys.table(),
    }
}

fn sources<'a>(blocks: &[&'a Stored], task: &MergeTask) -> impl Iterator<Item = StoredRange<'a>> {
    let all = blocks.iter().copied();
    all.flat_map(|stored| stored.sources(&task.partitions))
}
