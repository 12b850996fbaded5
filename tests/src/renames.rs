//! Answers beside renames: somebody puts other versions in the place of a file while it is read.
//!
//! In: how many answers, and a seed. Out: how many were of one version, how many were refused; or an answer that is of two.
//! Invariant: each version has one value in all its rows, and as many bytes as the others, so that no size tells them apart.
//! Not here: which changes are noticed when (the engine's tests of snapshots).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grouse::{Error, Session, SessionOptions};

use crate::answer::Answer;
use crate::cell::Cell;
use crate::random::Random;

const FORMATS: [&str; 5] = ["csv", "json", "parquet", "arrow", "csv.zst"];
/// Their values have one digit each.
const VERSIONS: i128 = 8;
const ROWS: i128 = 200_000;
/// Between two renames at most.
const PAUSE: Duration = Duration::from_millis(60);

/// What a run saw.
#[derive(Debug, Default)]
pub struct RenameReport {
    /// Answers, all of one version.
    pub answers: u64,
    /// Statements that ended in an error about the file that had changed.
    pub refused: u64,
}

impl fmt::Display for RenameReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answers of one version beside renames, {} refused; none of two versions",
            self.answers, self.refused
        )
    }
}

/// Asks until there are so many answers.
pub fn run(answers: u64, seed: u64) -> Result<RenameReport, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let session = Session::new(SessionOptions {
        threads: 2,
        ..Default::default()
    });
    let session = session.map_err(|error| error.to_string())?;
    let mut report = RenameReport::default();
    for (at, format) in FORMATS.iter().enumerate() {
        let versions = versions(&session, folder.path(), format)?;
        let path = folder.path().join(format!("read.{format}"));
        fs::hard_link(&versions[0], &path).map_err(|error| error.to_string())?;
        let (stop, seed) = (AtomicBool::new(false), seed.wrapping_add(at as u64));
        let wanted = answers.div_ceil(FORMATS.len() as u64);
        std::thread::scope(|scope| {
            let renames = scope.spawn(|| rename(&versions, &path, seed, &stop));
            let asked = ask(&session, &path, wanted, &mut report);
            stop.store(true, Ordering::Relaxed);
            let renamed = renames.join().map_err(|_| "renaming panicked".to_owned())?;
            asked
                .and(renamed)
                .map_err(|fault| format!("seed {seed}, {format}: {fault}"))
        })?;
    }
    Ok(report)
}

/// Files that differ in their values only.
fn versions(session: &Session, folder: &Path, format: &str) -> Result<Vec<PathBuf>, String> {
    let write = |version: i128| {
        let path = folder.join(format!("{version}.{format}"));
        let sql = format!(
            "COPY (SELECT {version} AS v FROM numbers({ROWS})) TO '{}'",
            path.display()
        );
        let done = Answer::ask(session, &sql).map_err(|error| format!("{sql}: {error}"));
        done.map(|_| path)
    };
    (1..=VERSIONS).map(write).collect()
}

/// Puts one version after the other in the place of the file.
fn rename(versions: &[PathBuf], path: &Path, seed: u64, stop: &AtomicBool) -> Result<(), String> {
    let mut random = Random::new(seed);
    let next = path.with_extension("next");
    while !stop.load(Ordering::Relaxed) {
        let version = random.pick(versions);
        let put = fs::hard_link(version, &next).and_then(|()| fs::rename(&next, path));
        put.map_err(|error| error.to_string())?;
        // Two names of one file: a rename leaves both.
        let _ = fs::remove_file(&next);
        std::thread::sleep(PAUSE.mul_f64(random.unit() * random.unit()));
    }
    Ok(())
}

fn ask(
    session: &Session,
    path: &Path,
    wanted: u64,
    report: &mut RenameReport,
) -> Result<(), String> {
    let sql = format!(
        "SELECT min(v), max(v), count(*) FROM '{}' WHERE v > 0",
        path.display()
    );
    let (end, mut tries) = (report.answers + wanted, 20 * wanted);
    while report.answers < end && tries > 0 {
        tries -= 1;
        match Answer::ask(session, &sql) {
            Ok(answer) => match answer.rows.as_slice() {
                [row] => match row.as_slice() {
                    [Cell::Int(least), Cell::Int(greatest), Cell::Int(ROWS)]
                        if least == greatest =>
                    {
                        report.answers += 1;
                    }
                    _ => return Err(format!("an answer of two versions: {row:?}")),
                },
                rows => return Err(format!("not one row: {rows:?}")),
            },
            Err(error) if is_about_the_change(&error) => report.refused += 1,
            Err(error) => return Err(format!("not about the change: {error}")),
        }
    }
    match report.answers < end {
        true => Err("hardly any statement is answered".to_owned()),
        false => Ok(()),
    }
}

fn is_about_the_change(error: &Error) -> bool {
    matches!(error.kind(), Error::Io { .. }) && error.to_string().contains("run the query again")
}
