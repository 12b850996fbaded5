//! Groups of workers whose keys address arrays: they wait for the merge in the order of their addresses, side by side.
//!
//! In: addresses and partial states of each worker. Out: the same in one address space, any range of it.
//! Invariant: addresses of one worker ascend; in the common space, too, so that a range of it is a slice of each worker's.
//! Not here: what addresses are (`keys::direct`), merging a range (`merge`).

use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;

use crate::batch::dense;
use crate::error::Result;
use crate::keys::direct::{AddressSpace, ByAddress, Move, is_dense};
use crate::partition::{AggregateColumns, Block, Unsorted, bytes_of_states};
use crate::spec::Spec;

/// Bytes of an address, and of the key, its hash and its place in a block at most.
const ADDRESS_BYTES: usize = 4;
const KEY_BYTES: usize = 24;

/// So many addresses are looked at for each range into which a space is cut.
const SAMPLES: usize = 8;

/// The groups of one worker by ascending address.
#[derive(Debug)]
pub(crate) struct AddressedGroups {
    space: AddressSpace,
    addresses: Vec<u32>,
    /// One entry per aggregate.
    aggregates: Vec<AggregateColumns>,
    state_bytes: usize,
}

impl AddressedGroups {
    /// Groups whose partial states are in the order of their numbers.
    pub(crate) fn new(groups: ByAddress, mut aggregates: Vec<AggregateColumns>) -> Result<Self> {
        if let Some(order) = groups.order {
            let order = UInt32Array::from(order);
            for aggregate in &mut aggregates {
                let moved = |column: &ArrayRef| Ok(dense(take(column, &order, None)?));
                *aggregate = aggregate.with_columns(moved)?;
            }
        }
        Ok(Self {
            space: groups.space,
            addresses: groups.addresses,
            state_bytes: bytes_of_states(&aggregates),
            aggregates,
        })
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Bytes held, or those of the block that they may have to become.
    pub(crate) fn bytes(&self) -> usize {
        self.state_bytes + self.len() * KEY_BYTES
    }

    /// The addresses of some groups.
    pub(crate) fn addresses(&self, groups: Range<usize>) -> &[u32] {
        &self.addresses[groups]
    }

    /// The states of some groups.
    pub(crate) fn aggregate(&self, at: usize, groups: &Range<usize>) -> AggregateColumns {
        self.aggregates[at].slice(groups)
    }

    /// Some groups as tuples.
    pub(crate) fn tuples(&self, spec: &Spec, groups: Range<usize>) -> Result<Unsorted> {
        let columns = self.space.columns(&self.addresses[groups.clone()]);
        let mut hashes = Vec::with_capacity(groups.len());
        let aggregates = 0..self.aggregates.len();
        Ok(Unsorted {
            keys: spec.keys.encode(&columns, groups.len(), &mut hashes)?,
            hashes,
            aggregates: aggregates.map(|at| self.aggregate(at, &groups)).collect(),
            distinct: true,
        })
    }

    /// Some groups as a block of `1 << bits` partitions.
    pub(crate) fn block(&self, spec: &Spec, groups: Range<usize>, bits: u32) -> Result<Block> {
        Block::sort(vec![self.tuples(spec, groups)?], bits, spec.keys.views())
    }
}

/// The groups of all workers in one address space.
pub(crate) struct SideBySide {
    space: AddressSpace,
    workers: Vec<OneSide>,
}

/// The groups of one worker and where they are among all.
pub(crate) struct OneSide {
    pub groups: AddressedGroups,
    pub way: Move,
    /// Common addresses from the first to the last.
    ends: Range<usize>,
}

impl OneSide {
    fn new(groups: AddressedGroups, space: &AddressSpace) -> Self {
        let way = groups.space.way_into(space);
        let end = |address: Option<&u32>| address.map_or(0, |&address| way.of(address) as usize);
        let (first, last) = (groups.addresses.first(), groups.addresses.last());
        Self {
            ends: end(first)..end(last) + 1,
            groups,
            way,
        }
    }

    /// Which of the groups are in a range of common addresses.
    fn within(&self, range: &Range<usize>) -> Range<usize> {
        let addresses = &self.groups.addresses;
        let before = |bound| self.way.before(addresses, &self.ends, bound);
        before(range.start)..before(range.end)
    }
}

impl SideBySide {
    /// Gives the groups back where their addresses are so far apart that hashing keys costs less.
    pub(crate) fn new(
        workers: Vec<AddressedGroups>,
    ) -> std::result::Result<Self, Vec<AddressedGroups>> {
        let groups = workers.iter().map(AddressedGroups::len).sum();
        let spaces = workers.iter().map(|groups| &groups.space);
        let Some(space) = AddressSpace::of_all(spaces) else {
            return Err(workers);
        };
        if !is_dense(space.slots(), groups) {
            return Err(workers);
        }
        let workers = workers.into_iter();
        let workers = workers.map(|groups| OneSide::new(groups, &space));
        Ok(Self {
            workers: workers.collect(),
            space,
        })
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Groups of all workers: one that several have counts for each.
    pub(crate) fn tuples(&self) -> usize {
        self.workers.iter().map(|one| one.groups.len()).sum()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let states = self.workers.iter().map(|one| one.groups.state_bytes);
        states.sum::<usize>() + self.tuples() * ADDRESS_BYTES
    }

    /// About so many ranges of addresses, which have about as many groups each, wherever these are.
    pub(crate) fn ranges(&self, wanted: usize) -> Vec<Range<usize>> {
        let step = (self.tuples() / (SAMPLES * wanted)).max(1);
        let (mut samples, mut next) = (Vec::new(), step / 2);
        for OneSide { groups, way, .. } in &self.workers {
            while let Some(&address) = groups.addresses.get(next) {
                samples.push(way.of(address) as usize);
                next += step;
            }
            next -= groups.len();
        }
        samples.sort_unstable();
        let bounds = (1..wanted).filter_map(|at| samples.get(samples.len() * at / wanted));
        let mut bounds: Vec<usize> = bounds.copied().chain([0, self.space.slots()]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    /// Which groups of each worker are in a range of addresses; workers that have none are left out.
    pub(crate) fn within(
        &self,
        range: &Range<usize>,
    ) -> impl Iterator<Item = (&OneSide, Range<usize>)> {
        let workers = self.workers.iter().map(|one| (one, one.within(range)));
        workers.filter(|(_, groups)| !groups.is_empty())
    }

    /// The key columns of these addresses.
    pub(crate) fn columns(&self, addresses: &[u32]) -> Vec<ArrayRef> {
        self.space.columns(addresses)
    }
}
