//! One sketch per group: a few codes, then a list of them, then registers.
//!
//! In: codes of values, sketches as bytes. Out: counts, sketches as bytes.
//! Invariant: a sketch has registers only if it saw more than `LISTED_MAX` distinct codes. Counts therefore depend on the
//! set of codes alone, not on their order or on how they were merged.
//! Not here: where codes come from (`uniq`), what registers mean (`sketch`).
//!
//! Codes first gather in the group's cell, one cache line, and leave it twelve at a time. Rows of ten thousand groups
//! touch 640 KB at random instead of all registers. A list takes 4 bytes per code in blocks of 128
//! bytes to 32 KiB. Registers take 32 KiB, and 4 KiB for codes that wait until there are enough to go through all of
//! them.
//!
//! As bytes: a list is its codes, little-endian, with or without repeats; registers are 32,768 bytes.

use grouse_kernels::hash;
use grouse_kernels::prefetch::prefetch;

use super::buddy::{BuddyAllocator, BuddyBlock, UNIT_BYTES};
use super::sketch::{self, Distinct, REGISTERS, Registers};

/// Codes that a cell holds.
const CELL_CODES: usize = 12;
/// A list with more distinct codes becomes registers: it would soon be larger.
pub(super) const LISTED_MAX: usize = 6144;
/// The block that registers, or the longest list, fill.
const REGISTERS_ORDER: u8 = order_of_bytes(REGISTERS);
/// Codes that wait for their registers: as many as pay for reading all of these.
const WAITING_CODES: usize = 1024;
const WAITING_ORDER: u8 = order_of_bytes(WAITING_CODES * CODE_BYTES);
const CODE_BYTES: usize = 4;
/// So many codes lie in their Arrow view.
const INLINE_CODES: usize = 12 / CODE_BYTES;
/// A list that is full moves to a block twice as large: all lists may be full within one batch, before anybody asks for
/// the memory. Four times as large was not faster (10,000 groups of 10,000 values).
const GROWTH_ORDERS: u8 = 1;
/// Bytes of a buffer of codes that never left their cells, if there are so many.
const LOOSE_BYTES: usize = 64 << 10;
/// Cells that were emptied and whose codes wait until the end of their list is in the cache: as
/// many as a core fetches at a time.
const SPILLS: usize = 16;
/// The block that the first codes go to when they leave their cell.
const FIRST_ORDER: u8 = order_of_bytes(32 * CODE_BYTES);

const fn order_of_bytes(bytes: usize) -> u8 {
    bytes
        .next_power_of_two()
        .ilog2()
        .saturating_sub(UNIT_BYTES.ilog2()) as u8
}

/// One group's sketch.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Cell {
    fresh: [u32; CELL_CODES],
    stage: Stage,
    used: u8,
}

/// What lies outside of the cell.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Nothing,
    /// So many codes, fewer than the block has room for.
    List {
        block: BuddyBlock,
        order: u8,
        codes: u16,
    },
    /// Registers, and so many codes that are not yet in them.
    Registers {
        registers: BuddyBlock,
        wait: BuddyBlock,
        waiting: u16,
    },
}

impl Cell {
    const EMPTY: Self = Self {
        fresh: [0; CELL_CODES],
        stage: Stage::Nothing,
        used: 0,
    };

    /// Leaves the distinct codes; there are too few of them for a table.
    fn dedup(&mut self) {
        let mut kept = 0;
        for at in 0..usize::from(self.used) {
            let code = self.fresh[at];
            if !self.fresh[..kept].contains(&code) {
                self.fresh[kept] = code;
                kept += 1;
            }
        }
        self.used = kept as u8;
    }
}

/// Codes that a block of this order has room for.
const fn room(order: u8) -> usize {
    (UNIT_BYTES / CODE_BYTES) << order
}

/// The order of a list of so many codes, which leaves room for more.
fn order_of_codes(codes: usize) -> u8 {
    order_of_bytes((codes + CELL_CODES + 1) * CODE_BYTES).clamp(FIRST_ORDER, REGISTERS_ORDER)
}

/// Codes of a list before it is full: those in the cell still find room, so that a drain takes no memory. Lists of groups
/// that are equally frequent are full at the same moment, which is when memory is refused.
const fn list_room(order: u8) -> usize {
    room(order) - CELL_CODES
}

/// The codes in these bytes.
fn codes_in(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    let (codes, _) = bytes.as_chunks::<CODE_BYTES>();
    codes.iter().map(|code| u32::from_le_bytes(*code))
}

fn write(codes: &[u32], bytes: &mut [u8]) {
    let (places, _) = bytes.as_chunks_mut::<CODE_BYTES>();
    for (place, code) in places.iter_mut().zip(codes) {
        *place = code.to_le_bytes();
    }
}

/// What is made anew whenever it is needed; kept for its memory.
#[derive(Debug, Default)]
struct SketchScratch {
    codes: Vec<u32>,
    registers: Vec<u8>,
    distinct: Distinct,
}

impl SketchScratch {
    /// Registers that no code has reached.
    fn registers(registers: &mut Vec<u8>) -> &mut Registers {
        registers.clear();
        registers.resize(REGISTERS, 0);
        as_registers_mut(registers)
    }
}

fn as_registers_mut(bytes: &mut [u8]) -> &mut Registers {
    bytes.try_into().expect("a block of registers")
}

/// The codes of a full cell.
#[derive(Debug, Clone, Copy, Default)]
struct SpilledCell {
    group: u32,
    codes: [u32; CELL_CODES],
}

/// One sketch per group.
#[derive(Debug, Default)]
pub(super) struct Sketches {
    cells: Vec<Cell>,
    spills: [SpilledCell; SPILLS],
    /// Cells emptied so far; the last ones of them are in `spills`.
    spilled: usize,
    /// Spills that are in their lists.
    arrived: usize,
    blocks: BuddyAllocator,
    scratch: SketchScratch,
}

impl Sketches {
    /// Sketches for groups `0..total`, new ones empty.
    pub(super) fn grow(&mut self, total: usize) {
        self.cells.resize(total.max(self.cells.len()), Cell::EMPTY);
    }

    /// Adds a code to a group; `arrive` has to follow.
    #[inline(always)]
    pub(super) fn push(&mut self, group: usize, code: u32) {
        let cell = &mut self.cells[group];
        let at = usize::from(cell.used);
        if at == CELL_CODES {
            // Not through the cell: reading at once what was just written stalls the core.
            return self.empty_cell(group, code);
        }
        cell.fresh[at] = code;
        cell.used += 1;
    }

    /// Makes room in a full cell and adds a code.
    #[inline(never)]
    fn empty_cell(&mut self, group: usize, code: u32) {
        let cell = &mut self.cells[group];
        if matches!(cell.stage, Stage::Nothing) {
            cell.dedup();
            if usize::from(cell.used) > CELL_CODES / 2 {
                self.spill(group);
            }
            return self.push(group, code);
        }
        let spill = SpilledCell {
            group: group as u32,
            codes: cell.fresh,
        };
        cell.fresh[0] = code;
        cell.used = 1;
        if self.spilled - self.arrived == SPILLS {
            self.arrive_one();
        }
        self.spills[self.spilled % SPILLS] = spill;
        self.spilled += 1;
        self.fetch(group);
    }

    /// The oldest spill goes to its list.
    #[inline(always)]
    fn arrive_one(&mut self) {
        let SpilledCell { group, codes } = self.spills[self.arrived % SPILLS];
        self.arrived += 1;
        self.extend(group as usize, &codes);
    }

    /// All codes are where they belong.
    pub(super) fn arrive(&mut self) {
        while self.arrived < self.spilled {
            self.arrive_one();
        }
    }

    /// Starts to fetch where the next codes of a group will go.
    #[inline(always)]
    fn fetch(&self, group: usize) {
        let (block, order, codes) = match self.cells[group].stage {
            Stage::Nothing => return,
            Stage::List {
                block,
                order,
                codes,
            } => (block, order, codes),
            Stage::Registers { wait, waiting, .. } => (wait, WAITING_ORDER, waiting),
        };
        let from = usize::from(codes) * CODE_BYTES;
        let bytes = self.blocks.bytes(block, order);
        prefetch(bytes, from);
        prefetch(bytes, from + CELL_CODES * CODE_BYTES);
    }

    /// The codes of the cell leave it.
    fn spill(&mut self, group: usize) {
        let cell = &mut self.cells[group];
        let (fresh, used) = (cell.fresh, usize::from(cell.used));
        cell.used = 0;
        self.extend(group, &fresh[..used]);
    }

    /// Adds codes to a group, past its cell.
    pub(super) fn extend(&mut self, group: usize, mut codes: &[u32]) {
        while !codes.is_empty() {
            let taken = match &mut self.cells[group].stage {
                Stage::Nothing => {
                    let order = order_of_codes(codes.len());
                    let block = self.blocks.take(order);
                    self.cells[group].stage = Stage::List {
                        block,
                        order,
                        codes: 0,
                    };
                    0
                }
                Stage::List {
                    block,
                    order,
                    codes: listed,
                } => {
                    let from = usize::from(*listed);
                    let taken = codes.len().min(list_room(*order) - from);
                    let bytes = self.blocks.bytes_mut(*block, *order);
                    write(&codes[..taken], &mut bytes[from * CODE_BYTES..]);
                    *listed += taken as u16;
                    if from + taken == list_room(*order) {
                        self.settle(group);
                    }
                    taken
                }
                Stage::Registers { .. } => self.extend_registers(group, codes),
            };
            codes = &codes[taken..];
        }
    }

    /// Adds codes to a group with registers; gives how many.
    fn extend_registers(&mut self, group: usize, codes: &[u32]) -> usize {
        let Stage::Registers {
            registers,
            wait,
            waiting,
        } = &mut self.cells[group].stage
        else {
            unreachable!("a group with registers")
        };
        if codes.len() >= WAITING_CODES / 2 {
            let bytes = self.blocks.bytes_mut(*registers, REGISTERS_ORDER);
            sketch::apply(as_registers_mut(bytes), codes.iter().copied());
            return codes.len();
        }
        let from = usize::from(*waiting);
        let taken = codes.len().min(WAITING_CODES - from);
        let bytes = self.blocks.bytes_mut(*wait, WAITING_ORDER);
        write(&codes[..taken], &mut bytes[from * CODE_BYTES..]);
        *waiting += taken as u16;
        if from + taken == WAITING_CODES {
            self.apply_waiting(group);
        }
        taken
    }

    /// The codes that wait go into the registers, which are there.
    fn apply_waiting(&mut self, group: usize) {
        let Stage::Registers {
            registers,
            wait,
            waiting,
        } = &mut self.cells[group].stage
        else {
            unreachable!("a group with registers")
        };
        let codes = usize::from(std::mem::take(waiting));
        let SketchScratch { codes: scratch, .. } = &mut self.scratch;
        scratch.clear();
        scratch.extend(codes_in(
            &self.blocks.bytes(*wait, WAITING_ORDER)[..codes * CODE_BYTES],
        ));
        let bytes = self.blocks.bytes_mut(*registers, REGISTERS_ORDER);
        for line in (0..REGISTERS).step_by(UNIT_BYTES) {
            prefetch(bytes, line);
        }
        sketch::apply(as_registers_mut(bytes), scratch.iter().copied());
    }

    /// A full list loses its repeats, moves to a larger block or becomes registers.
    fn settle(&mut self, group: usize) {
        let Stage::List {
            block,
            order,
            codes: listed,
        } = self.cells[group].stage
        else {
            unreachable!("a group with a list")
        };
        let list = &self.blocks.bytes(block, order)[..usize::from(listed) * CODE_BYTES];
        let SketchScratch {
            codes,
            registers,
            distinct,
        } = &mut self.scratch;
        if order == REGISTERS_ORDER {
            let registers = SketchScratch::registers(registers);
            sketch::apply(registers, codes_in(list));
            if sketch::reached(registers) > LISTED_MAX {
                return self.make_registers(group);
            }
        } else if distinct.mostly(codes_in(list)) {
            return self.enlarge(group);
        }
        codes.clear();
        codes.extend(codes_in(list));
        let kept = distinct.dedup(codes);
        let full = match order {
            REGISTERS_ORDER => kept > LISTED_MAX,
            _ => kept > list_room(order) / 2,
        };
        match order {
            REGISTERS_ORDER if full => self.make_registers(group),
            _ => {
                write(&codes[..kept], self.blocks.bytes_mut(block, order));
                self.cells[group].stage = Stage::List {
                    block,
                    order,
                    codes: kept as u16,
                };
                if full {
                    self.enlarge(group);
                }
            }
        }
    }

    /// A list moves to a larger block.
    fn enlarge(&mut self, group: usize) {
        let Stage::List {
            block,
            order,
            codes,
        } = self.cells[group].stage
        else {
            unreachable!("a group with a list")
        };
        let larger = (order + GROWTH_ORDERS).min(REGISTERS_ORDER);
        self.scratch.codes.clear();
        let listed = usize::from(codes) * CODE_BYTES;
        self.scratch
            .codes
            .extend(codes_in(&self.blocks.bytes(block, order)[..listed]));
        self.blocks.give(block, order);
        let block = self.blocks.take(larger);
        write(&self.scratch.codes, self.blocks.bytes_mut(block, larger));
        self.cells[group].stage = Stage::List {
            block,
            order: larger,
            codes,
        };
    }

    /// The longest list gives its block to its registers, which are in the scratch.
    fn make_registers(&mut self, group: usize) {
        let Stage::List { block, order, .. } = self.cells[group].stage else {
            unreachable!("a group with a list")
        };
        debug_assert_eq!(order, REGISTERS_ORDER, "shorter lists are few codes");
        self.blocks
            .bytes_mut(block, order)
            .copy_from_slice(&self.scratch.registers);
        self.cells[group].stage = Stage::Registers {
            registers: block,
            wait: self.blocks.take(WAITING_ORDER),
            waiting: 0,
        };
    }

    /// Adds the registers of another sketch to a group.
    pub(super) fn unite(&mut self, group: usize, others: &Registers) {
        let stage = self.cells[group].stage;
        if let Stage::Registers { registers, .. } = stage {
            let bytes = self.blocks.bytes_mut(registers, REGISTERS_ORDER);
            return sketch::unite(as_registers_mut(bytes), others);
        }
        let registers = self.blocks.take(REGISTERS_ORDER);
        let bytes = self.blocks.bytes_mut(registers, REGISTERS_ORDER);
        bytes.copy_from_slice(others);
        self.cells[group].stage = Stage::Registers {
            registers,
            wait: self.blocks.take(WAITING_ORDER),
            waiting: 0,
        };
        if let Stage::List {
            block,
            order,
            codes,
        } = stage
        {
            let listed = &self.blocks.bytes(block, order)[..usize::from(codes) * CODE_BYTES];
            let listed: Vec<u32> = codes_in(listed).collect();
            self.extend(group, &listed);
            self.blocks.give(block, order);
        }
    }

    /// Distinct values of a group; its sketch is of no use afterwards.
    pub(super) fn count(&mut self, group: usize) -> u64 {
        debug_assert_eq!(self.arrived, self.spilled, "a batch ends with `arrive`");
        let cell = &mut self.cells[group];
        let scratch = &mut self.scratch;
        match cell.stage {
            Stage::Nothing => {
                cell.dedup();
                u64::from(cell.used)
            }
            Stage::List {
                block,
                order,
                codes,
            } => {
                let listed = &self.blocks.bytes(block, order)[..usize::from(codes) * CODE_BYTES];
                scratch.codes.clear();
                scratch.codes.extend(codes_in(listed));
                let fresh = &cell.fresh[..usize::from(cell.used)];
                scratch.codes.extend_from_slice(fresh);
                let kept = scratch.distinct.dedup(&mut scratch.codes);
                if kept <= LISTED_MAX {
                    return kept as u64;
                }
                let registers = SketchScratch::registers(&mut scratch.registers);
                sketch::apply(registers, scratch.codes[..kept].iter().copied());
                sketch::estimate(registers)
            }
            Stage::Registers { registers, .. } => {
                self.apply_all(group);
                let bytes = self.blocks.bytes_mut(registers, REGISTERS_ORDER);
                sketch::estimate(as_registers_mut(bytes))
            }
        }
    }

    /// All codes of a group with registers go into these.
    fn apply_all(&mut self, group: usize) {
        self.spill(group);
        self.apply_waiting(group);
    }

    /// The sketches of groups `0..total` as Arrow views, and the buffers they point into.
    pub(super) fn into_views(mut self, total: usize) -> (Vec<u128>, Vec<Vec<u8>>) {
        assert_eq!(self.arrived, self.spilled, "a batch ends with `arrive`");
        self.grow(total);
        let first = self.blocks.slabs();
        let mut loose = Vec::new();
        let views = (0..total).map(|group| self.view(group, first, &mut loose));
        let views = views.collect();
        let mut slabs = self.blocks.into_slabs();
        assert_eq!(slabs.len(), first, "a drain takes no memory");
        slabs.append(&mut loose);
        (views, slabs)
    }

    /// The view of a sketch; codes that never left their cell go to `loose` buffers, whose numbers begin with `first`.
    fn view(&mut self, group: usize, first: usize, loose: &mut Vec<Vec<u8>>) -> u128 {
        let cell = &mut self.cells[group];
        if matches!(cell.stage, Stage::Nothing) {
            cell.dedup();
        }
        let (fresh, used) = (cell.fresh, usize::from(cell.used));
        let fresh = &fresh[..used];
        let (buffer, offset, prefix, bytes) = match &mut cell.stage {
            Stage::Nothing => {
                let mut bytes = [0; CELL_CODES * CODE_BYTES];
                write(fresh, &mut bytes);
                let bytes = &bytes[..used * CODE_BYTES];
                if used <= INLINE_CODES {
                    return hash::inline_view(bytes);
                }
                let last = match loose.last_mut() {
                    Some(last) if last.len() + bytes.len() <= last.capacity() => last,
                    _ => {
                        let left = (self.cells.len() - group) * CELL_CODES * CODE_BYTES;
                        loose.push(Vec::with_capacity(left.min(LOOSE_BYTES)));
                        loose.last_mut().expect("pushed above")
                    }
                };
                let offset = last.len();
                last.extend_from_slice(bytes);
                let bytes = bytes.len();
                (first + loose.len() - 1, offset, fresh[0], bytes)
            }
            Stage::List {
                block,
                order,
                codes,
            } => {
                let from = usize::from(*codes) * CODE_BYTES;
                let bytes = self.blocks.bytes_mut(*block, *order);
                write(fresh, &mut bytes[from..]);
                let end = from + used * CODE_BYTES;
                if end <= INLINE_CODES * CODE_BYTES {
                    return hash::inline_view(&bytes[..end]);
                }
                let code = codes_in(bytes).next().expect("a block holds a code");
                (block.slab(), block.offset(), code, end)
            }
            Stage::Registers { registers, .. } => {
                let block = *registers;
                self.apply_all(group);
                let bytes = self.blocks.bytes(block, REGISTERS_ORDER);
                let code = codes_in(bytes).next().expect("a block holds a code");
                (block.slab(), block.offset(), code, REGISTERS)
            }
        };
        bytes as u128 | u128::from(prefix) << 32 | (buffer as u128) << 64 | (offset as u128) << 96
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let SketchScratch {
            codes,
            registers,
            distinct,
        } = &self.scratch;
        let scratch = codes.capacity() * CODE_BYTES + registers.capacity() + distinct.bytes();
        self.cells.capacity() * size_of::<Cell>() + self.blocks.held_bytes() + scratch
    }

    /// Bytes that `push` touches at random.
    pub(super) fn hot_bytes(&self) -> usize {
        self.cells.len() * size_of::<Cell>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_cache_line() {
        assert_eq!(size_of::<Cell>(), 64);
        assert_eq!(room(REGISTERS_ORDER), REGISTERS / CODE_BYTES);
        assert!(LISTED_MAX < list_room(REGISTERS_ORDER));
    }

    /// Groups that are equally frequent: all of their lists are as full at any moment.
    #[test]
    fn a_drain_takes_no_memory() {
        const GROUPS: usize = 300;
        for codes in [2, 7, 12, 13, 20, 33, 115, 500, 507, 2040, 2043, 7000, 9000] {
            let mut sketches = Sketches::default();
            sketches.grow(GROUPS);
            for value in 0..codes {
                for group in 0..GROUPS {
                    sketches.push(group, sketch::code_of(hash::mix(value)));
                }
            }
            sketches.arrive();
            let held = sketches.bytes();
            let (views, buffers) = sketches.into_views(GROUPS);
            let drained: usize = buffers.iter().map(Vec::capacity).sum();
            assert!(drained <= held + LOOSE_BYTES, "{codes}: {held} {drained}");
            let listed = codes as usize * CODE_BYTES;
            let expected = if codes > 8180 { REGISTERS } else { listed };
            let lengths: Vec<usize> = views.iter().map(|view| *view as u32 as usize).collect();
            assert_eq!(lengths, vec![expected; GROUPS], "{codes}");
        }
    }
}
