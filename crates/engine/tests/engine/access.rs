//! Sessions that reach only some files and no address, and every way that leads around that.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use grouse::{Audience, Error, Session, SessionOptions};
use tempfile::TempDir;

use crate::support::{rows, run, write_parquet};

/// A folder `in` that sessions may reach, and `out` that they may not; links lead from one to the other.
struct Folders(TempDir);

impl Folders {
    fn new() -> Folders {
        let root = tempfile::tempdir().unwrap();
        for folder in ["in", "out"] {
            let folder = root.path().join(folder);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("a.csv"), "x\n1\n2\n").unwrap();
            std::fs::write(folder.join("a.json"), "{\"x\":1}\n").unwrap();
            let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
            let batch = RecordBatch::try_from_iter([("x", numbers)]).unwrap();
            write_parquet(&folder.join("a.parquet"), &batch);
        }
        for (to, at) in [
            ("out", "in/folder"),
            ("out/a.csv", "in/link.csv"),
            ("out/a.parquet", "in/link.parquet"),
            ("out/new.csv", "in/dangling.csv"),
        ] {
            symlink(root.path().join(to), root.path().join(at)).unwrap();
        }
        Folders(root)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// A session that reaches `in`.
    fn session(&self) -> Session {
        let mut options = SessionOptions::default();
        options.close();
        options.threads = 2;
        options.allowed_directories = vec![self.0.path().join("in")];
        Session::new(options).unwrap()
    }

    /// The statement with `$in` and `$out` as the folders.
    fn written(&self, sql: &str) -> String {
        sql.replace("$in", &self.path("in"))
            .replace("$out", &self.path("out"))
    }
}

fn closed() -> Session {
    let mut options = SessionOptions::default();
    options.close();
    Session::new(options).unwrap()
}

fn refused(session: &Session, sql: &str, option: &str) -> String {
    let error = run(session, sql).expect_err(sql);
    let text = error.to_string();
    assert!(text.contains(option), "{sql}: {text}");
    assert!(!matches!(error.kind(), Error::Internal(_)), "{sql}: {text}");
    text
}

#[test]
fn files_of_allowed_folders_are_read_and_written() {
    let folders = Folders::new();
    let session = folders.session();
    for (sql, expected) in [
        ("SELECT sum(x) FROM '$in/a.csv'", "3"),
        ("SELECT sum(x) FROM '$in/a.parquet'", "3"),
        ("SELECT sum(x) FROM '$in/./../in/a*.json'", "1"),
        (
            "SELECT sum(x) FROM read_csv(['$in/a.csv', '$in/a.csv'])",
            "6",
        ),
        ("SELECT sum(x) FROM 'file://$in/a.csv'", "3"),
    ] {
        assert_eq!(rows(&session, &folders.written(sql)), [expected], "{sql}");
    }
    for sql in [
        "COPY (SELECT 7 AS x) TO '$in/new/b.csv'",
        "COPY (SELECT 7 AS x, 'a/../b' AS k) TO '$in/parts' (FORMAT parquet, PARTITION_BY (k))",
        "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '$in/a.csv' OPTIONS ('format.has_header' 'true')",
        "CREATE VIEW v AS SELECT * FROM '$in/new/b.csv'",
    ] {
        run(&session, &folders.written(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(rows(&session, "SELECT x FROM v"), ["7"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM e"), ["2"]);
    assert_eq!(
        rows(&session, &folders.written("SELECT k FROM '$in/parts'")),
        ["a/../b"]
    );
}

#[test]
fn no_statement_leads_out_of_an_allowed_folder() {
    let folders = Folders::new();
    let session = folders.session();
    run(&session, "CREATE TABLE c (x INT)").unwrap();
    for sql in [
        "SELECT * FROM '$out/a.csv'",
        "SELECT * FROM '$out/missing.csv'",
        "SELECT * FROM '$in/../out/a.csv'",
        "SELECT * FROM '$in/folder/a.csv'",
        "SELECT * FROM '$in/folder/a.parquet'",
        "SELECT * FROM '$in/folder/'",
        "SELECT * FROM '$in/link.csv'",
        "SELECT * FROM '$in/link.parquet'",
        "SELECT * FROM '$in/link*'",
        "SELECT * FROM '$in/*/a.csv'",
        "SELECT * FROM '$in/*/../a.csv'",
        "SELECT * FROM '$in/missing/../../out/a.csv'",
        "SELECT * FROM 'file://$out/a.csv'",
        "SELECT * FROM read_csv('$out/a.csv')",
        "COPY c FROM '$out/a.csv'",
        "SELECT * FROM read_csv(['$in/a.csv', '$out/a.csv'])",
        "SELECT * FROM read_json('$out/a.json')",
        "SELECT * FROM read_parquet('$out/a.parquet')",
        "SELECT * FROM sniff_csv('$out/a.csv')",
        "DESCRIBE '$out/a.parquet'",
        "SUMMARIZE '$out/a.parquet'",
        "EXPLAIN SELECT * FROM '$out/a.parquet'",
        "CREATE VIEW w AS SELECT * FROM '$out/a.csv'",
        "CREATE TABLE w AS SELECT * FROM '$out/a.csv'",
        "CREATE EXTERNAL TABLE w STORED AS PARQUET LOCATION '$out/a.parquet'",
        "CREATE EXTERNAL TABLE w STORED AS PARQUET LOCATION 'file://$out/'",
        "CREATE EXTERNAL TABLE w STORED AS PARQUET LOCATION 'FILE://$out/a.parquet'",
        "CREATE UNBOUNDED EXTERNAL TABLE w (x INT) STORED AS CSV LOCATION '$out/a.csv'",
        "COPY (SELECT 1 AS x) TO '$out/b.csv'",
        "COPY (SELECT 1 AS x) TO '$out/a.csv'",
        "COPY (SELECT 1 AS x) TO '$in/folder/b.csv'",
        "COPY (SELECT 1 AS x) TO '$in/link.csv'",
        "COPY (SELECT 1 AS x) TO '$in/dangling.csv'",
        "COPY (SELECT 1 AS x) TO '$in/../out/b.csv'",
        "COPY (SELECT 1 AS x) TO '$in/deep/../../out/b.csv'",
        "COPY (SELECT 1 AS x, 2 AS k) TO '$out/parts' (FORMAT csv, PARTITION_BY (k))",
        "COPY (SELECT 1 AS x) TO '/dev/stdout' (FORMAT csv)",
        "SELECT * FROM read_csv('/dev/stdin')",
        "SELECT * FROM read_csv('/dev/fd/0')",
        "SELECT * FROM read_csv('/proc/self/environ')",
        "SELECT * FROM read_json('/proc/self/fd/0')",
        "SELECT * FROM '~/x.csv'",
    ] {
        refused(&session, &folders.written(sql), "allowed_directories");
    }
    let written: Vec<String> = std::fs::read_dir(folders.0.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(written.len(), 3, "{written:?}");
    assert_eq!(
        rows_of_file(&folders.0.path().join("out/a.csv")),
        "x\n1\n2\n"
    );
}

/// What is under way is in the folder, too, where nothing around it is reached.
#[test]
fn files_are_put_into_an_allowed_folder_itself() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("only");
    std::fs::create_dir(&folder).unwrap();
    let mut options = SessionOptions::default();
    options.close();
    options.allowed_directories = vec![folder.clone()];
    let session = Session::new(options).unwrap();
    let copy = |number: i64, how: &str| {
        format!(
            "COPY (SELECT {number} AS x, 'a' AS k) TO '{}' (FORMAT csv, PARTITION_BY (k){how})",
            folder.display()
        )
    };
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    run(&session, &copy(1, "")).unwrap();
    run(&session, &copy(2, ", APPEND")).unwrap();
    refused(&session, &copy(3, ", OVERWRITE"), "OVERWRITE_OR_IGNORE");
    run(&session, &copy(4, ", OVERWRITE_OR_IGNORE")).unwrap();
    assert_eq!(names(&folder), ["k=a"]);
    assert_eq!(names(root.path()), ["only"]);
    let of_files = format!(
        "SELECT min(x), max(x) FROM '{}/k=a/*.csv'",
        folder.display()
    );
    assert_eq!(rows(&session, &of_files), ["2|4"]);
}

fn rows_of_file(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The name of a file in a folder may not lead out of it, whatever its ending is.
#[test]
fn endings_of_files_stay_in_the_folder() {
    let folders = Folders::new();
    let session = folders.session();
    let copy = "COPY (SELECT 1 AS x, 2 AS k) TO '$in/parts' (FORMAT csv, PARTITION_BY (k), FILE_EXTENSION '/../../../out/evil')";
    assert!(run(&session, &folders.written(copy)).is_err());
    assert!(!folders.0.path().join("out/evil").exists());
}

#[test]
fn a_link_that_is_made_later_is_seen() {
    let folders = Folders::new();
    let session = folders.session();
    let (csv, query) = (
        folders.0.path().join("in/a.csv"),
        folders.written("SELECT sum(x) FROM '$in/a.csv'"),
    );
    run(
        &session,
        &folders.written("CREATE VIEW v AS SELECT * FROM '$in/a.csv'"),
    )
    .unwrap();
    let external = "CREATE EXTERNAL TABLE e (x INT) STORED AS CSV LOCATION '$in/a.csv' OPTIONS ('format.has_header' 'true')";
    run(&session, &folders.written(external)).unwrap();
    assert_eq!(rows(&session, &query), ["3"]);
    std::fs::remove_file(&csv).unwrap();
    symlink(folders.0.path().join("out/a.csv"), &csv).unwrap();
    for sql in [query.as_str(), "SELECT * FROM v", "SELECT * FROM e"] {
        refused(&session, sql, "allowed_directories");
    }
}

#[test]
fn what_was_planned_before_a_session_closes_is_refused_then() {
    let folders = Folders::new();
    let session = Session::new(SessionOptions::default()).unwrap();
    for sql in [
        "CREATE VIEW v AS SELECT * FROM '$out/a.csv'",
        "CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '$out/a.parquet'",
        "CREATE UNBOUNDED EXTERNAL TABLE u (x INT) STORED AS CSV LOCATION '$out/a.csv'",
        "PREPARE p AS SELECT * FROM '$out/a.parquet'",
    ] {
        run(&session, &folders.written(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let planned = session.handle().block_on(
        session.query(&folders.written("SELECT x, count(*) FROM '$out/a.parquet' GROUP BY x")),
    );
    run(&session, "SET allow_files = off").unwrap();
    for sql in [
        "SELECT * FROM v",
        "SELECT * FROM e",
        "SELECT * FROM u",
        "INSERT INTO u VALUES (1)",
        "EXECUTE p",
    ] {
        refused(&session, sql, "allow_files");
    }
    let batches = session.handle().block_on(async {
        use futures::TryStreamExt;
        let stream = planned.unwrap().execute()?;
        stream.try_collect::<Vec<_>>().await.map_err(Error::from)
    });
    assert!(batches.unwrap_err().to_string().contains("allow_files"));
    assert_eq!(rows(&session, "SELECT 1"), ["1"]);
}

#[test]
fn a_closed_session_reaches_no_address() {
    let session = closed();
    for address in [
        "http://127.0.0.1:9/x.csv",
        "https://127.0.0.1:9/x.parquet",
        "s3://bucket/x.csv",
        "s3a://bucket/x.csv",
        "gs://bucket/x.csv",
        "az://container/x.csv",
        "abfss://container@account.dfs.core.windows.net/x.csv",
        "hf://datasets/owner/name/x.csv",
    ] {
        for sql in [
            format!("SELECT * FROM '{address}'"),
            format!("SELECT * FROM read_csv('{address}')"),
            format!("CREATE EXTERNAL TABLE w STORED AS CSV LOCATION '{address}'"),
        ] {
            let text = refused(&session, &sql, "allow_network");
            assert!(text.contains(address), "{text}");
        }
    }
    let copy = "COPY (SELECT 1 AS x) TO 's3://bucket/x.csv'";
    refused(&session, copy, "allow_network");
    refused(&session, "SELECT * FROM 'x.csv'", "allow_files");
}

#[test]
fn a_locked_session_keeps_its_options() {
    let session = closed();
    for sql in [
        "SET threads = 1",
        "SET lock_options = off",
        "RESET lock_options",
        "SET allow_files = on",
        "RESET allow_network",
        "SET allowed_directories = '/'",
        "SET temp_directory = '/tmp/grouse-not-made'",
        "SET memory_limit = 'unlimited'",
        "SET s3_endpoint = 'http://127.0.0.1:9'",
        "SET \"grouse\".threads = 1",
        "SET TIME ZONE 'Europe/Berlin'",
        "SET datafusion.execution.batch_size = 1",
        "RESET datafusion.execution.batch_size",
        "SET group_by_fault = 'write:1'",
    ] {
        assert!(run(&session, sql).is_err(), "{sql}");
    }
    let mut options = SessionOptions::default();
    options.close();
    assert_eq!(session.options(), options);
    assert!(!Path::new("/tmp/grouse-not-made").exists());
    assert_eq!(
        rows(&session, "SHOW allow_files"),
        ["grouse.allow_files|off"]
    );
}

#[test]
fn options_of_tests_are_for_tests() {
    let session = Session::new(SessionOptions::default()).unwrap();
    for name in ["group_by_table", "group_by_fault", "grouse.group_by_sizes"] {
        let error = run(&session, &format!("SET {name} = 'row'")).unwrap_err();
        assert!(error.to_string().contains("for tests"), "{error}");
    }
    let session = Session::new(SessionOptions {
        settable: Audience::Test,
        ..Default::default()
    });
    run(&session.unwrap(), "SET group_by_table = 'row'").unwrap();
}

#[test]
fn a_folder_that_is_not_there_cannot_be_allowed() {
    let options = SessionOptions {
        allowed_directories: vec!["/no/such/folder".into()],
        ..Default::default()
    };
    let error = Session::new(options).unwrap_err().to_string();
    assert!(
        error.contains("allowed_directories") && error.contains("/no/such/folder"),
        "{error}"
    );
}
