//! What happened, counted by each worker for itself and added up by the reader.
//!
//! In: increments by the one owner. Out: sums for EXPLAIN ANALYZE and the progress bar.
//! Invariant: no counter is shared while rows flow.

use std::time::Instant;

/// Counts and times of one worker, or of several added up.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Rows pushed.
    pub rows: u64,
    /// Batches pushed.
    pub batches: u64,
    /// Groups that the build's tables held, over all flushes.
    pub built_groups: u64,
    /// Groups emitted.
    pub groups: u64,
    /// Slots looked at in hashed tables, build and merge.
    pub probes: u64,
    /// Rows that were looked up in hashed tables, build and merge.
    pub looked_up: u64,
    /// Times a hot table was emptied into partitions.
    pub flushes: u64,
    /// Rows that went to partitions without a lookup.
    pub bypassed_rows: u64,
    /// Rows that were added up by the codes of their keys.
    pub tallied_rows: u64,
    /// Times a direct table's ranges grew.
    pub widened: u64,
    /// Blocks of partitioned tuples.
    pub blocks: u64,
    /// Times that blocks with the same groups became one before the merge.
    pub combined: u64,
    /// Times that blocks were written to disk.
    pub spills: u64,
    /// Bytes that were written to disk.
    pub spilled_bytes: u64,
    /// Bytes that were read back.
    pub read_bytes: u64,
    /// Tasks of the merge that memory had no room for.
    pub parted: u64,
    /// Most bytes held at once (a sum over workers when added up).
    pub bytes_peak: u64,
    /// Table kinds that were used, in order of first use.
    pub kinds: Vec<&'static str>,
    /// Encoding and hashing keys.
    pub hash_ns: u64,
    /// Looking up groups.
    pub assign_ns: u64,
    /// Updating states.
    pub update_ns: u64,
    /// Sorting tuples into partitions.
    pub partition_ns: u64,
    /// Writing blocks to disk.
    pub spill_ns: u64,
    /// Reading them back.
    pub read_ns: u64,
    /// Merging partitions.
    pub merge_ns: u64,
    /// Decoding keys and finishing results.
    pub emit_ns: u64,
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

    /// Adds another worker's counters.
    pub fn add(&mut self, other: &Self) {
        let pairs: [(&mut u64, u64); 24] = [
            (&mut self.rows, other.rows),
            (&mut self.batches, other.batches),
            (&mut self.built_groups, other.built_groups),
            (&mut self.groups, other.groups),
            (&mut self.probes, other.probes),
            (&mut self.looked_up, other.looked_up),
            (&mut self.flushes, other.flushes),
            (&mut self.bypassed_rows, other.bypassed_rows),
            (&mut self.tallied_rows, other.tallied_rows),
            (&mut self.widened, other.widened),
            (&mut self.blocks, other.blocks),
            (&mut self.combined, other.combined),
            (&mut self.spills, other.spills),
            (&mut self.spilled_bytes, other.spilled_bytes),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.parted, other.parted),
            (&mut self.bytes_peak, other.bytes_peak),
            (&mut self.hash_ns, other.hash_ns),
            (&mut self.assign_ns, other.assign_ns),
            (&mut self.update_ns, other.update_ns),
            (&mut self.partition_ns, other.partition_ns),
            (&mut self.spill_ns, other.spill_ns),
            (&mut self.read_ns, other.read_ns),
            (&mut self.merge_ns, other.merge_ns),
        ];
        for (own, others) in pairs {
            *own += others;
        }
        self.emit_ns += other.emit_ns;
        for kind in &other.kinds {
            self.uses(kind);
        }
    }
}

/// Adds the time since its start to a counter, and starts anew.
#[derive(Debug)]
pub(crate) struct Lap(Instant);

impl Lap {
    /// Starts.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Adds the time since the last lap to `ns`.
    pub(crate) fn end(&mut self, ns: &mut u64) {
        let now = Instant::now();
        *ns += u64::try_from((now - self.0).as_nanos()).unwrap_or(u64::MAX);
        self.0 = now;
    }
}
