//! What every worker of a query did and when: the timeline behind a profile.
//!
//! In: the start and the end of each step of a worker. Out: spans, each with its phase, its worker, its CPU time and rows.
//! Invariant: nothing is recorded before somebody asks for it. A worker records in a list of its own, which joins the
//! others when the worker is gone, also when its query failed or was stopped.
//! Not here: what a profile makes of the spans (session/profile).

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use parking_lot::Mutex;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// From the statement's text to the physical plan.
    Plan,
    /// Reads and decodes input, filters among it.
    Scan,
    /// Computes keys, arguments and filters.
    Evaluate,
    /// Adds rows to the worker's own groups.
    Build,
    /// Sorts what it has for the merge by partition.
    Partition,
    /// Cuts the partitions into tasks, while the others wait.
    Cut,
    /// Combines the groups of one task.
    Merge,
    /// Makes batches of finished groups.
    Emit,
    /// Does what comes above the last grouping: sorts, projections, joins.
    Output,
}

impl Phase {
    /// All, in the order of a query's life.
    pub const ALL: [Phase; 9] = [
        Phase::Plan,
        Phase::Scan,
        Phase::Evaluate,
        Phase::Build,
        Phase::Partition,
        Phase::Cut,
        Phase::Merge,
        Phase::Emit,
        Phase::Output,
    ];

    /// Its name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Plan => "plan",
            Phase::Scan => "scan",
            Phase::Evaluate => "evaluate",
            Phase::Build => "build",
            Phase::Partition => "partition",
            Phase::Cut => "cut",
            Phase::Merge => "merge",
            Phase::Emit => "emit",
            Phase::Output => "output",
        }
    }
}

/// Whose time a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Of whoever plans the statement.
    Planner,
    /// Of a worker of the query's `operator`th grouping.
    Worker {
        /// Which grouping, in the order in which they start.
        operator: usize,
        /// Which of its workers.
        worker: usize,
    },
    /// Of one of the plan's output streams.
    Stream(usize),
}

/// One step of a worker: what it did without waiting for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Whose.
    pub lane: Lane,
    /// What it did.
    pub phase: Phase,
    /// Since the statement came.
    pub start: Duration,
    /// Since the statement came.
    pub end: Duration,
    /// CPU time of the thread in it.
    pub cpu: Duration,
    /// Rows that it took in, or gave where it takes none.
    pub rows: u64,
}

/// The spans of one query.
#[derive(Debug)]
pub struct Trace {
    began: Instant,
    /// When somebody asked for it.
    wanted: OnceLock<()>,
    operators: AtomicUsize,
    recorders: AtomicUsize,
    spans: Mutex<Vec<Span>>,
}

impl Trace {
    /// Of a statement that comes now.
    pub(crate) fn new() -> Trace {
        Trace {
            began: Instant::now(),
            wanted: OnceLock::new(),
            operators: AtomicUsize::new(0),
            recorders: AtomicUsize::new(0),
            spans: Mutex::new(Vec::new()),
        }
    }

    /// Records from now on.
    pub(crate) fn want(&self) {
        self.wanted.get_or_init(|| ());
    }

    fn is_wanted(&self) -> bool {
        self.wanted.get().is_some()
    }

    /// True while a lane may have spans that are not here.
    pub(crate) fn is_recording(&self) -> bool {
        self.recorders.load(Ordering::Acquire) > 0
    }

    /// The time since the statement came.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// One more grouping runs.
    pub(crate) fn operator(&self) -> usize {
        self.operators.fetch_add(1, Ordering::Relaxed)
    }

    /// The planner has the plan.
    pub(crate) fn planned(&self, cpu: Duration) {
        self.spans.lock().push(Span {
            lane: Lane::Planner,
            phase: Phase::Plan,
            start: Duration::ZERO,
            end: self.elapsed(),
            cpu,
            rows: 0,
        });
    }

    /// All spans of lanes that are gone, in the order of their starts.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = self.spans.lock().clone();
        spans.sort_by_key(|span| (span.start, span.lane));
        spans
    }
}

/// CPU time of this thread so far; none where the system does not say.
pub(crate) fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// One lane's spans.
pub(crate) struct Recorder {
    lane: Lane,
    trace: Option<Arc<Trace>>,
    spans: Mutex<Vec<Span>>,
}

/// The start of a span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    at: Duration,
    cpu: Duration,
}

impl Recorder {
    /// Of `lane`, if the trace is wanted.
    pub(crate) fn new(trace: Option<&Arc<Trace>>, lane: Lane) -> Recorder {
        let trace = trace.filter(|trace| trace.is_wanted()).cloned();
        if let Some(trace) = &trace {
            trace.recorders.fetch_add(1, Ordering::AcqRel);
        }
        Recorder {
            lane,
            trace,
            spans: Mutex::new(Vec::new()),
        }
    }

    /// A step begins.
    pub(crate) fn begin(&self) -> Option<Begun> {
        let trace = self.trace.as_ref()?;
        Some(Begun {
            at: trace.elapsed(),
            cpu: thread_cpu(),
        })
    }

    /// The step ends, on the thread on which it began.
    pub(crate) fn end(&self, begun: Option<Begun>, phase: Phase, rows: usize) {
        let (Some(trace), Some(begun)) = (&self.trace, begun) else {
            return;
        };
        let span = Span {
            lane: self.lane,
            phase,
            start: begun.at,
            end: trace.elapsed(),
            cpu: thread_cpu().saturating_sub(begun.cpu),
            rows: rows as u64,
        };
        self.spans.lock().push(span);
    }

    /// Records each poll of a future: what lies between two is waiting. `rows` of its result.
    pub(crate) async fn polls<F: Future>(
        &self,
        phase: Phase,
        future: F,
        rows: impl Fn(&F::Output) -> usize,
    ) -> F::Output {
        if self.trace.is_none() {
            return future.await;
        }
        let mut future = pin!(future);
        let polls = std::future::poll_fn(|cx: &mut Context<'_>| {
            let begun = self.begin();
            let polled: Poll<F::Output> = Pin::new(&mut future).poll(cx);
            let rows = match &polled {
                Poll::Ready(output) => rows(output),
                Poll::Pending => 0,
            };
            self.end(begun, phase, rows);
            polled
        });
        polls.await
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(trace) = &self.trace {
            trace.spans.lock().append(&mut self.spans.lock());
            trace.recorders.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
