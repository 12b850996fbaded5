//! Groups of direct tables that are merged side by side by address, and those that cannot be.
//!
//! In: small integers of many shapes, 1 to 480 workers. Out: the twin's groups; whether a hash was looked up tells the way.
//! Invariant: the way never changes an answer.
//! Not here: addresses themselves (`keys/direct/space.rs`).

use std::sync::atomic::AtomicUsize;

use grouse_groupby::states::{
    Extreme, ListedRows, Listing, NullRows, listed, median, min_max, uniq,
};

use super::*;

const WORKERS: [usize; 6] = [1, 2, 3, 7, 64, 480];

/// How the groups of all workers came together.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    ByAddress,
    ByHash,
}

fn integers(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(values))
}

fn case_of(keys: Vec<ArrayRef>) -> Case {
    let rows = keys[0].len();
    Case {
        known: vec![KeyValues::Any; keys.len()],
        keys,
        ..case(&[], rows, 1, true, 5)
    }
}

fn how(workers: usize, rows: usize, sizes: Sizes) -> How {
    How {
        table: TableKind::Auto,
        sizes: Sizes { workers, ..sizes },
        workers,
        batch_rows: rows.div_ceil(2 * workers),
    }
}

/// The groups, and their way: each worker takes a task in turn.
fn merged_by(
    (spec, built): (Arc<Spec>, Vec<Built>),
    means: &Means,
    workers: usize,
) -> (Vec<Finished>, Way) {
    let merge = Merge::new(spec, built.into_iter().collect(), Some(means.spill.clone()));
    let workers = (0..workers).map(|_| merge.worker(means.grant()));
    let mut workers: Vec<_> = workers.collect::<Result<_, _>>().expect("tables");
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(task) = merge.next().expect("blocks") {
        let merging = workers.len();
        let merged = workers[at % merging].run(&merge, &task, &|| false);
        all.extend(merged.expect("memory").groups());
        at += 1;
    }
    let looked_up = workers.iter().map(|worker| worker.counters().looked_up);
    let way = match looked_up.sum::<u64>() {
        0 => Way::ByAddress,
        _ => Way::ByHash,
    };
    (all, way)
}

fn check_way(case: &Case, how: &How, expected: Way) {
    let means = Means::unlimited();
    let built = build(case, how, &means).expect("memory");
    let (all, way) = merged_by(built, &means, how.workers);
    let mut groups = Rows::new();
    for finished in all {
        collect(Merged::Groups(finished), &mut groups).expect("groups");
    }
    assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
    assert_eq!(way, expected, "{} workers", how.workers);
}

/// Keys of each shape; a worker has some of the values, or all, or one that nobody else has.
fn shapes(rows: i64) -> Vec<Vec<ArrayRef>> {
    let all = |value: &dyn Fn(i64) -> Option<i64>| integers((0..rows).map(value));
    vec![
        vec![all(&|_| Some(7))],
        vec![all(&|_| None)],
        vec![all(&|row| Some(row % 100))],
        vec![all(&|row| Some(row % 100 * 7_200))],
        vec![all(&|row| Some(row * 7919 % 1000 - 500))],
        vec![all(&|row| (row % 3 > 0).then_some(-row % 200))],
        vec![all(&|row| Some(row / 10))],
        vec![
            all(&|row| Some(row % 5)),
            all(&|row| Some(row / 50 % 7 - 3)),
        ],
        vec![
            all(&|row| (row % 11 > 0).then_some(row % 9 * 60)),
            Arc::new(BooleanArray::from_iter(
                (0..rows).map(|row| (row % 7 > 0).then_some(row % 2 == 0)),
            )),
            all(&|row| (row > rows / 2).then_some(row / 400)),
        ],
    ]
}

#[test]
fn groups_side_by_side_equal_the_twin() {
    const ROWS: usize = 5_000;
    for keys in shapes(ROWS as i64) {
        let case = case_of(keys);
        for workers in WORKERS {
            for task_tuples in [1, normal().task_tuples] {
                let sizes = Sizes {
                    task_tuples,
                    ..normal()
                };
                check_way(&case, &how(workers, ROWS, sizes), Way::ByAddress);
            }
        }
    }
}

#[test]
fn small_and_large_integers_of_all_types_are_merged_by_address() {
    for (first, data_type) in [
        (-100, DataType::Int8),
        (0, DataType::UInt8),
        (-32_000, DataType::Int16),
        (65_000, DataType::UInt16),
        (-300_000, DataType::Date32),
        (1 << 60, DataType::UInt64),
    ] {
        let key = integers((0..3_000).map(|row| Some(first + row * 31 % 200)));
        let key = match data_type {
            DataType::Date32 => cast(&key, &DataType::Int32).expect("days"),
            _ => key,
        };
        let key = cast(&key, &data_type).expect("they fit");
        check_way(
            &case_of(vec![key]),
            &how(5, 3_000, normal()),
            Way::ByAddress,
        );
    }
}

/// One worker's keys are far from all others', or strings, or some groups are in blocks.
#[test]
fn what_is_not_side_by_side_is_merged_by_hash() {
    const ROWS: usize = 4_000;
    let of_batch = |row: i64| row / 500;
    let apart = integers((0..ROWS as i64).map(|row| Some(of_batch(row) % 2 * 900_000 + row % 50)));
    check_way(&case_of(vec![apart]), &how(4, ROWS, normal()), Way::ByHash);
    let strings = column(9, ROWS, 12, true, 3);
    check_way(
        &case_of(vec![strings]),
        &how(4, ROWS, normal()),
        Way::ByHash,
    );
    // As many rows as 150 groups in all, of which some workers' tables were emptied.
    let few = |row: i64| match of_batch(row) {
        1 => row % 150,
        _ => row % 3,
    };
    let uneven = integers((0..ROWS as i64).map(|row| Some(few(row))));
    check_way(
        &case_of(vec![uneven]),
        &how(4, ROWS, Sizes::tiny()),
        Way::ByHash,
    );
}

/// Workers make blocks of what is by address while others wait for them.
#[test]
fn workers_that_settle_side_by_side_lose_no_group() {
    const ROWS: usize = 20_000;
    const WORKERS: usize = 8;
    let far = |row: i64| if row == 77 { 1 << 40 } else { row * 31 % 4_000 };
    let case = case_of(vec![integers((0..ROWS as i64).map(|row| Some(far(row))))]);
    let expected = twin(&case.keys, &case.values, &case.filter);
    for _ in 0..20 {
        let means = Means::unlimited();
        let how = how(WORKERS, ROWS, normal());
        let (spec, built) = build(&case, &how, &means).expect("memory");
        let merge = Merge::new(spec, built.into_iter().collect(), None);
        let found = std::thread::scope(|scope| {
            let merging = (0..WORKERS).map(|_| {
                scope.spawn(|| {
                    let mut worker = merge.worker(means.grant()).expect("a table");
                    let mut rows = Rows::new();
                    while let Some(task) = merge.next().expect("blocks") {
                        let merged = worker.run(&merge, &task, &|| false);
                        collect(merged.expect("memory"), &mut rows).expect("groups");
                    }
                    rows
                })
            });
            let merging: Vec<_> = merging.collect();
            let all = merging.into_iter().map(|one| one.join().expect("no panic"));
            all.fold(Rows::new(), |mut all, rows| {
                let before = all.len() + rows.len();
                all.extend(rows);
                assert_eq!(all.len(), before, "a group came out twice");
                all
            })
        });
        assert_eq!(found, expected);
    }
}

/// What all workers together have of each group under each of these aggregates, as text.
fn shown_by(table: TableKind, aggregates: &[Arc<dyn Aggregate>], workers: usize) -> Vec<String> {
    const ROWS: i64 = 6_000;
    let key = integers((0..ROWS).map(|row| (row % 13 > 0).then_some(row * 17 % 90)));
    let values = integers((0..ROWS).map(|row| (row % 5 > 0).then_some(row * 7919 % 700)));
    let floats = cast(&values, &DataType::Float64).expect("numbers");
    let strings = column(9, ROWS as usize, 400, true, 3);
    let fields = [Arc::new(Field::new("k", DataType::Int64, true))];
    let keys = KeyLayout::new(&fields, table).expect("a key");
    let sizes = Sizes {
        workers,
        task_tuples: 64,
        ..normal()
    };
    let spec = Arc::new(Spec::new(keys, aggregates.to_vec(), sizes));
    let means = Means::unlimited();
    let grant = || means.grant();
    let builds = (0..workers).map(|_| Build::new(spec.clone(), grant(), None));
    let mut builds: Vec<_> = builds.collect::<Result<_, _>>().expect("tables");
    let at_once = (ROWS as usize).div_ceil(3 * workers);
    for (at, start) in (0..ROWS as usize).step_by(at_once).enumerate() {
        let rows = at_once.min(ROWS as usize - start);
        let arguments = aggregates.iter().map(|aggregate| Arguments {
            columns: match aggregate.name().contains("(s)") {
                true => vec![strings.slice(start, rows)],
                false if aggregate.name().contains("(f)") => vec![floats.slice(start, rows)],
                false => vec![values.slice(start, rows)],
            },
            filter: None,
        });
        let batch = Batch::new(rows, vec![key.slice(start, rows)], arguments.collect());
        builds[at % workers].push(&batch).expect("memory");
    }
    let built = builds.into_iter().map(Build::finish);
    let built = built.collect::<Result<_, _>>().expect("memory");
    let merge = Merge::new(spec, MergeInput::from_iter::<Vec<_>>(built), None);
    let mut worker = merge.worker(grant()).expect("a table");
    let mut all = Vec::new();
    while let Some(task) = merge.next().expect("blocks") {
        let merged = worker.run(&merge, &task, &|| false).expect("memory");
        let mut finished = merged.groups().expect("all in memory");
        while let Some(emitted) = finished.next(11).expect("groups") {
            let columns: Vec<_> = emitted.columns.iter().map(shown).collect();
            let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
            all.extend(
                (0..emitted.rows)
                    .map(row)
                    .map(|row: Vec<String>| row.join(" | ")),
            );
        }
    }
    let by_address = worker.counters().looked_up == 0;
    assert_eq!(by_address, table == TableKind::Direct || workers == 1);
    all.sort();
    all
}

#[test]
fn heavy_states_are_what_hashed_tables_make_of_them() {
    let (int, view) = (DataType::Int64, DataType::Utf8View);
    let item = Arc::new(Field::new("item", int.clone(), true));
    let aggregates = [
        uniq("uniq(v)", std::slice::from_ref(&int)).expect("native"),
        uniq("uniq(s)", std::slice::from_ref(&view)).expect("native"),
        median("median(f)", &DataType::Float64).expect("native"),
        min_max("max(s)", Extreme::Max, &view, &view).expect("native"),
        listed(
            "array_agg(v)",
            Listing::Array(item),
            (ListedRows::All, NullRows::Respected),
            &[],
            &int,
        )
        .expect("native"),
        count("count(v)").expect("native"),
    ];
    for workers in WORKERS {
        let by_address = shown_by(TableKind::Direct, &aggregates, workers);
        assert_eq!(by_address.len(), 91);
        let by_hash = shown_by(TableKind::Packed, &aggregates, workers);
        assert_eq!(by_address, by_hash, "{workers} workers");
    }
}

#[test]
fn keys_alone_are_merged_by_address() {
    for workers in WORKERS {
        let by_address = shown_by(TableKind::Direct, &[], workers);
        assert_eq!(by_address, shown_by(TableKind::Packed, &[], workers));
    }
}

#[test]
fn a_merge_by_address_ends_at_the_next_look_once_nobody_wants_it() {
    const ROWS: usize = 60_000;
    let case = case_of(vec![integers(
        (0..ROWS as i64).map(|row| Some(row % 20_000)),
    )]);
    let means = Means::unlimited();
    let (spec, built) = build(&case, &how(3, ROWS, normal()), &means).expect("memory");
    let merge = Merge::new(spec, built.into_iter().collect(), None);
    let mut worker = merge.worker(means.grant()).expect("a table");
    for looks in 0..3 {
        let task = merge.next().expect("by address").expect("a task");
        let looked = AtomicUsize::new(0);
        let merged = worker.run(&merge, &task, &|| {
            looked.fetch_add(1, Ordering::Relaxed) == looks
        });
        assert!(matches!(merged, Ok(Merged::Cancelled)));
        assert_eq!(looked.load(Ordering::Relaxed), looks + 1);
    }
}

/// All groups are side by side, and states are refused in the merge: they go to disk as hashed ones do.
#[test]
fn what_a_merge_by_address_has_no_room_for_is_repartitioned() {
    const ROWS: usize = 1_200_000;
    let case = case_of(vec![integers(
        (0..ROWS as i64).map(|row| Some(row * 7 % 400_000)),
    )]);
    let how = How {
        batch_rows: 8_192,
        ..how(
            2,
            ROWS,
            Sizes {
                task_tuples: 1 << 20,
                hot_bytes: 64 << 20,
                ..normal()
            },
        )
    };
    let (groups, parted) = merged_without_memory(&case, &how);
    assert!(parted > 1, "{parted}");
    assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
}

/// Memory that is short when a worker ends sends its groups to disk, as before.
#[test]
fn groups_that_memory_has_no_room_for_do_not_stay_by_address() {
    let case = case_of(vec![integers((0..4_000).map(|row| Some(row % 60)))]);
    let how = how(2, 4_000, Sizes::spilling());
    let means = Means::unlimited();
    let (spec, built) = build(&case, &how, &means).expect("disk");
    let on_disk =
        |part: &Built| part.tuples() > 0 && part.blocks().all(|stored| stored.is_on_disk());
    assert!(built.iter().all(on_disk));
    let (groups, _) = merged((spec, built), &means).expect("groups");
    assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
}
