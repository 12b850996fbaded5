//! How long a cancelled statement goes on: streams that are dropped at random moments, and the last worker at rest.
//!
//! In: how many, and a seed for statements and moments. Out: the longest time from the moment until nothing of the statement is left.
//! Invariant: a time begins at the moment that was drawn, so that a thread which does not come back in time counts, too.
//! At rest are workers whose tasks are gone and whose memory is given back.
//! Not here: what is left behind (`endings`), signals (the shell's own tests).

use std::fmt;
use std::time::{Duration, Instant};

use futures::StreamExt;
use grouse::{Session, SessionOptions};

use crate::random::Random;

/// Statements that go on for longer than anybody waits: each operator that holds rows, and some that hold none.
const STATEMENTS: [&str; 12] = [
    "SELECT number % 1000, count(*), sum(number) FROM numbers(100000000000) GROUP BY 1",
    "SELECT number, count(*) FROM numbers(100000000000) GROUP BY number",
    "SELECT 'key ' || number, max(number) FROM numbers(100000000000) GROUP BY 1",
    "SELECT number % 100, uniq(number), count(DISTINCT number % 12345) FROM numbers(100000000000) GROUP BY 1",
    "SELECT number % 100, median(number) FROM numbers(100000000000) GROUP BY 1",
    "SELECT sum(number), avg(number) FROM numbers(100000000000)",
    "SELECT number FROM numbers(100000000000) ORDER BY number % 999983, number",
    "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY number % 1000 ORDER BY number) AS n FROM numbers(100000000))",
    "SELECT count(*) FROM numbers(1000000) a JOIN numbers(100000000000) b ON a.number = b.number % 3000000",
    "SELECT count(*) FROM numbers(3000000) a, numbers(3000000) b WHERE a.number * b.number % 7 = 3",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 1000000000) SELECT max(n) FROM t",
    "SELECT sum(length(repeat('x', (number % 1000)::INT))) FROM numbers(100000000000)",
];

/// The longest that a statement may run before it is cancelled.
const RUN: Duration = Duration::from_millis(800);

/// Whatever goes on for so long does not stop at all.
const STOP_MAX: Duration = Duration::from_secs(10);

/// What the promise is of, on an idle machine.
const PROMISED: Duration = Duration::from_millis(100);

/// Memory of the session: groupings and sorts write to disk.
const LIMIT: &str = "200MB";

/// What a run saw.
#[derive(Debug, Default)]
pub struct StopReport {
    /// Statements that were cancelled while they ran.
    pub cancelled: u64,
    /// Of these, so many went on for longer than promised.
    pub late: u64,
    /// The longest that one went on.
    pub worst: Duration,
    /// That one.
    pub slowest: &'static str,
}

impl fmt::Display for StopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cancelled, {} of them at rest after more than {} ms, the last after {} ms: {}",
            self.cancelled,
            self.late,
            PROMISED.as_millis(),
            self.worst.as_millis(),
            self.slowest
        )
    }
}

/// Cancels statement after statement. An error names one that does not stop.
pub fn run(times: u64, seed: u64) -> Result<StopReport, String> {
    let text = |error: grouse::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut options = SessionOptions {
        threads: 2,
        temp_directory: vec![folder.path().to_path_buf()],
        ..Default::default()
    };
    options.set("memory_limit", LIMIT).map_err(text)?;
    let session = Session::new(options).map_err(text)?;
    let idle_tasks = session.handle().metrics().num_alive_tasks();
    let mut report = StopReport::default();
    for seed in seed..seed.saturating_add(times) {
        let mut random = Random::new(seed);
        let (sql, after) = (*random.pick(&STATEMENTS), RUN.mul_f64(random.unit()));
        let Some(moment) = cancelled(&session, sql, after)? else {
            continue;
        };
        let took = at_rest(&session, idle_tasks, moment)
            .ok_or_else(|| format!("seed {seed}: after {STOP_MAX:?} it goes on: {sql}"))?;
        report.cancelled += 1;
        report.late += u64::from(took > PROMISED);
        if took > report.worst {
            (report.worst, report.slowest) = (took, sql);
        }
    }
    Ok(report)
}

/// When it was to stop; `None` if it was done before.
fn cancelled(session: &Session, sql: &str, after: Duration) -> Result<Option<Instant>, String> {
    let moment = Instant::now() + after;
    let reading = async {
        let mut stream = session.query(sql).await?.execute()?;
        while let Some(batch) = stream.next().await {
            batch.map_err(grouse::Error::from)?;
        }
        Ok::<(), grouse::Error>(())
    };
    let reading = async { tokio::time::timeout(after, reading).await };
    let done = session.handle().block_on(reading);
    match done {
        Err(_) => Ok(Some(moment)),
        Ok(Ok(())) => Ok(None),
        Ok(Err(error)) => Err(format!("{sql}: {error}")),
    }
}

/// How long after the moment nothing of a statement was left; `None` if it does not stop.
fn at_rest(session: &Session, idle_tasks: usize, moment: Instant) -> Option<Duration> {
    let metrics = session.handle().metrics();
    let pool = session.context().runtime_env().memory_pool.clone();
    while metrics.num_alive_tasks() > idle_tasks || pool.reserved() > 0 {
        if moment.elapsed() > STOP_MAX {
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Some(moment.elapsed())
}
