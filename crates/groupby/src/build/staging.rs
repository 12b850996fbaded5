//! Tuples of one worker on their way to the merge: collected until they make a block, sorted by partition.
//!
//! In: rows that went by the table, groups that it held. Out: blocks in memory.
//! Invariant: a block has one kind of tuples: rows, partial states that came as rows, or groups of emptied tables.
//! Not here: disk and memory (`overflow`), combining (`repeats`).

use std::sync::Arc;

use crate::error::Result;
use crate::partition::{Block, Unsorted};
use crate::runtime::counters::Stopwatch;
use crate::runtime::{Counters, allocated};
use crate::spec::Spec;

/// Small groups of emptied tables wait until they have so many bytes: a block costs the merge a step per task. Of
/// 10 M user ids, whose tables are emptied 190 times: 190 blocks before, 47 now.
const EMPTIED_BYTES: usize = 4 << 20;

/// Tuples that become a block together.
#[derive(Default)]
struct Waiting {
    parts: Vec<Unsorted>,
    rows: usize,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, tuples: Unsorted) {
        self.rows += tuples.hashes.len();
        self.bytes += tuples.bytes();
        self.parts.push(tuples);
    }
}

/// What one worker has for the merge, in memory.
pub(super) struct Staging {
    spec: Arc<Spec>,
    /// Rows that skipped the table, and what small tables held: each kind becomes a block once it is large enough.
    rows: Waiting,
    /// True of rows that came as partial states.
    are_partial: bool,
    emptied: Waiting,
    blocks: Vec<Block>,
    block_bytes: usize,
}

impl Staging {
    /// Nothing yet.
    pub(super) fn new(spec: Arc<Spec>) -> Self {
        Self {
            spec,
            rows: Waiting::default(),
            are_partial: false,
            emptied: Waiting::default(),
            blocks: Vec::new(),
            block_bytes: 0,
        }
    }

    /// Rows that skipped the table.
    pub(super) fn push_rows(
        &mut self,
        tuples: Unsorted,
        are_partial: bool,
        counters: &mut Counters,
    ) -> Result<()> {
        if are_partial != self.are_partial && !self.rows.parts.is_empty() {
            self.sort(counters)?;
        }
        self.are_partial = are_partial;
        self.rows.push(tuples);
        if self.rows.rows >= self.spec.sizes.block_rows {
            self.sort(counters)?;
        }
        Ok(())
    }

    /// Groups of a table that was emptied.
    pub(super) fn push_groups(&mut self, tuples: Unsorted, counters: &mut Counters) -> Result<()> {
        if !tuples.mix() {
            return self.add_blocks(vec![tuples], counters);
        }
        self.emptied.push(tuples);
        let block_rows = self.spec.sizes.block_rows;
        if self.emptied.rows >= block_rows || self.emptied.bytes >= EMPTIED_BYTES {
            let parts = std::mem::take(&mut self.emptied).parts;
            self.add_blocks(parts, counters)?;
        }
        Ok(())
    }

    /// All that waits becomes blocks.
    pub(super) fn sort(&mut self, counters: &mut Counters) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let groups = std::mem::take(&mut self.emptied);
        for Waiting { parts, .. } in [groups, rows] {
            if !parts.is_empty() {
                self.add_blocks(parts, counters)?;
            }
        }
        Ok(())
    }

    /// Tuples become a block, or several where their keys are very long.
    fn add_blocks(&mut self, parts: Vec<Unsorted>, counters: &mut Counters) -> Result<()> {
        let bytes_max = self.spec.sizes.block_bytes;
        let (mut together, mut bytes) = (Vec::new(), 0);
        let spec = Arc::clone(&self.spec);
        let views = spec.keys.views();
        let pieces = parts
            .into_iter()
            .flat_map(|part| part.pieces(bytes_max, views));
        for (part, part_bytes) in pieces {
            if !together.is_empty() && bytes + part_bytes > bytes_max {
                self.add_block(std::mem::take(&mut together), counters)?;
                bytes = 0;
            }
            bytes += part_bytes;
            together.push(part);
        }
        self.add_block(together, counters)
    }

    fn add_block(&mut self, parts: Vec<Unsorted>, counters: &mut Counters) -> Result<()> {
        let mut stopwatch = Stopwatch::start();
        let bits = self.spec.sizes.partitions.ilog2();
        let block = Block::sort(parts, bits, self.spec.keys.views())?;
        self.join(vec![block]);
        counters.blocks += 1;
        stopwatch.lap(&mut counters.partition_ns);
        Ok(())
    }

    /// Blocks of another worker beside its own.
    pub(super) fn join(&mut self, blocks: Vec<Block>) {
        self.block_bytes += blocks.iter().map(Block::bytes).sum::<usize>();
        self.blocks.extend(blocks);
    }

    /// Changes the blocks, as combining does.
    pub(super) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Vec<Block>) -> Result<T>,
    ) -> Result<T> {
        let changed = change(&mut self.blocks)?;
        self.block_bytes = self.blocks.iter().map(Block::bytes).sum();
        Ok(changed)
    }

    /// The blocks, in their order.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks, which are the caller's now.
    pub(super) fn take_blocks(&mut self) -> Vec<Block> {
        self.block_bytes = 0;
        std::mem::take(&mut self.blocks)
    }

    /// True if nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        let waits = |waiting: &Waiting| !waiting.parts.is_empty();
        !waits(&self.rows) && !waits(&self.emptied) && self.blocks.is_empty()
    }

    /// Bytes of the blocks.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Bytes held, those that wait among them.
    pub(super) fn bytes(&self) -> usize {
        allocated(self.block_bytes) + self.rows.bytes + self.emptied.bytes
    }
}
