//! Signals: a query that would run for hours stops at once and leaves nothing behind.

use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use crate::grouse::command;

/// Far above the 100 ms that it should take, for machines that are busy.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Nothing but a few groups, for hours.
const ENDLESS: &str = "SELECT number % 10, count(*) FROM numbers(1000000000000000) GROUP BY 1";
/// Groups without end: builds until it is stopped.
const ENDLESS_GROUPS: &str =
    "SELECT count(*) FROM (SELECT DISTINCT number % 1000000007 AS k FROM numbers(100000000000))";

fn start(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary starts");
    std::thread::sleep(Duration::from_millis(700));
    child
}

fn send(child: &mut Child, signal: i32) {
    assert!(
        child.try_wait().unwrap().is_none(),
        "the query has ended by itself"
    );
    let id = i32::try_from(child.id()).unwrap();
    // SAFETY: kill takes two numbers; the child has not been waited for, so the id is its.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

fn stop(mut child: Child, signal: i32) -> Output {
    let sent = Instant::now();
    send(&mut child, signal);
    let output = child.wait_with_output().expect("the binary ends");
    assert!(
        sent.elapsed() < STOP_MAX,
        "stopped after {:?}",
        sent.elapsed()
    );
    output
}

#[test]
fn an_interrupt_ends_a_running_query() {
    for sql in [
        ENDLESS,
        ENDLESS_GROUPS,
        "SELECT sum(number) FROM numbers(1000000000000000)",
    ] {
        let output = stop(start(&["--memory-limit", "8GB", sql]), libc::SIGINT);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(130), &b""[..]),
            "{sql}"
        );
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{sql}");
    }
}

#[test]
fn an_interrupt_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.csv");
    let child = start(&[
        "-o",
        file.to_str().unwrap(),
        "SELECT number FROM numbers(1000000000000)",
    ]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let output = stop(child, libc::SIGTERM);
    assert_eq!(output.status.code(), Some(143));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupt_leaves_no_file_of_a_copy() {
    let rows = "SELECT number % 7 AS k, number FROM numbers(1000000000000)";
    for target in ["a.csv", "b.parquet", "c' (FORMAT csv, PARTITION_BY (k)) --"] {
        let folder = tempfile::tempdir().unwrap();
        let sql = format!("COPY ({rows}) TO '{}/{target}'", folder.path().display());
        let child = start(&[&sql]);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "{target}"
        );
        let output = stop(child, libc::SIGINT);
        assert_eq!(output.status.code(), Some(130), "{target}");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "{target}"
        );
    }
}

#[test]
fn an_interrupt_ends_a_query_whose_reader_does_not_read() {
    let mut child = start(&[
        "--format",
        "csv",
        "SELECT number FROM numbers(1000000000000)",
    ]);
    let sent = Instant::now();
    send(&mut child, libc::SIGINT);
    // The pipe stays open and full, so the shell is stuck in its write.
    let status = child.wait().unwrap();
    assert!(
        sent.elapsed() < STOP_MAX,
        "stopped after {:?}",
        sent.elapsed()
    );
    assert_eq!(status.code(), Some(130));
}

#[test]
fn an_interrupt_ends_a_shell_that_waits_for_input() {
    let mut command = command(&[]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Held, so that the input does not end before the signal is seen.
    let _stdin = child.stdin.take();
    std::thread::sleep(Duration::from_millis(500));
    send(&mut child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
