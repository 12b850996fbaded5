//! Some workers hand groups over by address, others blocks: the former become blocks, too, before the merge is cut into tasks.
//!
//! In: addressed groups, blocks. Out: tasks.
//! Invariant: nobody gets a task before the last block is there. Whoever comes meanwhile makes one; who finds none left waits,
//! for no longer than another one takes to make its block, which waits for nobody.
//! Not here: what the tasks are (`merge`).

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Merge, TaskPlanner};
use crate::addressed::AddressedGroups;
use crate::error::Result;
use crate::runtime::Grant;
use crate::spill::{Blocks, Stored};

/// How far the workers are.
pub(super) struct Settling {
    unsettled: Mutex<Option<Unsettled>>,
    settled: Condvar,
}

struct Unsettled {
    addressed: Vec<AddressedGroups>,
    /// Blocks that are being made.
    making: usize,
    blocks: Blocks,
    grant: Option<Grant>,
}

impl Settling {
    /// All is settled.
    pub(super) fn none() -> Self {
        Self {
            unsettled: Mutex::new(None),
            settled: Condvar::new(),
        }
    }

    /// Groups that become blocks beside those that there are.
    pub(super) fn new(
        addressed: Vec<AddressedGroups>,
        blocks: Blocks,
        grant: Option<Grant>,
    ) -> Self {
        let unsettled = Unsettled {
            addressed,
            making: 0,
            blocks,
            grant,
        };
        Self {
            unsettled: Mutex::new(Some(unsettled)),
            settled: Condvar::new(),
        }
    }
}

/// A block that is being made: without it, whatever the reason, there is nothing to merge.
struct Making<'a> {
    settling: &'a Settling,
    made: Option<Blocks>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut all = self.settling.unsettled.lock();
        match (&mut *all, self.made.take()) {
            (Some(unsettled), Some(made)) => {
                unsettled.making -= 1;
                unsettled.blocks.join(made);
            }
            (unsettled, _) => *unsettled = None,
        }
        self.settling.settled.notify_all();
    }
}

impl Merge {
    /// Makes blocks until none is left to make, and waits for the others'.
    pub(super) fn settle(&self) -> Result<()> {
        let settling = &self.settling;
        let mut all = settling.unsettled.lock();
        while let Some(unsettled) = &mut *all {
            if let Some(groups) = unsettled.addressed.pop() {
                unsettled.making += 1;
                MutexGuard::unlocked(&mut all, || self.make_block(&groups))?;
            } else if unsettled.making > 0 {
                settling.settled.wait(&mut all);
            } else if let Some(settled) = all.take() {
                let planner = TaskPlanner::top(&self.spec, self.room, settled.grant);
                let tasks = planner.tasks(settled.blocks);
                self.tasks.lock().extend(tasks);
            }
        }
        Ok(())
    }

    fn make_block(&self, groups: &AddressedGroups) -> Result<()> {
        let mut making = Making {
            settling: &self.settling,
            made: None,
        };
        let bits = self.spec.sizes.partitions.ilog2();
        let block = groups.block(&self.spec, 0..groups.len(), bits)?;
        making.made = Some(Blocks::new(vec![Stored::Memory(block)], 1 << bits));
        Ok(())
    }
}
