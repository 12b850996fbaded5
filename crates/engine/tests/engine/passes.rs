//! Which rules a plan passes, in their order: DataFusion's with ours in place.
//!
//! In: a session. Out: the names of its rules, stage by stage.
//! Invariant: `passes.txt` beside this file has them all: an upgrade of DataFusion that brings, drops or moves a rule shows there.
//! `GROUSE_PASSES_UPDATE=1` writes it anew.
//! Not here: what a rule does.

use grouse::{Session, SessionOptions};

#[test]
fn passes_stand_in_the_order_that_is_written_down() {
    let session = Session::new(SessionOptions::default()).unwrap();
    let state = session.context().state();
    let mut list = String::from("analyzer\n");
    let mut add = |name: &str| list.push_str(&format!("    {name}\n"));
    state.analyzer().rules.iter().for_each(|rule| add(rule.name()));
    list.push_str("logical\n");
    let mut add = |name: &str| list.push_str(&format!("    {name}\n"));
    state.optimizer().rules.iter().for_each(|rule| add(rule.name()));
    list.push_str("physical\n");
    let mut add = |name: &str| list.push_str(&format!("    {name}\n"));
    let physical = state.physical_optimizers();
    physical.iter().for_each(|rule| add(rule.name()));
    if std::env::var_os("GROUSE_PASSES_UPDATE").is_some() {
        std::fs::write("tests/engine/passes.txt", &list).unwrap();
        return;
    }
    assert_eq!(list, include_str!("passes.txt"));
}
