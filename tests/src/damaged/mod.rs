//! Damaged files by the thousand, read by a shell whose time and memory are watched.
//!
//! In: the shell, a seed, a time. Out: how many files were read and refused, or the file that the shell did not get over.
//! Invariant: file number `n` of a format follows from `n` alone. A statement ends in rows or in an error within its
//! time. The process stays below its memory limit and `BEYOND_BYTES`, does not panic, and says of no file that it is
//! the engine's fault.
//! Not here: which changes a file gets (`mutation`), errors of chosen cases (tests/bad_input.rs, engine/tests/bombs.rs).

pub mod mutation;

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use self::mutation::{Format, damaged};
use crate::random::Random;

/// Memory that queries of the shell may hold.
const LIMIT_BYTES: u64 = 64 << 20;
/// What the process may take besides.
const BEYOND_BYTES: u64 = 256 << 20;
/// What a statement may take: a thousand times what it takes here.
const STATEMENT: Duration = Duration::from_secs(20);
/// Files of one process; each has a seed of its own.
pub const FILES: u64 = 32;
/// Statements of a file; `FILE` is its path.
const STATEMENTS: [&str; 3] = [
    "SELECT * FROM 'FILE'",
    "SELECT s, count(*), max(n), sum(d) FROM 'FILE' WHERE n > 3 GROUP BY s",
    "SELECT count(*) FROM 'FILE'",
];

/// Columns of each type that all formats have.
const ROWS: &str = "SELECT number AS n, 'text ' || number % 37 AS s, CASE WHEN number % 5 > 0 THEN number / 7.0::DOUBLE END AS d, \
    (number * 13 % 1000)::DECIMAL(12, 2) AS m, DATE '2024-01-01' + (number % 300)::INT AS day, number % 3 = 0 AS b, \
    CASE WHEN number % 4 > 0 THEN repeat('long ', (number % 9)::INT) END AS t FROM numbers(700)";
/// The same with values inside of values.
const NESTED: &str = "SELECT *, [n, n + 1] AS list, struct_pack(x := n, y := [s, t]) AS pair, \
    TIMESTAMP '2024-01-01 00:00:00' + to_seconds(n) AS at FROM (ROWS)";
/// The good files: a name, its rows and how they are written.
const GOOD: [(&str, Format, &str, &str); 12] = [
    (
        "plain.parquet",
        Format::Parquet,
        ROWS,
        "(FORMAT parquet, COMPRESSION 'uncompressed')",
    ),
    (
        "small.parquet",
        Format::Parquet,
        ROWS,
        "(FORMAT parquet, COMPRESSION 'zstd')",
    ),
    (
        "nested.parquet",
        Format::Parquet,
        NESTED,
        "(FORMAT parquet, COMPRESSION 'uncompressed')",
    ),
    (
        "snappy.parquet",
        Format::Parquet,
        NESTED,
        "(FORMAT parquet, COMPRESSION 'snappy')",
    ),
    ("plain.arrow", Format::Arrow, ROWS, "(FORMAT arrow)"),
    ("nested.arrow", Format::Arrow, NESTED, "(FORMAT arrow)"),
    ("plain.csv", Format::Csv, ROWS, "(FORMAT csv, HEADER)"),
    ("nested.json", Format::Json, NESTED, "(FORMAT json)"),
    (
        "packed.csv.gz",
        Format::Packed,
        ROWS,
        "(FORMAT csv, HEADER, COMPRESSION 'gzip')",
    ),
    (
        "packed.csv.zst",
        Format::Packed,
        ROWS,
        "(FORMAT csv, HEADER, COMPRESSION 'zstd')",
    ),
    (
        "packed.csv.xz",
        Format::Packed,
        ROWS,
        "(FORMAT csv, HEADER, COMPRESSION 'xz')",
    ),
    (
        "packed.json.bz2",
        Format::Packed,
        NESTED,
        "(FORMAT json, COMPRESSION 'bz2')",
    ),
];

/// What a run saw.
#[derive(Debug, Default)]
pub struct DamagedReport {
    /// Files that were read, of each of `GOOD`.
    pub files: u64,
    /// Statements that ended in an error.
    pub refused: u64,
    /// The largest share of memory that a process took.
    pub resident_bytes: u64,
    /// The longest that a process took.
    pub longest: Duration,
    /// The seed with which the next run goes on.
    pub next: u64,
}

impl DamagedReport {
    /// Files that were made of each good one.
    pub fn of_each(&self) -> u64 {
        self.files / GOOD.len() as u64
    }
}

impl fmt::Display for DamagedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} damaged files of {} good ones, {} statements refused, at most {} MB resident under a limit of {} MB, at most {:.1} s for \
             {FILES} files; the next seed is {}",
            self.files,
            GOOD.len(),
            self.refused,
            self.resident_bytes >> 20,
            LIMIT_BYTES >> 20,
            self.longest.as_secs_f64(),
            self.next
        )
    }
}

/// What a process left behind.
struct ReadingEnd {
    /// Why it is not right.
    fault: Option<String>,
    refused: u64,
    resident_bytes: u64,
    took: Duration,
}

/// Reads files damaged by `seed` and the numbers after it: so many rounds of `FILES` of each good file, or until the time is
/// over. An error names the file, which is kept.
pub fn run(shell: &Path, seed: u64, rounds: u64, time: Duration) -> Result<DamagedReport, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let good = good_files(shell, folder.path())?;
    let started = Instant::now();
    let mut report = DamagedReport {
        next: seed,
        ..DamagedReport::default()
    };
    let end = seed.saturating_add(rounds.saturating_mul(FILES));
    while report.next < end && started.elapsed() < time {
        for (name, format, whole) in &good {
            let files = write_damaged(folder.path(), name, *format, whole, report.next)?;
            let ended = read_all(shell, folder.path(), &files)?;
            if let Some(fault) = ended.fault {
                return Err(blame(shell, folder.path(), &files, &fault)?);
            }
            report.files += FILES;
            report.refused += ended.refused;
            report.resident_bytes = report.resident_bytes.max(ended.resident_bytes);
            report.longest = report.longest.max(ended.took);
            for file in &files {
                fs::remove_file(file).map_err(|error| error.to_string())?;
            }
        }
        report.next += FILES;
    }
    Ok(report)
}

/// Writes the good files with the shell, and reads them.
fn good_files(shell: &Path, folder: &Path) -> Result<Vec<(&'static str, Format, Vec<u8>)>, String> {
    GOOD.iter()
        .map(|(name, format, rows, options)| {
            let path = folder.join(name);
            let rows = rows.replace("ROWS", ROWS);
            let sql = format!("COPY ({rows}) TO '{}' {options}", path.display());
            let done = Command::new(shell).args(["--no-init", "-c", &sql]).output();
            let done = done.map_err(|error| format!("the shell does not start: {error}"))?;
            if !done.status.success() {
                return Err(format!("{sql}: {}", String::from_utf8_lossy(&done.stderr)));
            }
            let whole = fs::read(&path).map_err(|error| error.to_string())?;
            Ok((*name, *format, whole))
        })
        .collect()
}

/// `FILES` files, damaged by `seed` and the numbers after it.
fn write_damaged(
    folder: &Path,
    name: &str,
    format: Format,
    whole: &[u8],
    seed: u64,
) -> Result<Vec<PathBuf>, String> {
    let files = (seed..seed + FILES).map(|seed| {
        let path = folder.join(format!("{seed}-{name}"));
        let file = damaged(format, whole, &mut Random::new(seed));
        fs::write(&path, file).map_err(|error| error.to_string())?;
        Ok(path)
    });
    files.collect()
}

/// Which of the files it is: each is read by a process of its own. The one at fault is kept beside the folder.
fn blame(shell: &Path, folder: &Path, files: &[PathBuf], all: &str) -> Result<String, String> {
    for file in files {
        if let Some(fault) = read_all(shell, folder, std::slice::from_ref(file))?.fault {
            let name = file.file_name().expect("a name of ours");
            let kept = std::env::temp_dir().join(format!("grouse-damaged-{}", name.display()));
            fs::copy(file, &kept).map_err(|error| error.to_string())?;
            return Ok(format!("{}: {fault}", kept.display()));
        }
    }
    let together: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    Ok(format!("only together, {all}: {}", together.join(" ")))
}

/// One process that reads the files one after the other.
fn read_all(shell: &Path, folder: &Path, files: &[PathBuf]) -> Result<ReadingEnd, String> {
    let text = |error: std::io::Error| error.to_string();
    let (script, errors) = (folder.join("script.sql"), folder.join("errors.txt"));
    let mut sql = String::from(".bail off\n");
    for file in files {
        for statement in STATEMENTS {
            sql += &statement.replace("FILE", &file.display().to_string());
            sql += ";\n";
        }
    }
    fs::write(&script, sql).map_err(text)?;
    let limit = LIMIT_BYTES.to_string();
    let timeout = STATEMENT.as_millis().to_string();
    let started = Instant::now();
    let mut process = Command::new(shell)
        .args(["--no-init", "--threads", "2", "--format", "trash"])
        .args(["--memory-limit", &limit, "--statement-timeout", &timeout])
        .arg("-f")
        .arg(&script)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&errors).map_err(text)?)
        .spawn()
        .map_err(|error| format!("the shell does not start: {error}"))?;
    let most = STATEMENT * (2 + files.len() as u32 / 8);
    let mut resident_bytes = 0;
    let status = loop {
        resident_bytes = peak_bytes(process.id()).max(resident_bytes);
        match process.try_wait().map_err(text)? {
            Some(status) => break Some(status),
            None if started.elapsed() > most => {
                process.kill().map_err(text)?;
                process.wait().map_err(text)?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let said = fs::read(&errors).map_err(text)?;
    let said = String::from_utf8_lossy(&said);
    let resident = format!("{} MB resident", resident_bytes >> 20);
    let fault = match (status, fault_in(&said)) {
        (None, _) => Some(format!("it did not end within {most:?}")),
        (_, Some(words)) => Some(words),
        (Some(status), _) if !matches!(status.code(), Some(0 | 1)) => Some(status.to_string()),
        _ if resident_bytes > LIMIT_BYTES + BEYOND_BYTES => Some(resident),
        _ => None,
    };
    Ok(ReadingEnd {
        fault,
        refused: said
            .lines()
            .filter(|line| line.starts_with("error"))
            .count() as u64,
        resident_bytes,
        took: started.elapsed(),
    })
}

/// Words of messages that no file should be answered with.
const BAD: [&str; 4] = [
    "panicked at",
    "please report",
    "statement_timeout",
    "overflowed its stack",
];

/// The first fault that a process told of.
fn fault_in(said: &str) -> Option<String> {
    let is_bad = |line: &&str| BAD.iter().any(|word| line.contains(word));
    said.lines().find(is_bad).map(str::to_owned)
}

/// The most memory that a process has had so far; 0 once it has ended.
fn peak_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
