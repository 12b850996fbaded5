//! DuckDB, a peer that shares no code with DataFusion: a Python process that answers statements line by line.
//!
//! In: SQL in DuckDB's words. Out: [`Answer`] or DuckDB's message.
//! Invariant: without Python or the `duckdb` package the tests fail and say what to install; they are never skipped.
//! Not here: the protocol's other end (duck.py). The `duckdb` crate would compile all of DuckDB, which takes longer than DataFusion.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::answer::Answer;
use crate::cell::Cell;

/// A running DuckDB.
#[derive(Debug)]
pub struct Duck {
    process: Child,
    statements: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Duck {
    /// Starts DuckDB from the test environment `.venv`.
    pub fn start() -> Duck {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = tests.join("../.venv/bin/python");
        let mut process = Command::new(&python)
            .arg(tests.join("duck.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}; `make .venv/ready` installs it",
                    python.display()
                )
            });
        let (statements, answers) = (process.stdin.take(), process.stdout.take());
        let mut duck = Duck {
            process,
            statements: statements.expect("a pipe"),
            answers: BufReader::new(answers.expect("a pipe")),
        };
        if let Err(reason) = duck.ask("SELECT 1") {
            panic!(
                "DuckDB does not answer ({reason}); `make .venv/ready` installs the Python package duckdb"
            );
        }
        duck
    }

    /// The answer to one statement.
    pub fn ask(&mut self, sql: &str) -> Result<Answer, String> {
        assert!(!sql.contains('\n'), "one statement, one line");
        // A broken pipe shows as the end of the answers below.
        let _ = writeln!(self.statements, "{sql}").and_then(|()| self.statements.flush());
        let head = self.line()?;
        if let Some(message) = head.strip_prefix("error ") {
            return Err(message.to_string());
        }
        let rows = head
            .strip_prefix("ok ")
            .and_then(|rows| rows.parse().ok())
            .ok_or(format!("not an answer: {head}"))?;
        (0..rows)
            .map(|_| Ok(cells(&self.line()?)))
            .collect::<Result<_, String>>()
            .map(|rows| Answer { rows })
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err("the process has ended".to_string()),
            Ok(_) => Ok(line.trim_end_matches('\n').to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Duck {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn cells(line: &str) -> Vec<Cell> {
    let mut rest = line;
    let mut row = Vec::new();
    while !rest.is_empty() {
        row.push(Cell::parse(&mut rest));
        rest = rest.strip_prefix(' ').unwrap_or(rest);
    }
    row
}
