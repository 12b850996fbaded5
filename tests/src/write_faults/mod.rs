//! Writing where the disk is full, fails or stops half-way, at every call; and processes that are killed there.
//!
//! In: the shell. Out: how many calls failed, or the statement that left something behind.
//! Invariant: a call that the system interrupts or does by halves changes nothing. Any other ends the statement in an error that
//! says what was wrong, the file that was there before is as it was, and beside it lies nothing.
//! Not here: faults inside of a grouping (`group_by_fault`), random moments (`endings`).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Calls that are tried of each kind and statement: the first ones, the last ones, some between.
const CALLS: usize = 7;

const NAMES: [&str; 4] = ["write", "sync", "rename", "size"];

/// Rows to write.
const ROWS: &str = "SELECT number AS n, 'text ' || number AS s, number / 7.0::DOUBLE AS d FROM numbers(20000) ORDER BY n";

/// Statements that write to `TO`, or only to the folder of temporary files.
const STATEMENTS: [(&str, &str); 6] = [
    ("out.csv", "COPY (ROWS) TO 'TO' (FORMAT csv)"),
    (
        "out.csv.gz",
        "COPY (ROWS) TO 'TO' (FORMAT csv, COMPRESSION 'gzip')",
    ),
    ("out.parquet", "COPY (ROWS) TO 'TO' (FORMAT parquet)"),
    ("out.arrow", "COPY (ROWS) TO 'TO' (FORMAT arrow)"),
    ("out.json", "COPY (ROWS) TO 'TO' (FORMAT json)"),
    (
        "",
        "SELECT count(*), sum(c) FROM (SELECT number, count(*) AS c, max('text ' || number) AS t FROM numbers(300000) GROUP BY number)",
    ),
];

/// What is written by `-o` instead: the name of the file, and what the statement is.
const OUTPUT: [&str; 3] = ["printed.csv", "printed.parquet", "printed.arrow"];

/// Faults: the system's name, and whether the statement goes on.
const FAULTS: [(&str, bool); 4] = [
    ("ENOSPC", false),
    ("EIO", false),
    ("EINTR", true),
    ("SHORT", true),
];

/// What a run saw.
#[derive(Debug, Default)]
pub struct FaultReport {
    /// Calls that failed and ended their statement.
    pub failed: usize,
    /// Calls after which the statement went on.
    pub went_on: usize,
    /// Processes that were killed at a call.
    pub killed: usize,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls failed, {} were interrupted or done by halves, {} processes were killed at a call; no partial file",
            self.failed, self.went_on, self.killed
        )
    }
}

/// One statement in a folder of its own.
struct Case {
    shell: PathBuf,
    faults: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
    /// The name of the file that it writes, if it writes one.
    name: String,
}

/// How a process ended.
struct StatementEnd {
    is_success: bool,
    code: Option<i32>,
    output: String,
    errors: String,
}

/// Tries the calls of all statements. An error says what was left behind.
pub fn run(shell: &Path) -> Result<FaultReport, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let faults = compiled(folder.path())?;
    let mut report = FaultReport::default();
    let mut statements: Vec<(String, Vec<String>)> = Vec::new();
    for (name, sql) in STATEMENTS {
        let path = folder.path().join("work").join(name);
        let sql = sql
            .replace("ROWS", ROWS)
            .replace("'TO'", &format!("'{}'", path.display()));
        statements.push((name.to_owned(), vec!["-c".to_owned(), sql]));
    }
    for name in OUTPUT {
        let path = folder.path().join("work").join(name).display().to_string();
        let arguments = ["-o".to_owned(), path, "-c".to_owned(), ROWS.to_owned()];
        statements.push((name.to_owned(), arguments.to_vec()));
    }
    for (name, arguments) in statements {
        let case = Case {
            shell: shell.to_owned(),
            faults: faults.clone(),
            folder: folder.path().join("work"),
            arguments,
            name,
        };
        case.try_all(&mut report)?;
    }
    Ok(report)
}

/// The library of faults, made by the C compiler that the build needs, too.
fn compiled(folder: &Path) -> Result<PathBuf, String> {
    let (source, library) = (folder.join("faults.c"), folder.join("faults.so"));
    fs::write(&source, include_str!("faults.c")).map_err(|error| error.to_string())?;
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .output();
    let made = made.map_err(|error| format!("cc, a C compiler, is missing: {error}"))?;
    match made.status.success() {
        true => Ok(library),
        false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
    }
}

/// Numbers from 1 to `count`: the first, the last, some between.
fn spread(count: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = match count {
        0..=CALLS => (1..=count).collect(),
        _ => (0..CALLS)
            .map(|at| 1 + at * (count - 1) / (CALLS - 1))
            .collect(),
    };
    numbers.dedup();
    numbers
}

impl Case {
    /// An empty folder with the file that was there before.
    fn begin(&self) -> Result<(), String> {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(self.folder.join("tmp")).map_err(|error| error.to_string())?;
        match self.name.as_str() {
            "" => Ok(()),
            name => fs::write(self.folder.join(name), "before").map_err(|error| error.to_string()),
        }
    }

    fn ask(&self, variables: &[(&str, &str)]) -> Result<StatementEnd, String> {
        let done = Command::new(&self.shell)
            .args(["--no-init", "--threads", "2", "--memory-limit", "17MB"])
            .args(match self.arguments[0].as_str() {
                "-o" => [].as_slice(),
                _ => &["--format", "csv"],
            })
            .arg("--temp-directory")
            .arg(self.folder.join("tmp"))
            .args(&self.arguments)
            .env("LD_PRELOAD", &self.faults)
            .env("RUST_BACKTRACE", "0")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output();
        let done = done.map_err(|error| format!("the shell does not start: {error}"))?;
        Ok(StatementEnd {
            is_success: done.status.success(),
            code: done.status.code(),
            output: String::from_utf8_lossy(&done.stdout).into_owned(),
            errors: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    }

    /// The file that the statement writes, and how many others lie in the folders.
    fn found(&self) -> (Option<Vec<u8>>, Vec<PathBuf>) {
        let path = self.folder.join(&self.name);
        let here = [self.folder.clone(), self.folder.join("tmp")];
        let entries = here.iter().filter_map(|folder| fs::read_dir(folder).ok());
        let others = entries.flatten().flatten().map(|entry| entry.path());
        let others = others.filter(|other| other.is_file() && *other != path);
        (fs::read(&path).ok(), others.collect())
    }

    fn try_all(&self, report: &mut FaultReport) -> Result<(), String> {
        self.begin()?;
        let log = self.folder.with_extension("log");
        let whole = self.ask(&[("FAULT_LOG", &log.display().to_string())])?;
        if !whole.is_success {
            return Err(format!("{:?}: {}", self.arguments, whole.errors));
        }
        let (good, _) = self.found();
        let counts =
            fs::read_to_string(&log).map_err(|error| format!("no calls were counted: {error}"))?;
        let counts: Vec<usize> = counts
            .split_whitespace()
            .filter_map(|count| count.parse().ok())
            .collect();
        for (call, &count) in NAMES.iter().zip(&counts) {
            for at in spread(count) {
                let at = at.to_string();
                for (kind, goes_on) in FAULTS {
                    if goes_on && *call != "write" {
                        continue;
                    }
                    let variables = [
                        ("FAULT_CALL", *call),
                        ("FAULT_AT", &at),
                        ("FAULT_KIND", kind),
                    ];
                    self.begin()?;
                    let ended = self.ask(&variables)?;
                    let is_right = match goes_on {
                        true => {
                            ended.is_success && ended.output == whole.output && self.is_good(&good)
                        }
                        false => self.is_refused(&ended, &whole, &good),
                    };
                    if !is_right {
                        return Err(self.tell(&variables, &ended));
                    }
                    report.went_on += usize::from(ended.is_success);
                    report.failed += usize::from(!ended.is_success);
                }
                let variables = [
                    ("FAULT_CALL", *call),
                    ("FAULT_AT", &at),
                    ("FAULT_KILL", "1"),
                ];
                self.begin()?;
                let ended = self.ask(&variables)?;
                let (file, _) = self.found();
                let is_before = file.as_deref() == Some(b"before") || self.name.is_empty();
                let is_whole = is_before || self.is_complete(&file, &good);
                if !is_whole {
                    return Err(self.tell(&variables, &ended));
                }
                report.killed += usize::from(ended.code.is_none());
            }
        }
        Ok(())
    }

    /// The file as without the fault, and none beside it.
    fn is_good(&self, good: &Option<Vec<u8>>) -> bool {
        let (file, others) = self.found();
        others.is_empty() && (self.name.is_empty() || self.is_complete(&file, good))
    }

    /// The whole file: the same text, or the end of a format whose parts may be cut otherwise.
    fn is_complete(&self, file: &Option<Vec<u8>>, good: &Option<Vec<u8>>) -> bool {
        let Some(file) = file else { return false };
        match self.name.rsplit('.').next() {
            Some("parquet") => file.starts_with(b"PAR1") && file.ends_with(b"PAR1"),
            Some("arrow") => file.starts_with(b"ARROW1") && file.ends_with(b"ARROW1"),
            _ => good.as_ref() == Some(file),
        }
    }

    /// An error in words, and the file from before; or success where the call did not matter.
    fn is_refused(
        &self,
        ended: &StatementEnd,
        whole: &StatementEnd,
        good: &Option<Vec<u8>>,
    ) -> bool {
        if ended.is_success {
            return ended.output == whole.output && self.is_good(good);
        }
        let (file, others) = self.found();
        let is_before = self.name.is_empty() || file.as_deref() == Some(b"before");
        let is_told = ended.errors.contains("error") && !ended.errors.contains("internal error");
        ended.code == Some(1) && is_told && is_before && others.is_empty()
    }

    fn tell(&self, variables: &[(&str, &str)], ended: &StatementEnd) -> String {
        let (file, others) = self.found();
        let length = file.map(|file| file.len());
        format!(
            "{variables:?} {:?}: ended with {:?}, the file has {length:?} bytes, left are {others:?}\n{}",
            self.arguments, ended.code, ended.errors
        )
    }
}
