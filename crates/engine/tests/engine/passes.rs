//! Which rules a plan passes, in their order: DataFusion's with ours in place, and what ours do.
//!
//! In: a session. Out: the names of its rules, stage by stage.
//! Invariant: `passes.txt` beside this file has them all: an upgrade of DataFusion that brings, drops or moves a rule shows there.
//! `GROUSE_PASSES_UPDATE=1` writes it anew.
//! Not here: whether a rule does it.

use grouse::parts::fixes::described;
use grouse::{Session, SessionOptions};

use crate::support::{rows, session};

#[test]
fn passes_stand_in_the_order_that_is_written_down() {
    let session = Session::new(SessionOptions::default()).unwrap();
    let state = session.context().state();
    let analyzer = state.analyzer().rules.iter().map(|rule| rule.name());
    let logical = state.optimizer().rules.iter().map(|rule| rule.name());
    let physical = state.physical_optimizers().iter().map(|rule| rule.name());
    let list = listed("analyzer", analyzer.collect())
        + &listed("logical", logical.collect())
        + &listed("physical", physical.collect());
    if std::env::var_os("GROUSE_PASSES_UPDATE").is_some() {
        std::fs::write("tests/engine/passes.txt", &list).unwrap();
        return;
    }
    assert_eq!(list, include_str!("passes.txt"));
}

#[test]
fn plans_are_settled_after_the_first_pass() {
    let session = session();
    rows(
        &session,
        "CREATE TABLE t AS SELECT number AS a, number % 7 AS b FROM numbers(100)",
    );
    for sql in [
        "SELECT b, count(*) AS n FROM t GROUP BY b",
        "SELECT b, count(*) AS n FROM t WHERE a > 5 GROUP BY b ORDER BY n DESC",
        "SELECT b, count(*) AS n FROM t WHERE a > 5 GROUP BY b ORDER BY n DESC LIMIT 3",
        "SELECT b, n FROM (SELECT b, sum(a) AS n FROM t GROUP BY b ORDER BY n LIMIT 3) WHERE n > 9",
    ] {
        let told = rows(&session, &format!("EXPLAIN VERBOSE {sql}"));
        let is_pass = |line: &&String| line.starts_with("logical_plan after push_down_limit|");
        // The second pass finds that nothing changes.
        assert_eq!(told.iter().filter(is_pass).count(), 2, "{sql}");
    }
    let top = "SELECT b, sum(a) AS n FROM t GROUP BY b ORDER BY n";
    assert_eq!(
        rows(&session, &format!("{top} LIMIT 2")),
        ["2|665", "3|679"]
    );
    assert_eq!(
        rows(&session, &format!("{top} LIMIT 2 OFFSET 1")),
        ["3|679", "4|693"]
    );
    let outer = format!("SELECT n FROM ({top} LIMIT 3) WHERE n > 670 ORDER BY n");
    assert_eq!(rows(&session, &outer), ["679", "693"]);
}

/// A stage and the names of its rules; behind those of ours what they do.
fn listed(stage: &str, names: Vec<&str>) -> String {
    let ours = described();
    let lines = names.into_iter().map(|name| {
        let does = ours
            .iter()
            .find(|(of, rule, _)| (*of, rule.as_str()) == (stage, name));
        let does = does.map_or(String::new(), |(.., does)| format!(": {does}"));
        format!("    {name}{does}\n")
    });
    format!("{stage}\n{}", lines.collect::<String>())
}
