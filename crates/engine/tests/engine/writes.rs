//! COPY and INSERT into files: whole or not at all, in every format, for every failure; options; files into tables.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{error, rows, run, session};
use futures::StreamExt;
use grouse::{Error, Session};

/// Endings of all formats, with what they read back as.
const FILES: [&str; 12] = [
    "a.csv",
    "a.tsv",
    "a.txt",
    "a.json",
    "a.ndjson",
    "a.jsonl",
    "a.parquet",
    "a.arrow",
    "a.ipc",
    "a.feather",
    "a.csv.gz",
    "a.json.zst",
];

/// Fails at a late row, when much has been written.
const FAILS_LATE: &str =
    "SELECT number AS n, 10 / (number::BIGINT - 900000) AS x FROM numbers(1000000)";

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// All files below a folder.
fn tree(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for name in names(folder) {
        let path = folder.join(&name);
        match path.is_dir() {
            true => files.extend(tree(&path).iter().map(|below| format!("{name}/{below}"))),
            false => files.push(name),
        }
    }
    files
}

fn copy(session: &Session, query: &str, target: &str, options: &str) {
    let sql = format!("COPY ({query}) TO '{target}' {options}");
    run(session, &sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[test]
fn every_ending_is_written_in_its_format_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let query = "SELECT number AS n, 'v' || number AS s FROM numbers(20000)";
    for name in FILES {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        let counted = rows(&session, &format!("COPY ({query}) TO '{path}'"));
        assert_eq!(counted, ["20000"], "{name}");
        let from = match name {
            "a.txt" => format!("read_csv('{path}')"),
            _ => format!("'{path}'"),
        };
        let sums = format!("SELECT count(*), sum(n), count(DISTINCT s) FROM {from}");
        assert_eq!(rows(&session, &sums), ["20000|199990000|20000"], "{name}");
    }
    assert_eq!(names(folder.path()).len(), FILES.len());
}

#[test]
fn an_ending_that_no_format_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    for (name, part) in [("out.xlsx", ".xlsx"), ("out", "ending"), ("out.md", "-o")] {
        let path = folder.path().join(name);
        let failure = error(
            &session,
            &format!("COPY (SELECT 1 AS a) TO '{}'", path.display()),
        );
        assert!(failure.to_string().contains(part), "{failure}");
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_query_that_fails_leaves_the_old_file_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    for name in FILES {
        let path = folder.path().join(name);
        fs::write(&path, "old").unwrap();
        let sql = format!("COPY ({FAILS_LATE}) TO '{}'", path.display());
        assert_eq!(error(&session, &sql), Error::DivideByZero, "{name}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old", "{name}");
        fs::remove_file(&path).unwrap();
        assert_eq!(error(&session, &sql), Error::DivideByZero, "{name}");
        assert_eq!(names(folder.path()), [""; 0], "{name}");
    }
}

#[test]
fn a_folder_appears_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let target = folder.path().join("parts");
    let path = target.to_str().unwrap();
    let options = "(FORMAT parquet, PARTITION_BY (k))";
    let failing = format!("COPY (SELECT n % 3 AS k, x FROM ({FAILS_LATE})) TO '{path}' {options}");
    assert_eq!(error(&session, &failing), Error::DivideByZero);
    assert_eq!(names(folder.path()), [""; 0]);
    copy(
        &session,
        "SELECT number % 3 AS k, number AS n FROM numbers(90)",
        path,
        options,
    );
    assert_eq!(names(&target), ["k=0", "k=1", "k=2"]);
    let sums = format!("SELECT k, count(*), sum(n) FROM '{path}' GROUP BY k ORDER BY k");
    assert_eq!(
        rows(&session, &sums),
        ["0|30|1305", "1|30|1335", "2|30|1365"]
    );
    assert_eq!(
        error(&session, &failing.replace("(FORMAT", "(OVERWRITE, FORMAT")),
        Error::DivideByZero
    );
    assert_eq!(
        rows(&session, &sums),
        ["0|30|1305", "1|30|1335", "2|30|1365"]
    );
    assert_eq!(names(folder.path()), ["parts"]);
}

#[test]
fn what_happens_to_a_folder_that_exists_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let target = folder.path().join("parts");
    let path = target.to_str().unwrap();
    let query = |k: i32| format!("SELECT {k} AS k, 1 AS n");
    copy(&session, &query(1), path, "(FORMAT csv, PARTITION_BY (k))");
    let again = format!(
        "COPY ({}) TO '{path}' (FORMAT csv, PARTITION_BY (k))",
        query(1)
    );
    assert!(error(&session, &again).to_string().contains("OVERWRITE"));
    copy(
        &session,
        &query(1),
        path,
        "(FORMAT csv, PARTITION_BY (k), APPEND)",
    );
    assert_eq!(tree(&target).len(), 2);
    copy(
        &session,
        &query(1),
        path,
        "(FORMAT csv, PARTITION_BY k, OVERWRITE_OR_IGNORE)",
    );
    assert_eq!(tree(&target).len(), 2);
    copy(
        &session,
        &query(2),
        path,
        "(FORMAT csv, PARTITION_BY (K), OVERWRITE true)",
    );
    assert_eq!(tree(&target), ["k=2/data_0.csv"]);
    let pattern =
        "(FORMAT csv, PARTITION_BY (k), OVERWRITE, FILENAME_PATTERN 'p_{i}', FILE_EXTENSION 'txt')";
    copy(&session, &query(3), path, pattern);
    assert_eq!(tree(&target), ["k=3/p_0.txt"]);
}

#[test]
fn null_and_an_empty_string_have_folders_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let target = folder.path().join("parts");
    let values = "SELECT * FROM (VALUES (1, ''), (2, NULL), (3, 'a/b')) AS t(n, k)";
    copy(
        &session,
        values,
        target.to_str().unwrap(),
        "STORED AS CSV PARTITIONED BY (k)",
    );
    assert_eq!(
        names(&target),
        ["k=", "k=__HIVE_DEFAULT_PARTITION__", "k=a%2Fb"]
    );
    let all = format!(
        "COPY (SELECT 1 AS k) TO '{}2' (FORMAT csv, PARTITION_BY (k))",
        target.display()
    );
    assert!(
        error(&session, &all)
            .to_string()
            .contains("WRITE_PARTITION_COLUMNS")
    );
    copy(
        &session,
        "SELECT 1 AS k",
        &format!("{}2", target.display()),
        "(FORMAT csv, PARTITION_BY (k), WRITE_PARTITION_COLUMNS)",
    );
}

#[test]
fn folders_that_are_missing_are_made_and_days_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let file = format!("{}/new/deep/x.csv", folder.path().display());
    copy(&session, "SELECT 1 AS a", &file, "");
    assert_eq!(rows(&session, &format!("SELECT a FROM '{file}'")), ["1"]);
    // A day in 64 bits has a time for Arrow, but not for the names of folders.
    let parts = format!("{}/days", folder.path().display());
    let query = "SELECT 1 AS a, arrow_cast(DATE '2024-09-02', 'Date64') AS day";
    copy(&session, query, &parts, "(FORMAT csv, PARTITION_BY (day))");
    assert_eq!(names(Path::new(&parts)), ["day=2024-09-02"]);
}

#[test]
fn a_dropped_query_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    for target in ["a.csv", "b.parquet", "c"] {
        let options = match target {
            "c" => "(FORMAT csv, PARTITION_BY (k))",
            _ => "",
        };
        let sql = format!(
            "COPY (SELECT number % 7 AS k, number FROM numbers(100000000000)) TO '{}' {options}",
            folder.path().join(target).display()
        );
        let stream = session.handle().block_on(async {
            let query = session.query(&sql).await.unwrap();
            let mut stream = query.execute().unwrap();
            let waited = tokio::time::timeout(std::time::Duration::from_millis(300), stream.next());
            assert!(waited.await.is_err(), "{target}");
            stream
        });
        assert_eq!(names(folder.path()).len(), 1, "{target}");
        drop(stream);
        // At once: the process may end now.
        assert_eq!(names(folder.path()), [""; 0], "{target}");
    }
}

#[test]
fn the_mode_of_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.csv");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    copy(&session, "SELECT 1 AS a", path.to_str().unwrap(), "");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_full_disk_says_so_and_names_the_file() {
    let session = session();
    for options in ["", "(FORMAT parquet)", "(FORMAT json)"] {
        let sql = format!("COPY (SELECT number FROM numbers(100)) TO '/dev/full' {options}");
        let Error::Io { path, message } = error(&session, &sql) else {
            panic!("{options}");
        };
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("/dev/full", "the disk is full")
        );
    }
}

#[test]
fn options_of_csv() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.csv");
    let query = "SELECT DATE '2024-03-01' AS d, TIMESTAMP '2024-03-01 10:00:00' AS t, 'a;b' AS s, NULL::INT AS n, '' AS e, [1, NULL] AS l";
    for (options, expected) in [
        (
            "",
            "d,t,s,n,e,l\n2024-03-01,2024-03-01 10:00:00,a;b,,\"\",\"[1,null]\"\n",
        ),
        (
            "(HEADER false, DELIMITER ';', NULL 'NA', DATEFORMAT '%d.%m.%Y', TIMESTAMPFORMAT '%H:%M')",
            "01.03.2024;10:00;\"a;b\";NA;\"\";[1,null]\n",
        ),
        (
            "(FORMAT csv, FORCE_QUOTE (D, n, s))",
            "\"d\",t,\"s\",\"n\",e,l\n\"2024-03-01\",2024-03-01 10:00:00,\"a;b\",,\"\",\"[1,null]\"\n",
        ),
        (
            "WITH (FORMAT csv, HEADER, QUOTE '''', DELIM '\\t', FORCE_QUOTE *)",
            "'d'\t't'\t's'\t'n'\t'e'\t'l'\n'2024-03-01'\t'2024-03-01 10:00:00'\t'a;b'\t\t''\t'[1,null]'\n",
        ),
    ] {
        copy(&session, query, path.to_str().unwrap(), options);
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{options}");
    }
    copy(
        &session,
        "SELECT 1 AS a WHERE false",
        path.to_str().unwrap(),
        "",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");
}

#[test]
fn json_says_what_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.json");
    copy(
        &session,
        "SELECT 1 AS a, NULL::INT AS b",
        path.to_str().unwrap(),
        "",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1,\"b\":null}\n");
}

#[test]
fn intervals_come_back_from_json() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.json");
    let query = "SELECT INTERVAL '1 month 2 days 00:00:01.5' AS i, TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS d, {'x': INTERVAL '1 day'} AS s";
    copy(&session, query, path.to_str().unwrap(), "");
    let expected = "{\"i\":\"1 mon 2 days 00:00:01.5\",\"d\":\"1 day\",\"s\":{\"x\":\"1 day\"}}\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let sql = format!(
        "SELECT d::INTERVAL = INTERVAL '1 day', i::INTERVAL > INTERVAL '1 month' FROM '{}'",
        path.display()
    );
    assert_eq!(rows(&session, &sql), ["true|true"]);
}

#[test]
fn json_is_an_array_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (query, expected) in [
        ("SELECT 1 AS a WHERE false", "[]\n"),
        ("SELECT 'x\ny' AS a", "[\n{\"a\":\"x\\ny\"}\n]\n"),
        (
            "VALUES (1), (2)",
            "[\n{\"column1\":1},\n{\"column1\":2}\n]\n",
        ),
    ] {
        let path = file("a.json");
        copy(&session, query, &path, "(ARRAY true)");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{query}");
    }
    let numbers = "SELECT number AS n, number % 3 AS k FROM numbers(50000)";
    copy(&session, numbers, &file("b.json"), "(ARRAY true)");
    let options = "(FORMAT json, ARRAY true, PARTITION_BY (k))";
    copy(&session, numbers, &file("c"), options);
    for from in [file("b.json"), file("c/**/*.json")] {
        let sql = format!("SELECT count(*), sum(n), count(DISTINCT n) FROM '{from}'");
        assert_eq!(rows(&session, &sql), ["50000|1249975000|50000"], "{from}");
    }
}

// NaN was written as null, bytes as digits that no cast reads.
#[test]
fn text_has_every_value() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let query = r"SELECT * FROM (VALUES ('nan'::DOUBLE, '\x00\xFFa\x5c\x22'::BLOB), ('-inf'::DOUBLE, ''::BLOB), (0.1, NULL)) t(x, b)";
    for name in ["a.json", "a.csv"] {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        copy(&session, query, path, "");
        let sql = format!("SELECT x, hex(b::BLOB) FROM '{path}'");
        // An empty string of CSV is NULL, whether it has quotes or not.
        let empty = if name == "a.json" { "" } else { "NULL" };
        let expected = ["NaN|00FF615C22", &format!("-inf|{empty}"), "0.1|NULL"];
        assert_eq!(rows(&session, &sql), expected, "{name}");
    }
}

#[test]
fn options_of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.parquet");
    copy(
        &session,
        "SELECT number AS \"N\", number::VARCHAR AS s FROM numbers(10000)",
        path.to_str().unwrap(),
        "(ROW_GROUP_SIZE 2000, COMPRESSION zstd, COMPRESSION_LEVEL 9, compression::n snappy, STATISTICS none)",
    );
    let file = fs::File::open(&path).unwrap();
    let reader = datafusion::parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let metadata = datafusion::parquet::file::reader::FileReader::metadata(&reader);
    assert_eq!(metadata.num_row_groups(), 5);
    let codec = |column: usize| {
        metadata
            .row_group(0)
            .column(column)
            .compression()
            .to_string()
    };
    assert!(codec(0).starts_with("SNAPPY"), "{}", codec(0));
    assert!(codec(1).starts_with("ZSTD"), "{}", codec(1));
    assert!(metadata.row_group(0).column(1).statistics().is_none());
}

#[test]
fn an_option_that_is_not_understood_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.csv");
    for (options, part) in [
        ("(HEADR true)", "header"),
        ("(ROW_GROUP_SIZE 5)", "row_group_size"),
        ("(DELIMITER 'ab')", "one ASCII character"),
        ("(HEADER maybe)", "true or false"),
        ("(FORMAT xlsx)", "parquet"),
        ("(PARTITION_BY (nothing))", "folder"),
    ] {
        let sql = format!("COPY (SELECT 1 AS a) TO '{}' {options}", path.display());
        let failure = error(&session, &sql).to_string();
        assert!(
            failure.to_lowercase().contains(&part.to_lowercase()),
            "{options}: {failure}"
        );
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn tables_and_columns_are_copied_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    rows(&session, "CREATE TABLE t AS SELECT 1 AS a, 2 AS b, 3 AS c");
    let path = folder.path().join("a.csv");
    for (source, expected) in [
        ("t", "a,b,c\n1,2,3\n"),
        ("t (c, a)", "c,a\n3,1\n"),
        ("T", "a,b,c\n1,2,3\n"),
    ] {
        run(&session, &format!("COPY {source} TO '{}'", path.display())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
    let copied = folder.path().join("b.csv");
    run(
        &session,
        &format!("COPY '{}' TO '{}'", path.display(), copied.display()),
    )
    .unwrap();
    assert_eq!(fs::read_to_string(&copied).unwrap(), "a,b,c\n1,2,3\n");
}

#[test]
fn a_file_is_copied_into_a_table_by_the_names_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("a.json"), "{\"b\":\"x\",\"a\":1}\n").unwrap();
    copy(&session, "SELECT 'y' AS b, 2 AS a", &path("a.parquet"), "");
    rows(&session, "CREATE TABLE t (a INT, b VARCHAR)");
    for name in ["a.json", "a.parquet"] {
        run(&session, &format!("COPY t FROM '{}'", path(name))).unwrap();
    }
    run(&session, &format!("COPY t (b) FROM '{}'", path("a.json"))).unwrap();
    assert_eq!(
        rows(&session, "SELECT * FROM t ORDER BY a, b"),
        ["1|x", "2|y", "NULL|x"]
    );
    let wrong = format!("COPY t FROM '{}' (OVERWRITE)", path("a.json"));
    assert!(error(&session, &wrong).to_string().contains("COPY"));
}

#[test]
fn insert_into_a_folder_of_files_is_whole_too() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("t");
    fs::create_dir(&path).unwrap();
    rows(
        &session,
        &format!(
            "CREATE EXTERNAL TABLE t (n BIGINT, x BIGINT) STORED AS PARQUET LOCATION '{}/'",
            path.display()
        ),
    );
    assert_eq!(
        error(&session, &format!("INSERT INTO t {FAILS_LATE}")),
        Error::DivideByZero
    );
    assert_eq!(names(&path), [""; 0]);
    run(&session, "INSERT INTO t VALUES (1, 2)").unwrap();
    run(&session, "INSERT INTO t VALUES (3, 4)").unwrap();
    assert_eq!(names(&path).len(), 2);
    assert_eq!(rows(&session, "SELECT sum(n), sum(x) FROM t"), ["4|6"]);
}

#[test]
fn a_file_can_be_replaced_by_what_is_read_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = folder.path().join("a.csv");
    let path = path.to_str().unwrap();
    copy(
        &session,
        "SELECT number AS n FROM numbers(100000)",
        path,
        "",
    );
    copy(
        &session,
        &format!("SELECT n + 1 AS n FROM '{path}'"),
        path,
        "",
    );
    assert_eq!(
        rows(&session, &format!("SELECT count(*), min(n) FROM '{path}'")),
        ["100000|1"]
    );
}
