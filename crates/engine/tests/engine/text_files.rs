//! CSV and JSON files: rows and values that a reader must not lose; views over files that change.

use std::fs;
use std::path::Path;

use crate::support::{check, error, run, session, write};

// Empty lines of a file with one column were skipped; they are the only way to write its NULLs.
#[test]
fn empty_lines_of_one_column_are_null() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "n.csv", "\na\n1\n\n3\n\n");
    check(
        &session,
        &format!("SELECT a FROM '{path}'"),
        &["1", "NULL", "3", "NULL"],
    );
    check(
        &session,
        &format!("SELECT count(*), count(a), sum(a) FROM '{path}'"),
        &["4|2|4"],
    );
    check(
        &session,
        &format!("SELECT count(*) FROM '{path}' WHERE a IS NULL"),
        &["2"],
    );
    let path = write(&folder, "t.csv", "a\r\nx\r\n\r\n\"\"\r\n\"q\n\nr\"\r\n");
    check(
        &session,
        &format!("SELECT a FROM '{path}'"),
        &["x", "NULL", "NULL", "q\n\nr"],
    );
    let path = write(&folder, "h.csv", "1\n\n3");
    let sql = format!("SELECT column_1 + 1 FROM read_csv('{path}', header => false)");
    check(&session, &sql, &["2", "NULL", "4"]);
    let path = write(&folder, "two.csv", "a,b\n1,2\n\n3,4\n");
    check(
        &session,
        &format!("SELECT a, b FROM '{path}'"),
        &["1|2", "3|4"],
    );
    // More rows than a batch, in a compressed file.
    let many = (0..20_000).map(|row| {
        if row % 2 == 0 {
            format!("{row}\n")
        } else {
            "\n".to_string()
        }
    });
    let path = write(
        &folder,
        "many.csv",
        &format!("a\n{}", many.collect::<String>()),
    );
    let target = folder.path().join("packed.csv.gz");
    let sql = format!(
        "COPY (SELECT a FROM '{path}') TO '{}' STORED AS CSV OPTIONS ('format.compression' 'gzip')",
        target.display()
    );
    run(&session, &sql).unwrap();
    for path in [Path::new(&path), &target] {
        let sql = format!(
            "SELECT count(*), count(a), sum(a), max(a) FROM '{}'",
            path.display()
        );
        check(&session, &sql, &["20000|10000|99990000|19998"]);
    }
}

// A quote inside a field opened quotes: empty lines after it were skipped, and a type was taken from no row.
#[test]
fn quotes_inside_fields_are_text() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "q.csv", "x\n5\" tall\n\nb\n\n\n");
    let sql = format!("SELECT x FROM '{path}'");
    check(&session, &sql, &["5\" tall", "NULL", "b", "NULL", "NULL"]);
    let sql = format!("SELECT count(*), count(x) FROM '{path}'");
    check(&session, &sql, &["5|2"]);
    let path = write(&folder, "r.csv", "x\na\"b\n\nz\n\nc\"d\n");
    let sql = format!("SELECT x FROM '{path}'");
    check(&session, &sql, &["a\"b", "NULL", "z", "NULL", "c\"d"]);
    let path = write(&folder, "s.csv", "\u{feff}\"x\n\ny\"\n1\n\n");
    let sql = format!("SELECT * FROM '{path}'");
    check(&session, &sql, &["1", "NULL"]);
    // Longer than the beginning from which types are taken.
    let lines: String = (0..200_000).map(|row| format!("abcdef,{row}\n")).collect();
    for header in [
        "name,n\n5\" tall,1",
        "\"name\",n\n5\" tall,1",
        "5\" tall,n\nx,1",
    ] {
        let path = write(&folder, "long.csv", &format!("{header}\n{lines}"));
        let sql = format!("SELECT arrow_typeof(max(n)), count(*), sum(n) FROM '{path}'");
        check(&session, &sql, &["Int64|200001|19999900001"]);
    }
}

#[test]
fn errors_count_lines_from_one() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for (content, sample) in [
        ("a,b\n1,2\n3,4,5\n", 100),
        ("a,b\n1,2\n3,4,5\n", 1),
        ("a,b\n1,2\nx,4\n", 1),
    ] {
        let path = write(&folder, "x.csv", content);
        let sql = format!("SELECT a + 0 FROM read_csv('{path}', sample_size => {sample})");
        let error = error(&session, &sql);
        assert!(error.to_string().contains("line 3"), "{content}: {error}");
    }
}

// Integers beyond BIGINT became floats, which lost their last digits.
#[test]
fn json_integers_keep_their_digits() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(
        &folder,
        "u.json",
        "{\"a\":18446744073709551615,\"s\":{\"q\":9223372036854775809},\"l\":[9223372036854775809,1]}\n{\"a\":1}\n",
    );
    check(
        &session,
        &format!("SELECT a, arrow_typeof(a), s['q'], l[1] FROM '{path}'"),
        &[
            "18446744073709551615|UInt64|9223372036854775809|9223372036854775809",
            "1|UInt64|NULL|NULL",
        ],
    );
    let path = write(
        &folder,
        "h.json",
        "[{\"a\":9223372036854775808},{\"a\":-1}]",
    );
    check(
        &session,
        &format!("SELECT a, arrow_typeof(a) FROM '{path}'"),
        &[
            "9223372036854775808|Decimal128(38, 0)",
            "-1|Decimal128(38, 0)",
        ],
    );
    let path = write(
        &folder,
        "d.json",
        "{\"a\":18446744073709551617}\n{\"a\":1}\n",
    );
    check(
        &session,
        &format!("SELECT max(a), arrow_typeof(max(a)) FROM '{path}'"),
        &["18446744073709551617|Decimal128(38, 0)"],
    );
    let path = write(
        &folder,
        "e.json",
        "{\"a\":18446744073709551617}\n{\"a\":1.5}\n",
    );
    check(
        &session,
        &format!("SELECT arrow_typeof(max(a)) FROM '{path}'"),
        &["Float64"],
    );
}

// A field that was now a number, now a text was refused.
#[test]
fn json_fields_of_several_types_are_text() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let lines = "{\"b\":1,\"c\":{\"d\":[1,\"x\"]}}\n{\"b\":\"x\"}\n{\"b\":true}\n{\"b\":null}\n{\"b\":1.50}\n";
    let path = write(&folder, "m.json", lines);
    let expected = ["1", "x", "true", "NULL", "1.50"];
    check(&session, &format!("SELECT b FROM '{path}'"), &expected);
    check(
        &session,
        &format!("SELECT count(*), count(b) FROM '{path}'"),
        &["5|4"],
    );
    check(
        &session,
        &format!("SELECT c['d'] FROM '{path}' LIMIT 1"),
        &["[1, x]"],
    );
    let array = format!("[\n{}]", lines.trim_end().replace('\n', "\n,\n"));
    let path = write(&folder, "array.json", &array);
    check(&session, &format!("SELECT b FROM '{path}'"), &expected);
    // Among several files, arrays and lines alike.
    let root = folder.path().display();
    check(
        &session,
        &format!("SELECT count(*), count(DISTINCT b) FROM '{root}/*.json'"),
        &["10|4"],
    );
    write(&folder, "n.json", "{\"b\":7}\n");
    let sql =
        format!("SELECT b FROM read_json(['{root}/n.json', '{root}/m.json']) ORDER BY b LIMIT 2");
    check(&session, &sql, &["1", "1.50"]);
}

// A view over a file that was written anew had NULL in columns that the file no longer has.
#[test]
fn views_see_files_as_they_are() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = write(&folder, "v.csv", "a,b\n1,2\n");
    run(
        &session,
        &format!("CREATE VIEW v AS SELECT * FROM '{path}'"),
    )
    .unwrap();
    run(
        &session,
        "CREATE VIEW w AS SELECT sum(a) AS s FROM v WHERE a IN (SELECT a FROM v)",
    )
    .unwrap();
    check(&session, "SELECT * FROM v", &["1|2"]);
    write(&folder, "v.csv", "a,b\n10,2\n30,4\n");
    check(&session, "SELECT * FROM v", &["10|2", "30|4"]);
    check(&session, "SELECT * FROM w", &["40"]);
    write(&folder, "v.csv", "c,d\nx,2\n");
    for view in ["v", "w"] {
        let error = error(&session, &format!("SELECT * FROM {view}")).to_string();
        for part in [
            "view",
            "v.csv",
            "a Int64",
            "c Utf8",
            "create the view again",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
    run(&session, "SHOW TABLES").unwrap();
    run(
        &session,
        &format!("CREATE OR REPLACE VIEW v AS SELECT * FROM '{path}'"),
    )
    .unwrap();
    check(&session, "SELECT c, d FROM v", &["x|2"]);
    fs::remove_file(&path).unwrap();
    assert!(
        error(&session, "SELECT * FROM v")
            .to_string()
            .contains("v.csv")
    );
    run(&session, "DROP VIEW v").unwrap();
    // A glob is looked up anew.
    let root = folder.path().display();
    write(&folder, "1.csv", "a,b\n1,1\n");
    run(
        &session,
        &format!("CREATE VIEW g AS SELECT a FROM '{root}/*.csv'"),
    )
    .unwrap();
    write(&folder, "2.csv", "a,b\n2,2\n");
    check(&session, "SELECT sum(a) FROM g", &["3"]);
}
