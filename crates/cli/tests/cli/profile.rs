//! `grouse profile`: pages, traces, what failed.

use crate::grouse::{grouse, grouse_in};

const GROUPING: &str = "SELECT number % 10 AS k, count(*) FROM numbers(100000) GROUP BY k";

#[test]
fn a_page_is_written_beside_the_sums() {
    let folder = tempfile::tempdir().unwrap();
    let ran = grouse_in(folder.path(), &["profile", GROUPING, "--threads", "2"]);
    let sums = ran.succeeded();
    assert!(
        sums.contains("wall time") && sums.contains("wrote profile.html"),
        "{sums}"
    );
    let page = std::fs::read_to_string(folder.path().join("profile.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("number % 10"));
}

#[test]
fn traces_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let of_tables = format!("CREATE TABLE t AS SELECT 1 AS a; {GROUPING}");
    for (file, sql) in [("a.json", GROUPING), ("b.json", &of_tables)] {
        grouse_in(folder.path(), &["profile", sql, "-o", file]).succeeded();
    }
    let ran = grouse_in(folder.path(), &["profile", "--compare", "a.json", "b.json"]);
    assert!(ran.succeeded().contains("scan"));
    let ran = grouse_in(folder.path(), &["profile", "--compare", "a.json", "c.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("c.json"), "{}", ran.stderr);
}

#[test]
fn a_query_that_fails_leaves_its_profile_and_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "SELECT 1; SELECT 10 // (x - x) FROM (VALUES (1)) t(x) GROUP BY x";
    let ran = grouse_in(folder.path(), &["profile", sql, "-o", "failed.html"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("division by zero"), "{}", ran.stderr);
    let page = std::fs::read_to_string(folder.path().join("failed.html")).unwrap();
    assert!(page.contains("division by zero"));
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, word) in [
        (
            ["profile", GROUPING, "-o", "profile.svg"].as_slice(),
            "profile.svg",
        ),
        (&["profile", GROUPING, "--theads", "2"], "--theads"),
    ] {
        let ran = grouse(arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
    // One word is SQL.
    assert_eq!(grouse(&["profile"]).code, Some(1));
}
