//! Where results go: files that appear whole or not at all, and pipes whose reader leaves.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use crate::grouse::{command, grouse, grouse_in};

fn files_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn results_come_back_from_every_readable_format() {
    let folder = tempfile::tempdir().unwrap();
    let write = "SELECT number AS n, 'v' || number AS s, number / 4.0 AS x FROM numbers(20000)";
    for file in ["a.parquet", "a.arrow", "a.csv", "a.tsv", "a.ndjson"] {
        assert_eq!(
            grouse_in(folder.path(), &["-o", file, write]).succeeded(),
            ""
        );
        let read = format!(
            "SELECT count(*) AS c, sum(n) AS n, count(DISTINCT s) AS s, sum(x) AS x FROM '{file}'"
        );
        let found = grouse_in(folder.path(), &["--format", "csv", &read]).succeeded();
        assert_eq!(
            found, "c,n,s,x\n20000,199990000,20000,49997500.0\n",
            "{file}"
        );
    }
    assert_eq!(
        files_in(folder.path()),
        ["a.arrow", "a.csv", "a.ndjson", "a.parquet", "a.tsv"]
    );
}

#[test]
fn a_failed_query_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("out.csv"), "old").unwrap();
    let fails_late = "SELECT 1 / (number - 150000::bigint) AS x FROM numbers(200000)";
    for sql in ["SELECT 1 AS a; SELECT nonsense", fails_late] {
        grouse_in(folder.path(), &["-o", "out.csv", sql]).failed(1);
        assert_eq!(files_in(folder.path()), ["out.csv"]);
        assert_eq!(
            fs::read_to_string(folder.path().join("out.csv")).unwrap(),
            "old"
        );
    }
    grouse_in(folder.path(), &["-o", "out.csv", "SELECT 1 AS a"]).succeeded();
    assert_eq!(
        fs::read_to_string(folder.path().join("out.csv")).unwrap(),
        "a\n1\n"
    );
}

#[test]
fn a_binary_file_holds_one_result() {
    let folder = tempfile::tempdir().unwrap();
    for sql in [
        "SELECT 1 AS a; SELECT 2 AS a",
        "CREATE TABLE t AS SELECT 1 AS a",
    ] {
        let message = grouse_in(folder.path(), &["-o", "out.parquet", sql]).failed(1);
        assert!(message.contains("one"), "{message}");
        assert_eq!(files_in(folder.path()), [""; 0]);
    }
    let both = "CREATE TABLE t AS SELECT 1 AS a; SELECT a, count(*) FROM t GROUP BY a";
    grouse_in(folder.path(), &["-o", "out.parquet", both]).succeeded();
}

#[test]
fn a_link_to_a_file_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (
        folder.path().join("real.csv"),
        folder.path().join("link.csv"),
    );
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    grouse_in(folder.path(), &["-o", "link.csv", "SELECT 1 AS a"]).succeeded();
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n1\n");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_device_is_written_in_place() {
    assert_eq!(
        grouse(&["-o", "/dev/stdout", "--format", "csv", "SELECT 1 AS a"]).succeeded(),
        "a\n1\n"
    );
    grouse(&["-o", "/dev/null", "SELECT 1 AS a"]).succeeded();
    let full = grouse(&["-o", "/dev/full", "SELECT 1 AS a"]).failed(1);
    assert!(full.contains("cannot write"), "{full}");
}

#[test]
fn a_reader_that_leaves_ends_the_query_quietly() {
    for format in [
        "csv", "ndjson", "json", "arrow", "parquet", "markdown", "tsv",
    ] {
        let mut command = command(&[
            "--format",
            format,
            "SELECT number FROM numbers(1000000000000)",
        ]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        if format != "parquet" {
            stdout.read_exact(&mut [0; 1000]).unwrap();
        }
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), message.as_ref()),
            (Some(0), ""),
            "{format}"
        );
    }
}

#[test]
fn an_ending_that_no_format_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["out.xlsx", "out.csv.bz2", "out.parquet.gz"] {
        let message = grouse_in(folder.path(), &["-o", file, "SELECT 1 AS a"]).failed(2);
        assert!(message.contains(file), "{message}");
    }
    assert_eq!(files_in(folder.path()), [""; 0]);
}

#[test]
fn compressed_results_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let write = "SELECT number AS n FROM numbers(20000)";
    for file in ["a.csv.gz", "a.csv.zst", "a.ndjson.gz"] {
        grouse_in(folder.path(), &["-o", file, write]).succeeded();
        let read = format!("SELECT count(*) AS c, sum(n) AS s FROM '{file}'");
        let found = grouse_in(folder.path(), &["--format", "csv", &read]).succeeded();
        assert_eq!(found, "c,s\n20000,199990000\n", "{file}");
    }
}

#[test]
fn copy_streams_to_standard_output_and_into_pipes() {
    let sql = "COPY (SELECT number AS n FROM numbers(3) ORDER BY n) TO '/dev/stdout'";
    let shown = grouse(&[sql]).stdout;
    assert!(shown.contains("n\n0\n1\n2\n"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    let rows = "SELECT number AS n FROM numbers(3000000)";
    let sql = format!("COPY ({rows}) TO '{}' (FORMAT csv)", pipe.display());
    assert_eq!(grouse(&[&sql]).code, Some(0));
    assert_eq!(reader.join().unwrap().lines().count(), 3_000_001);
}

#[test]
fn copy_writes_on_where_standard_output_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.txt");
    let sql = "SELECT 1 AS a; COPY (SELECT 2 AS b) TO '/dev/stdout'; SELECT 3 AS c";
    let mut command = command(&["--format", "csv", sql]);
    let status = command.stdout(fs::File::create(&file).unwrap()).status();
    assert!(status.unwrap().success());
    let text = fs::read_to_string(&file).unwrap();
    let starts = ["a\n1\n", "b\n2\n", "c\n3\n"].map(|part| text.find(part));
    assert!(
        starts.iter().all(Option::is_some) && starts.is_sorted(),
        "{text}"
    );
}

#[test]
fn the_temporary_name_is_random_and_the_mode_stays() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.csv");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    grouse_in(folder.path(), &["-o", "out.csv", "SELECT 1 AS a"]).succeeded();
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode, files_in(folder.path())),
        (0o600, vec!["out.csv".to_string()])
    );
}
