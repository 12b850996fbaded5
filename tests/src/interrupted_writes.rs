//! Writes that are interrupted at random moments: what was there before stays, or the whole new file is there.
//!
//! In: the shell, how often, and a seed for formats, ways to end it and moments. Out: how many were hit, or the file that is neither.
//! Invariant: a moment is a random share of the time that the statement takes to its end on this machine.
//! Not here: calls that fail (`write_faults`), temporary files of queries (`endings`).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grouse::{Session, SessionOptions};

use crate::answer::Answer;
use crate::cell::Cell;
use crate::random::Random;

/// Rows of the file that was there before, and of the one that replaces it.
const BEFORE: i128 = 10;
const AFTER: i128 = 300_000;

const FORMATS: [(&str, &str); 6] = [
    ("out.csv", "FORMAT csv, HEADER"),
    ("out.csv.gz", "FORMAT csv, HEADER, COMPRESSION 'gzip'"),
    ("out.csv.zst", "FORMAT csv, HEADER, COMPRESSION 'zstd'"),
    ("out.json", "FORMAT json"),
    ("out.arrow", "FORMAT arrow"),
    ("out.parquet", "FORMAT parquet"),
];

/// How a statement is ended: as by Ctrl-C, by the system's end, or at once.
const SIGNALS: [&str; 3] = ["-INT", "-TERM", "-KILL"];

/// What a run saw.
#[derive(Debug, Default)]
pub struct WriteReport {
    /// Writes that were ended before they were done.
    pub interrupted: u64,
    /// Of these, so many after the new file was in its place.
    pub replaced: u64,
}

impl fmt::Display for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} writes interrupted, {} of them when the new file was there; no partial file",
            self.interrupted, self.replaced
        )
    }
}

struct FileWrite {
    shell: PathBuf,
    file: PathBuf,
    options: &'static str,
}

impl FileWrite {
    fn start(&self, rows: i128) -> Result<Child, String> {
        let sql = format!(
            "COPY (SELECT number AS n, 'text ' || number AS s FROM numbers({rows})) TO '{}' ({})",
            self.file.display(),
            self.options
        );
        let shell = Command::new(&self.shell)
            .args(["--no-init", "--threads", "2", "-c", &sql])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        shell.map_err(|error| format!("the shell does not start: {error}"))
    }

    /// Writes the whole file, and says how long that took.
    fn write(&self, rows: i128) -> Result<Duration, String> {
        let started = Instant::now();
        let done = self
            .start(rows)?
            .wait()
            .map_err(|error| error.to_string())?;
        match done.success() {
            true => Ok(started.elapsed()),
            false => Err(format!("{} is not written: {done}", self.file.display())),
        }
    }

    /// True if it was ended before it was done.
    fn interrupt(&self, signal: &str, after: Duration) -> Result<bool, String> {
        let text = |error: std::io::Error| error.to_string();
        let mut shell = self.start(AFTER)?;
        std::thread::sleep(after);
        let ended = shell.try_wait().map_err(text)?;
        if ended.is_none() {
            let process = shell.id().to_string();
            let sent = Command::new("kill").args([signal, &process]).status();
            sent.map_err(text)?;
        }
        let status = shell.wait().map_err(text)?;
        Ok(ended.is_none() && !status.success())
    }

    /// The rows of the file; an error if it is not one of the two.
    fn rows(&self, session: &Session) -> Result<i128, String> {
        let name = self.file.display();
        let sql = format!("SELECT count(*), sum(n), sum(length(s)) FROM '{name}'");
        let answer = Answer::ask(session, &sql).map_err(|error| format!("partial: {error}"))?;
        for rows in [BEFORE, AFTER] {
            let digits: i128 = (0..rows).map(|n| n.to_string().len() as i128).sum();
            let row = [rows, rows * (rows - 1) / 2, 5 * rows + digits].map(Cell::Int);
            if answer.rows == [row] {
                return Ok(rows);
            }
        }
        Err(format!("{name} has other rows: {:?}", answer.rows))
    }
}

/// Interrupts so many writes. An error names what is neither the old file nor the new one; it is kept.
pub fn run(shell: &Path, times: u64, seed: u64) -> Result<WriteReport, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let session = Session::new(SessionOptions::default()).map_err(|error| error.to_string())?;
    let writes = FORMATS.map(|(name, options)| FileWrite {
        shell: shell.to_owned(),
        file: folder.path().join(name),
        options,
    });
    let mut whole = Vec::new();
    for write in &writes {
        whole.push(write.write(AFTER)?);
    }
    let mut report = WriteReport::default();
    for seed in seed..seed.saturating_add(times) {
        let mut random = Random::new(seed);
        let at = random.below(writes.len());
        let (write, signal) = (&writes[at], *random.pick(&SIGNALS));
        write.write(BEFORE)?;
        let hit = write.interrupt(signal, whole[at].mul_f64(random.unit()))?;
        let found = write
            .rows(&session)
            .and_then(|rows| match hit || rows == AFTER {
                true => Ok(rows),
                false => Err("it was done, and the old file is there".to_owned()),
            });
        let rows =
            found.map_err(|fault| kept(&write.file, &format!("seed {seed}, {signal}: {fault}")))?;
        report.interrupted += u64::from(hit);
        report.replaced += u64::from(hit && rows == AFTER);
    }
    Ok(report)
}

/// The fault, with where the file is kept.
fn kept(file: &Path, fault: &str) -> String {
    let name = file.file_name().unwrap_or_default();
    let kept = std::env::temp_dir().join(format!("grouse-partial-{}", name.display()));
    match fs::copy(file, &kept) {
        Ok(_) => format!("{}: {fault}", kept.display()),
        Err(error) => format!("{}: {fault} ({error})", file.display()),
    }
}
