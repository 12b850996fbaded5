//! The dot commands, in scripts.

use std::fs;

use crate::grouse::{grouse_fed, grouse_in};

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(grouse_fed(script, &[]).succeeded(), expected);
}

#[test]
fn looks_of_results() {
    check(
        ".mode csv\n.nullvalue NULL\nSELECT 1 AS a, NULL AS b, 'NULL' AS c;\n.nullvalue\nSELECT NULL AS b, '' AS c;\n",
        "a,b,c\n1,NULL,\"NULL\"\nb,c\n,\"\"\n",
    );
    check(
        ".mode list\n.headers off\n.separator ;\nSELECT 1, 2;\n.separator \"\\t\" '|\\n'\nSELECT 1, 2;\n.separator\nSELECT 1, 2;\n",
        "1;2\n1\t2|\n1|2\n",
    );
    check(
        ".mode column\n.width 6 -6 2\nSELECT 'abcdefgh' AS text, 'b' AS r, 12345 AS n;\n",
        "text         r   n\n------  ------  --\nabcde…       b  12345\n",
    );
}

#[test]
fn inserts_name_a_table() {
    check(
        ".mode insert 'my table'\nSELECT 1 AS a;\n.mode\n",
        "INSERT INTO \"my table\" (\"a\") VALUES (1);\ninsert\n",
    );
}

#[test]
fn results_go_to_files_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("script.sql"),
        ".once a.csv\n.headers on\nSELECT 1 AS a;\n.mode list\nSELECT 2 AS a;\n.output b.txt\nSELECT 3 AS a;\nSELECT 4 AS a;\n\
        .output\nSELECT 5 AS a;\n.once '|tr a-z A-Z'\n.print shouted\n.once |tr a-z A-Z\nSELECT 'more' AS a;\n.once c.parquet\n",
    )
    .unwrap();
    let ran = grouse_in(folder.path(), &["script.sql"]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("a.csv"), "a\n1\n");
    assert_eq!(read("b.txt"), "a\n3\na\n4\n");
    assert_eq!(ran.stdout, "a\n2\na\n5\nSHOUTED\nA\nMORE\n");
    // Nothing came that the last one was about.
    assert!(ran.code == Some(0) && !folder.path().join("c.parquet").exists());
}

#[test]
fn a_result_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |script: &str| {
        fs::write(folder.path().join("script.sql"), script).unwrap();
        grouse_in(folder.path(), &["script.sql"])
    };
    for script in [
        ".once a.csv\nSELECT nonsense;\n",
        ".output a.csv\nSELECT 1 AS a;\nSELECT nonsense;\n",
        ".once a.csv.bz2\n",
        ".once no/such/folder.csv\n",
    ] {
        assert_eq!(run(script).code, Some(1), "{script}");
        let entries = fs::read_dir(folder.path()).unwrap();
        assert_eq!(entries.count(), 1, "{script}");
    }
}

#[test]
fn scripts_within_scripts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("inner.sql"),
        "SELECT 1 AS a;\nSELECT\nnonsense;\nSELECT 2 AS a;\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("outer.sql"),
        ".mode csv\n.read inner.sql\nSELECT 3 AS a;\n",
    )
    .unwrap();
    fs::write(folder.path().join("self.sql"), "\\i self.sql\n").unwrap();
    let ran = grouse_in(folder.path(), &["outer.sql"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a\n1\n"));
    assert!(
        ran.stderr.contains("inner.sql") && ran.stderr.contains("line 3"),
        "{}",
        ran.stderr
    );
    let message = grouse_in(folder.path(), &["self.sql"]).failed(1);
    assert!(message.contains("reads itself"), "{message}");
    let message = grouse_in(folder.path(), &["-c", ".read nosuch.sql"]).failed(1);
    assert!(message.contains("nosuch.sql"), "{message}");
}

#[test]
fn files_come_in() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), "x,y\n1,one\n").unwrap();
    fs::write(folder.path().join("b.txt"), "junk\nx,y\n2,two\n").unwrap();
    let script = ".mode csv\n.import a.csv t\n.import --csv --skip 1 b.txt T\nSELECT * FROM t ORDER BY x;\n.open a.csv other\n\
        .tables\n.tables o%\nSELECT count(*) AS c FROM other;\n";
    fs::write(folder.path().join("script.sql"), script).unwrap();
    let ran = grouse_in(folder.path(), &["script.sql"]);
    assert_eq!(
        ran.succeeded(),
        "x,y\n1,one\n2,two\nother\nt\nother\nc\n1\n"
    );
}

#[test]
fn tables_and_views_are_dumped_in_an_order_that_runs() {
    let make = "CREATE TABLE \"T 1\" (id BIGINT PRIMARY KEY, name VARCHAR);\nINSERT INTO \"T 1\" VALUES (1, 'it''s'), (2, NULL);\n\
        CREATE VIEW z AS SELECT * FROM \"T 1\";\nCREATE VIEW a AS SELECT max(id) AS m FROM z;\n";
    let dumped = grouse_fed(&format!("{make}.dump\n"), &["-csv"]).succeeded();
    let dumped = dumped
        .strip_prefix("count\n2\n")
        .unwrap_or(&dumped)
        .to_owned();
    let ran = grouse_fed(
        &format!("{dumped}.mode list\nSELECT * FROM a;\n.indexes\n"),
        &["-csv"],
    );
    assert!(
        ran.stdout.ends_with("m\n2\ntable|column|key\nT 1|id|PRI\n"),
        "{dumped}{}{}",
        ran.stdout,
        ran.stderr
    );
    let message = grouse_fed(".dump nosuch\n", &[]).failed(1);
    assert!(message.contains("nosuch"), "{message}");
}

#[test]
fn programs_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    fs::write(folder.path().join("inner/a.csv"), "x\n1\n").unwrap();
    let ran = grouse_in(
        folder.path(),
        &[
            "-csv",
            "-c",
            ".cd inner",
            "-c",
            ".shell ls",
            "-c",
            "FROM 'a.csv'",
        ],
    );
    assert_eq!(ran.succeeded(), "a.csv\nx\n1\n");
    let ran = grouse_in(
        folder.path(),
        &["-c", ".system exit 3", "-c", ".print not here"],
    );
    assert!(
        ran.code == Some(1) && ran.stderr.contains("exit status: 3"),
        "{}",
        ran.stderr
    );
}

#[test]
fn echo_print_and_show() {
    check(
        ".mode csv\n.echo on\nSELECT 1\n AS a;\n.echo off\n.print 'a  b' c\n",
        "SELECT 1\n AS a;\na\n1\n.echo off\na  b c\n",
    );
    let shown = grouse_fed(".show\n", &[]).succeeded();
    for line in [
        "mode: table",
        "bail: on in scripts",
        "headers: on",
        "pager: off",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    let help = grouse_fed(".help mode\n", &[]).succeeded();
    assert!(
        help.contains(".mode [FORMAT") && help.contains("latex"),
        "{help}"
    );
}

#[test]
fn what_psql_has() {
    check(
        "\\timing off\n\\x\nCREATE TABLE t AS SELECT 1::bigint AS a;\n\\dt\n\\d t\nSELECT * FROM t;\n\\x\n.mode csv\n\\echo a b\n\\! echo c\n",
        "t\nt\n  a  int64\na = 1\na b\nc\n",
    );
}
