//! Profiles as files: the trace event format of Chrome and Perfetto.
//!
//! In: a profile, or the text of such a file. Out: the other.
//! Invariant: what was written is read back the same, to the nanosecond; events that are not ours are skipped.
//! Not here: the page (page.rs).

use std::time::Duration;

use serde_json::{Value, json};

use super::{Process, Profile};
use crate::error::{Error, Result};
use crate::runtime::trace::{Lane, Phase, Span};

/// Lanes of one grouping's workers are numbered from a multiple of this.
const LANES: u64 = 10_000;

/// Nanoseconds of a year.
const YEAR_NS: f64 = 31_536_000e9;

/// The number of a lane among threads.
pub(super) fn number(lane: Lane) -> u64 {
    match lane {
        Lane::Planner => 0,
        Lane::Worker { operator, worker } => (operator as u64 + 1) * LANES + worker as u64,
        Lane::Stream(stream) => 1 + stream as u64,
    }
}

fn lane(number: u64) -> Lane {
    match (number / LANES, number % LANES) {
        (0, 0) => Lane::Planner,
        (0, stream) => Lane::Stream(stream as usize - 1),
        (operator, worker) => Lane::Worker {
            operator: operator as usize - 1,
            worker: worker as usize,
        },
    }
}

/// What a lane is called.
pub(super) fn name(lane: Lane) -> String {
    match lane {
        Lane::Planner => "planner".to_string(),
        Lane::Worker {
            operator: 0,
            worker,
        } => format!("worker {worker}"),
        Lane::Worker { operator, worker } => format!("grouping {operator}, worker {worker}"),
        Lane::Stream(stream) => format!("output {stream}"),
    }
}

pub(super) fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// None of what no query takes: more than a year.
fn duration(microseconds: &Value) -> Option<Duration> {
    let nanoseconds = (microseconds.as_f64()? * 1e3).round();
    let is_near = (0.0..=YEAR_NS).contains(&nanoseconds);
    is_near.then(|| Duration::from_nanos(nanoseconds as u64))
}

/// The file's text.
pub(super) fn write(profile: &Profile) -> String {
    let mut lanes: Vec<Lane> = profile.spans.iter().map(|span| span.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let names = lanes.into_iter().map(|lane| {
        json!({"name": "thread_name", "ph": "M", "pid": 1, "tid": number(lane), "args": {"name": name(lane)}})
    });
    let spans = profile.spans.iter().map(|span| {
        json!({
            "name": span.phase.name(), "ph": "X", "pid": 1, "tid": number(span.lane),
            "ts": microseconds(span.start), "dur": microseconds(span.end.saturating_sub(span.start)),
            "args": {"rows": span.rows, "cpu_us": microseconds(span.cpu)},
        })
    });
    let process = profile.process.map(|process| {
        json!({
            "page_faults": process.page_faults, "disk_faults": process.disk_faults,
            "waits": process.waits, "preemptions": process.preemptions,
        })
    });
    let file = json!({
        "traceEvents": names.chain(spans).collect::<Vec<Value>>(),
        "displayTimeUnit": "ms",
        "grouse": {
            "statement": profile.statement, "threads": profile.threads,
            "wall_us": microseconds(profile.wall), "process": process, "failure": profile.failure,
        },
    });
    file.to_string()
}

/// The profile of a file's text.
pub(super) fn read(text: &str) -> Result<Profile> {
    let not = |what: &str| Error::Execution(format!("this is no profile of grouse: {what}"));
    let file: Value = serde_json::from_str(text).map_err(|error| not(&error.to_string()))?;
    let own = &file["grouse"];
    let events = file["traceEvents"].as_array();
    let (Some(events), true) = (events, own.is_object()) else {
        return Err(not("it has no trace events, or nothing of its query"));
    };
    let spans = events.iter().filter_map(span).collect();
    let count = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
    let process = Some(&own["process"]).filter(|process| process.is_object());
    Ok(Profile {
        statement: own["statement"].as_str().unwrap_or_default().to_string(),
        threads: count(own, "threads") as usize,
        wall: duration(&own["wall_us"]).ok_or_else(|| not("it has no wall time"))?,
        spans,
        process: process.map(|process| Process {
            page_faults: count(process, "page_faults"),
            disk_faults: count(process, "disk_faults"),
            waits: count(process, "waits"),
            preemptions: count(process, "preemptions"),
        }),
        failure: own["failure"].as_str().map(str::to_string),
    })
}

fn span(event: &Value) -> Option<Span> {
    let name = event["name"].as_str()?;
    let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name)?;
    let start = duration(&event["ts"])?;
    Some(Span {
        lane: lane(event["tid"].as_u64()?),
        phase,
        start,
        end: start + duration(&event["dur"])?,
        cpu: duration(&event["args"]["cpu_us"])?,
        rows: event["args"]["rows"].as_u64()?,
    })
}
