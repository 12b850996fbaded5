//! What a worker does when its hot table is full: a pure function of what it has seen.
//!
//! In: counters since the table was last empty, bounds. Out: one of five decisions.
//! Invariant: no state, no clock; the same counters and bounds give the same decision.
//! Not here: doing it (`build`).
//!
//! Nanoseconds of one core per row, all phases (`grouse-operator`, 10 M rows, one count): 1,000 keys in
//! the cache 10, 100,000 in a grown table 22, unique keys bypassed 35. Tried and rejected: growing on
//! one window's hit rate alone (Zipf keys 73, against 36 where the estimate is held against what comes). Freezing a full
//! table that most rows hit, so that only the others go to partitions. Keys by Zipf's law with an exponent of 1.2, of
//! which 85 % hit, took 61 ms instead of 77 here. As a query they took 1.0 of the time, with four aggregates 1.1, since
//! arguments have to be partitioned too. Where half of the rows hit (1.0), 117 ms instead of 85.

/// Rows per group below which looking up does not pay.
const REDUCTION_MIN: f64 = 3.0;
/// The same where keys have strings: a tuple that waits has a copy of it, which costs more than a lookup saves.
/// Seven queries of hits with 3.0 and 1.6, two runs of each in turn: 0.70 to 0.92 of the time; 1.2 and 2.0 were no better.
const REDUCTION_MIN_STRINGS: f64 = 1.6;
/// Where rows may go by, a table grows beyond the cache only if so many rows per group are still to come. Its groups have to
/// be made, touched, emptied and merged, which takes as much as looking up saves on so many rows. Each of 16 workers may see
/// hardly more rows than there are groups. Tables that grew took 94 ns of CPU time per row, rows that go by 33 to 52 (2 M
/// rows of 100,000 integers on 2 cores, `grouse-policy`).
const ROWS_PER_GROUP: f64 = 8.0;
/// Rows that an input which fills tables is taken to have, if more have not come yet. Each of two workers has enough of them
/// for 262,144 groups, each of 16 for 32,768.
pub(crate) const ROWS_ASSUMED: u64 = 4 << 20;
/// How far the groups may exceed what was expected of them.
const EXPECTED_SLACK: f64 = 1.25;

/// Bytes of a group, and rows per new one, from which on a table that has outgrown what was expected of it grows all the same:
/// emptying copies the groups. Extremes of two strings by 9,040 keys, emptied at each batch before, took 0.97 of the
/// time. Smaller groups took more: strings as keys 1.07, two numbers as key 1.07 to 1.25, sites with a string each 1.02
/// to 1.07.
const LARGE_BYTES: u64 = 192;
const ROWS_PER_MISS_MIN: u64 = 8;
/// Which part of the bytes that a table may grow to it may then have.
const BEYOND_SHARE: usize = 4;

/// An array is worth it after so many rows per slot: as many more are expected then. What the array costs once, slots and
/// groups that no cache holds, is a small part of what the rows before have cost.
/// From the first row on, 3 M rows of 1 M keys took a third more time, 3 M ever new ones a fifth.
const ROWS_PER_SLOT: u64 = 8;

/// What a worker saw since its table was last empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Rows of the worker from its first on, also those that went by.
    pub all_rows: u64,
    /// Rows looked up; without aggregates runs of equal keys.
    pub rows: u64,
    /// Groups in the table.
    pub groups: u64,
    /// Rows of the last window.
    pub window_rows: u64,
    /// Groups that the last window added.
    pub window_groups: u64,
    /// Bytes of the groups in table and states.
    pub bytes: usize,
    /// Bytes that states hold beside them, per row: appended, never looked up.
    pub appended_bytes: usize,
    /// The array that keys address, if one does.
    pub array: Option<Array>,
    /// Groups in all, as expected when the table outgrew the cache; `None` before.
    pub expected_groups: Option<f64>,
}

/// An array of slots, each a group at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    /// Its slots from the lowest to the highest key so far.
    pub slots: usize,
    /// Bytes of array and states, were each of them a group.
    pub full_bytes: usize,
}

/// The bounds that a decision respects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes a hot table may hold without a look.
    pub hot_bytes: usize,
    /// Bytes a table may grow to.
    pub grown_bytes: usize,
    /// Bytes of an array were it full.
    pub array_bytes: usize,
    /// Rows that each worker is taken to get at least.
    pub rows_assumed: u64,
    /// False where an aggregate needs every row to go through a table.
    pub may_bypass: bool,
    /// False once a table grew in vain.
    pub may_grow: bool,
    /// True of keys with strings.
    pub has_strings: bool,
}

/// What to do with a worker's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// Go on.
    Keep,
    /// Go on: all groups fit.
    Grow {
        /// How many there are in all.
        expected_groups: f64,
    },
    /// Empty the table into partitions and go on with an empty one.
    Flush,
    /// Empty the table into partitions because of what is appended to its states, and go on as before.
    Shed,
    /// Empty the table and send the next rows to partitions unseen.
    Bypass,
}

/// The decision for a worker that has seen `seen`.
pub(crate) fn decide(seen: Seen, bounds: Bounds) -> Decision {
    match decide_by_groups(seen, bounds) {
        // Sorting what was appended takes as much again, and reaches further than any cache.
        Decision::Keep | Decision::Grow { .. } if seen.appended_bytes > bounds.grown_bytes => {
            Decision::Shed
        }
        decision => decision,
    }
}

/// True of a worker that had so many rows that an array of so many slots is worth it.
pub(crate) fn had_many(rows: u64, slots: usize) -> bool {
    rows >= ROWS_PER_SLOT * slots as u64
}

fn decide_by_groups(seen: Seen, bounds: Bounds) -> Decision {
    if seen.bytes <= bounds.hot_bytes {
        return Decision::Keep;
    }
    let is_worth_it = |array: Array| {
        array.full_bytes <= bounds.array_bytes && had_many(seen.all_rows, array.slots)
    };
    if seen.array.is_some_and(is_worth_it) {
        return Decision::Keep;
    }
    if bounds.may_grow && seen.bytes <= bounds.grown_bytes {
        let (expected_groups, most) = match seen.expected_groups {
            Some(expected) if is_beyond(seen, expected) && is_worth_more(seen) => {
                (all_groups(seen), bounds.grown_bytes / BEYOND_SHARE)
            }
            Some(expected) => (expected, bounds.grown_bytes),
            None => (all_groups(seen), bounds.grown_bytes),
        };
        let share = expected_groups / seen.groups as f64;
        let fits = share * seen.bytes as f64 <= most as f64 && !is_beyond(seen, expected_groups);
        let is_worth_it = seen.expected_groups.is_some()
            || !goes_by(seen, bounds)
            || will_repeat(seen, bounds, expected_groups);
        if fits && is_worth_it {
            return Decision::Grow { expected_groups };
        }
    }
    match goes_by(seen, bounds) {
        true => Decision::Bypass,
        false => Decision::Flush,
    }
}

/// True if so few rows have met a group of the table that the next ones do without it, unless it grows.
fn goes_by(seen: Seen, bounds: Bounds) -> bool {
    let reduction_min = match bounds.has_strings {
        true => REDUCTION_MIN_STRINGS,
        false => REDUCTION_MIN,
    };
    bounds.may_bypass && (seen.rows as f64) < reduction_min * seen.groups as f64
}

/// True if rows enough are to come for so many groups: as many as have come, or what is left of those that are assumed.
fn will_repeat(seen: Seen, bounds: Bounds, expected_groups: f64) -> bool {
    let of_assumed = bounds.rows_assumed.saturating_sub(seen.all_rows);
    of_assumed.max(seen.all_rows) as f64 >= ROWS_PER_GROUP * expected_groups
}

/// True of a table with more groups than were expected in all.
fn is_beyond(seen: Seen, expected_groups: f64) -> bool {
    seen.groups as f64 > expected_groups * EXPECTED_SLACK
}

/// True of a table of large groups that nearly all rows hit: keys are skewed, and what is left of them is rare.
fn is_worth_more(seen: Seen) -> bool {
    let are_large = seen.bytes as u64 >= seen.groups * LARGE_BYTES;
    are_large && seen.window_groups * ROWS_PER_MISS_MIN <= seen.window_rows
}

/// Groups in all, were every key as frequent as any other: a hit rate of h with g groups in the
/// table then means g / h. Skewed or ever new keys soon prove it wrong.
fn all_groups(seen: Seen) -> f64 {
    let hits = seen.window_rows.saturating_sub(seen.window_groups) as f64;
    seen.groups as f64 * seen.window_rows as f64 / hits
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        hot_bytes: 1000,
        grown_bytes: 8000,
        array_bytes: 20_000,
        rows_assumed: 1 << 20,
        may_bypass: true,
        may_grow: true,
        has_strings: false,
    };

    fn seen(rows: u64, groups: u64, window: (u64, u64), bytes: usize) -> Seen {
        Seen {
            all_rows: rows,
            rows,
            groups,
            window_rows: window.0,
            window_groups: window.1,
            bytes,
            appended_bytes: 0,
            array: None,
            expected_groups: None,
        }
    }

    #[test]
    fn a_table_inside_the_cache_is_kept_whatever_it_holds() {
        assert_eq!(
            decide(seen(100, 100, (100, 100), 1000), BOUNDS),
            Decision::Keep
        );
    }

    #[test]
    fn an_array_is_kept_where_many_rows_came_and_it_would_fit_were_it_full() {
        let of = |slots, full_bytes| Seen {
            array: Some(Array { slots, full_bytes }),
            all_rows: 800,
            ..seen(100, 99, (100, 99), 2000)
        };
        assert_eq!(decide(of(100, 20_000), BOUNDS), Decision::Keep);
        assert_eq!(decide(of(100, 20_001), BOUNDS), Decision::Bypass);
        assert_eq!(decide(of(101, 20_000), BOUNDS), Decision::Bypass);
    }

    #[test]
    fn a_table_that_would_hold_everything_grows_while_it_fits() {
        // Half of the window hits: about twice the groups in all.
        let expected_groups = 200.0;
        assert_eq!(
            decide(seen(150, 100, (100, 50), 2000), BOUNDS),
            Decision::Grow { expected_groups }
        );
        assert_eq!(
            decide(seen(150, 100, (100, 50), 5000), BOUNDS),
            Decision::Bypass
        );
    }

    /// Half of the window hits, so that 200 groups are expected: 1,600 rows have to be left.
    #[test]
    fn a_table_grows_where_rows_enough_are_to_come() {
        let after = |all_rows, rows_assumed| {
            let seen = Seen {
                all_rows,
                ..seen(150, 100, (100, 50), 2000)
            };
            let bounds = Bounds {
                rows_assumed,
                ..BOUNDS
            };
            decide(seen, bounds)
        };
        let grows = Decision::Grow {
            expected_groups: 200.0,
        };
        assert_eq!(after(150, 1_750), grows);
        assert_eq!(after(150, 1_749), Decision::Bypass);
        assert_eq!(after(1_600, 1_750), grows);
        assert_eq!(after(1_599, 1_750), Decision::Bypass);
        // What has grown goes on, and so does whatever else would be emptied again and again.
        let grown = Seen {
            expected_groups: Some(200.0),
            ..seen(150, 100, (100, 50), 2000)
        };
        let bounds = Bounds {
            rows_assumed: 0,
            ..BOUNDS
        };
        assert_eq!(decide(grown, bounds), grows);
        let bounds = Bounds {
            may_bypass: false,
            ..bounds
        };
        assert_eq!(decide(seen(150, 100, (100, 50), 2000), bounds), grows);
    }

    #[test]
    fn a_table_with_more_groups_than_expected_stops_growing() {
        let grown = |groups| Seen {
            expected_groups: Some(200.0),
            ..seen(groups * 10, groups, (100, 10), 3000)
        };
        let expected_groups = 200.0;
        assert_eq!(
            decide(grown(200), BOUNDS),
            Decision::Grow { expected_groups }
        );
        assert_eq!(decide(grown(260), BOUNDS), Decision::Flush);
        let bounds = Bounds {
            may_grow: false,
            ..BOUNDS
        };
        assert_eq!(decide(grown(200), bounds), Decision::Flush);
    }

    #[test]
    fn a_table_of_large_groups_grows_beyond_what_was_expected_while_few_rows_miss() {
        let grown = |window_groups, bytes| Seen {
            expected_groups: Some(8.0),
            ..seen(400, 11, (100, window_groups), bytes)
        };
        let bounds = Bounds {
            grown_bytes: 16_000,
            ..BOUNDS
        };
        let decided = |window_groups, bytes| decide(grown(window_groups, bytes), bounds);
        assert!(matches!(decided(12, 2112), Decision::Grow { .. }));
        assert_eq!(decided(12, 2111), Decision::Flush);
        assert_eq!(decided(13, 2112), Decision::Flush);
        assert_eq!(decided(12, 4000), Decision::Flush);
    }

    #[test]
    fn a_table_of_long_lists_is_emptied_and_may_still_grow() {
        let long = |bytes, appended_bytes| Seen {
            appended_bytes,
            ..seen(1000, 100, (100, 50), bytes)
        };
        assert_eq!(decide(long(500, 8000), BOUNDS), Decision::Keep);
        assert_eq!(decide(long(500, 8001), BOUNDS), Decision::Shed);
        assert_eq!(decide(long(2000, 8001), BOUNDS), Decision::Shed);
        assert_eq!(decide(long(5000, 8001), BOUNDS), Decision::Flush);
    }

    #[test]
    fn strings_are_looked_up_where_numbers_go_by() {
        let bounds = Bounds {
            has_strings: true,
            ..BOUNDS
        };
        let two_a_group = seen(200, 100, (100, 90), 2000);
        assert_eq!(decide(two_a_group, BOUNDS), Decision::Bypass);
        assert_eq!(decide(two_a_group, bounds), Decision::Flush);
        let unique = seen(100, 99, (100, 99), 2000);
        assert_eq!(decide(unique, bounds), Decision::Bypass);
    }

    #[test]
    fn unique_rows_bypass_and_local_repeats_flush() {
        assert_eq!(
            decide(seen(100, 99, (100, 99), 2000), BOUNDS),
            Decision::Bypass
        );
        assert_eq!(
            decide(seen(1000, 100, (100, 90), 2000), BOUNDS),
            Decision::Flush
        );
        let bounds = Bounds {
            may_bypass: false,
            ..BOUNDS
        };
        assert_eq!(
            decide(seen(100, 99, (100, 99), 2000), bounds),
            Decision::Flush
        );
    }
}
