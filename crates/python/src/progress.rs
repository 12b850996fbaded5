//! Progress of a running query, for a callback or as a line on stderr.
//!
//! In: the engine's snapshots. Out: calls of the user's function with a [`Progress`], or one line that is gone at the end.
//! Invariant: nothing is shown for queries shorter than [`SILENT`]; an exception from the callback stops the query.
//! Not here: measuring, which is the engine's.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::wrong_type;

/// A query that is over by then draws nothing.
const SILENT: Duration = Duration::from_millis(500);
/// Time between two snapshots.
const EVERY: Duration = Duration::from_millis(200);
/// Characters of the bar itself.
const BAR_WIDTH: usize = 24;

/// Where a running query stands.
#[pyclass(frozen, get_all, module = "grouse")]
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Rows that the scans have handed on.
    input_rows: u64,
    /// Share of the input that is read, from 0 to 1; None where the total is unknown.
    input_share: Option<f64>,
    /// Groups that GROUP BY operators hold or have emitted.
    groups: u64,
    /// Bytes that the queries of the connection hold.
    memory_bytes: u64,
    /// Bytes written to disk for want of memory.
    spilled_bytes: u64,
    /// Seconds since the query started.
    elapsed_s: f64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!("<grouse.Progress {}>", line(self))
    }
}

impl From<grouse::Progress> for Progress {
    fn from(progress: grouse::Progress) -> Self {
        Progress {
            input_rows: progress.input_rows,
            input_share: progress.input_share,
            groups: progress.groups,
            memory_bytes: progress.memory_bytes,
            spilled_bytes: progress.spilled_bytes,
            elapsed_s: progress.elapsed.as_secs_f64(),
        }
    }
}

/// What a connection does with progress.
#[derive(Debug)]
pub enum Show {
    /// Nothing.
    Off,
    /// A line on stderr.
    Line,
    /// A call of the user's function.
    Call(Py<PyAny>),
}

impl Show {
    /// From the keyword `progress`: None, a boolean or a callable.
    pub fn from_python(value: Option<&Bound<'_, PyAny>>) -> PyResult<Show> {
        let Some(value) = value else {
            return Ok(Show::Off);
        };
        if let Ok(on) = value.extract::<bool>() {
            return Ok(if on { Show::Line } else { Show::Off });
        }
        if value.is_callable() {
            return Ok(Show::Call(value.clone().unbind()));
        }
        Err(wrong_type(
            "progress must be True, False or a callable that takes a grouse.Progress",
        ))
    }

    /// The display of one query.
    pub fn display(&self, py: Python<'_>) -> Display {
        let show = match self {
            Show::Off => Show::Off,
            Show::Line => Show::Line,
            Show::Call(function) => Show::Call(function.clone_ref(py)),
        };
        Display {
            show,
            next: Instant::now() + SILENT,
            drawn: false,
        }
    }
}

/// Shows the progress of one query.
#[derive(Debug)]
pub struct Display {
    show: Show,
    next: Instant,
    drawn: bool,
}

impl Display {
    /// Shows a snapshot if it is time.
    pub fn tick(
        &mut self,
        py: Python<'_>,
        snapshot: impl FnOnce() -> grouse::Progress,
    ) -> PyResult<()> {
        if matches!(self.show, Show::Off) || Instant::now() < self.next {
            return Ok(());
        }
        self.next = Instant::now() + EVERY;
        let progress = Progress::from(snapshot());
        match &self.show {
            Show::Off => Ok(()),
            Show::Line => {
                self.drawn = true;
                write_stderr(py, &format!("\r{}\x1b[K", line(&progress)))
            }
            Show::Call(function) => function.call1(py, (progress,)).map(|_| ()),
        }
    }

    /// Takes the line away.
    pub fn end(&mut self, py: Python<'_>) {
        if std::mem::take(&mut self.drawn) {
            // A closed stderr is no reason to fail a query that is over.
            let _ = write_stderr(py, "\r\x1b[K");
        }
    }
}

fn write_stderr(py: Python<'_>, text: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    if stderr.is_none() {
        return Ok(());
    }
    stderr.call_method1("write", (text,))?;
    stderr.call_method0("flush").map(|_| ())
}

fn line(progress: &Progress) -> String {
    let bar = progress.input_share.map_or(String::new(), |share| {
        let full = (share.clamp(0.0, 1.0) * BAR_WIDTH as f64) as usize;
        format!(
            "{}{} {:3.0}%  ",
            "█".repeat(full),
            "░".repeat(BAR_WIDTH - full),
            share * 100.0
        )
    });
    let rate = progress.input_rows as f64 / progress.elapsed_s.max(1e-9);
    let spilled = match progress.spilled_bytes {
        0 => String::new(),
        bytes => format!("  {} spilled", bytes_text(bytes)),
    };
    format!(
        "{bar}{:.1} s  {} rows  {}/s  {} groups  {}{spilled}",
        progress.elapsed_s,
        count_text(progress.input_rows as f64),
        count_text(rate),
        count_text(progress.groups as f64),
        bytes_text(progress.memory_bytes),
    )
}

fn count_text(count: f64) -> String {
    match count {
        c if c >= 1e9 => format!("{:.2} G", c / 1e9),
        c if c >= 1e6 => format!("{:.1} M", c / 1e6),
        c if c >= 1e4 => format!("{:.0} k", c / 1e3),
        c => format!("{c:.0}"),
    }
}

fn bytes_text(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.2} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.0} kB", b / 1e3),
    }
}
