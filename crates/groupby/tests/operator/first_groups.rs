//! Groups of a LIMIT: each is the twin's, and there are as many as are wanted.

use std::sync::Arc;

use grouse_groupby::{Build, FirstGroups, Merge, Merged, TableKind};
use proptest::prelude::*;

use super::{
    Case, How, KINDS, Means, Rows, any_sizes, any_table, batch, case, collect, normal, spec, twin,
};

/// The groups that leave, and how many were chosen.
fn first(case: &Case, how: &How, wanted: usize) -> (Rows, bool) {
    let (means, spec) = (Means::unlimited(), spec(case, how).expect("a layout"));
    let first = Arc::new(FirstGroups::new(wanted));
    let new = || Build::new(spec.clone(), means.grant(), Some(means.spill.clone()));
    let new = |_| new().expect("memory").choosing(first.clone());
    let mut builds: Vec<Build> = (0..how.workers).map(new).collect();
    for (at, start) in (0..case.values.len()).step_by(how.batch_rows).enumerate() {
        let rows = how.batch_rows.min(case.values.len() - start);
        let keys = case.keys.iter().map(|key| key.slice(start, rows)).collect();
        let pushed = builds[at % how.workers].push(&batch(case, keys, start, rows));
        pushed.expect("no fault");
    }
    let built = builds
        .into_iter()
        .map(|build| build.finish().expect("no fault"));
    let merge = Merge::new(spec.clone(), built.collect(), Some(means.spill.clone()));
    let mut worker = merge.worker(means.grant()).expect("memory");
    let mut groups = Rows::new();
    while let Some(task) = merge.next().expect("memory") {
        let merged = worker.run(&merge, &task, &|| false).expect("no fault");
        let merged = match merged {
            Merged::Groups(mut finished) => {
                finished.keep_chosen(&first).expect("no fault");
                Merged::Groups(finished)
            }
            other => other,
        };
        collect(merged, &mut groups).expect("no fault");
    }
    (groups, first.chosen().is_some())
}

fn check(case: &Case, how: &How, wanted: usize) -> bool {
    let (found, chosen) = first(case, how, wanted);
    let all = twin(&case.keys, &case.values, &case.filter);
    for (key, states) in &found {
        assert_eq!(Some(states), all.get(key), "{key:?}");
    }
    assert!(found.len() >= wanted.min(all.len()));
    if !chosen {
        assert_eq!(found.len(), all.len());
    }
    chosen
}

#[test]
fn of_many_groups_some_are_chosen() {
    let how = How {
        table: TableKind::Auto,
        sizes: normal(),
        workers: 3,
        batch_rows: 500,
    };
    let case = case(&[0, 9], 20_000, 1_000_000, true, 11);
    assert!(check(&case, &how, 10));
    let (groups, _) = first(&case, &how, 10);
    assert_eq!(groups.len(), 10, "no hashes are equal here");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn chosen_groups_are_the_twins(
        kinds in proptest::collection::vec(0..KINDS, 1..4),
        rows in 0usize..1500,
        distinct in prop_oneof![Just(1u64), Just(3), Just(40), Just(1_000_000)],
        nulls in any::<bool>(),
        seed in any::<u32>(),
        table in any_table(),
        sizes in any_sizes(),
        workers in 1usize..5,
        batch_rows in prop_oneof![Just(1usize), Just(50), Just(333)],
        wanted in prop_oneof![Just(1usize), Just(3), Just(17), Just(5000)],
    ) {
        let case = case(&kinds, rows, distinct, nulls, u64::from(seed) + 1);
        check(&case, &How { table, sizes, workers, batch_rows }, wanted);
    }
}
