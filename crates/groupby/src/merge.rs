//! Phase 2: ranges of partitions, each aggregated once, by any number of workers that never meet.
//!
//! In: the blocks of all builds, in memory or on disk. Out: `Finished` groups, one per task.
//! Invariant: a task's partitions are in no other task; tasks are handed out largest first by one
//! counter; an instance of states sees both rows and partial states only where its aggregate allows
//! it (`states::Bypass::Rows`), else partial states alone.
//! Not here: threads; a caller makes one `MergeWorker` per thread.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::batch::Arguments;
use crate::build::{Built, MERGE_FACTOR, WORKING_BYTES};
use crate::emit::Finished;
use crate::error::Result;
use crate::keys::{DistinctKeys, GroupId, KeyTable};
use crate::partition::{Records, Slice, Split};
use crate::runtime::counters::Lap;
use crate::runtime::{Counters, Grant};
use crate::spec::Spec;
use crate::spill::{Opened, Source, Stored};
use crate::states::{GroupStates, Groups};

/// Records looked up at once: ids and slices of this many rows stay in the first-level cache.
const CHUNK_RECORDS: usize = 4096;

/// Bytes of a record that is not counted as several: keys and states of the usual kinds are smaller.
/// Sketches are not; a task of few of them is worth handing out, and fits a core's cache.
const RECORD_BYTES: usize = 128;

/// A task may have so many bytes of records in any case.
const ROOM_BYTES_MIN: usize = 1 << 20;

/// The parts of one partition read its records anew each: 64 times at most.
const SPLIT_BITS_MAX: u32 = 6;

/// A range of partitions to aggregate, or a part of one.
#[derive(Debug, Clone)]
pub struct MergeTask {
    partitions: Range<usize>,
    /// Of one partition that is too large to be combined at once, a part.
    split: Option<Split>,
    records: usize,
}

impl MergeTask {
    /// Number of records to aggregate.
    pub fn records(&self) -> usize {
        self.records
    }
}

/// The merge phase, shared by its workers.
pub struct Merge {
    spec: Arc<Spec>,
    blocks: Vec<Stored>,
    tasks: Vec<MergeTask>,
    next: AtomicUsize,
    /// Hold the builds' memory until the merge is dropped.
    _grants: Vec<Grant>,
}

impl Merge {
    /// Cuts the partitions into tasks.
    pub fn new(spec: Arc<Spec>, built: Vec<Built>) -> Self {
        let mut blocks = Vec::new();
        let mut grants = Vec::new();
        for mut part in built {
            part.release_room();
            blocks.extend(part.blocks);
            grants.push(part.grant);
        }
        let mut tasks = cut(&blocks, &spec, room(&spec, &blocks, &grants));
        if tasks.is_empty() && spec.keys.types().is_empty() {
            tasks.push(MergeTask {
                partitions: 0..spec.sizes.partitions,
                split: None,
                records: 0,
            });
        }
        tasks.sort_by_key(|task| std::cmp::Reverse(task.records));
        Self {
            spec,
            blocks,
            tasks,
            next: AtomicUsize::new(0),
            _grants: grants,
        }
    }

    /// Number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Number of tasks that are parts of a partition.
    pub fn parts(&self) -> usize {
        self.tasks
            .iter()
            .filter(|task| task.split.is_some())
            .count()
    }

    /// Number of records of all tasks.
    pub fn records(&self) -> usize {
        self.tasks.iter().map(|task| task.records).sum()
    }

    /// The next task, largest first.
    pub fn next(&self) -> Option<MergeTask> {
        // One counter per task, not per row: at most a few thousand increments a query.
        self.tasks
            .get(self.next.fetch_add(1, Ordering::Relaxed))
            .cloned()
    }

    /// A worker's tables, kept from task to task.
    pub fn worker(&self, grant: Grant) -> Result<MergeWorker> {
        Ok(MergeWorker {
            spec: Arc::clone(&self.spec),
            // A table that refers to keys would keep all pages of a task.
            table: match self.blocks.iter().any(Stored::is_on_disk) {
                true => self.spec.keys.table(),
                false => self.spec.keys.merge_table(),
            },
            states: self
                .spec
                .aggregates
                .iter()
                .map(|a| a.states())
                .collect::<Result<_>>()?,
            grant,
            counters: Counters::default(),
            groups: Vec::new(),
            yielded: (0, 0),
        })
    }
}

/// Bytes of records that a task may have: as memory allows once something had to leave it.
fn room(spec: &Spec, blocks: &[Stored], grants: &[Grant]) -> usize {
    if !blocks.iter().any(Stored::is_on_disk) {
        return usize::MAX;
    }
    let free = grants.first().map_or(usize::MAX, Grant::free);
    (free / spec.sizes.workers / MERGE_FACTOR)
        .max(ROOM_BYTES_MIN)
        .min(spec.sizes.held_bytes)
}

/// Neighbouring partitions until each task has enough records, or their bytes; one partition of more than `room`
/// bytes becomes several tasks.
fn cut(blocks: &[Stored], spec: &Spec, room: usize) -> Vec<MergeTask> {
    let records_min = spec.sizes.task_records;
    let mut tasks = Vec::new();
    let mut bytes = 0;
    let mut task = MergeTask {
        partitions: 0..0,
        split: None,
        records: 0,
    };
    for partition in 0..spec.sizes.partitions {
        let here = partition..partition + 1;
        for block in blocks {
            let records = block.records(&here).len();
            task.records += records;
            bytes += records * (block.bytes() / block.len().max(1));
        }
        task.partitions.end = partition + 1;
        if task.records >= records_min || bytes >= (records_min * RECORD_BYTES).min(room) {
            let next = MergeTask {
                partitions: partition + 1..partition + 1,
                split: None,
                records: 0,
            };
            let full = std::mem::replace(&mut task, next);
            match split_bits(bytes, room) {
                bits @ 1.. if !spec.keys.types().is_empty() => tasks.extend(split(&full, bits)),
                _ => tasks.push(full),
            }
            bytes = 0;
        }
    }
    if task.records > 0 {
        tasks.push(task);
    }
    tasks
}

/// How many bits of the hash part `bytes` into pieces of `room`.
fn split_bits(bytes: usize, room: usize) -> u32 {
    let pieces = bytes.div_ceil(room.max(1)).next_power_of_two();
    pieces.ilog2().min(SPLIT_BITS_MAX)
}

fn split(task: &MergeTask, bits: u32) -> impl Iterator<Item = MergeTask> {
    (0..1 << bits).map(move |value| MergeTask {
        split: Some(Split { bits, value }),
        records: task.records >> bits,
        ..task.clone()
    })
}

/// One merge worker.
pub struct MergeWorker {
    spec: Arc<Spec>,
    table: Box<dyn KeyTable>,
    states: Vec<Box<dyn GroupStates>>,
    grant: Grant,
    counters: Counters,
    groups: Vec<GroupId>,
    /// Groups and records of the tasks so far.
    yielded: (usize, usize),
}

impl MergeWorker {
    /// What this worker counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Aggregates the records of `task`; `None` if `cancelled` said so between two blocks.
    pub fn run(
        &mut self,
        merge: &Merge,
        task: &MergeTask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Finished>> {
        let mut lap = Lap::start();
        let stored = merge.blocks.iter();
        let with_records = stored.filter(|stored| !stored.records(&task.partitions).is_empty());
        let stored: Vec<&Stored> = with_records.collect();
        let sources = stored
            .iter()
            .flat_map(|stored| stored.sources(&task.partitions));
        let sources: Vec<Source<'_>> = sources.collect();
        let keys = match (stored.as_slice(), sources.as_slice()) {
            ([stored], [source]) if stored.distinct() && !self.spec.keys.types().is_empty() => {
                self.take_over(source, task)?
            }
            _ => match self.combine(&sources, task, cancelled)? {
                Some(keys) => keys,
                None => return Ok(None),
            },
        };
        self.counters.probes = self.counters.looked_up + self.table.collisions();
        lap.end(&mut self.counters.merge_ns);
        self.finish(keys, lap).map(Some)
    }

    /// Records that are one per key already: each is a group of its own, without a table.
    fn take_over(&mut self, source: &Source<'_>, task: &MergeTask) -> Result<DistinctKeys> {
        let (block, records) = self.open(source, task)?;
        let slice = block.slice(records);
        let total = slice.hashes.len();
        let groups: Vec<GroupId> = (0..total as u32).map(GroupId).collect();
        self.aggregate(&slice, Groups::Ids(&groups), total)?;
        self.hold(block.bytes())?;
        Ok(slice.distinct_keys())
    }

    /// One group per key of all the records; `None` if `cancelled`.
    fn combine(
        &mut self,
        sources: &[Source<'_>],
        task: &MergeTask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<DistinctKeys>> {
        // As many per record as in the tasks before; half of them in the first.
        let (groups, records) = self.yielded;
        self.table
            .expect(task.records * (groups + 1) / (records + 2));
        for source in sources {
            if cancelled() {
                return Ok(None);
            }
            let (block, records) = self.open(source, task)?;
            for start in records.clone().step_by(CHUNK_RECORDS) {
                let chunk = start..(start + CHUNK_RECORDS).min(records.end);
                self.absorb(&block.slice(chunk))?;
            }
            self.hold(block.bytes())?;
        }
        self.yielded.0 += self.table.len();
        self.yielded.1 += task.records;
        Ok(Some(self.table.drain()))
    }

    fn open<'a>(
        &mut self,
        source: &Source<'a>,
        task: &MergeTask,
    ) -> Result<(Opened<'a>, Range<usize>)> {
        let above = self.spec.sizes.partitions.ilog2();
        let views = self.spec.keys.views();
        source.open(task.split, above, views, &mut self.counters)
    }

    /// Looks up and aggregates a chunk of records.
    fn absorb(&mut self, slice: &Slice<'_>) -> Result<()> {
        let mut groups = std::mem::take(&mut self.groups);
        groups.clear();
        self.table.assign(slice.keys, slice.hashes, &mut groups)?;
        self.counters.looked_up += slice.hashes.len() as u64;
        let result = self.aggregate(slice, Groups::Ids(&groups), self.table.len());
        self.groups = groups;
        result
    }

    fn aggregate(&mut self, slice: &Slice<'_>, groups: Groups<'_>, total: usize) -> Result<()> {
        for (at, states) in self.states.iter_mut().enumerate() {
            match slice.aggregate(at) {
                Records::Rows(Arguments { columns, filter }) => {
                    states.update(&columns, filter.as_ref(), groups, total)?;
                }
                Records::Partial(columns) => states.merge(&columns, groups, total)?,
            }
        }
        Ok(())
    }

    /// Covers the table, its states and `read` bytes of records.
    fn hold(&mut self, read: usize) -> Result<()> {
        let states: usize = self.states.iter().map(|s| s.bytes()).sum();
        let bytes = self.table.bytes() + states + read;
        self.counters.holds(bytes);
        self.grant.hold_or_insist(bytes, WORKING_BYTES)
    }

    fn finish(&mut self, keys: DistinctKeys, mut lap: Lap) -> Result<Finished> {
        // Without GROUP BY there is one group, also when no row came.
        let keyless = self.spec.keys.types().is_empty();
        let groups = if keyless { 1 } else { keys.keys.len() };
        let results = self
            .states
            .iter_mut()
            .map(|s| s.drain_final(groups))
            .collect::<Result<Vec<_>>>()?;
        self.counters.groups += groups as u64;
        lap.end(&mut self.counters.emit_ns);
        Ok(Finished::new(Arc::clone(&self.spec), keys, results, groups))
    }
}
