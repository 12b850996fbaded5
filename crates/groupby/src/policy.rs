//! What a worker does when its hot table is full: a pure function of what it has seen.
//!
//! In: counters since the table was last empty. Out: one of four decisions.
//! Invariant: no state, no clock; the same counters give the same decision.
//! Not here: doing it (`build`).
//!
//! Bypass pays while fewer than half of the rows find their group: a lookup that misses costs the
//! slot, the key, the states and the flush, a bypassed row only its place in a block.

/// Rows per group below which looking up does not pay.
const REDUCTION_MIN: f64 = 2.0;

/// What a worker saw since its table was last empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// Rows looked up.
    pub rows: u64,
    /// Groups in the table.
    pub groups: u64,
    /// Rows of the last window.
    pub window_rows: u64,
    /// Groups that the last window added.
    pub window_groups: u64,
    /// Bytes of table and states.
    pub bytes: usize,
}

/// The bounds that a decision respects.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes a hot table may hold without a look.
    pub hot_bytes: usize,
    /// Bytes a table may grow to.
    pub grown_bytes: usize,
    /// False where an aggregate needs every row to go through a table.
    pub may_bypass: bool,
}

/// What to do with a worker's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Keep,
    /// Empty the table into partitions and go on with an empty one.
    Flush,
    /// Empty the table and send the next rows to partitions unseen.
    Bypass,
}

/// The decision for a worker that has seen `seen`.
pub fn decide(seen: Seen, bounds: Bounds) -> Decision {
    if seen.bytes <= bounds.hot_bytes {
        return Decision::Keep;
    }
    if seen.bytes <= bounds.grown_bytes && expected_bytes(seen) <= bounds.grown_bytes as f64 {
        return Decision::Keep;
    }
    if bounds.may_bypass && (seen.rows as f64) < REDUCTION_MIN * seen.groups as f64 {
        return Decision::Bypass;
    }
    Decision::Flush
}

/// Bytes of a table that holds all groups, if new ones keep coming as in the last window: a hit
/// rate of h with g groups in the table means about g / h groups in all.
fn expected_bytes(seen: Seen) -> f64 {
    let hits = seen.window_rows.saturating_sub(seen.window_groups) as f64;
    if hits <= 0.0 {
        return f64::INFINITY;
    }
    seen.bytes as f64 * seen.window_rows as f64 / hits
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        hot_bytes: 1000,
        grown_bytes: 8000,
        may_bypass: true,
    };

    fn seen(rows: u64, groups: u64, window: (u64, u64), bytes: usize) -> Seen {
        Seen {
            rows,
            groups,
            window_rows: window.0,
            window_groups: window.1,
            bytes,
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
    fn a_table_that_would_hold_everything_is_kept_while_it_fits() {
        // Half of the window hits: about twice the groups in all.
        assert_eq!(
            decide(seen(150, 100, (100, 50), 2000), BOUNDS),
            Decision::Keep
        );
        assert_eq!(
            decide(seen(150, 100, (100, 50), 5000), BOUNDS),
            Decision::Bypass
        );
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
