//! Workers that build and merge side by side, in many orders of their steps.
//!
//! In: small inputs, two or three workers each a thread of a scheduler. It picks who goes on at every look at memory, every
//! call for the disk and between tasks. Out: the same groups in each order, and all memory given back.
//! Not here: how the engine hands batches out (its own tests/interleavings.rs); one order of many inputs (`operator`).

use shuttle::sync::atomic::AtomicUsize;
use shuttle::thread;

use grouse_groupby::runtime::Counters;

use super::*;

/// Orders that are tried of each case.
const ORDERS: usize = 150;

/// A limit that several workers share; each look at it is a step.
struct Shared {
    used: AtomicUsize,
    limit: usize,
}

impl Budget for Shared {
    fn grow(&self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let fits = |used: usize| (used + bytes <= self.limit).then_some(used + bytes);
        let all = (Ordering::SeqCst, Ordering::SeqCst);
        match self.used.fetch_update(all.0, all.1, fits) {
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
        self.limit.saturating_sub(self.used.load(Ordering::SeqCst))
    }
}

/// Files whose calls are steps.
struct Steps;

#[derive(Debug)]
struct Step(Box<dyn ScratchFile>);

impl Disk for Steps {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        thread::yield_now();
        let (file, name) = Nameless.create()?;
        Ok((Box::new(Step(file)), name))
    }
}

impl ScratchFile for Step {
    fn write(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        thread::yield_now();
        self.0.write(bytes, at)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
        thread::yield_now();
        self.0.read(bytes, at)
    }
}

/// What one order did: its groups, and what the merge counted.
struct Outcome {
    rows: Rows,
    counters: Counters,
}

/// Each worker is one thread, which builds from every `workers`th batch and then merges.
fn side_by_side(case: &Arc<Case>, how: &How, limit: usize) -> Outcome {
    let used = AtomicUsize::new(0);
    let budget = Arc::new(Shared { used, limit });
    let spill = Arc::new(Spill::new(Steps, true));
    let spec = spec(case, how).expect("keys");
    let (rows, workers) = (how.batch_rows, how.workers);
    let grant = {
        let budget = budget.clone();
        move || Grant::new(budget.clone())
    };
    let building = (0..workers).map(|worker| {
        let (case, spec, spill, grant) = (case.clone(), spec.clone(), spill.clone(), grant.clone());
        thread::spawn(move || {
            let mut build = Build::new(spec, grant(), Some(spill)).expect("a table");
            for start in (0..case.values.len())
                .step_by(rows)
                .skip(worker)
                .step_by(workers)
            {
                let rows = rows.min(case.values.len() - start);
                let keys = case.keys.iter().map(|key| key.slice(start, rows));
                let batch = batch(&case, keys.collect(), start, rows);
                build.push(&batch).expect("memory or disk");
            }
            build.finish().expect("memory or disk")
        })
    });
    let building: Vec<_> = building.collect();
    let built = building
        .into_iter()
        .map(|one| one.join().expect("no panic"));
    let merge = Arc::new(Merge::new(spec, built.collect(), Some(spill)));
    let merging = (0..workers).map(|_| {
        let (merge, grant) = (merge.clone(), grant.clone());
        thread::spawn(move || tasks_of(&merge, grant()))
    });
    let merging: Vec<_> = merging.collect();
    let (mut all, mut counters) = (Rows::new(), Counters::default());
    for one in merging {
        let (rows, counted) = one.join().expect("no panic");
        let groups = all.len() + rows.len();
        all.extend(rows);
        assert_eq!(all.len(), groups, "two workers have one group");
        counters.add(&counted);
    }
    let left = merge.next().expect("memory");
    assert!(left.is_none(), "a task is left");
    drop(merge);
    assert_eq!(
        budget.used.load(Ordering::SeqCst),
        0,
        "bytes are still held"
    );
    Outcome {
        rows: all,
        counters,
    }
}

fn tasks_of(merge: &Merge, grant: Grant) -> (Rows, Counters) {
    let mut worker = merge.worker(grant).expect("a table");
    let mut rows = Rows::new();
    let look = || {
        thread::yield_now();
        false
    };
    while let Some(task) = merge.next().expect("memory") {
        thread::yield_now();
        let merged = worker.run(merge, &task, &look).expect("memory or disk");
        collect(merged, &mut rows).expect("groups");
    }
    (rows, worker.counters().clone())
}

/// All orders that are tried have the twin's groups; what the merges counted in all of them.
fn check_orders(case: Case, how: How, limit: usize) -> Counters {
    let case = Arc::new(case);
    let expected = twin(&case.keys, &case.values, &case.filter);
    let counters = Arc::new(std::sync::Mutex::new(Counters::default()));
    let all = counters.clone();
    shuttle::check_random(
        move || {
            let outcome = side_by_side(&case, &how, limit);
            assert_eq!(outcome.rows, expected);
            all.lock().expect("no panic").add(&outcome.counters);
        },
        ORDERS,
    );
    counters.lock().expect("no panic").clone()
}

fn repeating(kinds: &[usize]) -> Case {
    case(kinds, 400, 150, true, 11)
}

fn how(table: TableKind, sizes: Sizes, workers: usize) -> How {
    How {
        table,
        sizes: Sizes { workers, ..sizes },
        workers,
        batch_rows: 32,
    }
}

#[test]
fn every_order_in_memory_has_the_same_groups() {
    for (kinds, table) in [
        (&[1][..], TableKind::Direct),
        (&[0, 6], TableKind::Packed),
        (&[9], TableKind::Bytes),
        (&[13, 0], TableKind::Row),
    ] {
        check_orders(repeating(kinds), how(table, Sizes::tiny(), 3), usize::MAX);
    }
}

#[test]
fn every_order_on_disk_has_the_same_groups_and_gives_all_memory_back() {
    let sizes = Sizes {
        room_bytes: 2 << 10,
        ..Sizes::spilling()
    };
    let counters = check_orders(repeating(&[0, 9]), how(TableKind::Auto, sizes, 2), 64 << 20);
    assert!(counters.repartitioned > 0, "no task was too large");
    check_orders(repeating(&[9]), how(TableKind::Auto, sizes, 3), 64 << 20);
}

#[test]
fn every_order_past_the_limit_has_the_same_groups_and_gives_all_memory_back() {
    let sizes = Sizes::tiny();
    check_orders(repeating(&[0, 9]), how(TableKind::Auto, sizes, 3), 1 << 10);
}

#[test]
fn every_order_of_pieces_has_the_same_groups_and_gives_all_memory_back() {
    // Room for all results, for some of them, for none.
    for limit in [64 << 20, 8 << 20, 1 << 10] {
        for kinds in [&[0][..], &[9]] {
            let case = hot_keys::hot_case(kinds, 1_200, hot_keys::Hot::All);
            let how = How {
                batch_rows: 64,
                ..how(TableKind::Auto, hot_keys::bypassing(3), 3)
            };
            let counters = check_orders(case, how, limit);
            assert!(counters.pieces > 0, "no key is hot");
        }
    }
}

/// One worker has left its array, and the others make blocks of what they have by address before anybody merges.
#[test]
fn every_order_of_making_blocks_has_the_same_groups() {
    let far = |row: i64| if row == 50 { 1 << 40 } else { row % 7 };
    let case = Arc::new(Case {
        keys: vec![Arc::new(Int64Array::from_iter_values((0..400).map(far)))],
        known: vec![KeyValues::Any],
        ..case(&[], 400, 1, true, 11)
    });
    let expected = twin(&case.keys, &case.values, &case.filter);
    let how = how(TableKind::Direct, Sizes::tiny(), 3);
    shuttle::check_random(
        move || assert_eq!(side_by_side(&case, &how, usize::MAX).rows, expected),
        ORDERS,
    );
}
