//! What happened, counted by each worker for itself and added up by the reader.
//!
//! In: increments by the one owner. Out: sums for EXPLAIN ANALYZE and the progress bar.
//! Invariant: no counter is shared while rows flow.

use std::time::Instant;

/// Counters, each with its doc; all of them are numbers that add up.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts and times of one worker, or of several added up.
        #[derive(Debug, Clone, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
            /// Table kinds that were used, in order of first use.
            pub kinds: Vec<&'static str>,
        }

        impl Counters {
            /// Adds another worker's counters.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
                for kind in &other.kinds {
                    self.uses(kind);
                }
            }
        }
    };
}

counters! {
    /// Rows pushed.
    rows,
    /// Batches pushed.
    batches,
    /// Groups that the build's tables held, over all flushes.
    built_groups,
    /// Groups emitted.
    groups,
    /// Slots looked at in hashed tables, build and merge.
    probes,
    /// Rows that were looked up in hashed tables, build and merge.
    looked_up,
    /// Times a hot table was emptied into partitions.
    flushes,
    /// Rows that went to partitions without a lookup.
    bypassed_rows,
    /// Rows of groups that a LIMIT has not chosen.
    not_chosen_rows,
    /// Rows that were pre-aggregated by the codes of their keys.
    pre_aggregated_rows,
    /// Times a direct table's ranges grew.
    widened,
    /// Blocks of partitioned tuples.
    blocks,
    /// Times that blocks with the same groups became one before the merge.
    combined,
    /// Times that blocks were written to disk.
    spills,
    /// Bytes that were written to disk.
    spilled_bytes,
    /// Bytes that were read back.
    read_bytes,
    /// Tasks of the merge that memory had no room for.
    repartitioned,
    /// Pieces of tasks that were more than a worker's share.
    pieces,
    /// Most bytes held at once (a sum over workers when added up).
    bytes_peak,
    /// Encoding and hashing keys.
    hash_ns,
    /// Looking up groups.
    assign_ns,
    /// Updating states.
    update_ns,
    /// Sorting tuples into partitions.
    partition_ns,
    /// Writing blocks to disk.
    spill_ns,
    /// Reading them back.
    read_ns,
    /// Merging partitions.
    merge_ns,
    /// Decoding keys and finishing results.
    emit_ns,
}

impl Counters {
    /// Notes that a table of this kind is used.
    pub fn uses(&mut self, kind: &'static str) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    /// Notes how much is held now.
    pub fn holds(&mut self, bytes: usize) {
        self.bytes_peak = self.bytes_peak.max(bytes as u64);
    }
}

/// A stopwatch: adds the time since its start to a counter, and starts anew.
#[derive(Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Adds the time since the last lap to `ns`.
    pub(crate) fn lap(&mut self, ns: &mut u64) {
        let now = Instant::now();
        *ns += u64::try_from((now - self.0).as_nanos()).unwrap_or(u64::MAX);
        self.0 = now;
    }
}
