//! CSV: every record once, every value as written, whatever the file looks like and however many workers read it.

use std::fs;
use std::io::Write;

use crate::support::{check, error, rows, run, session, write};
use futures::TryStreamExt;
use grouse::{Error, Session};

/// Each content, options of `read_csv`, the expected rows; `FILE` stands for the call.
#[track_caller]
fn check_all(cases: &[(&str, &str, &[&str])]) {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for (content, options, expected) in cases {
        let path = write(&folder, "x.csv", content);
        let sql = format!("SELECT * FROM read_csv('{path}'{options})");
        assert_eq!(rows(&session, &sql), *expected, "{content:?} {options}");
    }
}

/// As `check_all`, for the types of the columns.
#[track_caller]
fn check_types(cases: &[(&str, &str, &str)]) {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for (content, options, expected) in cases {
        let path = write(&folder, "x.csv", content);
        let sql = format!("DESCRIBE SELECT * FROM read_csv('{path}'{options})");
        let types: Vec<String> = rows(&session, &sql)
            .iter()
            .map(|row| row.split('|').nth(1).unwrap().to_string())
            .collect();
        assert_eq!(types.join(" "), *expected, "{content:?} {options}");
    }
}

fn small_pieces(session: &Session, threads: usize) {
    run(
        session,
        "SET datafusion.optimizer.repartition_file_min_size = 1",
    )
    .unwrap();
    run(session, &format!("SET threads = {threads}")).unwrap();
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// A field as a program would write it, and its value.
fn field(numbers: &mut Numbers) -> (String, String) {
    let words = [
        "x",
        "5\" tall",
        "a b",
        "",
        "\n",
        "\"",
        ",",
        "\r\n",
        "\"\n\"",
        "ä",
        "0,fake\n1,fake\n",
    ];
    let value: String = (0..numbers.below(4))
        .map(|_| words[numbers.below(words.len())])
        .collect();
    let is_plain = !value.contains([',', '\n', '\r']) && !value.starts_with('"');
    match is_plain && numbers.below(2) == 0 {
        true => (value.clone(), value),
        false => (format!("\"{}\"", value.replace('"', "\"\"")), value),
    }
}

// A file that is cut in pieces was cut at line ends inside quotes where the first of these came late.
#[test]
fn pieces_have_the_records_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(11);
    for round in 0..40 {
        let end = ["\n", "\r\n"][numbers.below(2)];
        let (mut content, mut expected) = ("n,s,t\n".to_string(), Vec::new());
        for row in 0..numbers.below(120) {
            let ((first, value), (second, other)) = (field(&mut numbers), field(&mut numbers));
            content += &format!("{row},{first},{second}{end}");
            let null = |text: String| {
                if text.is_empty() {
                    "NULL".to_string()
                } else {
                    text
                }
            };
            expected.push(format!("{row}|{}|{}", null(value), null(other)));
        }
        let path = write(&folder, "x.csv", &content);
        for threads in [1, 2, 7, 8] {
            let session = session();
            small_pieces(&session, threads);
            let sql = format!(
                "SELECT * FROM read_csv('{path}', header => true, delim => ',', types => {{'n': 'BIGINT', 's': 'VARCHAR', 't': 'VARCHAR'}}) ORDER BY n"
            );
            assert_eq!(
                rows(&session, &sql),
                expected,
                "{round} {threads} {content:?}"
            );
            let sql =
                format!("SELECT count(*) FROM read_csv('{path}', header => true, delim => ',')");
            assert_eq!(
                rows(&session, &sql),
                [expected.len().to_string()],
                "{content:?}"
            );
        }
    }
}

#[test]
fn late_line_ends_inside_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = "n,s\n".to_string();
    (0..80_000).for_each(|row| content += &format!("{row},plain text number {row}\n"));
    content += "80000,\"";
    (0..90_000).for_each(|row| content += &format!("{row},fake\n"));
    content += "\"\n";
    (80_001..160_000).for_each(|row| content += &format!("{row},plain text number {row}\n"));
    let path = write(&folder, "late.csv", &content);
    for threads in [1, 2, 7, 8] {
        let session = session();
        small_pieces(&session, threads);
        let sql = format!("SELECT count(*), sum(n), count(DISTINCT s) FROM '{path}'");
        check(&session, &sql, &["160000|12799920000|160000"]);
        let sql = format!("SELECT n FROM '{path}' WHERE length(s) > 100000 LIMIT 1");
        check(&session, &sql, &["80000"]);
    }
    // As many files as need more than one glance.
    let glob = tempfile::tempdir().unwrap();
    for file in 0..12 {
        write(&glob, &format!("{file}.csv"), &content);
    }
    let session = session();
    small_pieces(&session, 2);
    let sql = format!(
        "SELECT count(*), sum(n) FROM '{}/*.csv'",
        glob.path().display()
    );
    check(&session, &sql, &["1920000|153599040000"]);
}

#[test]
fn a_quote_that_is_never_closed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = "n,s\n".to_string();
    (1..=60_000).for_each(|row| {
        let quote = if row == 30_001 { "\"" } else { "" };
        content += &format!("{row},{quote}x{row}\n");
    });
    let path = write(&folder, "open.csv", &content);
    for threads in [1, 2, 8] {
        let session = session();
        small_pieces(&session, threads);
        let error = error(&session, &format!("SELECT count(*) FROM '{path}'"));
        let is_named = matches!(&error, Error::Format { path, line: Some(30_002), .. } if path.ends_with("open.csv"));
        assert!(
            is_named && error.to_string().contains("never closed"),
            "{error:?}"
        );
        let sql = format!("SELECT count(*) FROM read_csv('{path}', quote => '')");
        check(&session, &sql, &["60000"]);
    }
}

// The next quote closed it, and two records were one.
#[test]
fn a_quote_that_is_missing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = "n,s\n".to_string();
    (1..=60_000).for_each(|row| {
        let quote = if row == 30_001 { "" } else { "\"" };
        content += &format!("{row},\"x{row}{quote}\n");
    });
    let path = write(&folder, "torn.csv", &content);
    for threads in [1, 2, 8] {
        let session = session();
        small_pieces(&session, threads);
        let error = error(&session, &format!("SELECT count(*) FROM '{path}'"));
        let is_named = matches!(
            &error,
            Error::Format {
                line: Some(30_002),
                ..
            }
        );
        assert!(
            is_named && error.to_string().contains("a quote is missing"),
            "{error:?}"
        );
        let sql = format!("SELECT count(*) FROM read_csv('{path}', ignore_errors => true)");
        check(&session, &sql, &["59998"]);
    }
}

#[test]
fn a_file_that_changes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = "n,s\n".to_string();
    (0..400_000).for_each(|row| content += &format!("{row},some text of row {row}\n"));
    for threads in [1, 2] {
        let path = write(&folder, "shrinks.csv", &content);
        let session = session();
        run(&session, &format!("SET threads = {threads}")).unwrap();
        let query = session.handle().block_on(async {
            let sql = format!("SELECT s, count(*) FROM '{path}' GROUP BY s");
            let query = session.query(&sql).await.unwrap();
            fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(100)
                .unwrap();
            failure(query).await
        });
        assert!(
            matches!(query.kind(), Error::Io { path, message } if path.ends_with("shrinks.csv") && message.contains("run the query again")),
            "{query:?}"
        );
    }
}

async fn failure(query: grouse::Query) -> Error {
    let batches: Result<Vec<_>, _> = query.execute().unwrap().try_collect().await;
    Error::from(batches.expect_err("the file is not what it was"))
}

#[test]
fn headers_are_found() {
    check_all(&[
        ("1,a\n2,b\n3,c\n", "", &["1|a", "2|b", "3|c"]),
        ("1\n2\n", "", &["1", "2"]),
        ("v\n2\n", "", &["2"]),
        ("2019,2020\n1,2\n", "", &["2019|2020", "1|2"]),
        ("x,a\ny,b\n", "", &["y|b"]),
        ("x,a\ny,b\n", ", header => false", &["x|a", "y|b"]),
        ("1,2\n", ", header => true", &[]),
        ("a,b\n", "", &[]),
    ]);
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "twice.csv", "a,a,b\n1,2,3\n");
    check(
        &session,
        &format!("SELECT b, a_1, a FROM '{path}'"),
        &["3|2|1"],
    );
    let path = write(&folder, "spaces.csv", "a, b ,c\n1, 2,3\n");
    check(&session, &format!("SELECT b FROM '{path}'"), &["2"]);
    let path = write(&folder, "case.csv", "a,A,b,\n1,2,3,4\n");
    check(
        &session,
        &format!("SELECT a, \"A_1\", column_4 FROM '{path}'"),
        &["1|2|4"],
    );
}

#[test]
fn delimiters_quotes_and_decimals_are_found() {
    check_all(&[
        ("a;b\n1;2\n", "", &["1|2"]),
        ("a;b\n1,5;x\n2;y\n", "", &["1.5|x", "2.0|y"]),
        ("a;b\n1,500;x\n", "", &["1,500|x"]),
        ("a;b\n1,500;x\n", ", decimal_separator => ','", &["1.5|x"]),
        ("a\tb\n1\t2\n", "", &["1|2"]),
        ("a|b\n1|2\n", "", &["1|2"]),
        ("sep=;\r\na;b\r\n1,5;2\r\n", "", &["1.5|2"]),
        ("a,b\n'x,y',2\n'z,w',3\n", "", &["x,y|2", "z,w|3"]),
        ("Report of things\n\na,b\n1,2\n3,4\n", "", &["1|2", "3|4"]),
        ("junk\nmore\na,b\n1,x\n", ", skip => 2", &["1|x"]),
        ("# hello\na,b\n1,2\n", ", comment => '#'", &["1|2"]),
        ("\u{feff}a,b\n1,2\n", "", &["1|2"]),
        ("a,b\r1,2\r3,4\r", "", &["1|2", "3|4"]),
        ("a,b\n1,\"x\\\"y\"\n", ", escape => '\\'", &["1|x\"y"]),
    ]);
}

// Titles lost their quotes, and one that is never closed was an error or took the lines below with it.
#[test]
fn quotes_that_quote_nothing_are_text() {
    check_all(&[
        ("a,b\n\"x\"y,1\n", "", &["\"x\"y|1"]),
        ("a,b\n\"x\"y,1\n", ", quote => '\"'", &["xy|1"]),
        ("a,b\n\"x\"y,1\n\"v,w\",2\n", "", &["xy|1", "v,w|2"]),
        ("a\tb\n\"x\t1\n\"y\" z\t2\n", "", &["\"x|1", "\"y\" z|2"]),
        ("a,b\nx \"y\" z,1\n", "", &["x \"y\" z|1"]),
        ("a,b\n\"x\" ,1\n", "", &["x |1"]),
    ]);
}

#[test]
fn types_hold_what_is_written() {
    check_types(&[
        ("t\n2024-01-01 10:00:60\n", "", "VARCHAR"),
        ("t\n2024-02-30\n", "", "VARCHAR"),
        ("t\n0000-00-00\n", "", "VARCHAR"),
        ("t\n2024-01-01 25:00:00\n", "", "VARCHAR"),
        ("t\n2024-02-29\n", "", "DATE"),
        ("t\n2024-02-29 10:00:00\n", "", "TIMESTAMP"),
        (
            "t\n2024-02-29T10:00:00Z\n2024-02-29 10:00:00-05\n",
            "",
            "TIMESTAMP WITH TIME ZONE",
        ),
        (
            "t\n2024-02-29T10:00:00Z\n2024-02-29 10:00:00\n",
            "",
            "VARCHAR",
        ),
        ("t\n13/02/2024\n01/02/2024\n", "", "DATE"),
        ("t\n02/03/2024\n", "", "VARCHAR"),
        ("t,u\n007,-1\n", "", "VARCHAR BIGINT"),
        ("t,u\n12345678901234567890,1\n", "", "UBIGINT BIGINT"),
        ("t,u\n1,x\n", ", all_varchar => true", "VARCHAR VARCHAR"),
        ("t,u\n1,x\n", ", types => {'t': 'DOUBLE'}", "DOUBLE VARCHAR"),
        (
            "t,u\n1,x\n",
            ", types => ['SMALLINT', 'VARCHAR']",
            "SMALLINT VARCHAR",
        ),
        (
            "t,u\n1,x\n",
            ", columns => {'p': 'INT', 'q': 'VARCHAR'}",
            "INTEGER VARCHAR",
        ),
        ("t,u\n1,x\n", ", auto_detect => false", "VARCHAR VARCHAR"),
    ]);
    check_all(&[
        (
            "t,u\n10:00:59,2024-01-01 10:00:60\n",
            "",
            &["10:00:59|2024-01-01 10:00:60"],
        ),
        ("d\n13.02.2024\n", "", &["2024-02-13"]),
        (
            "d\n02/03/2024\n",
            ", dateformat => '%m/%d/%Y'",
            &["2024-02-03"],
        ),
        (
            "d\n13 Feb 2024\n",
            ", dateformat => '%d %b %Y'",
            &["2024-02-13"],
        ),
        (
            "d\n13.02.2024 10:11\n",
            ", timestampformat => '%d.%m.%Y %H:%M'",
            &["2024-02-13T10:11:00"],
        ),
        (
            "a,b\n1,NA\n3,-\n",
            ", nullstr => ['NA', '-']",
            &["1|NULL", "3|NULL"],
        ),
        ("a,b\n1,NA\n3,\n", ", nullstr => 'NA'", &["1|NULL", "3|"]),
        ("1,x\n", ", names => ['p', 'q']", &["1|x"]),
        ("a,b\n 7, 8\n", "", &["7|8"]),
    ]);
}

#[test]
fn records_that_do_not_fit() {
    check_all(&[
        (
            "a,b,c\n1,2,3\n3\n4,5,6\n",
            ", null_padding => true",
            &["1|2|3", "3|NULL|NULL", "4|5|6"],
        ),
        (
            "a,b\n1,x\nz,3\n4,5,6\n7\n8,y\n",
            ", ignore_errors => true, types => {'a': 'INT'}",
            &["1|x", "8|y"],
        ),
    ]);
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for (content, options, parts) in [
        (
            "a,b\n1,2\n3\n4,5\n",
            "",
            &["line 3", "null_padding", "ignore_errors"][..],
        ),
        ("a,b\n1,2\n3,4,5\n", "", &["line 3", "expected 2 got 3"]),
        (
            "a,b\n1,2\nx,4\n",
            ", sample_size => 1",
            &["line 3", "'a'", "'x'", "BIGINT", "types =>"],
        ),
        (
            "d\n2024-01-01\n2024-02-30\n",
            ", sample_size => 1",
            &["line 3", "2024-02-30", "DATE"],
        ),
        ("a\n1\n", ", types => {'zz': 'INT'}", &["zz"]),
        (
            "a\n1\n",
            ", store_rejects => true, ignore_errors => false",
            &["store_rejects", "ignore_errors"],
        ),
        ("a\n1\n", ", rejects_limit => 1", &["store_rejects"]),
        (
            "a\n1\n",
            ", rejects_table => 'x', rejects_scan => 'X'",
            &["rejects_table", "rejects_scan", "two names"],
        ),
        (
            "a\n1\n",
            ", store_rejects => true, rejects_limit => -1",
            &["rejects_limit", "-1"],
        ),
        (
            "a\n1\n",
            ", force_not_null => ['zz']",
            &["force_not_null", "zz"],
        ),
        ("a\n1\n", ", dateformat => 'x'", &["dateformat"]),
    ] {
        let path = write(&folder, "bad.csv", content);
        let sql = format!("SELECT * FROM read_csv('{path}'{options})");
        let error = error(&session, &sql).to_string();
        for part in parts {
            assert!(error.contains(part), "{content:?} {options}: {error}");
        }
    }
    let mut content = "n\n".to_string();
    (0..100_000).for_each(|row| content += &format!("{row}\n"));
    content += "1.5\n";
    let path = write(&folder, "late.csv", &content);
    let sql = |options: &str| format!("SELECT max(n), count(*) FROM read_csv('{path}'{options})");
    assert!(
        error(&session, &sql(""))
            .to_string()
            .contains("line 100002")
    );
    check(&session, &sql(", sample_size => -1"), &["99999.0|100001"]);
}

const INT_AND_TEXT: &str = "columns => {'a': 'INT', 'b': 'VARCHAR'}";

/// The errors that a statement has left.
fn rejects(session: &Session) -> Vec<String> {
    let columns = "file_id, line, line_byte_position, byte_position, column_idx, column_name, error_type, csv_line, error_message";
    rows(session, &format!("SELECT {columns} FROM reject_errors"))
}

#[test]
fn rejects_are_kept() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let content = "a,b\n1,x\n2,\"y\nz\"\nfoo,z\n4\n5,q,r\n\"6\",\"v\nw\"u\nzz,\"t\"\n7,s\n";
    let path = write(&folder, "x.csv", content);
    let sql = format!("SELECT a FROM read_csv('{path}', store_rejects => true, {INT_AND_TEXT})");
    check(&session, &sql, &["1", "2", "7"]);
    let expected = [
        "0|5|17|17|1|a|CAST|foo,z|the value 'foo' is no INTEGER",
        "0|6|23|24|2|b|MISSING COLUMNS|4|incorrect number of fields: expected 2 got 1",
        "0|7|25|28|3|NULL|TOO MANY COLUMNS|5,q,r|incorrect number of fields: expected 2 got 3",
        "0|8|31|35|2|b|UNQUOTED VALUE|\"6\",\"v\nw\"u|text follows quotes that a line before opened: a quote is missing",
        "0|10|42|42|1|a|CAST|zz,\"t\"|the value 'zz' is no INTEGER",
    ];
    assert_eq!(rejects(&session), expected);
    let scans = "SELECT scan_id, file_path, delimiter, quote, escape, newline_delimiter, skip_rows, has_header, columns, date_format FROM reject_scans";
    let expected = format!("1|{path}|,|\"|\"|\\n|0|true|{{'a': 'INTEGER', 'b': 'VARCHAR'}}|NULL");
    check(&session, scans, &[&expected]);
    // A statement that reads no file keeps what is there; one that reads other columns finds other errors.
    check(&session, "SELECT count(*) FROM reject_errors", &["5"]);
    check(&session, &sql.replace("a FROM", "count(b) FROM"), &["5"]);
    check(&session, "SELECT count(*) FROM reject_errors", &["3"]);
    // Names of a call's own, the first errors of each file, files as they are named.
    write(&folder, "y.csv", "a,b\n1,x\n");
    write(&folder, "z.csv", "a,b\nk,x\nl,x\n");
    let sql = format!(
        "SELECT sum(a) FROM read_csv('{}/*.csv', rejects_table => 'Mine', rejects_scan => 'files', rejects_limit => 1, {INT_AND_TEXT})",
        folder.path().display()
    );
    check(&session, &sql, &["11"]);
    let errors = "SELECT file_id, line FROM mine JOIN files USING (scan_id, file_id) ORDER BY ALL";
    check(&session, errors, &["0|5", "2|2"]);
    check(&session, "SELECT count(*) FROM reject_errors", &["3"]);
    let prepared = format!(
        "PREPARE again AS SELECT max(a) FROM read_csv('{path}', store_rejects => true, {INT_AND_TEXT})"
    );
    run(&session, &prepared).unwrap();
    for _ in 0..2 {
        check(&session, "EXECUTE again", &["7"]);
        check(&session, "SELECT count(*) FROM reject_errors", &["5"]);
        check(
            &session,
            &sql.replace("rejects_table => 'Mine'", "store_rejects => true"),
            &["11"],
        );
        check(&session, "SELECT count(*) FROM reject_errors", &["2"]);
    }
    run(&session, "DROP TABLE mine").unwrap();
    check(&session, &sql, &["11"]);
    check(&session, "SELECT count(*) FROM mine", &["2"]);
    run(&session, "CREATE TABLE taken (a INT)").unwrap();
    let message = error(&session, &sql.replace("Mine", "taken")).to_string();
    assert!(
        message.contains("'taken'") && message.contains("rejects_table"),
        "{message}"
    );
}

#[test]
fn rejects_are_kept_once_by_all_workers() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(5);
    let (mut content, mut expected, mut line) = ("a,b\n".to_string(), Vec::new(), 2);
    for row in 0..400 {
        let at = content.len() + 1;
        let (record, what) = match numbers.below(6) {
            0 => (format!("x{row},y"), "CAST"),
            1 => (format!("{row}"), "MISSING COLUMNS"),
            2 => (format!("{row},y,z"), "TOO MANY COLUMNS"),
            3 => (format!("{row},\"y\ny\""), ""),
            _ => (format!("{row},y"), ""),
        };
        if !what.is_empty() {
            expected.push(format!("{line}|{at}|{what}|{record}"));
        }
        line += 1 + record.matches('\n').count();
        content += &format!("{record}\n");
    }
    let path = write(&folder, "x.csv", content);
    for threads in [1, 3] {
        let session = session();
        small_pieces(&session, threads);
        let call = format!("read_csv('{path}', store_rejects => true, {INT_AND_TEXT})");
        let sql = format!("SELECT count(*) FROM {call} x JOIN {call} y USING (a)");
        let good = (400 - expected.len()).to_string();
        check(&session, &sql, &[&good]);
        let errors = "SELECT line, line_byte_position, error_type, csv_line FROM reject_errors";
        assert_eq!(rows(&session, errors), expected);
        let limited = sql.replace("store_rejects", "rejects_limit => 7, store_rejects");
        check(&session, &limited, &[&good]);
        assert_eq!(rows(&session, errors), expected[..7]);
        // Two calls of a statement share the tables.
        let sql = format!(
            "SELECT count(a) FROM (SELECT a FROM {call} UNION ALL SELECT a FROM {})",
            call.replace("true", "1, max_line_size => 99999")
        );
        check(&session, &sql, &[&(2 * (400 - expected.len())).to_string()]);
        let errors = "SELECT count(*), count(DISTINCT scan_id) FROM reject_errors";
        check(&session, errors, &[&format!("{}|2", 2 * expected.len())]);
    }
}

#[test]
fn rejects_have_a_place_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let bad: String = (0..200_000).map(|row| format!("x{row:060},y\n")).collect();
    let path = write(&folder, "x.csv", format!("a,b\n1,x\n{bad}"));
    let session = session();
    run(&session, "SET memory_limit = '20MB'").unwrap();
    let sql = format!("SELECT a FROM read_csv('{path}', store_rejects => true, {INT_AND_TEXT})");
    let message = error(&session, &sql).to_string();
    for part in ["out of memory", "read_csv", "rejects_limit"] {
        assert!(message.contains(part), "{message}");
    }
    let sql = sql.replace("store_rejects", "rejects_limit => 10, store_rejects");
    check(&session, &sql, &["1"]);
    check(
        &session,
        "SELECT count(*), max(line) FROM reject_errors",
        &["10|12"],
    );
}

#[test]
fn columns_without_null_and_names_without_quotes() {
    check_all(&[
        (
            "a,b\n1,\n,\"\"\n",
            ", force_not_null => ['B'], types => {'b': 'VARCHAR'}",
            &["1|", "NULL|"],
        ),
        (
            "a,b\nNA,NA\n",
            ", nullstr => 'NA', force_not_null => ['b']",
            &["NULL|NA"],
        ),
    ]);
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "x.csv", "A b,a_B,select,1st\n1,2,3,4\n");
    let sql = format!(
        "SELECT a_b, a_b_1, _select, _1st FROM read_csv('{path}', normalize_names => true)"
    );
    check(&session, &sql, &["1|2|3|4"]);
    let path = write(&folder, "y.csv", "a\n1\n\n");
    let sql = format!("SELECT a FROM read_csv('{path}', force_not_null => ['a'])");
    let message = error(&session, &sql).to_string();
    assert!(
        message.contains("line 3") && message.contains("BIGINT"),
        "{message}"
    );
}

#[test]
fn encodings() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "latin.csv", b"a,b\n\xe9,1\n");
    let error = error(&session, &format!("SELECT * FROM '{path}'")).to_string();
    assert!(
        error.contains("line 2") && error.contains("encoding"),
        "{error}"
    );
    let sql = format!("SELECT * FROM read_csv('{path}', encoding => 'latin-1')");
    check(&session, &sql, &["é|1"]);
    let wide: Vec<u8> = "\u{feff}a,b\né,1\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let path = write(&folder, "wide.csv", wide);
    check(&session, &format!("SELECT * FROM '{path}'"), &["é|1"]);
}

#[test]
fn files_of_one_table() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    write(&folder, "1.csv", "a,b\n1,2\n");
    write(&folder, "2.csv", "b,c\n3,4\n");
    write(&folder, "3.csv", "");
    let sql = format!(
        "SELECT a, b, c FROM read_csv('{}/*.csv', union_by_name => true) ORDER BY b",
        folder.path().display()
    );
    check(&session, &sql, &["1|2|NULL", "NULL|3|4"]);
    write(&folder, "2.csv", "B,A\n3,4\n");
    check(&session, &sql.replace(", c", ""), &["1|2", "4|3"]);
    write(&folder, "2.csv", "a,b\n3,4\n");
    let sql = format!("SELECT sum(a) FROM '{}/*.csv'", folder.path().display());
    check(&session, &sql, &["4"]);
}

#[test]
fn sniff_csv_says_how_a_file_is_read() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "x.csv", "a;d\n1;13.02.2024\n");
    let sql = format!(
        "SELECT \"Delimiter\", \"Quote\", \"HasHeader\", \"SkipRows\", \"DateFormat\" FROM sniff_csv('{path}')"
    );
    check(&session, &sql, &[";|\"|true|0|%d.%m.%Y"]);
    let sql = format!("SELECT \"Prompt\" FROM sniff_csv('{path}')");
    let prompt = rows(&session, &sql).remove(0);
    check(&session, &format!("SELECT * {prompt}"), &["1|2024-02-13"]);
}

#[test]
fn a_fifo_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe.csv");
    let made = std::process::Command::new("mkfifo")
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    let feed = |rows: usize| {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
            let header = file.write_all(b"n,s\n");
            let mut write = |row: usize| writeln!(file, "{row},\"x\n{row}\"");
            // Nobody may read to the end.
            header
                .and_then(|()| (0..rows).try_for_each(&mut write))
                .ok();
        })
    };
    let session = session();
    let (name, root) = (path.display(), folder.path().display());
    for rows in [3, 300_000] {
        let writer = feed(rows);
        let sum = rows * (rows - 1) / 2;
        let sql = format!("SELECT count(*), sum(n) FROM '{name}'");
        check(&session, &sql, &[&format!("{rows}|{sum}")]);
        writer.join().unwrap();
    }
    let writer = feed(3);
    let sql = format!("SELECT count(*) FROM '{name}' a, '{name}' b");
    let twice = error(&session, &sql).to_string();
    assert!(twice.contains("twice"), "{twice}");
    writer.join().unwrap();
    for place in [format!("{root}"), format!("{root}/*.csv")] {
        let error = error(&session, &format!("SELECT * FROM '{place}'")).to_string();
        assert!(
            error.contains("pipe.csv") && error.contains("is a pipe"),
            "{error}"
        );
    }
}
