//! A query that ends in the middle of writing to disk leaves nothing behind; `make soak` does the same more often.

use grouse_tests::endings::{cancels, kills, program};

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
