//! Blocks in sections: the same groups, and memory that is free while other sections still wait.
//!
//! In: keys with long texts. Out: groups, and what the budget has given after each task.
//! Not here: which keys and sizes there are (`operator`).

use std::sync::atomic::AtomicUsize;

use super::*;

/// Counts what it has given.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Budget for Counted {
    fn grow(&self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.insist(bytes);
        Ok(())
    }

    fn insist(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn free(&self) -> usize {
        usize::MAX
    }
}

/// Texts of 70 to 80 bytes, all of them different, in two workers' blocks of 64 Ki rows.
fn long_texts(rows: usize) -> Case {
    let text = |row: usize| (row % 1000 != 7).then(|| format!("{row:>70} {}", row % 1_000_000_007));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter((0..rows).map(text)));
    Case {
        keys: vec![texts],
        known: vec![KeyValues::Any],
        ..case(&[], rows, 1, true, 3)
    }
}

/// The larger part of the build's memory is free before the last section is merged.
#[test]
fn memory_of_a_section_is_free_with_its_last_task() {
    let case = long_texts(600_000);
    let how = How {
        table: TableKind::Auto,
        sizes: normal().in_sections(),
        workers: 2,
        batch_rows: 8192,
    };
    let budget = Arc::new(Counted::default());
    let means = Means {
        budget: budget.clone(),
        ..Means::unlimited()
    };
    let (spec, built) = build(&case, &how, &means).expect("memory");
    for part in &built {
        assert_eq!(part.blocks().count() as u64, 4 * part.counters.blocks);
    }
    let merge = Merge::new(spec, built.into_iter().collect(), None);
    let all = budget.0.load(Ordering::Relaxed);
    let mut worker = merge
        .worker(Grant::new(Arc::new(Unlimited)))
        .expect("a table");
    let (mut records, mut held) = (0, Vec::new());
    while let Some(task) = merge.next() {
        records += task.records();
        worker.run(&merge, &task, &|| false).expect("groups");
        drop(task);
        held.push((records, budget.0.load(Ordering::Relaxed)));
    }
    assert!(all > 50 << 20, "{all}");
    for (records, held) in held {
        // Of a task's own section nothing is free yet; the grant of each is of whole MiB.
        let left = (case.values.len() - records) * 4;
        let sections = left.div_ceil(case.values.len()).max(1);
        let (least, most) = (all * (sections - 1) / 4, all * sections / 4);
        let slack = 4 << 20;
        let is_covered = held + slack > least && held < most + slack;
        assert!(is_covered, "{held} of {all}, {sections} quarters left");
    }
}

/// Keys of one text and of several columns, of which a block of normal size is in sections.
#[test]
fn large_blocks_of_texts_equal_the_twin() {
    for kinds in [vec![], vec![0], vec![3, 9]] {
        let mut case = long_texts(90_000);
        case.keys.extend(
            kinds
                .iter()
                .map(|&kind| column(kind, 90_000, 1_000_000, true, 5)),
        );
        case.known = vec![KeyValues::Any; case.keys.len()];
        let how = How {
            table: TableKind::Auto,
            sizes: normal().in_sections(),
            workers: 2,
            batch_rows: 8192,
        };
        check(&case, &how);
    }
}
