//! Blocks of a worker in which the same groups repeat become one.
//!
//! In: a build's blocks, and those that other workers left where memory is short. Out: fewer of them, where that is worth it.
//! Not here: combining itself (`combine`), what goes to disk (`overflow`).

use std::sync::Arc;

use super::overflow::Overflow;
use super::staging::Staging;
use crate::combine::{NextLook, WORTH, combine};
use crate::error::Result;
use crate::runtime::counters::Stopwatch;
use crate::runtime::{Counters, allocated};
use crate::shared_blocks::{CoveredBlocks, left_bytes};

impl Overflow {
    /// Bytes that the worker may hold beside what it does.
    fn room(&self, beside: usize, staging: &Staging) -> usize {
        let held = beside + staging.bytes();
        let free = self.spec.sizes.held_bytes.saturating_sub(held);
        self.grant.free().min(free)
    }

    /// True if memory would not hold as much again of every worker.
    fn is_short(&self, beside: usize, staging: &Staging) -> bool {
        let of_all = staging
            .block_bytes()
            .saturating_mul(self.spec.sizes.workers);
        self.room(beside, staging) < of_all
    }

    /// Blocks with the same groups become one: this worker's and, where memory gets short, its and those of others.
    /// Those of which little would be left soon: 10 M rows of 100,000 groups that go by the table waited in 165 MB.
    /// Also where it does not: 100 M rows of 2 M keys in turn held 2.2 GB, most of it memory never touched before.
    pub(super) fn combine_repeats(
        &mut self,
        beside: usize,
        staging: &mut Staging,
        counters: &mut Counters,
    ) -> Result<()> {
        if self.share_repeats(beside, staging, counters)? {
            return Ok(());
        }
        let is_short = || self.is_short(beside, staging);
        let Some(worth) = self.next_look.worth(staging.block_bytes(), is_short) else {
            return Ok(());
        };
        let mut is_worth_it = self.combine_blocks(worth, beside, staging, counters)?;
        let others = self.spill().filter(|spill| spill.shares());
        if let Some(spill) = others.cloned()
            && worth == WORTH
            && self.may_hand
            && self.is_short(beside, staging)
        {
            let have_met = self.take_handed(&spill, staging);
            if have_met {
                is_worth_it = self.combine_blocks(WORTH, beside, staging, counters)?;
            }
            self.may_hand = !have_met || is_worth_it;
            if self.may_hand {
                self.hand_over(beside, &spill, staging);
            }
        }
        let (bytes, step) = (staging.block_bytes(), self.spec.sizes.repeat_bytes);
        self.next_look = match is_worth_it {
            true => NextLook::after(bytes, true, step),
            false => self.next_look.in_vain(bytes, worth, step),
        };
        Ok(())
    }

    /// While memory is ample, blocks of many workers are everybody's, and so is combining them: after each of its batches a
    /// worker does a range. False if it has to see to blocks of its own.
    fn share_repeats(
        &mut self,
        beside: usize,
        staging: &mut Staging,
        counters: &mut Counters,
    ) -> Result<bool> {
        let (sizes, bytes) = (self.spec.sizes, staging.block_bytes());
        let Some(spill) = self.sharing() else {
            return Ok(false);
        };
        // After most batches: neither the lock nor a reference of its own, both of which all workers write to.
        if bytes < left_bytes(&sizes) && !spill.shared_blocks().has_ranges() {
            return Ok(true);
        }
        let spill = Arc::clone(spill);
        let shared = spill.shared_blocks();
        let mut stopwatch = Stopwatch::start();
        shared.combine_next(&self.spec)?;
        if bytes >= left_bytes(&sizes) {
            let of_all = shared.bytes() + bytes.saturating_mul(sizes.workers);
            let held = beside + staging.bytes();
            if self.room(beside, staging) < of_all || self.grant.hold(held).is_err() {
                self.take_in(shared.take_share(), staging);
                return Ok(false);
            }
            counters.holds(held + shared.bytes() / sizes.workers);
            let grant = self.grant.split(held - allocated(bytes));
            let blocks = staging.take_blocks();
            let spare = shared.leave(CoveredBlocks { blocks, grant });
            self.grant.join(spare);
            counters.combined += u64::from(shared.look(&self.spec)?);
        }
        stopwatch.lap(&mut counters.partition_ns);
        Ok(true)
    }

    /// True if that was worth it: what is left is no more than that part of what was.
    fn combine_blocks(
        &mut self,
        worth: f64,
        beside: usize,
        staging: &mut Staging,
        counters: &mut Counters,
    ) -> Result<bool> {
        let mut stopwatch = Stopwatch::start();
        let beside = beside + staging.bytes() - allocated(staging.block_bytes());
        let spill = self.spill().cloned();
        let grant = &mut self.grant;
        let mut most = 0;
        let is_worth_it = staging.change(|blocks| {
            combine(&self.spec, blocks, worth, |bytes| {
                most = most.max(bytes);
                let is_cancelled = spill.as_ref().is_some_and(|spill| spill.is_cancelled());
                !is_cancelled && grant.hold(beside + allocated(bytes)).is_ok()
            })
        })?;
        counters.combined += u64::from(is_worth_it);
        counters.holds(beside + allocated(most));
        self.grant.keep(beside + allocated(staging.block_bytes()));
        stopwatch.lap(&mut counters.partition_ns);
        Ok(is_worth_it)
    }
}
