//! Where one worker's memory comes from, and where its blocks go that memory does not hold: to disk or to another worker.
//!
//! In: what the worker holds. Out: a grant that covers it, blocks on disk.
//! Invariant: blocks are covered by this worker's grant, by the grant they were handed over with, or on disk.
//! Not here: emptying the table, which takes states (`build`).

use std::sync::Arc;

use super::WORKING_BYTES;
use super::staging::Staging;
use crate::combine::NextLook;
use crate::error::{Error, Result};
use crate::runtime::{Counters, Grant};
use crate::shared_blocks::{CoveredBlocks, are_many};
use crate::spec::Spec;
use crate::spill::{Spill, SpillFile, Stored};

/// Blocks of less are not worth writing because another worker needs memory.
const CALLED_BYTES: usize = 4 << 20;

/// How much of what a worker holds its grant covers.
#[derive(PartialEq, Eq)]
pub(super) enum Covered {
    /// All of it.
    All,
    /// Not enough: the table has to go to disk as well.
    Blocks,
}

/// One worker's memory and disk.
pub(super) struct Overflow {
    pub(super) spec: Arc<Spec>,
    pub(super) grant: Grant,
    /// Where blocks go that memory does not hold.
    file: Option<SpillFile>,
    spilled: Vec<Stored>,
    /// How many calls for memory this worker has answered.
    answered: usize,
    /// False once blocks of two workers had little in common.
    pub(super) may_hand: bool,
    pub(super) next_look: NextLook,
}

impl Overflow {
    /// Without `spill` a build ends where memory does.
    pub(super) fn new(spec: Arc<Spec>, grant: Grant, spill: Option<Arc<Spill>>) -> Self {
        let overflow = Self {
            grant,
            answered: spill.as_ref().map_or(0, |spill| spill.calls()),
            file: spill.map(SpillFile::new),
            spilled: Vec::new(),
            may_hand: true,
            next_look: NextLook::first(spec.sizes.repeat_bytes),
            spec,
        };
        if let Some(spill) = overflow.sharing() {
            spill.shared_blocks().begin();
        }
        overflow
    }

    /// What all workers share, if blocks may go to disk.
    pub(super) fn spill(&self) -> Option<&Arc<Spill>> {
        self.file.as_ref().map(SpillFile::shared)
    }

    /// The same, if workers share blocks.
    pub(super) fn sharing(&self) -> Option<&Arc<Spill>> {
        let spill = self.spill().filter(|spill| spill.shares());
        spill.filter(|_| are_many(&self.spec.sizes))
    }

    /// Bytes of memory that nobody has taken.
    pub(super) fn free(&self) -> usize {
        self.grant.free()
    }

    /// True if something is on disk.
    pub(super) fn is_on_disk(&self) -> bool {
        !self.spilled.is_empty()
    }

    /// Covers `beside`, what is staged and `more`; blocks that memory has no room for go to disk.
    pub(super) fn cover(
        &mut self,
        beside: usize,
        more: usize,
        staging: &mut Staging,
        counters: &mut Counters,
    ) -> Result<Covered> {
        let held = beside + staging.bytes();
        counters.holds(held);
        // Asked after every batch: a reference of its own would be a write that all workers share.
        let Some(calls) = self.spill().map(|spill| spill.calls()) else {
            self.grant.hold(held)?;
            return Ok(Covered::All);
        };
        if held > self.spec.sizes.held_bytes {
            self.write(staging, counters)?;
            return Ok(Covered::Blocks);
        }
        let is_called = std::mem::replace(&mut self.answered, calls) < calls;
        if is_called && staging.block_bytes() >= CALLED_BYTES {
            self.write(staging, counters)?;
        }
        let wanted = beside + staging.bytes() + more;
        match self.grant.hold_or_insist(wanted, WORKING_BYTES) {
            Err(Error::Memory { .. }) => {}
            done => return done.map(|()| Covered::All),
        }
        let many = staging.block_bytes() > held / 2;
        if let Some(spill) = self.spill().cloned() {
            self.take_handed(&spill, staging);
            self.write(staging, counters)?;
            self.answered = spill.call();
        }
        match self.grant.hold(beside + staging.bytes() + more) {
            Ok(()) if many => Ok(Covered::All),
            _ => Ok(Covered::Blocks),
        }
    }

    /// True if all of so many bytes may stay in memory, which they are covered for then.
    pub(super) fn has_room(&mut self, held: usize, more: usize) -> bool {
        held <= self.spec.sizes.held_bytes && self.grant.hold(held.saturating_add(more)).is_ok()
    }

    /// Covers what is left after all went to disk.
    pub(super) fn cover_rest(&mut self, left: usize) -> Result<()> {
        self.grant.hold_or_insist(left, WORKING_BYTES)
    }

    /// All blocks go to disk.
    pub(super) fn write(&mut self, staging: &mut Staging, counters: &mut Counters) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let written = file.write(staging.blocks(), counters)?;
        self.spilled.extend(written);
        staging.take_blocks();
        self.next_look = NextLook::first(self.spec.sizes.repeat_bytes);
        Ok(())
    }

    /// True if another worker had left blocks.
    pub(super) fn take_handed(&mut self, spill: &Spill, staging: &mut Staging) -> bool {
        let handed = self.take_in(spill.take_handed(), staging);
        self.take_in(spill.shared_blocks().take_share(), staging) || handed
    }

    /// At the end: what another worker had left, and what is this worker's of the blocks of all.
    pub(super) fn take_rest(&mut self, staging: &mut Staging) -> Result<()> {
        if let Some(spill) = self.sharing().cloned() {
            while spill.shared_blocks().combine_next(&self.spec)? {}
            self.take_in(spill.shared_blocks().end(), staging);
        }
        if let Some(spill) = self.spill().cloned() {
            self.take_in(spill.take_handed(), staging);
        }
        Ok(())
    }

    pub(super) fn take_in(&mut self, left: Option<CoveredBlocks>, staging: &mut Staging) -> bool {
        let Some(CoveredBlocks { blocks, grant }) = left else {
            return false;
        };
        staging.join(blocks);
        self.grant.join(grant);
        true
    }

    /// Leaves the blocks to the next worker that is short of memory, and to whoever is done.
    pub(super) fn hand_over(&mut self, beside: usize, spill: &Spill, staging: &mut Staging) {
        let blocks = staging.take_blocks();
        let grant = self.grant.split(beside + staging.bytes());
        let refused = spill.hand(CoveredBlocks { blocks, grant });
        self.take_in(refused, staging);
    }

    /// Everything for the merge, first what is on disk, and the grant that covers the rest.
    pub(super) fn finish(self, mut staging: Staging) -> (Vec<Stored>, Grant) {
        let mut stored = self.spilled;
        stored.extend(staging.take_blocks().into_iter().map(Stored::Memory));
        (stored, self.grant)
    }
}
