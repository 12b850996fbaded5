//! The long runs behind `make soak`: the fuzz from fresh seeds and groupings of 10^8 rows whose answers follow from
//! arithmetic. And queries that are killed or dropped while they write to disk, and damaged files.
//!
//! In: which of `fuzz`, `groupings`, `endings` and `damaged`; without arguments all. Out: a report on standard output, which
//! scripts/test.py keeps under tests/record; exit status 1 on a difference.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grouse::{Session, SessionOptions};
use grouse_tests::answer::Answer;
use grouse_tests::cell::Cell;
use grouse_tests::{damaged, endings, oracle};

/// Queries of the fuzz.
const QUERIES: usize = 20_000;

/// Processes that are killed.
const KILLS: usize = 500;

/// Streams that are dropped.
const CANCELS: usize = 1_000;

/// How long damaged files are read.
const DAMAGED: Duration = Duration::from_secs(30 * 60);

/// Rows of the large groupings.
const ROWS: i128 = 100_000_000;

/// Queries over `numbers(ROWS)` that give one row, and that row.
fn large() -> Vec<(String, Vec<i128>)> {
    let total = ROWS * (ROWS - 1) / 2;
    let over = |groups: &str| format!("SELECT count(*), sum(c), sum(s) FROM ({groups})");
    let grouped = |key: &str| {
        over(&format!(
            "SELECT count(*) AS c, sum(number) AS s FROM numbers({ROWS}) GROUP BY {key}"
        ))
    };
    vec![
        (grouped("number % 10000"), vec![10_000, ROWS, total]),
        (grouped("number % 1000003"), vec![1_000_003, ROWS, total]),
        (grouped("number / 10"), vec![ROWS / 10, ROWS, total]),
        (grouped("number % 100, number % 7"), vec![700, ROWS, total]),
        (
            grouped("CAST(number % 100000 AS VARCHAR)"),
            vec![100_000, ROWS, total],
        ),
        (
            format!(
                "SELECT min(u), max(u), count(*) FROM (SELECT uniq_exact(number / 10) AS u FROM numbers({ROWS}) GROUP BY number % 10)"
            ),
            vec![ROWS / 10, ROWS / 10, 10],
        ),
        // Approximate counts are within 2 %.
        (
            format!(
                "SELECT count(*) FROM (SELECT uniq(number) AS u FROM numbers({ROWS}) GROUP BY number % 10) \
                 WHERE abs(CAST(u AS BIGINT) - {exact}) <= {exact} / 50",
                exact = ROWS / 10
            ),
            vec![10],
        ),
        (
            format!(
                "SELECT count(*) FROM (SELECT uniq(number) AS u FROM numbers({ROWS})) \
                 WHERE abs(CAST(u AS BIGINT) - {ROWS}) <= {ROWS} / 50"
            ),
            vec![1],
        ),
    ]
}

/// Random queries against the peers.
fn fuzz(seed: u64) -> bool {
    let started = Instant::now();
    match oracle::run(seed, QUERIES) {
        Ok(report) => {
            report.assert_broad();
            println!(
                "fuzz, seed {seed}: {report}, {:.0} s",
                started.elapsed().as_secs_f64()
            );
            true
        }
        Err(reason) => {
            println!("fuzz, seed {seed}: DIFFERENCE {reason}");
            false
        }
    }
}

/// The groupings of [`large`].
fn groupings() -> bool {
    let session = Session::new(SessionOptions::default()).expect("a session with default options");
    let mut good = true;
    for (sql, expected) in large() {
        let started = Instant::now();
        let expected = vec![expected.into_iter().map(Cell::Int).collect::<Vec<_>>()];
        let verdict = match Answer::ask(&session, &sql) {
            Ok(answer) if answer.rows == expected => "right".to_string(),
            Ok(answer) => format!("WRONG, {:?} instead of {expected:?}", answer.rows),
            Err(error) => format!("FAILED, {error}"),
        };
        good &= verdict == "right";
        println!("{verdict}, {:.2} s: {sql}", started.elapsed().as_secs_f64());
    }
    good
}

/// Queries that end before their end.
fn endings(seed: u64) -> bool {
    let shell = endings::program("grouse");
    let mut good = true;
    for (what, ended) in [
        ("kills", endings::kills(&shell, KILLS, seed)),
        ("cancels", endings::cancels(CANCELS, seed)),
    ] {
        good &= ended.is_ok();
        match ended {
            Ok(report) => println!("{what}, seed {seed}: {report}"),
            Err(left) => println!("{what}, seed {seed}: LEFT BEHIND {left}"),
        }
    }
    good
}

/// Files of all formats with places changed, each of which ends in rows or an error.
fn damaged_files(seed: u64) -> bool {
    let read = damaged::run(&endings::program("grouse"), seed, u64::MAX, DAMAGED);
    match &read {
        Ok(report) => println!("damaged files, seed {seed}: {report}"),
        Err(fault) => println!("damaged files, seed {seed}: FAULT {fault}"),
    }
    read.is_ok()
}

fn main() -> ExitCode {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
        / 60
        * 1_000_000;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let parts: [(&str, &dyn Fn() -> bool); 4] = [
        ("fuzz", &|| fuzz(seed)),
        ("groupings", &groupings),
        ("endings", &|| endings(seed)),
        ("damaged", &|| damaged_files(seed)),
    ];
    let mut good = true;
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            good &= part();
        }
    }
    match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
