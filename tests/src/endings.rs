//! Queries that end before their end: processes that are killed, streams that are dropped, while they write to disk.
//!
//! In: how often, and a seed for the moments. Out: what happened, or what was left behind.
//! Invariant: a moment is a random share of the time that the query takes to its end on this machine.
//! Not here: how soon workers stop (tests/cancel.rs), faults of disk and memory (groupby's tests).

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use grouse::{Session, SessionOptions};

use crate::answer::Answer;
use crate::cell::Cell;
use crate::random::Random;

/// Groupings and a sort that write most of what they see.
const QUERIES: [&str; 3] = [
    "SELECT count(*) FROM (SELECT number, count(*) AS c FROM numbers(3000000) GROUP BY number)",
    "SELECT sum(m) FROM (SELECT number % 50000 AS k, median(number) AS m FROM numbers(8000000) GROUP BY 1)",
    "SELECT sum(n * k) FROM (SELECT number AS k, row_number() OVER (ORDER BY number % 999983, number) AS n \
     FROM numbers(2000000))",
];

const LIMIT: &str = "40MB";

const SIGKILL: i32 = 9;

/// A program of this workspace: beside this one, or above the folder in which tests lie.
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let mut folders = own.ancestors().skip(1);
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()));
    found.unwrap_or_else(|| panic!("{name} is not built: `make build` builds it"))
}

/// Tries to end one query in the middle, until as many have as are wanted: some come too late.
struct Tries {
    wanted: usize,
    hits: usize,
    left: usize,
}

impl Tries {
    /// Each query's share of so many times.
    fn of(times: usize) -> Self {
        let wanted = times.div_ceil(QUERIES.len());
        Self {
            wanted,
            hits: 0,
            left: 10 * wanted,
        }
    }

    fn goes_on(&self) -> bool {
        self.hits < self.wanted && self.left > 0
    }

    fn count(&mut self, is_hit: bool) {
        self.hits += usize::from(is_hit);
        self.left -= 1;
    }
}

/// Kills the shell `times` times in the middle of a query, at random moments; an error names what the folder still holds
/// afterwards.
pub fn kills(shell: &Path, times: usize, seed: u64) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let start = |sql: &str| {
        let flags = [
            "--threads",
            "2",
            "--memory-limit",
            LIMIT,
            "--temp-directory",
        ];
        let shell = Command::new(shell)
            .args(flags)
            .arg(folder.path())
            .arg(sql)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        shell.map_err(|error| format!("the shell does not start: {error}"))
    };
    let mut random = Random::new(seed);
    let mut killed = 0;
    for sql in QUERIES {
        let started = Instant::now();
        let done = start(sql)?.wait().map_err(|error| error.to_string())?;
        if !done.success() {
            return Err(format!("{sql}: {done}"));
        }
        let whole = started.elapsed();
        let mut tries = Tries::of(times);
        while tries.goes_on() {
            let mut shell = start(sql)?;
            std::thread::sleep(whole.mul_f64(random.unit()));
            shell.kill().map_err(|error| error.to_string())?;
            let status = shell.wait().map_err(|error| error.to_string())?;
            if status.code().is_some_and(|code| code > 0) {
                return Err(format!("{sql}: {status}"));
            }
            tries.count(status.signal() == Some(SIGKILL));
        }
        killed += tries.hits;
    }
    match files(folder.path()).as_slice() {
        [] => Ok(format!("{killed} killed in the middle, no file is left")),
        left => Err(format!("{killed} killed, left: {left:?}")),
    }
}

/// Drops a query's stream `times` times in the middle, at random moments; an error names what is held afterwards.
pub fn cancels(times: usize, seed: u64) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut options = SessionOptions {
        threads: 2,
        temp_directory: vec![folder.path().to_path_buf()],
        ..Default::default()
    };
    options
        .set("memory_limit", LIMIT)
        .map_err(|error| error.to_string())?;
    let session = Session::new(options).map_err(|error| error.to_string())?;
    let mut random = Random::new(seed);
    let mut report = String::new();
    for sql in QUERIES {
        let started = Instant::now();
        Answer::ask(&session, sql).map_err(|error| format!("{sql}: {error}"))?;
        let whole = started.elapsed();
        let mut tries = Tries::of(times);
        while tries.goes_on() {
            tries.count(drops(&session, sql, whole.mul_f64(random.unit()))?);
        }
        write!(report, "{} dropped in the middle; ", tries.hits)
            .map_err(|error| error.to_string())?;
    }
    nothing_held(&session, folder.path())?;
    match Answer::ask(&session, "SELECT count(*) FROM numbers(10)") {
        Ok(answer) if answer.rows == [[Cell::Int(10)]] => {
            Ok(report + "no byte is held, no file is open")
        }
        other => Err(format!("the session does not go on: {other:?}")),
    }
}

/// Waits until no query holds memory or a file below `folder`; says what is held where that does not come.
pub fn nothing_held(session: &Session, folder: &Path) -> Result<(), String> {
    let pool = Arc::clone(&session.context().runtime_env().memory_pool);
    let waiting = Instant::now();
    loop {
        let (bytes, files) = (pool.reserved(), open_files(folder));
        if bytes == 0 && files.is_empty() {
            return Ok(());
        }
        if waiting.elapsed() > Duration::from_secs(5) {
            return Err(format!("{bytes} bytes are held and {files:?} open"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// True if the stream was dropped before its last batch.
fn drops(session: &Session, sql: &str, after: Duration) -> Result<bool, String> {
    session.handle().block_on(async {
        let query = session
            .query(sql)
            .await
            .map_err(|error| error.to_string())?;
        let mut stream = query.execute().map_err(|error| error.to_string())?;
        let reading = async { while stream.next().await.is_some() {} };
        Ok(tokio::time::timeout(after, reading).await.is_err())
    })
}

/// Files with a name, at any depth.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path => vec![path],
        })
        .collect()
}

/// Files below the folder that this process has open, those without a name as well.
fn open_files(folder: &Path) -> Vec<PathBuf> {
    let open = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|path| path.starts_with(folder))
        .collect()
}
