//! Several queries at once under one tight limit: each ends right or out of memory, none waits for ever, nothing is held
//! afterwards.
//!
//! In: queries that need more memory together than there is. Out: how many were answered and refused.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use grouse::{Error, Session, SessionOptions};
use grouse_tests::answer::Answer;
use grouse_tests::cell::Cell;
use grouse_tests::endings::nothing_held;

/// From the first query to the last answer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Times that each query is asked.
const ROUNDS: usize = 2;

/// Queries and their one row: groupings that spill, sorts, joins, windows, long values.
const QUERIES: [(&str, &[i128]); 7] = [
    (
        "SELECT count(*), sum(c) FROM (SELECT number, count(*) AS c FROM numbers(400000) GROUP BY number)",
        &[400_000, 400_000],
    ),
    (
        "SELECT count(*), sum(c) FROM (SELECT 'a text that is long enough ' || number % 60000 AS s, count(*) AS c \
         FROM numbers(300000) GROUP BY 1)",
        &[60_000, 300_000],
    ),
    (
        "SELECT count(*), sum(u) FROM (SELECT number % 1000 AS k, uniq_exact(number) AS u FROM numbers(200000) GROUP BY 1)",
        &[1_000],
    ),
    (
        "SELECT count(*), sum(n) FROM (SELECT row_number() OVER (ORDER BY number % 9973, number) AS n FROM numbers(200000))",
        &[200_000],
    ),
    (
        "SELECT count(*), sum(a.number) FROM numbers(150000) a JOIN numbers(150000) b ON a.number = b.number",
        &[150_000, 11_249_925_000],
    ),
    (
        "SELECT count(*), sum(m) FROM (SELECT number % 7000 AS k, median(number) AS m FROM numbers(140000) GROUP BY 1) \
         WHERE m >= 0",
        &[7_000],
    ),
    (
        "SELECT count(*), sum(length(s)) FROM (SELECT repeat('x', 2000) || number AS s FROM numbers(20000) ORDER BY s) \
         WHERE length(s) > 2000",
        &[20_000],
    ),
];

/// The limits: one that all fit, and two that they do not.
const LIMITS: [u64; 3] = [512 << 20, 48 << 20, 16 << 20];

/// Right as far as it is known here, or out of memory.
fn is_answered(session: &Session, (sql, row): (&str, &[i128])) -> Result<bool, String> {
    match Answer::ask(session, sql) {
        Ok(answer) => {
            let found = answer.rows.first().map(|cells| &cells[..row.len()]);
            let expected: Vec<Cell> = row.iter().copied().map(Cell::Int).collect();
            match answer.rows.len() == 1 && found == Some(expected.as_slice()) {
                true => Ok(true),
                false => Err(format!("{sql}: {:?} instead of {row:?}", answer.rows)),
            }
        }
        Err(error) => match error.kind() {
            Error::OutOfMemory(_) => Ok(false),
            _ => Err(format!("{sql}: {error:?}")),
        },
    }
}

#[test]
fn queries_that_crowd_each_other_end() {
    for limit in LIMITS {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SessionOptions {
            memory_limit: Some(limit),
            threads: 2,
            temp_directory: vec![folder.path().to_path_buf()],
            ..Default::default()
        };
        let session = Arc::new(Session::new(options).expect("a limit"));
        let (said, ended) = mpsc::channel();
        for query in QUERIES {
            let (session, said) = (Arc::clone(&session), said.clone());
            // Not scoped: one that is stuck must not hold the test.
            std::thread::spawn(move || {
                for _ in 0..ROUNDS {
                    if said.send(is_answered(&session, query)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(said);
        let (mut answered, mut refused) = (0, 0);
        for nth in 0..QUERIES.len() * ROUNDS {
            match ended.recv_timeout(PATIENCE) {
                Ok(Ok(true)) => answered += 1,
                Ok(Ok(false)) => refused += 1,
                Ok(Err(wrong)) => panic!("limit {limit}: {wrong}"),
                Err(_) => panic!("limit {limit}: stuck after {nth} answers"),
            }
        }
        println!(
            "limit {} MB: {answered} answered, {refused} out of memory",
            limit >> 20
        );
        assert!(
            limit < LIMITS[0] || refused == 0,
            "{refused} refused under {limit}"
        );
        assert!(answered > 0, "none was answered under {limit}");
        nothing_held(&session, folder.path())
            .unwrap_or_else(|held| panic!("limit {limit}: {held}"));
    }
}
