//! Which counter, day, user and visit a row belongs to.
//!
//! In: a range of row numbers. Out: one `Visit` a row.
//! Invariant: rows are ordered by counter, day and user without sorting. Counters and days are
//! ranges of rows; within one of them the place in the range decides the user.
//! Not here: the values of the columns.

use crate::random::Bits;

/// Counters (sites) of a large table; a small one has fewer, so that each still has rows.
const COUNTERS_MAX: u64 = 6_500;
const ROWS_PER_COUNTER: u64 = 1_500;
const COUNTERS_MIN: u64 = 20;
/// The larger, the smaller the share of the busiest counter (6 % at 2).
const COUNTER_FLAT: f64 = 2.0;
/// The counter that queries ask for by its number, and its rank by size (0.7 % of the rows).
const KNOWN_COUNTER: u64 = 1;
const KNOWN_ID: u64 = 62;
const KNOWN_RANK: usize = 15;
/// 2013-07-02, in days since 1970.
const FIRST_DAY: u64 = 15_888;
const DAYS: usize = 30;
/// A row opens a visit once in this many rows.
const VISIT_ROWS: u64 = 4;
const VISIT_ROWS_MAX: u64 = 64;
/// Users per million rows; some never come, so that 18 % of the rows' number do.
const USERS_PER_MILLION: u64 = 440_000;
/// Users are drawn in cells of ascending ids; the first of each cell come most often.
const CELLS: u64 = 16;
const USER_ID_END: u64 = 1 << 63;

const STREAM_RANK: u64 = 0x7669_0001;
const STREAM_VISIT: u64 = 0x7669_0002;
const STREAM_USER: u64 = 0x7669_0003;
const STREAM_COUNTER: u64 = 0x7669_0004;

/// One site: a range of rows.
struct Counter {
    id: u32,
    first_row: u64,
    rows: u64,
}

/// Where the counters, days and users of a table lie.
pub struct Layout {
    rows: u64,
    users: u64,
    counters: Vec<Counter>,
    /// Share of a counter's rows before each day, and 1.
    day_starts: [f64; DAYS + 1],
}

/// What a row is, before any column is made of it.
#[derive(Clone, Copy)]
pub struct Visit {
    /// Number of the row in the table
    pub row: u64,
    /// Index of the site
    pub counter: u64,
    /// Days since 1970
    pub day: u64,
    /// Index of the user, ascending with the id
    pub user: u64,
    /// Rows of this visit before this one
    pub step: u64,
    /// What all rows of the visit share
    pub bits: Bits,
}

impl Layout {
    /// Lays `rows` rows out.
    pub fn new(rows: u64) -> Self {
        Self {
            rows,
            users: (rows * USERS_PER_MILLION / 1_000_000).max(CELLS),
            counters: counters(rows),
            day_starts: day_starts(),
        }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Public number of a site.
    pub fn counter_id(&self, counter: u64) -> u32 {
        self.counters[counter as usize].id
    }

    /// Rows of a site.
    pub fn counter_rows(&self, counter: u64) -> u64 {
        self.counters[counter as usize].rows
    }

    /// Public number of a user: ascends with the index, otherwise looks random.
    pub fn user_id(&self, user: u64) -> u64 {
        let step = USER_ID_END / self.users;
        user * step + Bits::of(STREAM_USER, user).below(step)
    }

    /// The rows `first..end`.
    pub fn visits(&self, first: u64, end: u64) -> Vec<Visit> {
        let mut visits = Vec::with_capacity((end - first) as usize);
        let mut counter = self
            .counters
            .partition_point(|counter| counter.first_row <= first)
            .saturating_sub(1);
        let mut row = first;
        while row < end {
            let site = &self.counters[counter];
            for day in 0..DAYS {
                let start = site.first_row + self.rows_before(site, day);
                let stop = site.first_row + self.rows_before(site, day + 1);
                if stop > row && row < end {
                    let rows = row.max(start)..stop.min(end);
                    self.push_day(&mut visits, (counter as u64, day as u64), start..stop, rows);
                    row = stop.min(end);
                }
            }
            counter += 1;
        }
        visits
    }

    fn rows_before(&self, site: &Counter, day: usize) -> u64 {
        (site.rows as f64 * self.day_starts[day]) as u64
    }

    /// The part `rows` of the rows `block` of one site on one day.
    fn push_day(
        &self,
        visits: &mut Vec<Visit>,
        (counter, day): (u64, u64),
        block: std::ops::Range<u64>,
        rows: std::ops::Range<u64>,
    ) {
        let length = (block.end - block.start) as f64;
        let mut opened = rows.start;
        while !opens_visit(opened, block.start) {
            opened -= 1;
        }
        for row in rows {
            if opens_visit(row, block.start) {
                opened = row;
            }
            let bits = Bits::of(STREAM_VISIT, opened);
            let place = ((opened - block.start) as f64 + bits.next().unit()) / length;
            visits.push(Visit {
                row,
                counter,
                day: FIRST_DAY + day,
                user: self.user_at(place),
                step: row - opened,
                bits,
            });
        }
    }

    /// Ascends with `place` in [0, 1); the square makes the first users of a cell frequent.
    fn user_at(&self, place: f64) -> u64 {
        let in_cells = place * CELLS as f64;
        let cell = (in_cells as u64).min(CELLS - 1);
        let per_cell = self.users / CELLS;
        let within = in_cells - cell as f64;
        let offset = (within * within * per_cell as f64) as u64;
        cell * per_cell + offset.min(per_cell - 1)
    }
}

fn opens_visit(row: u64, block_start: u64) -> bool {
    let step = row - block_start;
    step.is_multiple_of(VISIT_ROWS_MAX) || Bits::of(STREAM_VISIT, row).below(VISIT_ROWS) == 0
}

fn counters(rows: u64) -> Vec<Counter> {
    let count = (rows / ROWS_PER_COUNTER).clamp(COUNTERS_MIN, COUNTERS_MAX);
    let mut by_size: Vec<u64> = (0..count).collect();
    by_size.sort_by_key(|&counter| Bits::of(STREAM_RANK, counter).0);
    let known = by_size.iter().position(|&counter| counter == KNOWN_COUNTER);
    by_size.swap(known.unwrap_or(KNOWN_RANK), KNOWN_RANK);
    let mut weights = vec![0.0; count as usize];
    for (rank, &counter) in by_size.iter().enumerate() {
        weights[counter as usize] = 1.0 / (rank as f64 + COUNTER_FLAT);
    }
    let total: f64 = weights.iter().sum();
    let mut before = 0.0;
    let mut counters = Vec::with_capacity(weights.len());
    for (counter, weight) in (0_u64..).zip(weights) {
        let first_row = (rows as f64 * (before / total)) as u64;
        before += weight;
        let end = (rows as f64 * (before / total)) as u64;
        let end = if counter + 1 == count { rows } else { end };
        let within = match counter {
            KNOWN_COUNTER => KNOWN_ID - 1 - 40 * KNOWN_COUNTER,
            other => Bits::of(STREAM_COUNTER, other).below(40),
        };
        counters.push(Counter {
            id: (1 + counter * 40 + within) as u32,
            first_row,
            rows: end.max(first_row) - first_row,
        });
    }
    counters
}

fn day_starts() -> [f64; DAYS + 1] {
    // The first day is a Tuesday; Saturdays and Sundays are quieter.
    let weight = |day: usize| match (day + 1) % 7 {
        5 | 6 => 0.75,
        weekday => 1.0 + weekday as f64 * 0.02,
    };
    let total: f64 = (0..DAYS).map(weight).sum();
    let mut starts = [0.0; DAYS + 1];
    for day in 0..DAYS {
        starts[day + 1] = starts[day] + weight(day) / total;
    }
    starts[DAYS] = 1.0;
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_rows_in_order() {
        let layout = Layout::new(50_000);
        let whole = layout.visits(0, 50_000);
        assert_eq!(whole.len(), 50_000);
        let mut cut = layout.visits(0, 12_345);
        cut.extend(layout.visits(12_345, 12_346));
        cut.extend(layout.visits(12_346, 50_000));
        let key = |visit: &Visit| (visit.counter, visit.day, visit.user);
        for (a, b) in whole.iter().zip(&cut) {
            assert_eq!((a.row, key(a), a.step), (b.row, key(b), b.step));
        }
        assert!(whole.is_sorted_by_key(key));
        assert!((0..50_000).eq(whole.iter().map(|visit| visit.row)));
    }

    #[test]
    fn a_table_of_few_rows_has_them() {
        for rows in [0, 1, 7, 1_000] {
            let layout = Layout::new(rows);
            assert_eq!(layout.visits(0, rows).len() as u64, rows);
        }
    }
}
