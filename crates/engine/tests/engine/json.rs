//! JSON files: every value to its last digit, every field in its column, every record once.

use std::fs;
use std::path::Path;

use crate::support::{check, error, rows, run, session, two_streams, write};
use grouse::{Error, Session};

/// The line of the error that `sql` must fail with, which names all `parts`.
#[track_caller]
fn bad_line(session: &Session, sql: &str, parts: &[&str]) -> Option<u64> {
    let error = error(session, sql);
    for part in parts {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    match error {
        Error::Format { line, .. } => line,
        other => panic!("{other:?}"),
    }
}

/// Names and types of the columns of a file.
fn columns(session: &Session, from: &str) -> Vec<String> {
    let sql = format!("SELECT * FROM {from} LIMIT 0");
    let query = session.handle().block_on(session.query(&sql)).unwrap();
    let schema = query.schema();
    let fields = schema.fields().iter();
    fields
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect()
}

// INSERT … SELECT * of {"to": …, "from": …} swapped the two: columns came in the order of the alphabet.
#[test]
fn columns_come_in_the_order_of_the_file() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(
        &folder,
        "t.json",
        "{\"to\":\"T\",\"from\":\"F\",\"s\":{\"z\":1,\"a\":2}}\n{\"x\":1,\"to\":\"U\"}\n",
    );
    check(
        &session,
        &format!("SELECT * FROM '{path}'"),
        &["T|F|{z: 1, a: 2}|NULL", "U|NULL|NULL|1"],
    );
    run(
        &session,
        "CREATE TABLE t (\"to\" VARCHAR, \"from\" VARCHAR)",
    )
    .unwrap();
    let sql = format!("INSERT INTO t SELECT \"to\", \"from\" FROM '{path}' LIMIT 1");
    run(&session, &sql).unwrap();
    check(&session, "SELECT \"to\", \"from\" FROM t", &["T|F"]);
}

// 1.9 behind the sample was read as 1, and a field that no record of the sample had was left out.
#[test]
fn what_comes_after_the_sample_keeps_its_value_or_is_an_error() {
    let (folder, session) = (tempfile::tempdir().unwrap(), two_streams());
    let ones = "{\"v\":1}\n".repeat(21_000);
    let path = write(
        &folder,
        "s.json",
        &format!("{ones}{{\"v\":1.9}}\n{{\"v\":0.1}}\n"),
    );
    check(
        &session,
        &format!("SELECT sum(v), max(v) FROM '{path}'"),
        &["21002.0|1.9"],
    );
    let path = write(&folder, "b.json", &format!("{ones}{{\"v\":1,\"b\":5}}\n"));
    check(
        &session,
        &format!("SELECT sum(v), sum(b) FROM '{path}'"),
        &["21001|5"],
    );
    // Too large to be looked at as a whole.
    let many =
        "{\"v\":1,\"w\":\"some text that makes the record a little longer\"}\n".repeat(120_000);
    let path = write(
        &folder,
        "f.json",
        &format!("{many}{{\"v\":1.9}}\n{{\"v\":2.0}}\n"),
    );
    let sum = format!("SELECT sum(v) FROM '{path}'");
    let line = bad_line(&session, &sum, &["f.json", "1.9", "'v'", "sample_size"]);
    assert_eq!(line, Some(120_001));
    let all = format!("SELECT sum(v) FROM read_json('{path}', sample_size => -1)");
    check(&session, &all, &["120003.9"]);
    let path = write(
        &folder,
        "k.json",
        &format!("{many}{{\"v\":1,\"late\":5}}\n"),
    );
    for sql in ["SELECT sum(v)", "SELECT count(*)", "SELECT *"] {
        let line = bad_line(
            &session,
            &format!("{sql} FROM '{path}'"),
            &["'late'", "k.json"],
        );
        assert_eq!(line, Some(120_001));
    }
    let all = format!("SELECT sum(late) FROM read_json('{path}', sample_size = -1)");
    check(&session, &all, &["5"]);
    let path = write(
        &folder,
        "i.json",
        &format!("{many}{{\"v\":9223372036854775808}}\n"),
    );
    bad_line(
        &session,
        &format!("SELECT max(v) FROM '{path}'"),
        &["9223372036854775808"],
    );
    let path = write(
        &folder,
        "w.json",
        &format!("{many}{{\"v\":3.0}}\n{{\"v\":1e3}}\n"),
    );
    check(
        &session,
        &format!("SELECT max(v), sum(v) FROM '{path}'"),
        &["1000|121003"],
    );
}

#[test]
fn errors_have_their_line() {
    let (folder, session) = (tempfile::tempdir().unwrap(), two_streams());
    let good = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n";
    for (bad, part) in [
        ("{\"a\":5", "'}'"),
        ("{\"a\":01}", "01"),
        ("{\"a\" 1}", "':'"),
        ("{a:1}", "name in quotes"),
        ("nonsense", "nonsense"),
        ("{\"a\":\"x}", "never closed"),
        ("{\"a\":\"\\q\"}", "escape"),
        ("{\"a\":1}}", "'}"),
        ("{\"a\":1,\"a\":2}", "two fields 'a'"),
    ] {
        let path = write(&folder, "b.json", &format!("{good}{bad}\n{good}"));
        let sql = format!("SELECT sum(a) FROM '{path}'");
        assert_eq!(
            bad_line(&session, &sql, &["b.json", part]),
            Some(5),
            "{bad}"
        );
        let sql = format!("SELECT sum(a) FROM read_json('{path}', ignore_errors => true)");
        let answer = rows(&session, &sql);
        assert!(
            ["20", "21"].contains(&answer[0].as_str()),
            "{bad}: {answer:?}"
        );
    }
    let path = write(&folder, "open.json", "[{\"a\":1},\n{\"a\":2}\n");
    bad_line(
        &session,
        &format!("SELECT sum(a) FROM '{path}'"),
        &["never closed"],
    );
    fs::write(
        folder.path().join("u.json"),
        b"{\"a\":\"x\"}\n{\"a\":\"\xff\"}\n",
    )
    .unwrap();
    let sql = format!("SELECT max(a) FROM '{}/u.json'", folder.path().display());
    assert_eq!(bad_line(&session, &sql, &["UTF-8"]), Some(2));
}

#[test]
fn records_lie_as_they_like() {
    let (folder, session) = (tempfile::tempdir().unwrap(), two_streams());
    for (name, text) in [
        (
            "bom.json",
            "\u{feff}{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}\n",
        ),
        (
            "pretty.json",
            "{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n{\n  \"a\": 2,\n  \"b\": \"y\"\n}",
        ),
        ("close.json", "{\"a\":1,\"b\":\"x\"}{\"a\":2,\"b\":\"y\"}"),
        (
            "spaces.json",
            "\r\n\n {\"a\":1,\"b\":\"x\"} \r\n\n\t{\"a\":2,\"b\":\"y\"}\n\n",
        ),
        (
            "array.json",
            "[{\"a\":1,\"b\":\"x\"},{\"a\":2,\"b\":\"y\"}]",
        ),
        (
            "bomarray.json",
            "\u{feff}[\n{\"a\":1,\"b\":\"x\"},\n{\"a\":2,\"b\":\"y\"}\n]\n",
        ),
        (
            "arrays.json",
            "[{\"a\":1,\"b\":\"x\"}]\n[{\"a\":2,\"b\":\"y\"}]",
        ),
    ] {
        let path = write(&folder, name, text);
        let sql = format!("SELECT count(*), sum(a), max(b) FROM '{path}'");
        assert_eq!(rows(&session, &sql), ["2|3|y"], "{name}");
    }
    let path = write(&folder, "values.json", "[1,2,{\"a\":1}]");
    check(
        &session,
        &format!("SELECT json FROM '{path}'"),
        &["1", "2", "{\"a\":1}"],
    );
    let path = write(&folder, "numbers.json", "1\n2.5\n");
    check(
        &session,
        &format!("SELECT sum(json) FROM '{path}'"),
        &["3.5"],
    );
    let path = write(&folder, "lists.json", "[1,2]\n[3]\n");
    for option in ["", ", format => 'newline_delimited'"] {
        let sql = format!("SELECT json[1] FROM read_json('{path}'{option}) ORDER BY 1");
        check(&session, &sql, &["1", "3"]);
    }
    let path = write(&folder, "mixed.json", "{\"a\":1}\n[1]\n");
    let sql = format!("SELECT json FROM '{path}' ORDER BY json DESC");
    check(&session, &sql, &["{\"a\":1}", "[1]"]);
    let sql = format!("SELECT a FROM read_json('{path}', columns => {{'a': 'BIGINT'}})");
    assert_eq!(bad_line(&session, &sql, &["mixed.json", "object"]), Some(2));
}

// They had no columns, and so were no table.
#[test]
fn objects_without_fields_and_files_without_records_are_tables() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let two = ["{}", "{}"];
    for (name, content, expected) in [
        ("none.json", "[]", &two[..0]),
        ("nothing.json", "", &two[..0]),
        ("lines.ndjson", "\n\n", &two[..0]),
        ("object.json", "{}", &two[..1]),
        ("objects.ndjson", "{}\n{}\n", &two[..]),
        ("array.json", "[{}, {}]", &two[..]),
    ] {
        let path = write(&folder, name, content);
        check(&session, &format!("SELECT * FROM '{path}'"), expected);
        let count = expected.len().to_string();
        check(
            &session,
            &format!("SELECT count(*) FROM '{path}'"),
            &[count.as_str()],
        );
        let named = format!("read_json('{path}', columns => {{'a': 'BIGINT'}})");
        let nulls = vec!["NULL"; expected.len()];
        check(&session, &format!("SELECT a FROM {named}"), &nulls);
    }
    let path = write(&folder, "later.ndjson", "{}\n{\"a\": 1}\n");
    check(&session, &format!("SELECT a FROM '{path}'"), &["NULL", "1"]);
}

// Each column was the whole array.
#[test]
fn an_array_of_records_may_have_errors_to_ignore() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "a.json", "[{\"a\":1,\"b\":2},\n{\"a\":\"x\"}]");
    let columns = "columns => {'a': 'BIGINT', 'b': 'BIGINT'}";
    let sql = format!("SELECT a, b FROM read_json('{path}', {columns}, ignore_errors => true)");
    check(&session, &sql, &["1|2", "NULL|NULL"]);
}

// One file with arrays in its lines made records of the items of another, or the other way round.
#[test]
fn files_in_which_records_lie_otherwise_are_an_error() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    write(&folder, "1.json", "[1,2]\n[3]\n");
    write(&folder, "2.json", "[{\"a\":1},\n{\"a\":2}]");
    let sql = format!("SELECT * FROM '{}/*.json'", folder.path().display());
    bad_line(&session, &sql, &["2.json", "newline_delimited", "array"]);
}

// Pieces that several workers read begin in the middle of a line or at its very end.
#[test]
fn every_record_is_read_once() {
    let (folder, session) = (tempfile::tempdir().unwrap(), two_streams());
    run(&session, "SET threads = 7").unwrap();
    for rows_count in [1, 2, 3, 50, 1_000, 20_000] {
        let mut text = String::new();
        for row in 0..rows_count {
            text.push_str(&format!(
                "{{\"id\":{row},\"t\":\"{}\"}}\n",
                "x".repeat(row % 7)
            ));
        }
        let path = write(&folder, "r.json", &text);
        let sql = format!("SELECT count(*), sum(id), count(DISTINCT id) FROM '{path}'");
        let sum = rows_count * (rows_count - 1) / 2;
        assert_eq!(
            rows(&session, &sql),
            [format!("{rows_count}|{sum}|{rows_count}")]
        );
        let path = write(&folder, "open.json", text.trim_end());
        let sql = format!("SELECT count(*), sum(id) FROM '{path}'");
        assert_eq!(rows(&session, &sql), [format!("{rows_count}|{sum}")]);
    }
}

#[test]
fn types_are_those_of_the_values() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(
        &folder,
        "t.json",
        concat!(
            "{\"d\":\"2024-01-02\",\"t\":\"2024-01-02 03:04:05\",\"z\":\"2024-01-02T03:04:05Z\",\"m\":\"10:11:12\",\"n\":null,",
            "\"b\":true,\"e\":1e3,\"l\":[1,2.5],\"x\":[1,\"a\"],\"o\":{},\"q\":[],\"bad\":\"2024-02-30\"}\n"
        ),
    );
    assert_eq!(
        columns(&session, &format!("'{path}'")),
        [
            "d Date32",
            "t Timestamp(µs)",
            "z Timestamp(µs, \"+00:00\")",
            "m Time64(ns)",
            "n Utf8",
            "b Boolean",
            "e Float64",
            "l List(Float64)",
            "x List(Utf8)",
            "o Utf8",
            "q List(Utf8)",
            "bad Utf8",
        ]
    );
    check(
        &session,
        &format!("SELECT d, t, m, x, o, bad FROM '{path}'"),
        &["2024-01-02|2024-01-02T03:04:05|10:11:12|[1, a]|{}|2024-02-30"],
    );
    let path = write(
        &folder,
        "m.json",
        "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":{\"b\":[1]}}\n{\"a\":null}\n",
    );
    check(
        &session,
        &format!("SELECT a FROM '{path}'"),
        &["1", "\"x\"", "{\"b\":[1]}", "NULL"],
    );
}

#[test]
fn options() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(
        &folder,
        "o.json",
        "{\"to\":\"T\",\"n\":1,\"s\":{\"a\":1}}\n{\"n\":2.5,\"to\":\"U\"}\n",
    );
    check(
        &session,
        &format!(
            "SELECT * FROM read_json('{path}', columns => {{'to': 'VARCHAR', 'n': 'DECIMAL(5,2)', 'none': 'INTEGER'}})"
        ),
        &["T|1.00|NULL", "U|2.50|NULL"],
    );
    let sql = format!("SELECT * FROM read_json('{path}', maximum_depth => 1)");
    check(&session, &sql, &["T|1.0|{\"a\":1}", "U|2.5|NULL"]);
    let sql = format!("SELECT json['to'] FROM read_json('{path}', records => false)");
    check(&session, &sql, &["T", "U"]);
    let sql =
        format!("SELECT n, filename LIKE '%o.json' FROM read_json('{path}', filename => true)");
    check(&session, &sql, &["1.0|true", "2.5|true"]);
    let sql = format!("SELECT f FROM read_json('{path}', filename => 'f') GROUP BY f");
    check(&session, &sql, &[&path]);
    for (option, part) in [
        ("sample_size => 0", "sample_size"),
        ("format => 'csv'", "newline_delimited"),
        ("columns => {'a': 'NONSENSE TYPE'}", "no type"),
        ("nonsense => 1", "nonsense"),
    ] {
        let error = error(
            &session,
            &format!("SELECT * FROM read_json('{path}', {option})"),
        );
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn external_tables_are_read_the_same_way() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(
        &folder,
        "e.json",
        "{\"to\":1,\"from\":2}\n{\"to\":1.5,\"from\":3}\n",
    );
    let sql = format!("CREATE EXTERNAL TABLE e STORED AS JSON LOCATION '{path}'");
    run(&session, &sql).unwrap();
    check(&session, "SELECT * FROM e", &["1.0|2", "1.5|3"]);
    let sql = format!("CREATE EXTERNAL TABLE i (\"to\" BIGINT) STORED AS JSON LOCATION '{path}'");
    run(&session, &sql).unwrap();
    bad_line(&session, "SELECT sum(\"to\") FROM i", &["1.5"]);
    let target = folder.path().join("out.json");
    let sql = format!("COPY (SELECT * FROM e) TO '{}'", target.display());
    run(&session, &sql).unwrap();
    assert!(Path::new(&target).exists());
    check(
        &session,
        &format!("SELECT sum(\"to\") FROM '{}'", target.display()),
        &["2.5"],
    );
}
