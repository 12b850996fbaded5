//! The page of a profile.
//!
//! In: a profile. Out: HTML with its style, its script and its data in it: nothing is fetched.
//! Invariant: text of the query is data to the script, never markup.
//! Not here: what the page draws (page.html).

use serde_json::{Value, json};

use super::Profile;
use super::trace_file::{microseconds, name, number};
use crate::runtime::trace::Phase;

const PAGE: &str = include_str!("page.html");
const DATA: &str = "/*data*/null";

/// The page.
pub(super) fn of(profile: &Profile) -> String {
    let mut lanes: Vec<_> = profile.spans.iter().map(|span| span.lane).collect();
    lanes.sort_by_key(|lane| number(*lane));
    lanes.dedup();
    let place = |lane| lanes.iter().position(|other| *other == lane).unwrap_or(0);
    let phase = |phase| Phase::ALL.iter().position(|other| *other == phase);
    let spans: Vec<Value> = profile
        .spans
        .iter()
        .map(|span| {
            json!([
                place(span.lane),
                phase(span.phase),
                microseconds(span.start),
                microseconds(span.end),
                microseconds(span.cpu),
                span.rows
            ])
        })
        .collect();
    let data = json!({
        "statement": profile.statement,
        "failure": profile.failure,
        "wall": microseconds(profile.wall),
        "lanes": lanes.iter().map(|lane| name(*lane)).collect::<Vec<_>>(),
        "phases": Phase::ALL.map(Phase::name),
        "spans": spans,
        "summary": profile.summary(),
    });
    // `</script>` in a statement would end the script.
    PAGE.replacen(DATA, &data.to_string().replace('<', "\\u003c"), 1)
}
