//! Blocks that many workers leave to all.
//!
//! In: rows of few keys that go by the tables of two and of many workers. Out: the same groups, and about as many tuples.
//! Not here: orders of the workers' steps (`interleavings`).

use super::*;

const KEYS: u64 = 2_000;
const ROWS: usize = 96_000;

/// Rows go by the tables; blocks of so many bytes are looked at.
fn how(workers: usize, repeat_bytes: usize) -> How {
    How {
        table: TableKind::Auto,
        sizes: Sizes {
            repeat_bytes,
            ..hot_keys::bypassing(workers)
        },
        workers,
        batch_rows: 200,
    }
}

/// The tuples that wait for the merge, and how often blocks were combined; the groups are the twin's.
fn waiting(case: &Case, how: &How) -> (usize, u64) {
    let means = Means::unlimited();
    let (spec, built) = build(case, how, &means).expect("memory");
    let tuples = built.iter().map(Built::tuples).sum();
    let combined = built.iter().map(|one| one.counters.combined).sum();
    let (groups, _) = merged((spec, built), &means).expect("memory");
    assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
    (tuples, combined)
}

/// Each of 16 workers has too few rows to combine them alone: left to all, most rows become groups before the merge.
#[test]
fn many_workers_hold_hardly_more_tuples_than_two() {
    for kinds in [&[0][..], &[9]] {
        let case = case(kinds, ROWS, KEYS, false, 31);
        let (of_two, _) = waiting(&case, &how(2, 64 << 10));
        let (of_many, combined) = waiting(&case, &how(16, 64 << 10));
        assert!(combined > 0, "nothing was combined");
        assert!(of_many < ROWS / 2, "{of_many} tuples wait, {of_two} of two");
    }
}

#[test]
fn blocks_without_repeats_stay_as_they_are() {
    let case = case(&[0], 20_000, 1 << 40, false, 37);
    let (tuples, combined) = waiting(&case, &how(8, 16 << 10));
    assert_eq!(combined, 0);
    assert!(tuples <= 20_000, "{tuples} tuples");
}

/// What a worker has left comes back to whoever ends last, also where one ends long before the others.
#[test]
fn nothing_is_lost_where_one_worker_ends_early() {
    let case = case(&[0], 30_000, 500, true, 41);
    let how = how(3, 4 << 10);
    let means = Means::unlimited();
    let spec = spec(&case, &how).expect("keys");
    let new = || Build::new(spec.clone(), means.grant(), Some(means.spill.clone()));
    let batch_of = |start: usize, rows: usize| {
        let keys = case.keys.iter().map(|key| key.slice(start, rows)).collect();
        batch(&case, keys, start, rows)
    };
    let mut early = new().expect("a table");
    let mut built = Vec::new();
    for start in (0..10_000).step_by(100) {
        early.push(&batch_of(start, 100)).expect("memory");
    }
    let mut late = new().expect("a table");
    built.push(early.finish().expect("memory"));
    for start in (10_000..20_000).step_by(100) {
        late.push(&batch_of(start, 100)).expect("memory");
    }
    built.push(late.finish().expect("memory"));
    let mut last = new().expect("a table");
    for start in (20_000..30_000).step_by(100) {
        last.push(&batch_of(start, 100)).expect("memory");
    }
    built.push(last.finish().expect("memory"));
    let (groups, _) = merged((spec, built), &means).expect("memory");
    assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
}
