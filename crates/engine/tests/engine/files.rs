//! Files in FROM: every format, from disk, web servers and buckets, and what happens when they are bad.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::support::server::serve;
use crate::support::{error, rows, run, sample, session, write_parquet};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::ipc;
use grouse::{Error, Session};
use tempfile::TempDir;

const SUMS: &str = "SELECT count(*), sum(id), min(name), max(name) FROM";
const SAMPLE_SUMS: &str = "3|6|a|c";

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn write(folder: &TempDir, name: &str, content: &[u8]) -> String {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_string()
}

/// The sample in every format that we read, by file name.
fn samples(folder: &TempDir) -> Vec<String> {
    let csv = b"id,name\n1,a\n2,b\n3,c\n";
    let json = b"{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\"}\n{\"id\":3,\"name\":\"c\"}\n";
    let array =
        b" [{\"id\":1,\"name\":\"a\"}, {\"id\":2,\"name\":\"b\"},\n {\"id\":3,\"name\":\"c\"}]";
    let batch = sample();
    let parquet = folder.path().join("s.parquet");
    write_parquet(&parquet, &batch);
    let mut file = Vec::new();
    let mut writer = ipc::writer::FileWriter::try_new(&mut file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let mut stream = Vec::new();
    let mut writer = ipc::writer::StreamWriter::try_new(&mut stream, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    vec![
        parquet.to_str().unwrap().to_string(),
        write(folder, "s.csv", csv),
        write(folder, "s.tsv", b"id\tname\n1\ta\n2\tb\n3\tc\n"),
        write(folder, "s.ndjson", json),
        write(folder, "s.jsonl", json),
        write(folder, "array.json", array),
        write(folder, "s.arrow", &file),
        write(folder, "s.feather", &file),
        write(folder, "stream.arrows", &stream),
        compressed(folder, "s.csv", csv, "gz"),
        compressed(folder, "s.csv", csv, "zst"),
        compressed(folder, "s.json", json, "gz"),
        compressed(folder, "s.ndjson", json, "zst"),
    ]
}

/// Compressed by the engine itself through COPY, so that the test needs no compressor of its own.
fn compressed(folder: &TempDir, name: &str, content: &[u8], extension: &str) -> String {
    let plain = write(folder, &format!("plain-{extension}-{name}"), content);
    let target = folder.path().join(format!("{name}.{extension}"));
    let (format, compression) = match (name.ends_with(".csv"), extension) {
        (true, "gz") => ("CSV", "gzip"),
        (true, _) => ("CSV", "zstd"),
        (false, "gz") => ("JSON", "gzip"),
        (false, _) => ("JSON", "zstd"),
    };
    let sql = format!(
        "COPY (SELECT * FROM '{plain}') TO '{}' STORED AS {format} OPTIONS ('format.compression' '{compression}')",
        target.display()
    );
    run(&session(), &sql).unwrap();
    fs::remove_file(plain).unwrap();
    target.to_str().unwrap().to_string()
}

#[test]
fn every_format_from_disk() {
    let folder = folder();
    let session = session();
    for path in samples(&folder) {
        assert_eq!(
            rows(&session, &format!("{SUMS} '{path}'")),
            [SAMPLE_SUMS],
            "{path}"
        );
        // Once more from what the session remembers.
        assert_eq!(
            rows(&session, &format!("{SUMS} '{path}' AS t WHERE t.id > 0")),
            [SAMPLE_SUMS],
            "{path}"
        );
    }
}

#[test]
fn globs_and_folders() {
    let folder = folder();
    let session = session();
    for name in [
        "d/1.csv",
        "d/2.csv",
        "d/sub/3.csv",
        "d/_hidden.csv",
        "d/.x.csv",
    ] {
        write(&folder, name, b"id,name\n1,a\n2,b\n3,c\n");
    }
    write(&folder, "d/notes.txt", b"not data");
    let root = folder.path().display();
    let count = |from: &str| rows(&session, &format!("SELECT count(*) FROM {from}"));
    assert_eq!(count(&format!("'{root}/d/[12].csv'")), ["6"]);
    assert_eq!(count(&format!("'{root}/d/?.csv'")), ["6"]);
    assert_eq!(count(&format!("'{root}/*/sub/*.csv'")), ["3"]);
    assert_eq!(count(&format!("'{root}/d/**/?.csv'")), ["9"]);
    assert_eq!(count(&format!("'{root}/d'")), ["9"]);
    assert_eq!(count(&format!("'{root}/d/'")), ["9"]);
    assert_eq!(count(&format!("'file://{root}/d/1.csv'")), ["3"]);
    assert_eq!(
        count(&format!(
            "read_csv(['{root}/d/1.csv', '{root}/d/sub/3.csv'])"
        )),
        ["6"]
    );
    write(&folder, "d/4.csv", b"id,name\n4,d\n");
    assert_eq!(count(&format!("'{root}/d'")), ["10"], "a new file is seen");
    write(&folder, "d/5.parquet", b"");
    let mixed = error(&session, &format!("SELECT * FROM '{root}/d'")).to_string();
    assert!(
        mixed.contains("CSV") && mixed.contains("Parquet"),
        "{mixed}"
    );
}

#[test]
fn odd_names() {
    let folder = folder();
    let session = session();
    for name in [
        "a b.csv", "100%.csv", "x#y.csv", "ü.csv", "[1].csv", "a=b.csv",
    ] {
        let path = write(&folder, name, b"id\n7\n");
        assert_eq!(
            rows(&session, &format!("SELECT id FROM '{path}'")),
            ["7"],
            "{name}"
        );
    }
}

#[test]
fn csv_files_of_one_table_must_agree() {
    let folder = folder();
    let session = session();
    write(&folder, "1.csv", b"a,b\n1,2\n");
    write(&folder, "2.csv", b"a,b\n1.5,x\n");
    let sql = format!(
        "SELECT sum(a), max(b) FROM '{}/*.csv'",
        folder.path().display()
    );
    assert_eq!(rows(&session, &sql), ["2.5|x"]);
    write(&folder, "3.csv", b"b,a\n1,2\n");
    let error = error(&session, &sql);
    assert!(
        matches!(&error, Error::Format { path, .. } if path.ends_with("3.csv")),
        "{error:?}"
    );
}

#[test]
fn hive_folders_have_columns() {
    let folder = folder();
    let session = session();
    for (year, country) in [(2024, "de"), (2024, "fr"), (2025, "de")] {
        write(
            &folder,
            &format!("h/year={year}/country={country}/x.csv"),
            b"id\n1\n2\n",
        );
    }
    let root = folder.path().display();
    let sql = format!(
        "SELECT year, count(*) FROM '{root}/h' WHERE country = 'de' GROUP BY year ORDER BY year"
    );
    assert_eq!(rows(&session, &sql), ["2024|2", "2025|2"]);
    assert_eq!(
        rows(&session, &format!("SELECT max(year + 1) FROM '{root}/h'")),
        ["2026"]
    );
}

#[test]
fn files_of_one_table_may_have_different_columns() {
    let folder = folder();
    write_parquet(&folder.path().join("1.parquet"), &sample());
    write_parquet(
        &folder.path().join("2.parquet"),
        &sample().project(&[0]).unwrap(),
    );
    let sql = format!(
        "SELECT count(*), count(name), sum(id) FROM '{}/*.parquet'",
        folder.path().display()
    );
    assert_eq!(rows(&session(), &sql), ["6|3|12"]);
}

#[test]
fn functions_with_options() {
    let folder = folder();
    let session = session();
    let path = write(&folder, "x.txt", b"# comment\n1;'a;1';\n2;'b';5\n");
    let sql = format!(
        "SELECT column_1, column_2, column_3 FROM read_csv('{path}', header => false, delim => ';', quote => '''', comment => '#')"
    );
    assert_eq!(rows(&session, &sql), ["1|a;1|NULL", "2|b|5"]);
    let sql = format!(
        "SELECT count(*) FROM read_csv('{path}', delim = ';', quote = '''', header = false, comment = '#')"
    );
    assert_eq!(rows(&session, &sql), ["2"]);
    let sql = format!(
        "SELECT read_csv.column_1 FROM READ_CSV('{path}', delim := ';', quote := '''', header := false, comment := '#') LIMIT 1"
    );
    assert_eq!(rows(&session, &sql), ["1"]);
    for (arguments, part) in [
        ("", "path"),
        ("42 + 1", "path"),
        ("'x', nonsense => 1", "nonsense"),
        ("'x', delim => 'ab'", "delim"),
        ("'x', header => 'maybe'", "header"),
    ] {
        let error = error(&session, &format!("SELECT * FROM read_csv({arguments})"));
        assert!(
            matches!(error, Error::Invalid { .. }),
            "{arguments}: {error:?}"
        );
        assert!(error.to_string().contains(part), "{arguments}: {error}");
    }
}

#[test]
fn a_changed_file_is_read_again() {
    let folder = folder();
    let session = session();
    let path = write(&folder, "x.csv", b"a\n1\n");
    assert_eq!(rows(&session, &format!("SELECT a FROM '{path}'")), ["1"]);
    write(&folder, "x.csv", b"a,b\nlonger,2\n");
    assert_eq!(
        rows(&session, &format!("SELECT a, b FROM '{path}'")),
        ["longer|2"]
    );
    let path = folder.path().join("y.parquet");
    write_parquet(&path, &sample());
    let sql = format!("SELECT count(*) FROM '{}'", path.display());
    assert_eq!(rows(&session, &sql), ["3"]);
    write_parquet(&path, &sample().slice(0, 2));
    assert_eq!(rows(&session, &sql), ["2"]);
}

#[test]
fn quoted_line_ends_survive_parallel_reading() {
    let folder = folder();
    let session = session();
    run(
        &session,
        "SET datafusion.optimizer.repartition_file_min_size = 1",
    )
    .unwrap();
    run(&session, "SET threads = 7").unwrap();
    let mut content = b"id,text\n".to_vec();
    for id in 0..2000 {
        write!(content, "{id},\"line\n{id},\"\"x\"\"\n\"\n").unwrap();
    }
    let path = write(&folder, "x.csv", &content);
    let sql = format!("SELECT count(*), sum(id), count(DISTINCT text) FROM '{path}'");
    assert_eq!(rows(&session, &sql), ["2000|1999000|2000"]);
}

/// The error of reading `path` must be of the right kind and name the file.
#[track_caller]
fn check_bad(session: &Session, path: &str, parts: &[&str]) -> Error {
    let error = error(session, &format!("SELECT * FROM '{path}'"));
    assert!(
        matches!(
            error,
            Error::Io { .. } | Error::Format { .. } | Error::Invalid { .. }
        ),
        "{error:?}"
    );
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    for part in parts.iter().chain([&name]) {
        assert!(error.to_string().contains(part), "{error}");
    }
    error
}

#[test]
fn bad_files_are_typed_errors_that_name_them() {
    let folder = folder();
    let session = session();
    let root = folder.path().to_str().unwrap().to_string();
    check_bad(
        &session,
        &format!("{root}/missing.parquet"),
        &["does not exist"],
    );
    check_bad(
        &session,
        &format!("{root}/missing.csv.gz"),
        &["does not exist"],
    );
    check_bad(&session, &format!("{root}/*.nothing"), &["no file matches"]);
    check_bad(
        &session,
        &write(&folder, "x.unknown", b"abc"),
        &["extension", ".parquet"],
    );
    fs::create_dir(folder.path().join("empty")).unwrap();
    check_bad(&session, &format!("{root}/empty"), &["no data files"]);
    check_bad(
        &session,
        &write(&folder, "magic.parquet", &[b'x'; 1000]),
        &["bad file"],
    );
    check_bad(
        &session,
        &write(&folder, "tiny.parquet", b"PAR1"),
        &["bad file"],
    );
    check_bad(
        &session,
        &write(&folder, "zero.parquet", b""),
        &["bad file"],
    );
    check_bad(&session, &write(&folder, "zero.csv", b""), &["no columns"]);
    check_bad(
        &session,
        &write(&folder, "bad.arrow", b"no arrow file at all"),
        &["bad file"],
    );
    check_bad(
        &session,
        &write(&folder, "bad.json", b"{\"a\":1}\n{nonsense\n"),
        &["bad file"],
    );
    check_bad(
        &session,
        &write(&folder, "bad.csv.gz", b"not gzip"),
        &["bad file"],
    );
    let whole = folder.path().join("whole.parquet");
    write_parquet(&whole, &sample());
    let bytes = fs::read(&whole).unwrap();
    check_bad(
        &session,
        &write(&folder, "short.parquet", &bytes[..bytes.len() - 20]),
        &["bad file"],
    );
    let mut hollow = bytes.clone();
    hollow[4..100].fill(0xff);
    check_bad(
        &session,
        &write(&folder, "hollow.parquet", &hollow),
        &["bad file"],
    );
}

#[test]
fn a_parquet_file_without_columns_is_an_error() {
    let folder = folder();
    let path = folder.path().join("none.parquet");
    write_parquet(&path, &RecordBatch::new_empty(Arc::new(Schema::empty())));
    check_bad(&session(), path.to_str().unwrap(), &["no columns"]);
}

#[test]
fn one_bad_file_among_many_is_named() {
    let folder = folder();
    for name in ["1.parquet", "2.parquet", "4.parquet"] {
        write_parquet(&folder.path().join(name), &sample());
    }
    write(&folder, "3.parquet", &[0; 500]);
    let error = error(
        &session(),
        &format!("SELECT * FROM '{}/*.parquet'", folder.path().display()),
    );
    assert!(
        matches!(&error, Error::Format { path, .. } if path.ends_with("3.parquet")),
        "{error:?}"
    );
}

#[test]
fn bad_rows_have_file_and_line() {
    let folder = folder();
    let session = session();
    run(
        &session,
        "SET datafusion.optimizer.repartition_file_min_size = 1",
    )
    .unwrap();
    let mut content = b"a,b\n".to_vec();
    for row in 0..30_000 {
        writeln!(content, "{row},{row}").unwrap();
    }
    let good = content.clone();
    content.extend_from_slice(b"1,2,3\n");
    content.extend_from_slice(&good[4..]);
    let path = write(&folder, "fields.csv", &content);
    match check_bad(&session, &path, &[]) {
        Error::Format { line, .. } => assert_eq!(line, Some(30_002)),
        other => panic!("{other:?}"),
    }
    let mut content = good.clone();
    content.extend_from_slice(b"1,xyz\n");
    content.extend_from_slice(&good[4..]);
    let path = write(&folder, "types.csv", &content);
    match check_bad(&session, &path, &["xyz"]) {
        Error::Format { line, .. } => assert_eq!(line, Some(30_002)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn http() {
    let folder = folder();
    let session = session();
    let files: BTreeMap<String, Vec<u8>> = samples(&folder)
        .into_iter()
        .map(|path| {
            let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
            (format!("data/{name}"), fs::read(&path).unwrap())
        })
        .collect();
    let names: Vec<String> = files.keys().cloned().collect();
    let server = serve(&session, files);
    for name in names {
        let sql = format!("{SUMS} '{}/{name}'", server.address);
        assert_eq!(rows(&session, &sql), [SAMPLE_SUMS], "{name}");
    }
    let missing = error(
        &session,
        &format!("SELECT * FROM '{}/data/none.parquet'", server.address),
    );
    assert!(
        matches!(&missing, Error::Io { path, .. } if path.ends_with("none.parquet")),
        "{missing:?}"
    );
    let nobody = error(&session, "SELECT * FROM 'http://127.0.0.1:1/x.parquet'");
    assert!(matches!(&nobody, Error::Io { .. }), "{nobody:?}");
    let query = format!("{SUMS} '{}/data/s.csv?x=1'", server.address);
    assert_eq!(rows(&session, &query), [SAMPLE_SUMS]);
}

/// Credentials come from the environment only, so the test runs itself again with them.
#[test]
fn s3() {
    if std::env::var("GROUSE_TEST_S3").is_ok() {
        return s3_with_credentials();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::s3", "--nocapture"])
        .env("GROUSE_TEST_S3", "1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-central-1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn s3_with_credentials() {
    let folder = folder();
    let session = session();
    let parquet = folder.path().join("s.parquet");
    write_parquet(&parquet, &sample());
    let parquet = fs::read(parquet).unwrap();
    let csv = b"id,name\n1,a\n2,b\n3,c\n".to_vec();
    let files = BTreeMap::from([
        ("bucket/p/1.parquet".to_string(), parquet.clone()),
        ("bucket/p/2.parquet".to_string(), parquet.clone()),
        ("bucket/p/_SUCCESS".to_string(), Vec::new()),
        ("bucket/h/year=2024/x.csv".to_string(), csv.clone()),
        ("bucket/h/year=2025/x.csv".to_string(), csv),
    ]);
    let server = serve(&session, files);
    run(&session, &format!("SET s3_endpoint = '{}'", server.address)).unwrap();
    assert_eq!(
        rows(&session, &format!("{SUMS} 's3://bucket/p/1.parquet'")),
        [SAMPLE_SUMS]
    );
    let count = |from: &str| rows(&session, &format!("SELECT count(*) FROM '{from}'"));
    assert_eq!(count("s3://bucket/p/*.parquet"), ["6"]);
    assert_eq!(count("s3://bucket/*/?.parquet"), ["6"]);
    assert_eq!(count("s3://bucket/p/"), ["6"]);
    assert_eq!(count("s3://bucket/p"), ["6"]);
    assert_eq!(
        rows(
            &session,
            "SELECT year, sum(id) FROM 's3://bucket/h' GROUP BY year ORDER BY year"
        ),
        ["2024|6", "2025|6"]
    );
    for missing in [
        "s3://bucket/none.parquet",
        "s3://bucket/none/",
        "s3://bucket/none*.csv",
    ] {
        let error = error(&session, &format!("SELECT * FROM '{missing}'"));
        assert!(
            matches!(&error, Error::Io { path, .. } if path == missing),
            "{error:?}"
        );
    }
}

#[test]
fn headers_do_not_name_the_file() {
    let folder = folder();
    let path = write(&folder, "a.csv", b"id,name\n1,a\n2,b\n");
    let session = session();
    let check = |sql: &str, expected: &[&str]| {
        let sql = sql.replace("FILE", &path);
        let query = session.handle().block_on(session.query(&sql)).unwrap();
        let schema = query.schema();
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        assert_eq!(names, expected, "{sql}");
    };
    check(
        "SELECT name, count(id), sum(id + 1) FROM 'FILE' GROUP BY name",
        &["name", "count(id)", "sum(id + 1)"],
    );
    check("SELECT max(id) FROM read_csv('FILE')", &["max(id)"]);
    check(
        "SELECT max(id) FROM (SELECT id FROM 'FILE') ORDER BY 1",
        &["max(id)"],
    );
    check("SELECT max(t.id) FROM 'FILE' t", &["max(t.id)"]);
    let made = format!("CREATE TABLE m AS SELECT max(id) FROM '{path}'");
    run(&session, &made).unwrap();
    check("SELECT \"max(id)\" FROM m", &["max(id)"]);
}

// Columns of Arrow files were taken by their places, so that values stood under other names.
#[test]
fn external_tables_take_columns_by_name() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for format in ["arrow", "parquet"] {
        let at = |name: &str| folder.path().join(format).join(name).display().to_string();
        let copy = |query: &str, name: &str| {
            let target = at(&format!("{name}.{format}"));
            run(&session, &format!("COPY ({query}) TO '{target}'")).unwrap();
        };
        let create = |columns: &str, place: &str| {
            run(&session, "DROP TABLE IF EXISTS x").unwrap();
            let create = "CREATE EXTERNAL TABLE x";
            let place = at(place);
            let sql = format!("{create} {columns} STORED AS {format} LOCATION '{place}/'");
            run(&session, &sql).unwrap();
        };
        let check = |query: &str, expected: &[&str]| {
            assert_eq!(rows(&session, query), expected, "{format}: {query}");
        };
        copy("SELECT 1 AS a, 10 AS b", "files/1");
        copy("SELECT 20 AS b, 2 AS a", "files/2");
        copy("SELECT 30 AS b", "files/3");
        create("", "files");
        check(
            "SELECT a, b FROM x ORDER BY b",
            &["1|10", "2|20", "NULL|30"],
        );
        check("SELECT sum(b), count(*) FROM x WHERE a > 1", &["20|1"]);
        create("(b BIGINT, c VARCHAR, a DOUBLE)", "files");
        check(
            "SELECT * FROM x ORDER BY b",
            &["10|NULL|1.0", "20|NULL|2.0", "30|NULL|NULL"],
        );
        check("SELECT count(*), count(c) FROM x", &["3|0"]);
        copy("SELECT 4 AS a, 40 AS b", "folders/p=7/4");
        create("(b BIGINT, a BIGINT, p INT) PARTITIONED BY (p)", "folders");
        check("SELECT *, p + a FROM x", &["40|4|7|11"]);
    }
}
