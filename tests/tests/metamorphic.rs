//! Queries that have to agree with each other, over generated tables under random settings.
//!
//! `GROUSE_METAMORPHIC_SEED=<seed> GROUSE_METAMORPHIC_QUERIES=1` repeats the relation that a failure names.

use std::io::{Write, stdout};

use grouse_tests::answer::{Answer, Certain, difference};
use grouse_tests::metamorphic::relation;
use grouse_tests::random::Random;
use grouse_tests::setting::Setting;
use grouse_tests::tables::Table;

/// Relations of an everyday run.
const RELATIONS: u64 = 600;

/// Its seed: fixed, so that the gate says the same of the same tree.
const SEED: u64 = 7_000_000;

/// Relations over one table.
const RELATIONS_PER_TABLE: u64 = 20;

#[test]
fn related_queries_agree() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let relations = number("GROUSE_METAMORPHIC_QUERIES").unwrap_or(RELATIONS);
    let first = number("GROUSE_METAMORPHIC_SEED").unwrap_or(SEED);
    let folder = tempfile::tempdir().expect("a folder");
    let mut with_rows = 0;
    for seed in first..first + relations {
        let table = Table::generate(&mut Random::new(seed / RELATIONS_PER_TABLE), folder.path());
        let mut random = Random::new(seed);
        let (relation, setting) = (relation(&mut random), Setting::random(&mut random));
        let session = setting.session().expect("a session");
        match random.chance(50) {
            true => session.register("t", table.memory()).expect("a free name"),
            false => {
                let view = format!("CREATE VIEW t AS SELECT * FROM '{}'", table.path.display());
                Answer::ask(&session, &view).expect("a file of ours");
            }
        }
        let story = |what: &str| {
            format!(
                "seed {seed}: {what}\n{}\n  {}\n  {}\nunder {setting}, over {}",
                relation.why, relation.left, relation.right, table.story
            )
        };
        let ask = |sql: &str| {
            Answer::ask(&session, sql)
                .unwrap_or_else(|error| panic!("{}", story(&error.to_string())))
        };
        let (left, right) = (ask(&relation.left), ask(&relation.right));
        with_rows += usize::from(!left.rows.is_empty());
        if let Some(differs) = difference(&left, &right, None, &Certain::default()) {
            panic!("{}", story(&differs));
        }
    }
    writeln!(
        stdout(),
        "note: metamorphic, seed {first}: {relations} relations, {with_rows} with rows"
    )
    .expect("standard output");
    assert!(
        relations < 100 || with_rows as u64 * 2 > relations,
        "too few answers with rows"
    );
}
