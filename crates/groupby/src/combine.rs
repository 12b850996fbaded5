//! Tuples of several blocks -> one group per key: a table and states that are used again and again.
//!
//! In: tuples, partial states or rows, of partitions that meet nobody else's. Out: groups; when it is time to look whether
//! they repeat.
//! Invariant: an instance of states sees both rows and partial states only where its aggregate allows it
//! (`states::Bypass::Rows`), else partial states alone.
//! Not here: which tuples (`merge`, `build`), memory.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;

use crate::batch::Arguments;
use crate::error::{Error, Result};
use crate::keys::compact::KeyScratch;
use crate::keys::{DistinctKeys, GroupId, KeyTable};
use crate::partition::{AggregateColumns, Block, Size, Slice, Unsorted, neighbours};
use crate::spec::Spec;
use crate::states::{GroupStates, Groups};

/// Tuples looked up at once: ids and slices of this many rows stay in the first-level cache.
pub(crate) const CHUNK_TUPLES: usize = 4096;

/// Bytes of tuples that are looked at first: what they come to decides whether the others are worth it.
const SAMPLE_BYTES: usize = 512 << 10;
/// Bytes of tuples that are combined at once after them.
const COMBINED_BYTES: usize = 1 << 20;
/// Combining early is a lookup per tuple, which pays where half of the bytes need not be touched, or written and read,
/// once more. Two workers that met the same groups come to half and a little.
pub(crate) const WORTH: f64 = 5.0 / 8.0;
/// Where so little is left, combining again and again what is left costs next to nothing.
const WORTH_AT_ANY_TIME: f64 = 1.0 / 4.0;

/// Where memory is not short, blocks grow by so many steps before they are combined again. Of 100 M rows of 2 M keys in turn,
/// four steps and from the first on: 550 instead of 370 MB, 1.6 instead of 2.2 s.
const UNHURRIED: usize = 2;

/// Bytes of blocks at which it is time to look again whether their groups repeat.
#[derive(Clone, Copy)]
pub(crate) struct NextLook {
    /// Whether they repeat so much that combining them costs next to nothing.
    early: usize,
    /// Where memory is short.
    short: usize,
    /// Where it is not.
    ample: usize,
}

impl NextLook {
    /// Blocks grow by `step` bytes or a few times as much.
    pub(crate) fn first(step: usize) -> Self {
        Self::after(0, true, step)
    }

    /// After a look at so many bytes: it costs a sample, combining a lookup for every tuple.
    pub(crate) fn after(blocks_bytes: usize, is_worth_it: bool, step: usize) -> Self {
        let short = match is_worth_it {
            true => 2 * blocks_bytes,
            false => blocks_bytes + blocks_bytes / 4,
        };
        let ample = match is_worth_it {
            true => blocks_bytes + UNHURRIED * step,
            false => short,
        };
        let short = short.max(step);
        let early = match is_worth_it {
            true => blocks_bytes + step / 2,
            false => usize::MAX,
        };
        Self {
            early,
            short,
            ample: ample.max(short),
        }
    }

    /// After a look at so many bytes of which more than `worth` would have been left.
    pub(crate) fn in_vain(self, blocks_bytes: usize, worth: f64, step: usize) -> Self {
        match worth < WORTH {
            true => Self {
                early: usize::MAX,
                ..self
            },
            false => Self::after(blocks_bytes, false, step),
        }
    }

    /// Which part of so many bytes may be left for combining to pay now; `None` where it is not time to look.
    pub(crate) fn worth(self, blocks_bytes: usize, is_short: impl FnOnce() -> bool) -> Option<f64> {
        if blocks_bytes >= self.ample || (blocks_bytes >= self.short && is_short()) {
            return Some(WORTH);
        }
        (blocks_bytes >= self.early).then_some(WORTH_AT_ANY_TIME)
    }
}

/// A key table and the states of its groups.
pub(crate) struct Combiner {
    spec: Arc<Spec>,
    table: Box<dyn KeyTable>,
    states: Vec<Box<dyn GroupStates>>,
    groups: Vec<GroupId>,
    scratch: KeyScratch,
    /// Tuples that were looked up.
    pub looked_up: u64,
    /// Of tables before this one.
    collisions: u64,
}

impl Combiner {
    /// With an empty `table`.
    pub(crate) fn new(spec: Arc<Spec>, table: Box<dyn KeyTable>) -> Result<Self> {
        Ok(Self {
            states: new_states(&spec)?,
            spec,
            table,
            groups: Vec::new(),
            scratch: KeyScratch::default(),
            looked_up: 0,
            collisions: 0,
        })
    }

    /// Makes room for so many groups.
    pub(crate) fn expect(&mut self, groups: usize) {
        self.table.expect(groups);
    }

    /// Looks up and aggregates tuples of a block.
    pub(crate) fn absorb(&mut self, block: &Block, tuples: Range<usize>) -> Result<()> {
        for start in tuples.clone().step_by(CHUNK_TUPLES) {
            let slice = block.slice(start..(start + CHUNK_TUPLES).min(tuples.end));
            let mut groups = std::mem::take(&mut self.groups);
            groups.clear();
            let (keys, hashes) = slice.keys(&mut self.scratch);
            self.table.assign(keys, hashes, &mut groups)?;
            self.looked_up += slice.len() as u64;
            let result = self.aggregate(&slice, &groups, self.table.len());
            self.groups = groups;
            result?;
        }
        Ok(())
    }

    /// Tuples that are one per key already: each is a group of its own, without the table.
    pub(crate) fn take_over(&mut self, slice: &Slice<'_>) -> Result<DistinctKeys> {
        let total = slice.len();
        let groups: Vec<GroupId> = (0..total as u32).map(GroupId).collect();
        self.aggregate(slice, &groups, total)?;
        Ok(slice.distinct_keys())
    }

    fn aggregate(&mut self, slice: &Slice<'_>, groups: &[GroupId], total: usize) -> Result<()> {
        self.aggregate_all(|at| slice.aggregate(at), groups, total)
    }

    /// Aggregates tuples whose groups are known.
    pub(crate) fn aggregate_all(
        &mut self,
        columns_of: impl Fn(usize) -> AggregateColumns,
        groups: &[GroupId],
        total: usize,
    ) -> Result<()> {
        let groups = Groups::Ids(groups);
        for (at, states) in self.states.iter_mut().enumerate() {
            match columns_of(at) {
                AggregateColumns::Rows(Arguments { columns, filter }) => {
                    states.update(&columns, filter.as_ref(), groups, total)?;
                }
                AggregateColumns::Partial(columns) => states.merge(&columns, groups, total)?,
            }
        }
        Ok(())
    }

    /// Groups in the table.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes() + self.states.iter().map(|s| s.bytes()).sum::<usize>()
    }

    /// Slots looked at.
    pub(crate) fn probes(&self) -> u64 {
        self.looked_up + self.collisions + self.table.collisions()
    }

    /// The keys of all groups; results are next.
    pub(crate) fn keys(&mut self) -> DistinctKeys {
        self.table.drain()
    }

    /// The results of so many groups, in their order.
    pub(crate) fn results(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let all = self.states.iter_mut();
        all.map(|states| states.drain_final(groups)).collect()
    }

    /// All groups as tuples.
    fn tuples(&mut self) -> Result<Unsorted> {
        let DistinctKeys { keys, hashes } = self.table.drain();
        let states = self.states.iter_mut();
        let partial = states.map(|states| {
            Ok(AggregateColumns::Partial(
                states.drain_partial(hashes.len())?,
            ))
        });
        Ok(Unsorted {
            aggregates: partial.collect::<Result<_>>()?,
            keys,
            hashes,
            distinct: true,
        })
    }

    /// All groups as a block.
    pub(crate) fn block(&mut self) -> Result<Block> {
        let bits = self.spec.sizes.partitions.ilog2();
        let tuples = self.tuples()?;
        Block::sort(vec![tuples], bits, self.spec.keys.views())
    }

    /// Forgets all groups and gives their memory back.
    pub(crate) fn begin_anew(&mut self, table: Box<dyn KeyTable>) -> Result<()> {
        self.collisions += self.table.collisions();
        self.table = table;
        self.states = new_states(&self.spec)?;
        Ok(())
    }

    /// The refusal with the aggregate whose states hold most of it.
    pub(crate) fn name_aggregate(&self, error: Error) -> Error {
        name_aggregate(error, &self.spec, &self.states, self.bytes())
    }
}

/// Tuples of several blocks become one tuple per group, range by range of their partitions, where a sample comes to
/// no more than `worth` of its bytes; true if so. `may_hold` is asked for room for what is new, and ends the work where it
/// says no: what is done is done.
pub(crate) fn combine(
    spec: &Arc<Spec>,
    blocks: &mut Vec<Block>,
    worth: f64,
    mut may_hold: impl FnMut(usize) -> bool,
) -> Result<bool> {
    let mut combiner = Combiner::new(Arc::clone(spec), spec.keys.table())?;
    let (mut results, mut before, mut after) = (Vec::new(), Size::default(), Size::default());
    let ranges = ranges(blocks);
    let all = ranges.iter().map(|(_, size)| size.tuples).sum();
    for (partitions, size) in ranges {
        let fair = fair_tuples(all, partitions.len(), spec.sizes.partitions);
        let likely = size.tuples.min(fair) * (after.tuples + 1) / (before.tuples + 1);
        combiner.expect(likely);
        let Some(result) = combined_range(blocks, &partitions, &mut combiner)? else {
            break;
        };
        before = before.plus(size);
        after = after.plus(Size {
            tuples: result.len(),
            bytes: result.bytes(),
        });
        if results.is_empty() && after.bytes as f64 > worth * before.bytes as f64 {
            return Ok(false);
        }
        results.push(result);
        blocks.retain_mut(|block| {
            block.drop_until(partitions.end);
            !block.tuples(&(0..block.partitions())).is_empty()
        });
        let left: usize = blocks.iter().map(Block::bytes).sum();
        if !may_hold(left + after.bytes + combiner.bytes()) {
            break;
        }
    }
    let is_worth_it = !results.is_empty();
    blocks.splice(0..0, results);
    Ok(is_worth_it)
}

/// What `some` of `partitions` would have of all tuples, were no key more frequent than others: groups are spread evenly.
pub(crate) fn fair_tuples(all: usize, some: usize, partitions: usize) -> usize {
    all * some / partitions + 1
}

/// Neighbouring partitions and what they hold: a few first, whose result says whether to go on.
pub(crate) fn ranges(blocks: &[Block]) -> Vec<(Range<usize>, Size)> {
    let partitions = blocks.first().map_or(0, Block::partitions);
    let size_of = |partition: usize| {
        let sizes = blocks
            .iter()
            .map(|block| block.size(&(partition..partition + 1)));
        sizes.fold(Size::default(), Size::plus)
    };
    let sizes: Vec<Size> = (0..partitions).map(size_of).collect();
    let mut enough = SAMPLE_BYTES;
    let is_enough = |size: Size| {
        let is_enough = size.bytes >= enough;
        if is_enough {
            enough = COMBINED_BYTES;
        }
        is_enough
    };
    neighbours(&sizes, is_enough, usize::MAX)
}

/// `None` where a column has no room for so much, which the merge gives out in smaller pieces.
pub(crate) fn combined_range(
    blocks: &[Block],
    partitions: &Range<usize>,
    combiner: &mut Combiner,
) -> Result<Option<Block>> {
    for block in blocks {
        combiner.absorb(block, block.tuples(partitions))?;
    }
    match combiner.block() {
        Err(Error::TooLarge(_) | Error::Arrow(_)) => Ok(None),
        result => result.map(Some),
    }
}

/// States for an empty table.
pub(crate) fn new_states(spec: &Spec) -> Result<Vec<Box<dyn GroupStates>>> {
    spec.aggregates.iter().map(|a| a.states()).collect()
}

/// A refusal of memory names the aggregate whose states are more than half of what is `held`.
pub(crate) fn name_aggregate(
    error: Error,
    spec: &Spec,
    states: &[Box<dyn GroupStates>],
    held: usize,
) -> Error {
    let Error::Memory { error, aggregate } = error else {
        return error;
    };
    let mut pairs = spec.aggregates.iter().zip(states);
    let most = pairs.find(|(_, states)| states.bytes() > held / 2);
    Error::Memory {
        error,
        aggregate: aggregate.or(most.map(|(aggregate, _)| aggregate.name().to_string())),
    }
}
