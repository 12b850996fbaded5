//! Blocks that many workers leave to all of them, since each has met the same groups.
//!
//! In: blocks of workers, each with what covers it. Out: fewer tuples of the same groups, to workers that are done or short of
//! memory.
//! Invariant: a tuple is in a block that waits, or in a range of a pass that one worker combines. Nobody waits for anybody: a
//! worker takes what is there when its build ends, the last one all. Two workers hold what they have met twice, 16 of them 16
//! times. Shared, it is held once, and what has come since is bounded by the same bytes whatever their number.
//! Not here: when blocks are left and ranges are combined (`build`), disk (`spill`).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::combine::{Combiner, NextLook, combined_range, fair_tuples, ranges};
use crate::error::Result;
use crate::partition::{Block, Size};
use crate::runtime::{Grant, allocated};
use crate::spec::{Sizes, Spec};

/// So many workers or fewer have blocks of their own: bytes of so many are what all others share.
const ALONE_MAX: usize = 2;

/// Blocks, and what covers them.
pub(crate) struct CoveredBlocks {
    pub blocks: Vec<Block>,
    pub grant: Grant,
}

/// What all workers of a grouping share of their blocks.
#[derive(Default)]
pub(crate) struct SharedBlocks {
    state: Mutex<SharedState>,
    /// True while ranges of a pass are left; written under the lock. Every worker looks at it after each batch, without the lock.
    /// Whoever begins a pass sees its own write: it combines what is left before its build ends.
    has_ranges: AtomicBool,
}

/// The lock is held for no call of the budget's.
#[derive(Default)]
struct SharedState {
    /// Builds that have begun and not ended.
    builds: usize,
    blocks: Vec<Block>,
    bytes: usize,
    grant: Option<Grant>,
    next_look: Option<NextLook>,
    combining: Combining,
}

/// Whether blocks beside those that wait are being combined.
#[derive(Default)]
enum Combining {
    #[default]
    Nothing,
    /// A worker looks at a sample of them.
    Sample,
    /// Ranges of them are left, from this one on.
    Ranges(Arc<Pass>, usize),
}

/// Blocks of which every range becomes a block.
struct Pass {
    blocks: Vec<Block>,
    ranges: Vec<(Range<usize>, Size)>,
    size: Size,
    /// Covers the blocks.
    grant: Grant,
}

/// True if there are so many workers that they share blocks.
pub(crate) fn are_many(sizes: &Sizes) -> bool {
    sizes.workers > ALONE_MAX
}

/// Bytes of blocks that a worker keeps until it leaves them to all.
pub(crate) fn left_bytes(sizes: &Sizes) -> usize {
    ALONE_MAX * sizes.repeat_bytes / sizes.workers
}

impl SharedBlocks {
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        #[cfg(test)]
        tests::LOCKS.set(tests::LOCKS.get() + 1);
        self.state.lock()
    }

    /// A build begins.
    pub(crate) fn begin(&self) {
        self.lock().builds += 1;
    }

    /// True if somebody has left ranges to be combined.
    pub(crate) fn has_ranges(&self) -> bool {
        self.has_ranges.load(Ordering::Relaxed)
    }

    /// A build ends: its share of the blocks, all of them if it is the last.
    pub(crate) fn end(&self) -> Option<CoveredBlocks> {
        let mut state = self.lock();
        let share = state.take_share();
        state.builds -= 1;
        share
    }

    /// One build's share of the blocks, or none.
    pub(crate) fn take_share(&self) -> Option<CoveredBlocks> {
        self.lock().take_share()
    }

    /// Bytes of all blocks, of those that are left to be combined too.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.lock();
        let of_pass = match &state.combining {
            Combining::Ranges(pass, _) => pass.size.bytes,
            Combining::Nothing | Combining::Sample => 0,
        };
        state.bytes + of_pass
    }

    /// Takes blocks in, and gives back what covers more than they need.
    pub(crate) fn leave(&self, left: CoveredBlocks) -> Grant {
        self.lock().add(left)
    }

    /// Looks whether groups repeat, if it is time to: a sample is combined, and where that pays all ranges will be. True if so.
    pub(crate) fn look(&self, spec: &Arc<Spec>) -> Result<bool> {
        let step = ALONE_MAX * spec.sizes.repeat_bytes;
        let due = self.lock().take_due(step);
        let Some((blocks, grant, worth)) = due else {
            return Ok(false);
        };
        let pass = Pass::new(blocks, grant);
        let Some((_, Size { bytes: before, .. })) = pass.ranges.first().cloned() else {
            let _spare = self.lock().put_back(pass, worth, step);
            return Ok(false);
        };
        let first = pass.combine(0, spec)?;
        let after: usize = first.blocks.iter().map(Block::bytes).sum();
        let part = after as f64 / before.max(1) as f64;
        if part > worth {
            let _spare = self.lock().put_back(pass, worth, step);
            return Ok(false);
        }
        let left = (pass.size.bytes as f64 * part) as usize;
        let pass = Arc::new(pass);
        let next_look = NextLook::after(left, true, step);
        let _spare = {
            let mut state = self.lock();
            let spare = state.go_on(&pass, first, next_look);
            self.has_ranges.store(state.has_ranges(), Ordering::Relaxed);
            spare
        };
        Ok(true)
    }

    /// Combines the next range of a pass; false if there is none.
    pub(crate) fn combine_next(&self, spec: &Arc<Spec>) -> Result<bool> {
        if !self.has_ranges() {
            return Ok(false);
        }
        let next = {
            let mut state = self.lock();
            let next = state.next_range();
            self.has_ranges.store(state.has_ranges(), Ordering::Relaxed);
            next
        };
        let Some((pass, range)) = next else {
            return Ok(false);
        };
        let combined = pass.combine(range, spec)?;
        let _spare = self.lock().add(combined);
        Ok(true)
    }
}

impl SharedState {
    /// Takes blocks in; what covers more than all of them need comes back.
    fn add(&mut self, CoveredBlocks { blocks, grant }: CoveredBlocks) -> Grant {
        self.bytes += blocks.iter().map(Block::bytes).sum::<usize>();
        self.blocks.extend(blocks);
        let all = match &mut self.grant {
            Some(all) => {
                all.join(grant);
                all
            }
            none => none.insert(grant),
        };
        all.split(allocated(self.bytes))
    }

    fn take_share(&mut self) -> Option<CoveredBlocks> {
        if self.blocks.is_empty() {
            return None;
        }
        let all = self.grant.as_mut()?;
        let taken = self.blocks.len().div_ceil(self.builds.max(1));
        let left = self.blocks.len() - taken;
        let blocks = self.blocks.split_off(left);
        let bytes: usize = blocks.iter().map(Block::bytes).sum();
        let kept = match left {
            0 => 0,
            // What covers all of them covers each by its part.
            _ => (all.bytes() as f64 * (self.bytes - bytes) as f64 / self.bytes as f64) as usize,
        };
        let grant = all.split(kept);
        self.bytes -= bytes;
        Some(CoveredBlocks { blocks, grant })
    }

    /// All blocks if it is time to look at them, and which part of them may be left for that to pay.
    fn take_due(&mut self, step: usize) -> Option<(Vec<Block>, Grant, f64)> {
        if !matches!(self.combining, Combining::Nothing) {
            return None;
        }
        let next_look = self.next_look.get_or_insert_with(|| NextLook::first(step));
        let worth = next_look.worth(self.bytes, || false)?;
        let grant = self.grant.take()?;
        self.combining = Combining::Sample;
        self.bytes = 0;
        Some((std::mem::take(&mut self.blocks), grant, worth))
    }

    /// The first range is combined, the others are left to everybody.
    fn go_on(&mut self, pass: &Arc<Pass>, first: CoveredBlocks, next_look: NextLook) -> Grant {
        self.next_look = Some(next_look);
        self.combining = pass.from(1);
        self.add(first)
    }

    /// What was taken for a look waits again.
    fn put_back(&mut self, pass: Pass, worth: f64, step: usize) -> Grant {
        let Pass {
            blocks,
            size,
            grant,
            ..
        } = pass;
        let next_look = self.next_look.take();
        self.next_look = next_look.map(|next| next.in_vain(size.bytes, worth, step));
        self.combining = Combining::Nothing;
        self.add(CoveredBlocks { blocks, grant })
    }

    fn has_ranges(&self) -> bool {
        matches!(self.combining, Combining::Ranges(..))
    }

    fn next_range(&mut self) -> Option<(Arc<Pass>, usize)> {
        match std::mem::take(&mut self.combining) {
            Combining::Ranges(pass, next) => {
                self.combining = pass.from(next + 1);
                Some((pass, next))
            }
            Combining::Nothing => None,
            Combining::Sample => {
                self.combining = Combining::Sample;
                None
            }
        }
    }
}

impl Pass {
    fn new(blocks: Vec<Block>, grant: Grant) -> Self {
        let ranges = ranges(&blocks);
        let sizes = ranges.iter().map(|(_, size)| *size);
        Self {
            size: Size {
                bytes: blocks.iter().map(Block::bytes).sum(),
                ..sizes.fold(Size::default(), Size::plus)
            },
            ranges,
            blocks,
            grant,
        }
    }

    /// What is left from this range on.
    fn from(self: &Arc<Self>, range: usize) -> Combining {
        match range < self.ranges.len() {
            true => Combining::Ranges(Arc::clone(self), range),
            false => Combining::Nothing,
        }
    }

    /// One tuple per group of a range; the tuples as they are where a column has no room for so much.
    fn combine(&self, range: usize, spec: &Arc<Spec>) -> Result<CoveredBlocks> {
        let (partitions, size) = &self.ranges[range];
        let mut combiner = Combiner::new(Arc::clone(spec), spec.keys.table())?;
        let fair = fair_tuples(self.size.tuples, partitions.len(), spec.sizes.partitions);
        combiner.expect(size.tuples.min(fair) / 2);
        let blocks = match combined_range(&self.blocks, partitions, &mut combiner)? {
            Some(block) => vec![block],
            None => self.copied(partitions, spec)?,
        };
        // As much becomes free when all ranges are combined.
        let bytes = blocks.iter().map(Block::bytes).sum();
        let mut grant = self.grant.sibling();
        grant.hold_or_insist(bytes, usize::MAX)?;
        Ok(CoveredBlocks { blocks, grant })
    }

    fn copied(&self, partitions: &Range<usize>, spec: &Spec) -> Result<Vec<Block>> {
        let bits = spec.sizes.partitions.ilog2();
        let tuples = self.blocks.iter().map(|block| block.tuples(partitions));
        let all = self.blocks.iter().zip(tuples);
        let some = all.filter(|(_, tuples)| !tuples.is_empty());
        some.map(|(block, tuples)| {
            let slice = block.slice(tuples);
            slice.repartitioned(0, bits, spec.keys.views())
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::keys::KeyLayout;
    use crate::runtime::Budget;
    use crate::spill::{Disk, ScratchFile, Spill};
    use crate::{Arguments, Batch, Build, TableKind, states};

    thread_local! {
        /// How often this thread has taken the lock.
        pub(super) static LOCKS: Cell<usize> = const { Cell::new(0) };
    }

    const WORKERS: usize = 64;
    const BATCH_ROWS: i64 = 1024;

    /// Memory without limit that counts what changes it.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Budget for Counted {
        fn grow(
            &self,
            _bytes: usize,
        ) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn insist(&self, _bytes: usize) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn shrink(&self, _bytes: usize) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn free(&self) -> usize {
            usize::MAX
        }
    }

    struct Nowhere;

    impl Disk for Nowhere {
        fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    }

    /// Locks and changes of memory while 64 builds take so many batches each, beside those of their beginnings and ends.
    fn counted(batches: i64, key: impl Fn(i64) -> i64, table: TableKind) -> (usize, usize) {
        let field = Arc::new(Field::new("key", DataType::Int64, false));
        let keys = KeyLayout::new(&[field], table).expect("an integer key");
        let count = states::count("count(*)").expect("count has states");
        let sizes = Sizes::for_machine(WORKERS, 1 << 20);
        let spec = Arc::new(Spec::new(keys, vec![count], sizes));
        let budget = Arc::new(Counted::default());
        let spill = Arc::new(Spill::new(Nowhere, true));
        let new = |_| {
            let grant = Grant::new(budget.clone());
            Build::new(spec.clone(), grant, Some(spill.clone())).expect("a build")
        };
        let mut builds: Vec<_> = (0..WORKERS).map(new).collect();
        let before = LOCKS.get();
        for start in (0..batches).map(|batch| batch * BATCH_ROWS) {
            let keys: Int64Array = (start..start + BATCH_ROWS).map(&key).collect();
            let keys: ArrayRef = Arc::new(keys);
            let batch = Batch::new(keys.len(), vec![keys], vec![Arguments::default()]);
            for build in &mut builds {
                build.push(&batch).expect("memory");
            }
        }
        let counts = (LOCKS.get() - before, budget.0.load(Ordering::Relaxed));
        for build in builds {
            build.finish().expect("memory");
        }
        counts
    }

    #[test]
    fn a_batch_takes_no_lock_and_changes_no_memory_that_workers_share() {
        for table in [TableKind::Auto, TableKind::Packed] {
            let few = |batches| counted(batches, |row| row % 100, table);
            assert_eq!(few(2), few(40), "{table:?}");
            assert_eq!(few(40).0, 0, "{table:?}");
        }
    }

    /// 6.5 M rows, all of other keys: at most 50 locks and 200 changes per million rows.
    #[test]
    fn rows_that_go_by_take_few_locks() {
        let spread = |row: i64| row.wrapping_mul(0x1e37_79b9_7f4a_7c15);
        let (locks, changes) = counted(100, spread, TableKind::Packed);
        assert!(locks <= 6 * 50, "{locks} locks");
        assert!(changes <= 6 * 200, "{changes} changes of memory");
    }
}
