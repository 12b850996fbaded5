//! A query that ends in the middle of writing to disk leaves nothing behind; `make soak` does the same more often.

use std::path::PathBuf;

use grouse_tests::endings::{cancels, kills};

/// The shell beside this test's folder.
fn shell() -> PathBuf {
    let own = std::env::current_exe().expect("this program");
    let release = own.parent().and_then(|folder| folder.parent());
    release.expect("a folder of folders").join("grouse")
}

#[test]
fn killed_processes_leave_no_file() {
    println!(
        "{}",
        kills(&shell(), 24, 1).unwrap_or_else(|left| panic!("{left}"))
    );
}

#[test]
fn dropped_streams_leave_no_memory_and_no_file() {
    println!("{}", cancels(60, 2).unwrap_or_else(|left| panic!("{left}")));
}
