//! How long a profiled query would take on other numbers of workers.
//!
//! In: the steps of a profile, by their CPU time. Out: for each number of workers the time, what it gains and what bounds it.
//! Invariant: steps keep their order of phases, and each is one worker's; what one worker did alone stays so.
//! Not here: memory that many cores wait for, and work that grows with the workers: a profile of as many workers has that.
//!
//! List scheduling: whichever worker is free takes the next step, which is at most twice as long as the best order (Graham, 1966).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write;
use std::time::Duration;

use super::Profile;
use crate::runtime::trace::{Lane, Phase, Span};

/// What a worker loses with each step beside its CPU time.
const HAND_OUT: Duration = Duration::from_micros(1);

/// Steps between two points at which all workers wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SimulatedStage {
    phase: Phase,
    steps: Vec<Duration>,
    /// False of what one worker does while the others wait.
    is_parallel: bool,
}

impl SimulatedStage {
    /// The time until the last step is done.
    fn time(&self, workers: usize) -> Duration {
        let most = if self.is_parallel {
            self.steps.len()
        } else {
            1
        };
        let workers = workers.min(most).max(1);
        let mut free: BinaryHeap<Reverse<Duration>> =
            std::iter::repeat_n(Reverse(Duration::ZERO), workers).collect();
        let mut last = Duration::ZERO;
        for step in &self.steps {
            let Some(Reverse(start)) = free.pop() else {
                break;
            };
            let end = start + *step + HAND_OUT;
            last = last.max(end);
            free.push(Reverse(end));
        }
        last
    }

    fn work(&self) -> Duration {
        self.steps.iter().sum()
    }

    fn longest(&self) -> Duration {
        self.steps.iter().max().copied().unwrap_or_default()
    }
}

/// What keeps a query from being faster.
fn bound(stages: &[SimulatedStage], workers: usize) -> String {
    let slowest = stages.iter().max_by_key(|stage| {
        let even = stage.work() / u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
        stage.time(workers).saturating_sub(even)
    });
    let Some(stage) = slowest else {
        return String::new();
    };
    let name = stage.phase.name();
    let time = stage.time(workers);
    if !stage.is_parallel {
        return format!("{name}: one worker");
    }
    match stage.longest() * 2 > time {
        true => format!("{name}: the longest step"),
        false => format!("{name}: the work"),
    }
}

/// The stages of a profile, in their order.
fn stages(profile: &Profile) -> Vec<SimulatedStage> {
    let spans = &profile.spans;
    let of_operators = operators(spans).into_iter().flat_map(|operator| {
        let phases = Phase::ALL.into_iter();
        phases.filter_map(move |phase| stage(spans, phase, Some(operator)))
    });
    let all = stage(spans, Phase::Plan, None).into_iter();
    let all = all
        .chain(of_operators)
        .chain(stage(spans, Phase::Output, None));
    all.filter(|stage| !stage.steps.is_empty()).collect()
}

/// The stage that begins with a phase, of one grouping or of the whole query. The match names all phases, so that a new one
/// has to say where it belongs.
fn stage(spans: &[Span], phase: Phase, operator: Option<usize>) -> Option<SimulatedStage> {
    let parallel = |operator, rest: &[Phase]| (steps(spans, operator, phase, rest), true);
    let (steps, is_parallel) = match (phase, operator) {
        (Phase::Plan, None) | (Phase::Cut, Some(_)) => (serial(spans, phase, operator), false),
        (Phase::Scan, Some(operator)) => parallel(operator, &[Phase::Evaluate, Phase::Build]),
        (Phase::Partition, Some(operator)) => parallel(operator, &[]),
        (Phase::Merge, Some(operator)) => parallel(operator, &[Phase::Emit]),
        (Phase::Output, None) => (of_streams(spans), true),
        // They stand in the stage of the phase before them.
        (Phase::Evaluate | Phase::Build | Phase::Emit, _) => return None,
        (Phase::Plan | Phase::Output, Some(_)) => return None,
        (Phase::Scan | Phase::Partition | Phase::Cut | Phase::Merge, None) => return None,
    };
    Some(SimulatedStage {
        phase,
        steps,
        is_parallel,
    })
}

/// What one does while the others wait: each span is a step.
fn serial(spans: &[Span], phase: Phase, operator: Option<usize>) -> Vec<Duration> {
    let spans = spans.iter().filter(|span| span.phase == phase);
    let own = spans.filter(|span| operator.is_none_or(|operator| is_of(span, operator)));
    own.map(time_of).collect()
}

/// What output streams do: all of a stream is one step.
fn of_streams(spans: &[Span]) -> Vec<Duration> {
    let mut output: BTreeMap<Lane, Duration> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.phase == Phase::Output) {
        *output.entry(span.lane).or_default() += time_of(span);
    }
    output.into_values().collect()
}

/// True of what a worker of this grouping did.
fn is_of(span: &Span, operator: usize) -> bool {
    matches!(span.lane, Lane::Worker { operator: of, .. } if of == operator)
}

/// CPU time, or the time where the system does not say.
fn time_of(span: &Span) -> Duration {
    match span.cpu.is_zero() {
        true => span.end.saturating_sub(span.start),
        false => span.cpu,
    }
}

/// The groupings, those that end first in front: others read them.
fn operators(spans: &[Span]) -> Vec<usize> {
    let mut built: BTreeMap<usize, Duration> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.phase == Phase::Build) {
        if let Lane::Worker { operator, .. } = span.lane {
            let last = built.entry(operator).or_default();
            *last = (*last).max(span.end);
        }
    }
    let mut operators: Vec<(Duration, usize)> =
        built.into_iter().map(|(of, end)| (end, of)).collect();
    operators.sort_unstable();
    operators
        .into_iter()
        .map(|(_, operator)| operator)
        .collect()
}

/// Steps of one grouping: a span of `first` with those of `rest` behind it on the same lane, in the order of their starts.
fn steps(spans: &[Span], operator: usize, first: Phase, rest: &[Phase]) -> Vec<Duration> {
    let mut open: BTreeMap<Lane, (Duration, Duration, bool)> = BTreeMap::new();
    let mut steps: Vec<(Duration, Duration)> = Vec::new();
    for span in spans {
        if !is_of(span, operator) || span.phase != first && !rest.contains(&span.phase) {
            continue;
        }
        let (start, time, has_rest) =
            open.entry(span.lane)
                .or_insert((span.start, Duration::ZERO, false));
        // Polls that gave nothing belong to the step that they led to.
        if span.phase == first && (*has_rest || rest.is_empty()) {
            steps.push((*start, *time));
            (*start, *time, *has_rest) = (span.start, Duration::ZERO, false);
        }
        *time += time_of(span);
        *has_rest |= span.phase != first;
    }
    steps.extend(open.into_values().map(|(start, time, _)| (start, time)));
    steps.sort_unstable();
    steps
        .into_iter()
        .map(|(_, time)| time)
        .filter(|time| !time.is_zero())
        .collect()
}

/// A table of the times on these numbers of workers.
pub(super) fn table(profile: &Profile, workers: &[usize]) -> String {
    let stages = stages(profile);
    let time = |workers: usize| {
        stages
            .iter()
            .map(|stage| stage.time(workers))
            .sum::<Duration>()
    };
    let one = time(1);
    let mut text = format!(
        "{:>7} {:>11} {:>8} {:>10}  bound by\n",
        "workers", "time ms", "gain", "efficiency"
    );
    for &workers in workers {
        let here = time(workers);
        let gain = one.as_secs_f64() / here.as_secs_f64().max(f64::MIN_POSITIVE);
        let share = gain / workers.max(1) as f64;
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "{workers:>7} {:>11.2} {gain:>8.2} {share:>10.2}  {}",
            here.as_secs_f64() * 1e3,
            bound(&stages, workers)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn of_steps(steps: &[u64]) -> SimulatedStage {
        SimulatedStage {
            phase: Phase::Merge,
            steps: steps.iter().map(|time| ms(*time)).collect(),
            is_parallel: true,
        }
    }

    /// Without what handing out costs.
    fn rounded(time: Duration) -> u64 {
        time.as_millis() as u64
    }

    #[test]
    fn equal_steps_are_shared_out() {
        let stage = of_steps(&[10; 8]);
        let times = [1, 2, 4, 8, 16].map(|workers| rounded(stage.time(workers)));
        assert_eq!(times, [80, 40, 20, 10, 10]);
    }

    #[test]
    fn a_long_step_bounds_its_stage() {
        let stage = of_steps(&[100, 10, 10, 10, 10]);
        assert_eq!(rounded(stage.time(64)), 100);
        assert_eq!(bound(&[stage], 64), "merge: the longest step");
        // The order is kept: the long one comes when two workers have done the short ones.
        assert_eq!(rounded(of_steps(&[10, 10, 10, 10, 100]).time(2)), 120);
    }

    #[test]
    fn what_one_does_alone_stays_so() {
        let alone = SimulatedStage {
            is_parallel: false,
            ..of_steps(&[10; 8])
        };
        assert_eq!(rounded(alone.time(16)), 80);
        assert_eq!(bound(&[alone], 16), "merge: one worker");
    }

    #[test]
    fn polls_without_rows_belong_to_the_step_that_they_led_to() {
        let span = |phase, start: u64, cpu: u64| Span {
            lane: Lane::Worker {
                operator: 0,
                worker: 0,
            },
            phase,
            start: ms(start),
            end: ms(start + cpu),
            cpu: ms(cpu),
            rows: 0,
        };
        let spans = [
            span(Phase::Scan, 0, 1),
            span(Phase::Scan, 2, 3),
            span(Phase::Build, 5, 4),
            span(Phase::Scan, 9, 2),
            span(Phase::Build, 11, 1),
        ];
        let found = steps(&spans, 0, Phase::Scan, &[Phase::Evaluate, Phase::Build]);
        assert_eq!(found, [ms(8), ms(3)]);
    }
}
