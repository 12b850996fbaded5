//! The profile of one query: what each worker did when, and what that comes to.
//!
//! In: the spans of a trace, the process's own counts before and after. Out: totals, a table of them, a page, a trace file.
//! Invariant: a profile exists of queries that failed or were stopped too, with the spans up to then.
//! Not here: recording (runtime/trace.rs).

mod page;
mod simulate;
mod totals;
mod trace_file;

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};

use crate::error::{Error, Result};
use crate::runtime::trace::{Span, Trace};
pub use totals::Totals;

/// Stopped workers have so long to hand their spans over.
const STOPPING: Duration = Duration::from_millis(200);

/// A query that is recorded.
pub struct Recording {
    trace: Arc<Trace>,
    statement: String,
    threads: usize,
    before: Option<Usage>,
}

impl Recording {
    pub(crate) fn begin(trace: Arc<Trace>, statement: &str, threads: usize) -> Recording {
        trace.want();
        Recording {
            trace,
            statement: statement.trim().to_string(),
            threads,
            before: getrusage(UsageWho::RUSAGE_SELF).ok(),
        }
    }

    /// The profile, once the query's stream is at its end or gone; `failure` is what ended it.
    pub fn finish(self, failure: Option<&Error>) -> Profile {
        let wall = self.trace.elapsed();
        let deadline = Instant::now() + STOPPING;
        while self.trace.is_recording() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let after = getrusage(UsageWho::RUSAGE_SELF).ok();
        let process = self.before.zip(after).map(|(before, after)| Process {
            page_faults: since(after.minor_page_faults(), before.minor_page_faults()),
            disk_faults: since(after.major_page_faults(), before.major_page_faults()),
            waits: since(
                after.voluntary_context_switches(),
                before.voluntary_context_switches(),
            ),
            preemptions: since(
                after.involuntary_context_switches(),
                before.involuntary_context_switches(),
            ),
        });
        Profile {
            statement: self.statement,
            threads: self.threads,
            wall,
            spans: self.trace.spans(),
            process,
            failure: failure.map(ToString::to_string),
        }
    }
}

fn since(after: i64, before: i64) -> u64 {
    u64::try_from(after - before).unwrap_or(0)
}

/// What the system counted for the whole process while the query ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Pages of memory that were touched for the first time.
    pub page_faults: u64,
    /// Pages that came from disk.
    pub disk_faults: u64,
    /// Context switches because a thread had nothing to do.
    pub waits: u64,
    /// Context switches because the system wanted the core.
    pub preemptions: u64,
}

/// What a query did.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The SQL text.
    pub statement: String,
    /// Threads of the session.
    pub threads: usize,
    /// From the statement's text to the last row.
    pub wall: Duration,
    /// What was done without waiting, in the order of the starts.
    pub spans: Vec<Span>,
    /// None where the system does not say.
    pub process: Option<Process>,
    /// What ended it, if it did not reach its end.
    pub failure: Option<String>,
}

impl Profile {
    /// Sums over all spans.
    pub fn totals(&self) -> Totals {
        Totals::of(self)
    }

    /// The totals as text, a line each.
    pub fn summary(&self) -> String {
        self.totals().to_string()
    }

    /// How a profile is written to a file of this name: as a page (.html) or as a trace (.json).
    pub fn form_of(path: &Path) -> Option<fn(&Profile) -> String> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Profile::to_html),
            "json" => Some(Profile::to_json),
            _ => None,
        }
    }

    /// One page for a browser, with everything in it.
    pub fn to_html(&self) -> String {
        page::of(self)
    }

    /// The trace event format that Perfetto and Chrome open, with what [`Profile::from_json`] needs beside it.
    pub fn to_json(&self) -> String {
        trace_file::write(self)
    }

    /// A profile that [`Profile::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Profile> {
        trace_file::read(text)
    }

    /// How long it would take on these numbers of workers, what that gains, and what bounds it, as text.
    pub fn simulated(&self, workers: &[usize]) -> String {
        simulate::table(self, workers)
    }

    /// What changed from an earlier profile to this one, phase by phase, as text.
    pub fn compared(&self, earlier: &Profile) -> String {
        totals::compared(&earlier.totals(), &self.totals())
    }
}
