//! Blocks of a worker in which the same groups repeat become one.
//!
//! In: a build's blocks, and those that other workers left where memory is short. Out: fewer of them, where that is worth it.
//! Not here: combining itself (`combine`), what goes to disk (`overflow`).

use super::allocated;
use super::overflow::Overflow;
use super::staging::Staging;
use crate::combine::{WORTH, WORTH_AT_ANY_TIME, combine};
use crate::error::Result;
use crate::runtime::Counters;
use crate::runtime::counters::Stopwatch;
use crate::spec::Sizes;

/// Where memory is not short, blocks grow by so many times these bytes before they are combined again. Of
/// 100 M rows of 2 M keys in turn, four times and from the first on: 550 instead of 370 MB, 1.6 instead of 2.2 s.
const UNHURRIED: usize = 2;

/// Bytes of blocks at which a worker looks again whether their groups repeat.
#[derive(Clone, Copy)]
pub(super) struct NextLook {
    /// Whether they repeat so much that combining them costs next to nothing.
    early: usize,
    /// Where memory is short.
    short: usize,
    /// Where it is not.
    ample: usize,
}

impl NextLook {
    pub(super) fn first(sizes: &Sizes) -> Self {
        Self::after(0, true, sizes)
    }

    /// After a look at so many bytes: it costs a sample, combining a lookup for every tuple.
    fn after(blocks_bytes: usize, is_worth_it: bool, sizes: &Sizes) -> Self {
        let short = match is_worth_it {
            true => 2 * blocks_bytes,
            false => blocks_bytes + blocks_bytes / 4,
        };
        let ample = match is_worth_it {
            true => blocks_bytes + UNHURRIED * sizes.repeat_bytes,
            false => short,
        };
        let short = short.max(sizes.repeat_bytes);
        let early = match is_worth_it {
            true => blocks_bytes + sizes.repeat_bytes / 2,
            false => usize::MAX,
        };
        Self {
            early,
            short,
            ample: ample.max(short),
        }
    }
}

impl Overflow {
    /// True if memory would not hold as much again of every worker.
    fn is_short(&self, beside: usize, staging: &Staging) -> bool {
        let held = beside + staging.bytes();
        let free = self.spec.sizes.held_bytes.saturating_sub(held);
        let free = self.grant.free().min(free);
        free < staging
            .block_bytes()
            .saturating_mul(self.spec.sizes.workers)
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
        let NextLook {
            early,
            short,
            ample,
        } = self.next_look;
        let bytes = staging.block_bytes();
        if bytes < ample && (bytes < short || !self.is_short(beside, staging)) {
            if bytes >= early {
                let worth = WORTH_AT_ANY_TIME;
                self.next_look = match self.combine_blocks(worth, beside, staging, counters)? {
                    true => NextLook::after(staging.block_bytes(), true, &self.spec.sizes),
                    false => NextLook {
                        early: usize::MAX,
                        ..self.next_look
                    },
                };
            }
            return Ok(());
        }
        let mut is_worth_it = self.combine_blocks(WORTH, beside, staging, counters)?;
        let others = self.spill().filter(|spill| spill.shares());
        if let Some(spill) = others.cloned()
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
        self.next_look = NextLook::after(staging.block_bytes(), is_worth_it, &self.spec.sizes);
        Ok(())
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
