//! Failures: exit codes, messages, places and proposals.

use crate::grouse::{grouse, grouse_in, grouse_with_open_files};

#[track_caller]
fn check(arguments: &[&str], code: i32, parts: &[&str]) {
    let message = grouse(arguments).failed(code);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn a_misspelt_column_is_shown_with_its_neighbours() {
    let message = grouse(&["SELECT nmber FROM numbers(3)"]).failed(1);
    assert!(
        message.contains("nmber") && message.contains("did you mean number"),
        "{message}"
    );
    assert!(
        message.contains("   1 | SELECT nmber FROM numbers(3)\n              ^\n"),
        "{message}"
    );
}

#[test]
fn a_misspelt_table_is_named() {
    check(
        &["CREATE TABLE visits AS SELECT 1 AS a; SELECT * FROM visit"],
        1,
        &["visit", "visits"],
    );
}

#[test]
fn a_syntax_error_has_a_place() {
    check(
        &["SELECT 1 +\n  FROM numbers(3)"],
        1,
        &["line 2", "   2 |   FROM numbers(3)"],
    );
    check(&["SELECT 'abc"], 1, &["line 1", "   1 | SELECT 'abc"]);
}

#[test]
fn the_place_counts_from_the_start_of_the_script() {
    let message = grouse(&["SELECT 1;\nSELECT 2; SELECT nmber FROM numbers(3)"]);
    assert_eq!(message.code, Some(1));
    assert!(
        message.stderr.contains("line 2, column 18"),
        "{}",
        message.stderr
    );
    assert!(
        message.stderr.contains("   2 | SELECT 2; SELECT nmber"),
        "{}",
        message.stderr
    );
}

#[test]
fn errors_of_running_queries() {
    check(&["--format", "csv", "SELECT 1 / 0 AS a"], 1, &["zero"]);
    check(
        &["SELECT * FROM 'no such file.parquet'"],
        1,
        &["no such file.parquet"],
    );
    check(&["SELECT frobnicate(1)"], 1, &["frobnicate"]);
}

#[test]
fn bad_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.parquet"), "PAR1 this is no Parquet").unwrap();
    std::fs::write(folder.path().join("bad.csv"), "a,b\n1,2\n3\n4,5,6\n").unwrap();
    for file in ["bad.parquet", "bad.csv"] {
        let message = grouse_in(folder.path(), &[&format!("SELECT * FROM '{file}'")]).failed(1);
        assert!(
            message.contains(file) && !message.contains("panicked"),
            "{message}"
        );
    }
}

/// DataFusion's sort writes some forty files here.
#[test]
fn open_files_end_at_the_hard_limit_not_at_the_soft_one() {
    let sql = "SELECT max(r) AS rows FROM (SELECT row_number() OVER (ORDER BY - CAST(number AS BIGINT)) AS r \
        FROM numbers(6000000))";
    let arguments = [
        "--threads",
        "2",
        "--memory-limit",
        "24MB",
        "--format",
        "csv",
        sql,
    ];
    let rows = grouse_with_open_files("-Sn", 24, &arguments).succeeded();
    assert_eq!(rows, "rows\n6000000\n");
    let message = grouse_with_open_files("-n", 24, &arguments).failed(1);
    for part in ["in the temporary folder", "Too many open files"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_wrong_command_line_is_told_from_a_failed_query() {
    check(&["--format", "xml", "SELECT 1"], 2, &["xml", "ndjson"]);
    check(&["--threads", "many", "SELECT 1"], 2, &["threads", "many"]);
    check(
        &["--memory-limit", "4 apples", "SELECT 1"],
        2,
        &["memory_limit", "4 apples"],
    );
    check(
        &["--set", "theads=1", "SELECT 1"],
        2,
        &["theads", "threads"],
    );
    check(&["--set", "novalue", "SELECT 1"], 2, &["NAME=VALUE"]);
    check(
        &["--set", "datafusion.nonsense=1", "SELECT 1"],
        2,
        &["datafusion.nonsense"],
    );
    check(&["--frobnicate"], 2, &["--frobnicate"]);
    check(&["-f", "/no/such/file.sql"], 2, &["/no/such/file.sql"]);
    check(
        &["-o", "/no/such/folder/out.csv", "SELECT 1"],
        2,
        &["/no/such/folder/out.csv"],
    );
    check(
        &["--init", "x.sql", "--no-init"],
        2,
        &["cannot be used with"],
    );
    check(&["no such folder/x.sql"], 1, &["syntax"]);
    check(&["nosuch.sql"], 2, &["nosuch.sql"]);
    check(&["-", "-f", "-"], 2, &["standard input"]);
}

#[test]
fn help_and_version() {
    let help = grouse(&["--help"]).succeeded();
    for flag in [
        "--threads",
        "--memory-limit",
        "--temp-dir",
        "--format",
        "--output",
        "--set",
        "--max-rows",
        "--command",
        "--cmd",
        "--init",
        "--no-init",
    ] {
        assert!(help.contains(flag), "{flag} is not in {help}");
    }
    assert!(grouse(&["--version"]).succeeded().starts_with("grouse "));
}

#[test]
fn options_reach_the_engine() {
    let options = [
        "--threads",
        "3",
        "--set",
        "batch_size=1000",
        "--format",
        "csv",
    ];
    let show =
        |name: &str| grouse(&[&options[..], &[&format!("SHOW {name}")]].concat()).succeeded();
    assert!(
        show("threads").trim_end().ends_with(",3"),
        "{}",
        show("threads")
    );
    assert!(
        show("batch_size").trim_end().ends_with(",1000"),
        "{}",
        show("batch_size")
    );
}
