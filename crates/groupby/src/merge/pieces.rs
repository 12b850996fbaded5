//! A task that is more than one worker's share, as pieces that workers combine side by side.
//!
//! In: a task whose partition has most of its tuples from few keys. Out: pieces, each some neighbouring tuples; when the last one
//! is combined, the task of their results.
//! Invariant: nobody waits for anybody: whoever ends the last piece goes on with the results, in the order of the pieces. Where
//! one of them is refused, it goes on with the whole task instead, as if that had never been in pieces. Tried and rejected: lists
//! in pieces. Of a key with half of 4 M rows, array_agg's last step took 60 ms instead of the 48 of the whole task. All of the
//! merge took 168 instead of 124.
//! Not here: combining a piece (`merge`).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{MergeTask, even_tuples};
use crate::partition::{Block, Size, share};
use crate::runtime::Grant;
use crate::spec::{Sizes, Spec};
use crate::spill::{Blocks, PartitionLevel, Stored, StoredRange};

/// Pieces of a worker's share: one that begins last ends half a share late at most.
const PIECES_PER_SHARE: usize = 2;
/// A piece has as many tuples as so many tasks at least: it costs a table and states of its own.
const PIECE_TASKS_MIN: usize = 4;

/// Neighbouring tuples of a task.
pub(super) struct Piece {
    pub of: Arc<SplitTask>,
    number: usize,
    /// Which of the task's tuples, block by block.
    tuples: Range<usize>,
}

/// A task in pieces.
pub(super) struct SplitTask {
    pub whole: MergeTask,
    pub pieces: usize,
    /// Of all results.
    bytes: AtomicUsize,
    progress: Mutex<Progress>,
}

/// How far the workers are.
struct Progress {
    /// Pieces that are not over.
    left: usize,
    results: Results,
}

/// What came of the pieces that are over.
enum Results {
    /// A result of each, beside its number.
    All(Vec<(usize, PieceResult)>),
    /// There was no room for one of them.
    Refused,
}

/// The groups of a piece as tuples, and what covers them.
pub(super) struct PieceResult {
    pub block: Block,
    pub grant: Grant,
}

/// What is left to do when a piece is over.
pub(super) enum Rest {
    /// Other pieces.
    Pieces,
    /// Merging the results.
    Results(MergeTask),
    /// Merging the whole task.
    Whole,
}

/// A task in as many pieces as it is worth, of which all are tasks; else itself alone.
pub(super) fn split(whole: MergeTask, spec: &Spec, room: usize) -> Vec<MergeTask> {
    let level = Arc::clone(&whole.level);
    // What its partitions would have were no key frequent: results have no fewer tuples.
    let rare = share(even_tuples(&whole), whole.size.tuples, whole.size.bytes);
    let is_hot = rare.tuples <= whole.size.tuples / 2;
    // Below the top is what memory had no room for.
    let may_fit = rare.bytes <= room && level.is_top();
    let pieces = match is_hot && may_fit && !spec.keeps_rows() {
        true => piece_count(whole.size, level.tuples, &spec.sizes, room),
        false => 1,
    };
    if pieces == 1 {
        return vec![whole];
    }
    let (partitions, all) = (whole.partitions.clone(), whole.size);
    let progress = Progress {
        left: pieces,
        results: Results::All(Vec::new()),
    };
    let of = Arc::new(SplitTask {
        whole,
        pieces,
        bytes: AtomicUsize::new(0),
        progress: Mutex::new(progress),
    });
    let bounds = (0..=pieces).map(|number| part(all.tuples, number, pieces));
    let bounds: Vec<usize> = bounds.collect();
    let piece = |(number, bounds): (usize, &[usize])| MergeTask {
        level: Arc::clone(&level),
        partitions: partitions.clone(),
        size: share(bounds[1] - bounds[0], all.tuples, all.bytes),
        piece: Some(Piece {
            of: Arc::clone(&of),
            number,
            tuples: bounds[0]..bounds[1],
        }),
    };
    bounds.windows(2).enumerate().map(piece).collect()
}

/// Where the `number`th of so many pieces begins.
fn part(tuples: usize, number: usize, pieces: usize) -> usize {
    tuples / pieces * number + tuples % pieces * number / pieces
}

/// How many pieces a task of so many tuples of `all` is worth. One that is no more than a worker's share needs none: it is
/// handed out before smaller ones, which the others take meanwhile.
fn piece_count(task: Size, all: usize, sizes: &Sizes, room: usize) -> usize {
    let workers_share = all / sizes.workers;
    let most = task.tuples / (PIECE_TASKS_MIN * sizes.task_tuples).max(1);
    if task.tuples <= workers_share || most < 2 {
        return 1;
    }
    let of_share = (PIECES_PER_SHARE * task.tuples).div_ceil(workers_share.max(1));
    let of_room = task.bytes.div_ceil(room);
    of_share.max(of_room).clamp(2, most)
}

impl Piece {
    /// Those of a task's tuples that are the piece's.
    pub(super) fn of<'a>(
        &self,
        sources: impl Iterator<Item = StoredRange<'a>>,
    ) -> Vec<StoredRange<'a>> {
        let mut before = 0;
        let own = sources.filter_map(|source| {
            let (start, end) = (before, before + source.len());
            before = end;
            let own = self.tuples.start.max(start)..self.tuples.end.min(end);
            (!own.is_empty()).then(|| source.part(&(own.start - start..own.end - start)))
        });
        own.collect()
    }

    /// It is over: with a result, or without where there was no room for one.
    pub(super) fn end(&self, result: Option<PieceResult>) -> Rest {
        let (left, useless, results) = {
            // One lock per piece: some times as many as there are workers.
            let mut progress = self.of.progress.lock();
            let useless = progress.end(self.number, result);
            let results = match progress.left {
                0 => std::mem::replace(&mut progress.results, Results::Refused),
                _ => Results::Refused,
            };
            (progress.left, useless, results)
        };
        // Giving memory back takes a lock of its own.
        drop(useless);
        match results {
            _ if left > 0 => Rest::Pieces,
            Results::All(results) => Rest::Results(self.of.merging(results)),
            Results::Refused => Rest::Whole,
        }
    }
}

impl Progress {
    /// One piece less is left; what is of no use is the caller's to drop.
    fn end(&mut self, number: usize, result: Option<PieceResult>) -> Vec<(usize, PieceResult)> {
        self.left -= 1;
        match (&mut self.results, result) {
            (Results::All(results), Some(result)) => {
                results.push((number, result));
                Vec::new()
            }
            (Results::All(results), None) => {
                let useless = std::mem::take(results);
                self.results = Results::Refused;
                useless
            }
            (Results::Refused, result) => result.map(|one| (number, one)).into_iter().collect(),
        }
    }
}

impl SplitTask {
    /// False once there was no room for a result.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.progress.lock().results, Results::All(_))
    }

    /// Bytes of the results so far and of one more.
    pub(super) fn with_result(&self, bytes: usize) -> usize {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// The task that merges these results: as tuples in the place of those that they are made of.
    fn merging(&self, mut results: Vec<(usize, PieceResult)>) -> MergeTask {
        results.sort_unstable_by_key(|(number, _)| *number);
        let (mut stored, mut grant) = (Vec::new(), None::<Grant>);
        for (_, result) in results {
            stored.push(Stored::Memory(result.block));
            match &mut grant {
                Some(grant) => grant.join(result.grant),
                None => grant = Some(result.grant),
            }
        }
        let above = &self.whole.level;
        let blocks = Blocks::new(stored, above.blocks.sizes.len());
        let sizes = blocks.sizes[self.whole.partitions.clone()].iter();
        let size = sizes.copied().fold(Size::default(), Size::plus);
        MergeTask {
            level: Arc::new(PartitionLevel {
                blocks,
                by_address: None,
                bits: above.bits,
                tuples: size.tuples,
                of_tuples: above.of_tuples,
                _grant: grant,
            }),
            partitions: self.whole.partitions.clone(),
            size,
            piece: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keys::{CompactKeys, EncodedKeys, KeyLayout, TableKind};
    use crate::merge::TaskPlanner;
    use crate::partition::neighbours;
    use crate::runtime::budget::Unlimited;

    const PARTITIONS: usize = 64;

    /// Keys that count the tuples of all blocks, which have so many in each partition.
    fn block(first: u64, partitions: &[u32]) -> Block {
        let mut offsets = vec![0];
        for tuples in partitions {
            offsets.push(offsets[offsets.len() - 1] + tuples);
        }
        let tuples = u64::from(offsets[partitions.len()]);
        let keys = (first..first + tuples).map(|key| [key; 1]).collect();
        let keys = CompactKeys::FixedWidth {
            keys: EncodedKeys::of_fixed_width(keys, Vec::new()),
            nulls: Vec::new(),
        };
        Block::new(keys, Vec::new(), offsets, false)
    }

    fn sizes(workers: usize) -> Sizes {
        Sizes {
            partitions: PARTITIONS,
            workers,
            ..Sizes::tiny()
        }
    }

    /// The tasks of two blocks, and how large their partitions are.
    fn planned(partitions: &[u32], sizes: Sizes) -> (Vec<MergeTask>, Vec<Size>) {
        let keys = KeyLayout::new(&[], TableKind::Auto).expect("no key");
        let spec = Spec::new(keys, Vec::new(), sizes);
        let of_first: Vec<u32> = partitions.iter().map(|tuples| tuples / 3).collect();
        let of_second = partitions.iter().zip(&of_first);
        let of_second: Vec<u32> = of_second.map(|(all, first)| all - first).collect();
        let second = u64::from(of_first.iter().sum::<u32>());
        let stored = vec![block(0, &of_first), block(second, &of_second)];
        let blocks = Blocks::new(
            stored.into_iter().map(Stored::Memory).collect(),
            sizes.partitions,
        );
        let of_partitions = blocks.sizes.clone();
        let planner = TaskPlanner {
            spec: &spec,
            bits: sizes.partitions.ilog2(),
            of_tuples: usize::MAX,
            room: usize::MAX,
            grant: None,
        };
        (planner.tasks(blocks), of_partitions)
    }

    /// The keys of a task, in order.
    fn keys_of(task: &MergeTask) -> Vec<u64> {
        let stored = task.level.blocks.stored.iter();
        let all = stored.flat_map(|stored| stored.sources(&task.partitions));
        let own = match &task.piece {
            Some(piece) => piece.of(all),
            None => all.collect(),
        };
        let mut keys = Vec::new();
        for source in own {
            keys.extend(source.words());
        }
        keys
    }

    proptest! {
        #[test]
        fn tasks_of_a_workers_share_at_most_stay_whole(
            partitions in proptest::collection::vec(0u32..90, PARTITIONS),
            workers in 1usize..9,
        ) {
            let sizes = sizes(workers);
            let (tasks, of_partitions) = planned(&partitions, sizes);
            let share = of_partitions.iter().map(|size| size.tuples).sum::<usize>() / workers;
            let is_enough = |size: Size| size.tuples >= sizes.task_tuples || size.bytes >= sizes.task_tuples * 128;
            let mut expected = neighbours(&of_partitions, is_enough, usize::MAX);
            prop_assume!(expected.iter().all(|(_, size)| size.tuples <= share));
            expected.sort_unstable_by_key(|(_, size)| size.tuples);
            prop_assert!(tasks.iter().all(|task| task.piece.is_none()));
            let planned = tasks.iter().map(MergeTask::tuples).collect::<Vec<_>>();
            prop_assert_eq!(planned, expected.iter().map(|(_, size)| size.tuples).collect::<Vec<_>>());
        }

        #[test]
        fn every_tuple_is_in_one_task_and_no_task_is_more_than_a_workers_share(
            partitions in proptest::collection::vec(0u32..9, PARTITIONS),
            hot in proptest::collection::vec((0..PARTITIONS, 500u32..5000), 1..3),
            workers in 1usize..9,
        ) {
            let sizes = sizes(workers);
            let mut partitions = partitions;
            for (at, tuples) in hot {
                partitions[at] += tuples;
            }
            let (tasks, of_partitions) = planned(&partitions, sizes);
            let all = of_partitions.iter().map(|size| size.tuples).sum::<usize>();
            let least = PIECE_TASKS_MIN * sizes.task_tuples;
            for task in &tasks {
                prop_assert_eq!(keys_of(task).len(), task.tuples());
                let is_even = task.tuples() < 2 * even_tuples(task) + 2;
                prop_assert!(is_even || task.tuples() <= (all / workers).max(2 * least));
                prop_assert!(task.piece.is_none() || task.tuples() >= least);
            }
            prop_assert!(tasks.windows(2).all(|pair| pair[0].tuples() <= pair[1].tuples()));
            let mut keys: Vec<u64> = tasks.iter().flat_map(keys_of).collect();
            keys.sort_unstable();
            prop_assert!(keys.into_iter().eq(0..all as u64));
        }
    }

    #[test]
    fn pieces_are_as_many_as_workers_and_memory_ask_for() {
        let sizes = |workers| Sizes {
            workers,
            ..Sizes::for_machine(workers, 1 << 20)
        };
        let size = |tuples| Size {
            tuples,
            bytes: 16 * tuples,
        };
        let count =
            |tuples, workers, room| piece_count(size(tuples), 8_000_000, &sizes(workers), room);
        // A share of 4 M, 500,000 and 125,000.
        assert_eq!(count(4_000_000, 2, usize::MAX), 1);
        assert_eq!(count(4_000_001, 2, usize::MAX), 3);
        assert_eq!(count(8_000_000, 1, usize::MAX), 1);
        assert_eq!(count(4_000_000, 16, usize::MAX), 16);
        assert_eq!(count(7_000_000, 16, usize::MAX), 28);
        assert_eq!(count(4_000_000, 64, usize::MAX), 64);
        // Of 32,768 tuples at least.
        assert_eq!(count(4_000_000, 512, usize::MAX), 122);
        assert_eq!(piece_count(size(65_535), 65_535, &sizes(16), usize::MAX), 1);
        assert_eq!(piece_count(size(65_536), 65_536, &sizes(16), usize::MAX), 2);
        // Of one MiB at most.
        assert_eq!(count(4_000_001, 2, 1 << 20), 62);
    }

    /// Ends all pieces of one task in this order.
    fn ended(order: &[usize], refused: Option<usize>) -> Rest {
        let mut partitions = [0; PARTITIONS];
        partitions[3] = 1000;
        let (tasks, _) = planned(&partitions, sizes(2));
        let pieces: Vec<&Piece> = tasks.iter().flat_map(|task| &task.piece).collect();
        assert_eq!((pieces.len(), pieces[0].of.pieces), (4, 4));
        let mut rest = None;
        for &number in order {
            assert!(rest.take().is_none_or(|rest| matches!(rest, Rest::Pieces)));
            partitions[3] = number as u32 + 1;
            let result = PieceResult {
                block: block(10 * number as u64, &partitions),
                grant: Grant::new(Arc::new(Unlimited)),
            };
            let piece = pieces.iter().find(|piece| piece.number == number);
            let piece = piece.expect("one of each number");
            rest = Some(piece.end((refused != Some(number)).then_some(result)));
        }
        rest.expect("a last one")
    }

    #[test]
    fn whoever_ends_the_last_piece_has_the_results_in_their_order() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let Rest::Results(task) = ended(&order, None) else {
                panic!("all have a result")
            };
            assert_eq!((task.partitions.clone(), task.tuples()), (0..4, 10));
            assert_eq!(keys_of(&task), [0, 10, 11, 20, 21, 22, 30, 31, 32, 33]);
            for refused in order {
                assert!(matches!(ended(&order, Some(refused)), Rest::Whole));
            }
        }
    }
}
