//! Groups that lie side by side by address: ranges of addresses, each merged by one worker without a hash.
//!
//! In: addressed groups of all workers. Out: tasks, and the groups of each.
//! Invariant: an address is in one range. Ranges are cut where the groups are, so clustered keys are spread over the tasks; each
//! has states and a table of its worker's own.
//! Not here: whether groups are merged so (`Merge::new`).

use std::sync::Arc;

use super::{
    Merge, MergeTask, MergeWorker, Merged, REPARTITION_BITS_MAX, TUPLE_BYTES, TaskPlanner,
};
use crate::addressed::SideBySide;
use crate::combine::CHUNK_TUPLES;
use crate::error::Result;
use crate::keys::DistinctKeys;
use crate::partition::share;
use crate::runtime::Grant;
use crate::spec::Spec;
use crate::spill::{Blocks, PartitionLevel, Stored};

/// A task has of each worker at least so large a part of the bytes that are enough for it. What it costs to come to a worker's
/// groups, whose lines no cache holds, is then less than merging them. 10,000 counts of each of 222 workers take 15 ms of CPU
/// time in 59 tasks and 11 in 30, which other cores would wait for twice as long.
const WORKER_SHARE: usize = 512;

/// Tasks of about as many groups each, all from so many addresses as are in use.
pub(super) fn tasks(all: SideBySide, spec: &Spec, grant: Option<Grant>) -> Vec<MergeTask> {
    let (tuples, bytes) = (all.tuples(), all.bytes());
    let enough_bytes = spec.sizes.task_tuples * TUPLE_BYTES;
    let of_workers = all.workers() * (enough_bytes / WORKER_SHARE).max(1);
    let tuple_bytes = (bytes / tuples.max(1)).max(1);
    let enough = spec.sizes.task_tuples.min(enough_bytes / tuple_bytes);
    let enough = enough.max(of_workers / tuple_bytes).max(1);
    let ranges = all.ranges(tuples.div_ceil(enough).max(1));
    let size = share(tuples / ranges.len(), tuples, bytes);
    let level = Arc::new(PartitionLevel {
        blocks: Blocks::default(),
        by_address: Some(all),
        bits: 0,
        tuples,
        of_tuples: usize::MAX,
        _grant: grant,
    });
    let task = |addresses| MergeTask {
        level: Arc::clone(&level),
        partitions: addresses,
        size,
        piece: None,
    };
    ranges.into_iter().map(task).collect()
}

impl MergeWorker {
    /// One group per address of all the workers' groups.
    pub(super) fn groups_by_address(
        &mut self,
        all: &SideBySide,
        task: &MergeTask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Merged> {
        self.addresses.begin(&task.partitions);
        let mut groups = Vec::with_capacity(CHUNK_TUPLES);
        for (one, own) in all.within(&task.partitions) {
            for start in own.clone().step_by(CHUNK_TUPLES) {
                if cancelled() {
                    return Ok(Merged::Cancelled);
                }
                let chunk = start..(start + CHUNK_TUPLES).min(own.end);
                groups.clear();
                let addresses = one.groups.addresses(chunk.clone());
                self.addresses.assign(addresses, &one.way, &mut groups);
                let total = self.addresses.addresses().len();
                let columns = |at| one.groups.aggregate(at, &chunk);
                self.combiner.aggregate_all(columns, &groups, total)?;
            }
            self.hold(0)?;
        }
        let addresses = self.addresses.addresses();
        let mut hashes = Vec::with_capacity(addresses.len());
        let keys = all.columns(addresses);
        let keys = self.spec.keys.encode(&keys, addresses.len(), &mut hashes)?;
        let keys = DistinctKeys { keys, hashes };
        self.finish(keys, &task.level).map(Merged::Groups)
    }

    /// Memory has no room for the groups of a task: it becomes blocks, whose tasks can be repartitioned.
    pub(super) fn blocks_of_addresses(
        &mut self,
        all: &SideBySide,
        merge: &Merge,
        task: &MergeTask,
    ) -> Result<Merged> {
        let bits = REPARTITION_BITS_MAX;
        let blocks = all.within(&task.partitions).map(|(one, own)| {
            let block = one.groups.block(&self.spec, own, bits)?;
            Ok(Stored::Memory(block))
        });
        let blocks = Blocks::new(blocks.collect::<Result<_>>()?, 1 << bits);
        let planner = TaskPlanner {
            bits,
            ..TaskPlanner::top(&self.spec, usize::MAX, None)
        };
        let tasks = planner.tasks(blocks);
        merge.tasks.lock().extend(tasks);
        self.counters.repartitioned += 1;
        Ok(Merged::Repartitioned)
    }
}
