//! A buddy allocator: blocks of 64 bytes to 32 KiB, powers of two, out of few large pieces of memory.
//!
//! In: sizes. Out: block numbers and their bytes.
//! Invariant: a block lies in one slab at a multiple of its size; what is freed joins its
//! neighbour, so that small blocks that grew leave room for large ones.
//! Not here: what lies in a block.

/// The smallest block.
pub(super) const UNIT_BYTES: usize = 64;
/// Bytes of a slab; the first begins smaller and grows up to this.
const SLAB_BYTES: usize = 1 << SLAB_BITS;
const SLAB_BITS: u32 = 20;
/// The order of a slab: its size is `UNIT_BYTES << SLAB_ORDER`.
const SLAB_ORDER: u8 = (SLAB_BITS - UNIT_BYTES.ilog2()) as u8;
const SLAB_UNITS: usize = 1 << SLAB_ORDER;

/// A block, by the number of its first unit. Who holds it knows its order: it has
/// `UNIT_BYTES << order` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BuddyBlock(u32);

impl BuddyBlock {
    /// The slab that it lies in.
    pub(super) fn slab(self) -> usize {
        self.0 as usize / SLAB_UNITS
    }

    /// Where in the slab.
    pub(super) fn offset(self) -> usize {
        self.0 as usize % SLAB_UNITS * UNIT_BYTES
    }
}

/// Memory in blocks.
#[derive(Debug, Default)]
pub(super) struct BuddyAllocator {
    slabs: Vec<Vec<u8>>,
    /// Blocks that were freed, by order; some have joined a neighbour since.
    free: [Vec<u32>; SLAB_ORDER as usize + 1],
    /// Of each unit at which a free block begins, one more than its order; else 0.
    free_order: Vec<u8>,
}

impl BuddyAllocator {
    /// A block with any bytes in it.
    pub(super) fn take(&mut self, order: u8) -> BuddyBlock {
        let (unit, found) = (order..=SLAB_ORDER)
            .find_map(|found| Some((self.pop(found)?, found)))
            .unwrap_or_else(|| (self.add_slab(), SLAB_ORDER));
        for half in order..found {
            self.push(unit + (1 << half), half);
        }
        self.touch(BuddyBlock(unit), order);
        BuddyBlock(unit)
    }

    /// Gives a block back.
    pub(super) fn give(&mut self, block: BuddyBlock, mut order: u8) {
        let mut unit = block.0;
        while order < SLAB_ORDER {
            let neighbour = unit ^ 1 << order;
            if self.free_order[neighbour as usize] != order + 1 {
                break;
            }
            self.free_order[neighbour as usize] = 0;
            unit = unit.min(neighbour);
            order += 1;
        }
        self.push(unit, order);
    }

    fn push(&mut self, unit: u32, order: u8) {
        self.free_order[unit as usize] = order + 1;
        self.free[usize::from(order)].push(unit);
    }

    fn pop(&mut self, order: u8) -> Option<u32> {
        while let Some(unit) = self.free[usize::from(order)].pop() {
            let still = &mut self.free_order[unit as usize];
            if *still == order + 1 {
                *still = 0;
                return Some(unit);
            }
        }
        None
    }

    fn add_slab(&mut self) -> u32 {
        let unit = self.free_order.len();
        self.slabs.push(Vec::new());
        self.free_order.resize(unit + SLAB_UNITS, 0);
        u32::try_from(unit).expect("fewer than 2^32 units, which are 256 GiB")
    }

    /// Makes sure that the block's bytes are there.
    fn touch(&mut self, block: BuddyBlock, order: u8) {
        let end = block.offset() + (UNIT_BYTES << order);
        let slab = &mut self.slabs[block.slab()];
        if block.slab() == 0 && slab.len() < end {
            slab.resize(end.next_power_of_two(), 0);
        } else if slab.is_empty() {
            // Fresh pages are zero already; these are not touched before they are needed.
            *slab = vec![0; SLAB_BYTES];
        }
    }

    /// The bytes of a block.
    #[inline(always)]
    pub(super) fn bytes(&self, block: BuddyBlock, order: u8) -> &[u8] {
        &self.slabs[block.slab()][block.offset()..][..UNIT_BYTES << order]
    }

    /// The bytes of a block, to be written.
    #[inline(always)]
    pub(super) fn bytes_mut(&mut self, block: BuddyBlock, order: u8) -> &mut [u8] {
        &mut self.slabs[block.slab()][block.offset()..][..UNIT_BYTES << order]
    }

    /// Number of slabs.
    pub(super) fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// All slabs; there is no block afterwards.
    pub(super) fn into_slabs(self) -> Vec<Vec<u8>> {
        self.slabs
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        let slabs = match self.slabs.as_slice() {
            [] => 0,
            [first, full @ ..] => first.capacity() + full.len() * SLAB_BYTES,
        };
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        slabs + free * size_of::<u32>() + self.free_order.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_joins_its_neighbour() {
        let mut blocks = BuddyAllocator::default();
        let small: Vec<_> = (0..SLAB_UNITS).map(|_| blocks.take(0)).collect();
        let held = blocks.held_bytes();
        for block in small {
            blocks.give(block, 0);
        }
        let all = blocks.take(SLAB_ORDER);
        assert_eq!((all.slab(), all.offset()), (0, 0));
        let next = blocks.take(0);
        assert_eq!(next.slab(), 1);
        assert!(blocks.held_bytes() >= held + SLAB_BYTES);
    }

    #[test]
    fn blocks_keep_their_bytes_whatever_comes_and_goes() {
        let mut blocks = BuddyAllocator::default();
        let mut held: Vec<(BuddyBlock, u8, u8)> = Vec::new();
        for round in 0..5000u32 {
            let order = (round.wrapping_mul(0x9e37_79b1) >> 28) as u8 % 10;
            let block = blocks.take(order);
            blocks.bytes_mut(block, order).fill(round as u8);
            held.push((block, order, round as u8));
            if round % 3 > 0 {
                let at = (round.wrapping_mul(0x85eb_ca6b) >> 8) as usize % held.len();
                let (block, order, mark) = held.swap_remove(at);
                assert!(blocks.bytes(block, order).iter().all(|byte| *byte == mark));
                blocks.give(block, order);
            }
        }
        for (block, order, mark) in held {
            assert_eq!(block.offset() % (UNIT_BYTES << order), 0);
            assert!(blocks.bytes(block, order).iter().all(|byte| *byte == mark));
        }
    }
}
