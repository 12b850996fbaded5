//! What the spans of a profile come to: per phase, and where the threads' time went.
//!
//! In: a profile. Out: totals; their text; the difference of two.
//! Invariant: busy and idle time of all threads add up to the wall time times the threads; idle time has one cause each.
//! Not here: spans (runtime/trace.rs).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{Process, Profile};
use crate::runtime::trace::{Lane, Phase, Span};

/// One phase over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTotals {
    /// Which.
    pub phase: Phase,
    /// Steps.
    pub spans: usize,
    /// Rows that the steps took in.
    pub rows: u64,
    /// Time of all workers.
    pub busy: Duration,
    /// CPU time of all workers.
    pub cpu: Duration,
    /// Time of the worker that spent most in it: it bounds the phase.
    pub slowest: Duration,
    /// The longest step.
    pub longest: Duration,
    /// Workers that took part.
    pub workers: usize,
}

impl PhaseTotals {
    /// The slowest worker's time as a multiple of the mean.
    pub fn imbalance(&self) -> f64 {
        let mean = self.busy.as_secs_f64() / self.workers.max(1) as f64;
        self.slowest.as_secs_f64() / mean.max(f64::MIN_POSITIVE)
    }
}

/// Thread time without work, by its cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Idle {
    /// While the statement was planned.
    pub planning: Duration,
    /// Before a worker's first step: workers start as work shows.
    pub starting: Duration,
    /// Between steps of the first phase: no input was ready.
    pub input: Duration,
    /// Done with the input before others were.
    pub barrier: Duration,
    /// Done with the merge before others were, or behind it.
    pub tail: Duration,
}

impl Idle {
    fn all(&self) -> [(&'static str, Duration); 5] {
        [
            ("planning", self.planning),
            ("starting", self.starting),
            ("waiting for input", self.input),
            ("waiting for other workers", self.barrier),
            ("after the last step", self.tail),
        ]
    }

    fn sum(&self) -> Duration {
        self.all().iter().map(|(_, time)| *time).sum()
    }
}

/// Sums over all spans of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// From the statement's text to the last row.
    pub wall: Duration,
    /// Threads of the session.
    pub threads: usize,
    /// CPU time of all spans.
    pub work: Duration,
    /// Time in which at most one lane worked.
    pub serial: Duration,
    /// Those that the query had, in their order.
    pub phases: Vec<PhaseTotals>,
    /// Time of the threads without work.
    pub idle: Idle,
    /// What the system counted.
    pub process: Option<Process>,
}

impl Totals {
    pub(super) fn of(profile: &Profile) -> Totals {
        let spans = &profile.spans;
        Totals {
            wall: profile.wall,
            threads: profile.threads,
            work: spans.iter().map(|span| span.cpu).sum(),
            serial: serial(spans, profile.wall),
            phases: Phase::ALL
                .iter()
                .filter_map(|phase| phase_totals(*phase, spans))
                .collect(),
            idle: idle(profile),
            process: profile.process,
        }
    }

    /// The threads' time.
    fn capacity(&self) -> Duration {
        self.wall * u32::try_from(self.threads).unwrap_or(u32::MAX)
    }
}

fn phase_totals(phase: Phase, spans: &[Span]) -> Option<PhaseTotals> {
    let mut of_lane: BTreeMap<Lane, Duration> = BTreeMap::new();
    let mut totals = PhaseTotals {
        phase,
        spans: 0,
        rows: 0,
        busy: Duration::ZERO,
        cpu: Duration::ZERO,
        slowest: Duration::ZERO,
        longest: Duration::ZERO,
        workers: 0,
    };
    for span in spans.iter().filter(|span| span.phase == phase) {
        let time = span.end.saturating_sub(span.start);
        totals.spans += 1;
        totals.rows += span.rows;
        totals.busy += time;
        totals.cpu += span.cpu;
        totals.longest = totals.longest.max(time);
        *of_lane.entry(span.lane).or_default() += time;
    }
    totals.workers = of_lane.len();
    totals.slowest = of_lane.into_values().max()?;
    Some(totals)
}

/// Time in which at most one lane worked.
fn serial(spans: &[Span], wall: Duration) -> Duration {
    let starts = spans.iter().map(|span| (span.start, 1_i64));
    let ends = spans.iter().map(|span| (span.end, -1));
    let mut changes: Vec<(Duration, i64)> = starts.chain(ends).collect();
    changes.sort_unstable();
    let (mut at, mut working, mut serial) = (Duration::ZERO, 0, Duration::ZERO);
    for (when, change) in changes {
        if working <= 1 {
            serial += when.saturating_sub(at);
        }
        (at, working) = (when, working + change);
    }
    serial + wall.saturating_sub(at)
}

/// Idle time of the threads, as if each worker of a grouping were one. Streams above the last grouping run on threads whose
/// workers are done.
fn idle(profile: &Profile) -> Idle {
    let mut lanes: BTreeMap<usize, Vec<&Span>> = BTreeMap::new();
    let mut others = Duration::ZERO;
    let mut planned = Duration::ZERO;
    for span in &profile.spans {
        match span.lane {
            Lane::Worker { worker, .. } => lanes.entry(worker).or_default().push(span),
            Lane::Planner => planned = planned.max(span.end),
            Lane::Stream(_) => others += span.end.saturating_sub(span.start),
        }
    }
    let mut idle = Idle::default();
    for worker in 0..profile.threads {
        let busy = match worker {
            0 => planned,
            _ => Duration::ZERO,
        };
        idle.planning += planned.saturating_sub(busy);
        let Some(spans) = lanes.get(&worker) else {
            idle.starting += profile.wall.saturating_sub(planned);
            continue;
        };
        let mut at = planned;
        let mut before: Option<Phase> = None;
        for span in spans {
            let gap = span.start.saturating_sub(at);
            match (before, span.phase) {
                (None, _) => idle.starting += gap,
                (Some(_), Phase::Scan | Phase::Evaluate | Phase::Build) => idle.input += gap,
                (Some(Phase::Scan | Phase::Evaluate | Phase::Build), Phase::Partition) => {
                    idle.input += gap;
                }
                (Some(Phase::Merge | Phase::Emit), _) => idle.tail += gap,
                (Some(_), _) => idle.barrier += gap,
            }
            at = at.max(span.end);
            before = Some(span.phase);
        }
        let rest = profile.wall.saturating_sub(at);
        match before {
            Some(Phase::Merge | Phase::Emit) => idle.tail += rest,
            _ => idle.barrier += rest,
        }
    }
    // What streams did was done by threads that were idle as workers.
    idle.tail = idle.tail.saturating_sub(others);
    idle
}

/// Milliseconds with two digits behind the point.
fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn percent(part: Duration, whole: Duration) -> String {
    let share = part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE);
    format!("{:.1} %", share * 100.0)
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity = self.capacity();
        writeln!(f, "wall time          {:>10} ms", ms(self.wall))?;
        writeln!(f, "threads            {:>10}", self.threads)?;
        writeln!(f, "work (CPU)         {:>10} ms", ms(self.work))?;
        let serial = percent(self.serial, self.wall);
        writeln!(f, "at most one worked {:>10} ms  {serial}", ms(self.serial))?;
        let idle = self.idle.sum();
        let share = percent(idle, capacity);
        writeln!(
            f,
            "idle               {:>10} ms  {share} of the threads' time",
            ms(idle)
        )?;
        for (cause, time) in self.idle.all() {
            let share = percent(time, capacity);
            writeln!(f, "  {cause:<25} {:>10} ms  {share}", ms(time))?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{:<10} {:>7} {:>8} {:>12} {:>11} {:>11} {:>11} {:>11} {:>9}",
            "phase",
            "workers",
            "steps",
            "rows",
            "time ms",
            "CPU ms",
            "slowest ms",
            "longest ms",
            "imbalance"
        )?;
        for phase in &self.phases {
            writeln!(
                f,
                "{:<10} {:>7} {:>8} {:>12} {:>11} {:>11} {:>11} {:>11} {:>9.2}",
                phase.phase.name(),
                phase.workers,
                phase.spans,
                phase.rows,
                ms(phase.busy),
                ms(phase.cpu),
                ms(phase.slowest),
                ms(phase.longest),
                phase.imbalance()
            )?;
        }
        if let Some(process) = &self.process {
            writeln!(f)?;
            writeln!(
                f,
                "page faults {}, from disk {}",
                process.page_faults, process.disk_faults
            )?;
            write!(
                f,
                "context switches: {} of threads that waited, {} by the system",
                process.waits, process.preemptions
            )?;
        }
        Ok(())
    }
}

/// The table of two profiles: time of the slowest worker and CPU time, phase by phase.
pub(super) fn compared(earlier: &Totals, later: &Totals) -> String {
    let change = |before: Duration, after: Duration| match before.is_zero() {
        true => "new".to_string(),
        false => format!("{:.2}", after.as_secs_f64() / before.as_secs_f64()),
    };
    let line = |name: &str, cells: [(Duration, Duration); 2]| {
        let [slowest, cpu] = cells.map(|(before, after)| {
            format!(
                "{:>11} {:>11} {:>7}",
                ms(before),
                ms(after),
                change(before, after)
            )
        });
        format!("{name:<20} {slowest}  {cpu}\n")
    };
    let mut text = format!(
        "{:<20} {:>11} {:>11} {:>7}  {:>11} {:>11} {:>7}\n",
        "", "slowest ms", "then", "ratio", "CPU ms", "then", "ratio"
    );
    text += &line(
        "all",
        [(earlier.wall, later.wall), (earlier.work, later.work)],
    );
    for phase in Phase::ALL {
        let of = |totals: &Totals| {
            let found = totals.phases.iter().find(|of| of.phase == phase);
            found.map_or((Duration::ZERO, Duration::ZERO), |of| (of.slowest, of.cpu))
        };
        let (before, after) = (of(earlier), of(later));
        if before != after {
            text += &line(phase.name(), [(before.0, after.0), (before.1, after.1)]);
        }
    }
    let (before, after) = (earlier.idle.all(), later.idle.all());
    for ((cause, before), (_, after)) in before.into_iter().zip(after) {
        text += &format!(
            "idle, {cause:<28} {:>11} {:>11} {:>7}\n",
            ms(before),
            ms(after),
            change(before, after)
        );
    }
    text
}
