//! Damaged files end in rows or in an error, within time and memory; `make soak` reads many more.
//!
//! In: files damaged by one seed. Out: how many were refused. `GROUSE_DAMAGED_SEED=<n>` reads those of another seed.

use std::env;
use std::time::Duration;

use grouse_tests::damaged::run;
use grouse_tests::endings::program;

/// Of 32 files of each of twelve good ones: the same files on a machine that is fast enough.
const ROUNDS: u64 = 4;
const TIME: Duration = Duration::from_secs(45);

#[test]
fn damaged_files_are_rows_or_errors() {
    let seed = env::var("GROUSE_DAMAGED_SEED").ok();
    let seed = seed.map_or(1_000, |seed| seed.parse().expect("a number"));
    let report = run(&program("grouse"), seed, ROUNDS, TIME);
    let report = report.unwrap_or_else(|fault| panic!("{fault}"));
    println!("{report}");
    assert!(report.files >= 384 && report.refused > 0, "{report}");
}
