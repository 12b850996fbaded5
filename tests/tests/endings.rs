//! What ends before its end: queries that write to disk leave nothing behind, and cancelled statements stop. Files that are
//! written are whole, those that are read of one version. `make soak` does the same more often.

use grouse_tests::endings::{cancels, kills, program};
use grouse_tests::{interrupted_writes, renames, stops};

#[test]
fn killed_processes_leave_no_file() {
    println!(
        "{}",
        kills(&program("grouse"), 24, 1).unwrap_or_else(|left| panic!("{left}"))
    );
}

#[test]
fn dropped_streams_leave_no_memory_and_no_file() {
    println!("{}", cancels(60, 2).unwrap_or_else(|left| panic!("{left}")));
}

#[test]
fn cancelled_statements_stop() {
    let report = stops::run(24, 3).unwrap_or_else(|fault| panic!("{fault}"));
    println!("{report}");
    assert!(report.cancelled >= 12, "{report}");
}

#[test]
fn interrupted_writes_leave_the_old_file_or_the_new_one() {
    let report = interrupted_writes::run(&program("grouse"), 30, 4);
    let report = report.unwrap_or_else(|fault| panic!("{fault}"));
    println!("{report}");
    assert!(report.interrupted >= 10, "{report}");
}

#[test]
fn answers_beside_renames_are_of_one_version() {
    let report = renames::run(100, 5).unwrap_or_else(|fault| panic!("{fault}"));
    println!("{report}");
    assert!(report.answers >= 100, "{report}");
}
