//! Keys with a large part of all rows, which no table has seen: their task comes in pieces.
//!
//! In: one or two hot keys among unique ones, cheap and heavy states; one to sixteen workers, each a thread; memory and disk that
//! refuse. Out: the twin's groups, and whether tasks came in pieces.
//! Not here: how many pieces (`merge::pieces`), orders of the workers' steps (`interleavings`).

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

use arrow::datatypes::Int64Type;
use arrow::row::SortField;
use grouse_groupby::runtime::Counters;
use grouse_groupby::states::{
    Aggregate, End, ListedRows, Listing, NullRows, first_last, listed, median, uniq,
};

use super::*;

const ROWS: usize = 6_000;
/// One of so many rows has a key of its own at first, after which workers no longer look keys up.
const LEAD: usize = 12;

/// Which of the rows have the first row's key, or the second's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Hot {
    /// None.
    None,
    /// Every other row.
    Half,
    /// All behind the first ones.
    All,
    /// Two keys, a third of the rows each.
    Two,
}

impl Hot {
    /// The row of so many whose key a row has.
    fn source(self, row: usize, rows: usize) -> usize {
        match self {
            _ if row < rows / LEAD => row,
            Hot::Half if row.is_multiple_of(2) => 0,
            Hot::All => 0,
            Hot::Two if row % 3 < 2 => row % 3,
            Hot::None | Hot::Half | Hot::Two => row,
        }
    }

    /// Tuples of the key that has most.
    fn most(self) -> usize {
        match self {
            Hot::None => 1,
            Hot::Half => (ROWS - ROWS / LEAD) / 2,
            Hot::All => ROWS - ROWS / LEAD,
            Hot::Two => (ROWS - ROWS / LEAD) / 3,
        }
    }
}

pub(super) fn hot_case(kinds: &[usize], rows: usize, hot: Hot) -> Case {
    let unique = case(kinds, rows, 1 << 32, false, 29);
    let sources = (0..rows).map(|row| hot.source(row, rows) as u32);
    let sources = UInt32Array::from_iter_values(sources);
    let key = |key: &ArrayRef| take(key, &sources, None).expect("rows that there are");
    Case {
        keys: unique.keys.iter().map(key).collect(),
        ..unique
    }
}

/// Rows go by the table from its first look on, and stay as they are.
pub(super) fn bypassing(workers: usize) -> Sizes {
    Sizes {
        bypass_rows: usize::MAX,
        partitions: 64,
        repeat_bytes: 1 << 30,
        workers,
        ..Sizes::tiny()
    }
}

fn how(workers: usize, sizes: Sizes) -> How {
    How {
        table: TableKind::Auto,
        sizes: Sizes { workers, ..sizes },
        workers,
        batch_rows: 50,
    }
}

/// Merges with as many threads as there are workers; their counters together.
fn merge_side_by_side<G: Send>(
    (spec, built): (Arc<Spec>, Vec<Built>),
    workers: usize,
    means: &Means,
    collect: impl Fn(Merged) -> G + Sync,
) -> (Vec<G>, Counters) {
    let merge = Merge::new(spec, built.into_iter().collect(), Some(means.spill.clone()));
    let work = || {
        let mut worker = merge.worker(means.grant()).expect("a table");
        let mut all = Vec::new();
        while let Some(task) = merge.next().expect("memory") {
            let merged = worker.run(&merge, &task, &|| false);
            all.push(collect(merged.expect("memory or disk")));
        }
        (all, worker.counters().clone())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let (mut all, mut counters) = (Vec::new(), Counters::default());
        for thread in threads {
            let (own, counted) = thread.join().expect("no panic");
            all.extend(own);
            counters.add(&counted);
        }
        (all, counters)
    })
}

/// Counts and sums, which have to be the twin's, and what the merge counted.
fn check(case: &Case, how: &How, means: &Means) -> Counters {
    let built = build(case, how, means).expect("memory or disk");
    let (parts, counters) = merge_side_by_side(built, how.workers, means, |merged| {
        let mut groups = Rows::new();
        collect(merged, &mut groups).expect("groups");
        groups
    });
    let mut groups = Rows::new();
    for part in parts {
        let before = groups.len();
        let own = part.len();
        groups.extend(part);
        assert_eq!(groups.len(), before + own, "a group came out twice");
    }
    assert!(groups == twin(&case.keys, &case.values, &case.filter));
    counters
}

#[test]
fn groups_are_the_twins_however_many_workers_merge() {
    for kinds in [&[0][..], &[9], &[0, 9, 5], &[13, 0]] {
        for hot in [Hot::None, Hot::Half, Hot::All, Hot::Two] {
            let case = hot_case(kinds, ROWS, hot);
            for workers in [1, 2, 7, 16] {
                let how = how(workers, bypassing(workers));
                let counters = check(&case, &how, &Means::unlimited());
                let is_more_than_a_share = hot.most() > ROWS / workers;
                assert_eq!(
                    counters.pieces > 0,
                    is_more_than_a_share,
                    "{kinds:?} {hot:?} {workers}: {}",
                    counters.pieces
                );
            }
        }
    }
}

/// Random inputs of even keys, of all sizes and tables, have the tasks that they would have without pieces.
#[test]
fn small_inputs_have_no_pieces() {
    for workers in [2, 16] {
        for rows in [0, 1, 500, 60_000] {
            let case = case(&[0], rows, 1 << 32, false, 31);
            let normal = Sizes::for_machine(workers, 1 << 20);
            let how = How {
                batch_rows: 8192,
                ..how(workers, normal)
            };
            assert_eq!(check(&case, &how, &Means::unlimited()).pieces, 0);
        }
    }
}

/// The values of each group that FILTER lets through, in the order of their rows.
type Values = BTreeMap<Vec<String>, Vec<i64>>;

fn values_of(case: &Case) -> Values {
    let keys: Vec<_> = case.keys.iter().map(shown).collect();
    let mut groups = Values::new();
    for row in 0..case.values.len() {
        let key = keys.iter().map(|column| column[row].clone()).collect();
        let group: &mut Vec<i64> = groups.entry(key).or_default();
        if case.filter.is_valid(row) && case.filter.value(row) {
            group.push(case.values.value(row));
        }
    }
    groups
}

/// One aggregate whose states keep values, or much of them, and its result by a group's values.
struct Heavy {
    aggregate: Arc<dyn Aggregate>,
    of: DataType,
    twin: fn(&[i64]) -> ArrayRef,
}

fn list(values: Vec<i64>) -> ArrayRef {
    let values = (!values.is_empty()).then(|| values.into_iter().map(Some).collect::<Vec<_>>());
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([values]))
}

fn of_integers(aggregate: Option<Arc<dyn Aggregate>>, twin: fn(&[i64]) -> ArrayRef) -> Heavy {
    Heavy {
        aggregate: aggregate.expect("native"),
        of: DataType::Int64,
        twin,
    }
}

fn median_of(values: &[i64]) -> ArrayRef {
    let mut values = values.to_vec();
    values.sort_unstable();
    let at = |place: usize| values[place] as f64;
    let middle = values.len() / 2;
    let median = match (values.len(), values.len() % 2) {
        (0, _) => None,
        (_, 1) => Some(at(middle)),
        _ => Some(f64::midpoint(at(middle - 1), at(middle))),
    };
    Arc::new(Float64Array::from(vec![median]))
}

/// Values, sketches, and rows of which the order says which one it is.
fn heavy() -> Vec<Heavy> {
    let int = DataType::Int64;
    let arriving = |end: End| first_last("first_last", (end, NullRows::Ignored), &[], &int, &int);
    vec![
        of_integers(arriving(End::First), |values| {
            Arc::new(Int64Array::from(vec![values.first().copied()]))
        }),
        of_integers(arriving(End::Last), |values| {
            Arc::new(Int64Array::from(vec![values.last().copied()]))
        }),
        of_integers(uniq("uniq", std::slice::from_ref(&int)), |values| {
            let values = BTreeSet::from_iter(values);
            Arc::new(UInt64Array::from(vec![values.len() as u64]))
        }),
        Heavy {
            aggregate: median("median", &DataType::Float64).expect("native"),
            of: DataType::Float64,
            twin: median_of,
        },
    ]
}

/// Rows as they come, and in an order.
fn lists() -> Vec<Heavy> {
    let int = DataType::Int64;
    let items = Arc::new(Field::new("item", DataType::Int64, true));
    let listed = |order: &[SortField]| {
        let all = (ListedRows::All, NullRows::Ignored);
        listed("list", Listing::Array(items.clone()), all, order, &int)
    };
    vec![
        of_integers(listed(&[]), |values| list(values.to_vec())),
        of_integers(listed(&[SortField::new(int.clone())]), |values| {
            let mut values = values.to_vec();
            values.sort_unstable();
            list(values)
        }),
    ]
}

/// Of one worker, so that values come in the order of rows, for the merge of some.
fn build_heavy(case: &Case, heavy: &[Heavy], how: &How, means: &Means) -> (Arc<Spec>, Built) {
    let fields = case.keys.iter();
    let fields = fields.map(|key| Field::new("k", key.data_type().clone(), true));
    let fields: Vec<FieldRef> = fields.map(Arc::new).collect();
    let layout = KeyLayout::new(&fields, how.table).expect("a layout");
    let aggregates = heavy.iter().map(|one| one.aggregate.clone());
    let spec = Arc::new(Spec::new(layout, aggregates.collect(), how.sizes));
    let build = Build::new(spec.clone(), means.grant(), Some(means.spill.clone()));
    let mut build = build.expect("a build");
    for start in (0..case.values.len()).step_by(how.batch_rows) {
        let rows = how.batch_rows.min(case.values.len() - start);
        let arguments = heavy.iter().map(|one| Arguments {
            columns: vec![cast(&case.values.slice(start, rows), &one.of).expect("a number")],
            filter: Some(case.filter.slice(start, rows)),
        });
        let keys = case.keys.iter().map(|key| key.slice(start, rows));
        let batch = Batch::new(rows, keys.collect(), arguments.collect());
        build.push(&batch).expect("memory or disk");
    }
    (spec, build.finish().expect("memory or disk"))
}

/// Merges inputs of hot keys and looks whether groups are the twin's, and whether tasks came in pieces.
fn check_heavy(all: &[Heavy], are_in_pieces: bool) {
    for kinds in [&[0][..], &[9], &[13, 0]] {
        for hot in [Hot::Half, Hot::All, Hot::Two] {
            let case = hot_case(kinds, ROWS, hot);
            let mut expected: Vec<Vec<String>> = Vec::new();
            for (mut row, values) in values_of(&case) {
                row.extend(all.iter().map(|one| shown(&(one.twin)(&values)).remove(0)));
                expected.push(row);
            }
            for workers in [1, 2, 7, 16] {
                // The first batch is a block of its own.
                let how = How {
                    batch_rows: 100,
                    ..how(workers, bypassing(workers))
                };
                let means = Means::unlimited();
                let (spec, built) = build_heavy(&case, all, &how, &means);
                let built = (spec, vec![built]);
                let (found, counters) = merge_side_by_side(built, workers, &means, results);
                let mut found: Vec<_> = found.into_iter().flatten().collect();
                found.sort();
                assert!(found == expected, "{kinds:?} {hot:?} {workers}");
                let is_hot = hot.most() > ROWS / workers;
                assert_eq!(counters.pieces > 0, is_hot && are_in_pieces);
            }
        }
    }
}

#[test]
fn heavy_states_are_the_twins_in_the_order_of_rows() {
    check_heavy(&heavy(), true);
}

#[test]
fn states_that_are_their_rows_stay_whole() {
    check_heavy(&lists(), false);
    check_heavy(
        &heavy().into_iter().chain(lists()).collect::<Vec<_>>(),
        false,
    );
}

/// Rows as text.
fn results(merged: Merged) -> Vec<Vec<String>> {
    let Some(mut finished) = merged.groups() else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    while let Some(emitted) = finished.next(100).expect("a batch") {
        let shown: Vec<_> = emitted.columns.iter().map(shown).collect();
        let row = |row: usize| shown.iter().map(|column| column[row].clone()).collect();
        rows.extend((0..emitted.rows).map(row));
    }
    rows
}

/// Counts what is held.
struct Limited {
    used: AtomicUsize,
    limit: usize,
}

impl Limited {
    fn to(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { used, limit })
    }

    fn means(self: &Arc<Self>) -> Means {
        Means {
            budget: self.clone(),
            ..Means::unlimited()
        }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

impl Budget for Limited {
    fn grow(&self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let fits = |used: usize| (used + bytes <= self.limit).then_some(used + bytes);
        match self
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits)
        {
            Ok(_) => Ok(()),
            Err(used) => Err(format!("{used} and {bytes} are too many").into()),
        }
    }

    fn insist(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::SeqCst);
    }

    fn shrink(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
    }

    fn free(&self) -> usize {
        self.limit.saturating_sub(self.used())
    }
}

/// From no room for any result to room for all: pieces that are in vain change nothing.
#[test]
fn whatever_memory_refuses_the_groups_are_the_twins() {
    let case = hot_case(&[0, 9], ROWS, Hot::All);
    for limit in [0, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20] {
        let budget = Limited::to(limit);
        let counters = check(&case, &how(7, bypassing(7)), &budget.means());
        assert!(counters.pieces > 0);
        assert_eq!(budget.used(), 0, "{limit}: bytes are still held");
    }
}

/// Refuses one growth of memory.
struct RefusingOnce {
    calls: AtomicUsize,
    refused: usize,
}

impl Budget for RefusingOnce {
    fn grow(&self, _bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match self.calls.fetch_add(1, Ordering::Relaxed) == self.refused {
            true => Err("refused".into()),
            false => Ok(()),
        }
    }

    fn insist(&self, _bytes: usize) {}

    fn shrink(&self, _bytes: usize) {}

    fn free(&self) -> usize {
        usize::MAX
    }
}

/// More values than a worker holds in any case: pieces, the merge of their results and other tasks are refused in turn.
#[test]
fn whatever_is_refused_once_in_the_merge_the_medians_are_the_same() {
    let rows = 1_300_000;
    let case = Case {
        filter: vec![true; rows].into(),
        ..hot_case(&[0], rows, Hot::All)
    };
    let medians = || heavy().split_off(3);
    let of = |workers, refused| {
        let sizes = Sizes {
            bypass_rows: usize::MAX,
            ..Sizes::for_machine(7, 1 << 20)
        };
        let how = How {
            batch_rows: 8192,
            ..how(workers, sizes)
        };
        let (spec, built) = build_heavy(&case, &medians(), &how, &Means::unlimited());
        let budget = Arc::new(RefusingOnce {
            calls: AtomicUsize::new(0),
            refused,
        });
        let means = Means {
            budget: budget.clone(),
            ..Means::unlimited()
        };
        let built = (spec, vec![built]);
        let (found, counters) = merge_side_by_side(built, 1, &means, results);
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        found.sort();
        (found, counters.pieces, budget.calls.load(Ordering::Relaxed))
    };
    let (expected, pieces, _) = of(1, usize::MAX);
    assert_eq!(pieces, 0);
    let (mut refused, mut calls) = (0, 1);
    while refused < calls {
        let (found, pieces, counted) = of(7, refused);
        assert!(found == expected && pieces > 1, "{refused} of {calls}");
        (refused, calls) = (refused + 1, counted);
    }
    assert!(calls > 10);
}

/// The task of a hot key is read once, by all workers; before, it was first written to disk once more.
#[test]
fn a_hot_key_on_disk_comes_in_pieces_that_fit_memory() {
    let case = hot_case(&[0], ROWS, Hot::All);
    let sizes = Sizes {
        held_bytes: 0,
        room_bytes: 24 << 10,
        ..bypassing(7)
    };
    let budget = Limited::to(64 << 20);
    let counters = check(&case, &how(7, sizes), &budget.means());
    assert!(counters.read_bytes > 0 && counters.pieces > 0);
    assert_eq!(counters.repartitioned, 0);
    assert_eq!(budget.used(), 0);
    // No room for the rare keys, which all results have.
    let sizes = Sizes {
        room_bytes: 256,
        ..sizes
    };
    let counters = check(&case, &how(7, sizes), &budget.means());
    assert!(counters.repartitioned > 0);
    assert_eq!((counters.pieces, budget.used()), (0, 0));
}

/// At each look of a piece, and of the merge of the results.
#[test]
fn a_cancelled_piece_ends_the_merge_and_gives_all_memory_back() {
    let case = hot_case(&[9], ROWS, Hot::All);
    let how = how(7, bypassing(7));
    let (mut cancelled_at, mut pieces) = (0, 0);
    loop {
        let budget = Limited::to(64 << 20);
        let means = budget.means();
        let (spec, built) = build(&case, &how, &means).expect("memory");
        let merge = Merge::new(spec, built.into_iter().collect(), None);
        let looks = AtomicUsize::new(0);
        let look = || looks.fetch_add(1, Ordering::Relaxed) >= cancelled_at;
        let mut worker = merge.worker(means.grant()).expect("a table");
        let mut is_cancelled = false;
        while let Some(task) = merge.next().expect("memory") {
            match worker.run(&merge, &task, &look).expect("memory") {
                Merged::Cancelled => {
                    is_cancelled = true;
                    break;
                }
                merged => drop(merged),
            }
        }
        pieces = pieces.max(worker.counters().pieces);
        drop((worker, merge));
        assert_eq!(budget.used(), 0, "{cancelled_at}");
        if !is_cancelled {
            break;
        }
        cancelled_at += 1;
    }
    assert!(pieces > 7 && cancelled_at > 7 * pieces as usize);
}
