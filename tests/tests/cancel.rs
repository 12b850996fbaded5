//! Cancelling: a dropped stream stops all workers at once, whatever they are doing, and the session goes on.

use std::fs;
use std::time::{Duration, Instant};

use futures::StreamExt;
use grouse::{Session, SessionOptions};
use grouse_tests::answer::Answer;
use grouse_tests::cell::Cell;

/// From the drop to the last worker at rest; the promise is 100 ms on an idle machine, and CI machines are not idle.
const STOP_MAX: Duration = Duration::from_millis(400);

/// CPU time of all threads of this process.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("a name in parentheses")
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().expect("user ticks")
        + fields[12].parse::<u64>().expect("system ticks");
    Duration::from_millis(ticks * 10)
}

/// Starts the query, drops it after `patience`, and waits until the process no longer works.
fn stops(session: &Session, sql: &str, patience: Duration) {
    session.handle().block_on(async {
        let query = session
            .query(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut stream = query.execute().expect("a stream");
        let first = tokio::time::timeout(patience, stream.next()).await;
        assert!(
            first.is_err(),
            "{sql} was done within {patience:?}: it is too small to cancel"
        );
        drop(stream);
    });
    let dropped = Instant::now();
    let window = Duration::from_millis(50);
    loop {
        let before = cpu();
        std::thread::sleep(window);
        if cpu() - before < window / 2 {
            break;
        }
        assert!(
            dropped.elapsed() < STOP_MAX,
            "{sql}\nworkers go on {:?} after the stream was dropped",
            dropped.elapsed()
        );
    }
    let alive =
        Answer::ask(session, "SELECT count(*) FROM numbers(10)").expect("the session goes on");
    assert_eq!(alive.rows, [[Cell::Int(10)]]);
}

// One test, because it measures the whole process.
#[test]
fn a_dropped_stream_stops_all_workers() {
    let session = Session::new(SessionOptions {
        threads: 2,
        ..Default::default()
    })
    .expect("a session");
    let short = Duration::from_millis(100);
    stops(
        &session,
        "SELECT number % 1000, count(*), sum(number) FROM numbers(100000000000) GROUP BY 1",
        short,
    );
    stops(
        &session,
        "SELECT number, count(*) FROM numbers(100000000000) GROUP BY number",
        short,
    );
    stops(
        &session,
        "SELECT number, count(*) FROM numbers(100000000000) GROUP BY number",
        Duration::from_millis(700),
    );
    stops(
        &session,
        "SELECT 'key ' || number, max(number) FROM numbers(100000000000) GROUP BY 1",
        short,
    );
    stops(
        &session,
        "SELECT number % 100, uniq(number), count(DISTINCT number % 12345) FROM numbers(100000000000) GROUP BY 1",
        short,
    );
    stops(
        &session,
        "SELECT number % 100, median(number) FROM numbers(100000000000) GROUP BY 1",
        short,
    );
    stops(
        &session,
        "SELECT sum(number), avg(number) FROM numbers(100000000000)",
        short,
    );
    stops(
        &session,
        "SELECT count(*) FROM (SELECT DISTINCT number, number % 3 FROM numbers(100000000000))",
        short,
    );
}
