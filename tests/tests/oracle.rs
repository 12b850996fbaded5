//! Differential fuzz against stock DataFusion and DuckDB: 2,000 queries; `make soak` runs more, from other seeds.

use std::env;
use std::io::{Write, stdout};

use grouse_tests::oracle;

/// Queries of an everyday run.
const QUERIES: u64 = 2_100;

/// Its seed: fixed, so that the gate says the same of the same tree.
const SEED: u64 = 20_260_000;

#[test]
fn our_answers_are_those_of_the_peers() {
    let number = |name: &str| {
        env::var(name).ok().map(|text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name} is a number"))
        })
    };
    let queries = number("GROUSE_ORACLE_QUERIES").unwrap_or(QUERIES) as usize;
    let seed = number("GROUSE_ORACLE_SEED").unwrap_or(SEED);

    let report =
        oracle::run(seed, queries).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
    // not println: libtest would swallow it
    writeln!(stdout(), "note: oracle, seed {seed}: {report}").expect("standard output");
    if queries >= 500 {
        report.assert_broad();
    }
}
