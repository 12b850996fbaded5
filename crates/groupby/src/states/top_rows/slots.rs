//! The rows of each group: how they compare and where they are kept.
//!
//! In: rows, one by one. Out: whether a row is among the n first of its group so far.
//! Invariant: a group has room for about as many rows as it has got. The last row in order of a full group stands first,
//! and its code is the group's threshold.
//! Not here: the order (rank.rs), the rows' columns (kept.rs).

use std::cmp::Ordering;

use grouse_kernels::prefetch::prefetch;

/// A row of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RankedRow {
    /// Rows whose code is less come first.
    pub code: u64,
    /// The number of the row among those that are kept.
    pub kept: u32,
    /// Decides between NULL and a value that have the same code.
    pub class: u8,
}

/// A group's part of the entries.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    rows: u8,
    room: u8,
}

/// Room for rows when a group gets its first one.
const ROOM_MIN: usize = 2;

/// All groups of a table.
pub(super) struct TopSlots {
    rows_max: usize,
    /// A row whose code is greater is not among the first of its group.
    thresholds: Vec<u64>,
    spans: Vec<Span>,
    entries: Vec<RankedRow>,
    /// Parts of the entries that groups have left, by the room that they offer.
    free: Vec<Vec<u32>>,
    rows: usize,
}

impl TopSlots {
    pub(super) fn new(rows_max: usize) -> Self {
        Self {
            rows_max,
            thresholds: Vec::new(),
            spans: Vec::new(),
            entries: Vec::new(),
            free: vec![Vec::new(); rows_max + 1],
            rows: 0,
        }
    }

    /// Makes sure that groups `0..total` exist.
    pub(super) fn grow(&mut self, total: usize) {
        let total = total.max(self.spans.len());
        self.thresholds.resize(total, u64::MAX);
        self.spans.resize(total, Span::default());
    }

    pub(super) fn thresholds(&self) -> &[u64] {
        &self.thresholds
    }

    /// Number of rows of all groups.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Starts to fetch where the rows of `group` are.
    pub(super) fn expect(&self, group: usize) {
        prefetch(&self.spans, group);
    }

    /// Starts to fetch the rows of `group`.
    pub(super) fn expect_rows(&self, group: usize) {
        prefetch(&self.entries, self.spans[group].start as usize);
    }

    /// Takes a row in if it is among the first of its group.
    pub(super) fn offer(
        &mut self,
        group: usize,
        entry: RankedRow,
        order: impl Fn(&RankedRow, &RankedRow) -> Ordering,
    ) -> bool {
        let rows = self.spans[group].rows as usize;
        if rows < self.rows_max {
            self.append(group, entry);
            if rows + 1 == self.rows_max {
                self.settle(group, order);
            }
            return true;
        }
        let last = &mut self.entries[self.spans[group].start as usize];
        if order(&entry, last) != Ordering::Less {
            return false;
        }
        *last = entry;
        self.settle(group, order);
        true
    }

    fn append(&mut self, group: usize, entry: RankedRow) {
        let mut span = self.spans[group];
        if span.rows == span.room {
            span = self.moved(span);
        }
        self.entries[span.start as usize + span.rows as usize] = entry;
        span.rows += 1;
        self.spans[group] = span;
        self.rows += 1;
    }

    /// The same entries with room for more.
    fn moved(&mut self, from: Span) -> Span {
        let room = (from.room as usize * 2).max(ROOM_MIN).min(self.rows_max);
        let start = self.free[room].pop().unwrap_or_else(|| {
            let start = self.entries.len();
            self.entries.resize(start + room, RankedRow::default());
            u32::try_from(start).expect("rows of one table are counted in 32 bits")
        });
        let old = from.start as usize..from.start as usize + from.rows as usize;
        self.entries.copy_within(old, start as usize);
        if from.room > 0 {
            self.free[from.room as usize].push(from.start);
        }
        Span {
            start,
            rows: from.rows,
            room: room as u8,
        }
    }

    /// Puts the last row of a full group first.
    fn settle(&mut self, group: usize, order: impl Fn(&RankedRow, &RankedRow) -> Ordering) {
        let entries = self.of(group);
        let mut last = 0;
        for at in 1..entries.len() {
            if order(&entries[at], &entries[last]) == Ordering::Greater {
                last = at;
            }
        }
        entries.swap(0, last);
        self.thresholds[group] = entries[0].code;
    }

    /// The rows of a group.
    pub(super) fn of(&mut self, group: usize) -> &mut [RankedRow] {
        let span = self.spans[group];
        &mut self.entries[span.start as usize..][..span.rows as usize]
    }

    /// Numbers the kept rows anew, without gaps; gives the old number of each.
    pub(super) fn renumber(&mut self) -> Vec<u32> {
        let mut old = Vec::with_capacity(self.rows);
        for group in 0..self.spans.len() {
            for entry in self.of(group) {
                let new = old.len() as u32;
                old.push(std::mem::replace(&mut entry.kept, new));
            }
        }
        old
    }

    pub(super) fn bytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.thresholds.capacity() * size_of::<u64>()
            + self.spans.capacity() * size_of::<Span>()
            + self.entries.capacity() * size_of::<RankedRow>()
            + free * size_of::<u32>()
    }
}
