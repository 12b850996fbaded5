//! What one group-by computes and within which sizes; shared, read-only, by all workers.
//!
//! In: a key layout, aggregates, sizes. Out: `Spec`.
//! Not here: anything that changes while the query runs.

use std::sync::Arc;

use crate::batch::Batch;
use crate::keys::KeyLayout;
use crate::states::Aggregate;

/// The sizes that steer the operator. Tests shrink them so that small inputs take every path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes a hot table may hold before the policy looks at it: the core's own cache.
    pub hot_bytes: usize,
    /// Bytes a table may grow to when everything seen suggests that all groups will fit.
    pub grown_bytes: usize,
    /// Number of partitions, a power of two.
    pub partitions: usize,
    /// Rows of one block of partitioned rows.
    pub block_rows: usize,
    /// Bytes of one block's keys of varying length: their places have 32 bits.
    pub block_bytes: usize,
    /// Rows that skip the table before it is tried again.
    pub bypass_rows: usize,
    /// Groups by all keys of grouping sets that a worker makes before it looks whether they are few.
    pub base_groups: usize,
    /// Tuples that make a merge task worth handing out.
    pub task_tuples: usize,
    /// Slots of a direct table.
    pub direct_slots: usize,
    /// Slots of a direct table over a single column of integers, which has more where memory is ample.
    pub direct_range: usize,
    /// Bytes of a direct table and its states, were each slot a group, up to which it may be kept beyond the cache.
    pub array_bytes: usize,
    /// Workers of one execution: the merge's tasks share memory.
    pub workers: usize,
    /// Bytes of blocks from which a worker looks whether their groups repeat.
    pub repeat_bytes: usize,
    /// Bytes that a worker holds before it writes to disk, even if the budget has more.
    pub held_bytes: usize,
    /// Bytes of tuples that a merge task has at most once something is on disk, even if the budget has more.
    pub room_bytes: usize,
}

impl Sizes {
    /// The sizes for `workers` workers with `l2_bytes` of private cache each.
    pub fn for_machine(workers: usize, l2_bytes: usize) -> Self {
        Self {
            // A quarter of the cache is left to what flows by.
            hot_bytes: (l2_bytes * 3 / 4).clamp(512 << 10, 4 << 20),
            grown_bytes: 16 << 20,
            partitions: (workers * 4).next_power_of_two().clamp(256, 4096),
            block_rows: 64 << 10,
            block_bytes: 1 << 30,
            bypass_rows: 1 << 20,
            base_groups: 256 << 10,
            task_tuples: 8 << 10,
            direct_slots: 1 << 20,
            direct_range: 1 << 22,
            // Each worker's groups are tuples of the merge.
            array_bytes: ((128 << 20) / workers).clamp(16 << 20, 64 << 20),
            workers,
            repeat_bytes: 32 << 20,
            held_bytes: usize::MAX,
            room_bytes: usize::MAX,
        }
    }

    /// Sizes so small that a few hundred rows grow, flush and bypass tables.
    pub fn tiny() -> Self {
        Self {
            hot_bytes: 1 << 10,
            grown_bytes: 2 << 10,
            partitions: 8,
            block_rows: 64,
            block_bytes: 1 << 10,
            bypass_rows: 128,
            base_groups: 64,
            task_tuples: 16,
            direct_slots: 64,
            direct_range: 256,
            array_bytes: 8 << 10,
            workers: 2,
            repeat_bytes: 4 << 10,
            held_bytes: usize::MAX,
            room_bytes: usize::MAX,
        }
    }

    /// Sizes so small that every batch goes to disk.
    pub fn spilling() -> Self {
        Self {
            held_bytes: 0,
            room_bytes: 24 << 10,
            ..Self::tiny()
        }
    }
}

/// One group-by: keys, aggregates, sizes.
pub struct Spec {
    /// How key rows are encoded.
    pub keys: KeyLayout,
    /// The aggregates, in output order.
    pub aggregates: Vec<Arc<dyn Aggregate>>,
    /// The sizes that steer the operator.
    pub sizes: Sizes,
    /// Of keys and then aggregates, the columns that somebody reads.
    emitted: Vec<usize>,
}

impl Spec {
    /// Keys, then aggregates, all of which somebody reads.
    pub fn new(keys: KeyLayout, aggregates: Vec<Arc<dyn Aggregate>>, sizes: Sizes) -> Self {
        assert!(
            sizes.partitions.is_power_of_two(),
            "partitions is a power of two"
        );
        Self {
            emitted: (0..keys.types().len() + aggregates.len()).collect(),
            keys,
            aggregates,
            sizes,
        }
    }

    /// The same with other columns in the result; `columns` counts keys, then aggregates.
    #[must_use]
    pub fn emitting(mut self, columns: Vec<usize>) -> Self {
        self.emitted = columns;
        self
    }

    /// The columns of the result, in its order.
    pub(crate) fn emitted(&self) -> &[usize] {
        &self.emitted
    }

    /// A worker's share of the bytes of the keys' shared dictionaries.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.keys.shared_bytes() / self.sizes.workers
    }

    /// True without GROUP BY: there is one group.
    pub(crate) fn is_keyless(&self) -> bool {
        self.keys.types().is_empty()
    }

    /// True of keys without aggregates: a run of equal keys is one tuple, whatever its length.
    pub(crate) fn is_bare(&self) -> bool {
        self.aggregates.is_empty()
    }

    /// True if the states of some aggregate are their rows.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.aggregates.iter().any(|a| a.keeps_rows())
    }

    /// True if rows may stand in blocks as they are: they are for all aggregates, and several batches for one column.
    pub(crate) fn rows_mix(&self, batch: &Batch) -> bool {
        let mut rows = self.aggregates.iter().zip(&batch.arguments);
        rows.all(|(aggregate, arguments)| {
            let arguments = arguments.as_ref();
            arguments.is_some_and(|arguments| match batch.are_partial {
                true => arguments.mix(),
                false => aggregate.carried_mix(arguments),
            })
        })
    }
}
