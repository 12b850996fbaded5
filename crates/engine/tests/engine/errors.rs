//! Errors: their kind, their place in the text, the names that are near.

use std::sync::Arc;

use crate::support::{error, rows, run, sample, session};
use datafusion::datasource::MemTable;
use grouse::{Error, Position, Session};

fn with_table() -> Session {
    let session = session();
    let batch = sample();
    session
        .register(
            "people",
            Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()),
        )
        .unwrap();
    session
}

#[test]
fn syntax_errors_have_a_position() {
    for (sql, line, column) in [
        ("SELEC 1", 1, 1),
        ("SELECT 1\nFROM (", 2, 7),
        ("SELECT 'x", 1, 8),
        ("SELECT 1; SELECT 2", 1, 11),
        ("", 1, 1),
    ] {
        match error(&session(), sql) {
            Error::Syntax {
                line: l,
                column: c,
                message,
            } => {
                assert_eq!((l, c), (line, column), "{sql}: {message}");
                assert!(!message.is_empty());
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

/// What a statement stands for is text of ours, whose places mean nothing to whoever wrote the statement.
#[test]
fn places_are_those_of_the_text_that_was_written() {
    let session = session();
    rows(&session, "CREATE TABLE t(id INT PRIMARY KEY, v INT)");
    for marked in [
        "DELETE FROM t RETURNING ^nope",
        "DELETE FROM t RETURNING ^t.nope",
        "INSERT INTO t VALUES (1, 2) RETURNING id, ^nope",
        "INSERT INTO t VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = ^nope",
        "UPDATE t SET v = ^nope FROM t AS o WHERE t.id = o.id",
        "UPDATE t SET v = 1 FROM t AS o WHERE t.id =\n ^o.nope",
        "MERGE INTO t USING t AS n ON t.id = ^n.nope WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING t AS n ON t.id = n.id WHEN MATCHED THEN UPDATE SET v = ^n.nope",
    ] {
        let sql = marked.replace('^', "");
        if sql.contains("CONFLICT") {
            rows(&session, "INSERT INTO t VALUES (1, 1)");
        }
        let place = marked.find('^').unwrap();
        let lines: Vec<&str> = marked[..place].split('\n').collect();
        let expected = Position {
            line: lines.len() as u64,
            column: lines.last().unwrap().len() as u64 + 1,
        };
        let error = error(&session, &sql);
        assert_eq!(error.position(), Some(expected), "{sql}: {error}");
    }
}

#[test]
fn unknown_columns_have_a_position_and_neighbours() {
    match error(&with_table(), "SELECT id,\n  nme FROM people") {
        Error::UnknownColumn {
            name,
            nearest,
            position,
        } => {
            assert_eq!(name, "nme");
            assert_eq!(nearest, ["name"]);
            assert_eq!(position, Some(Position { line: 2, column: 3 }));
        }
        other => panic!("{other:?}"),
    }
    let qualified = error(&with_table(), "SELECT p.idd FROM people p");
    assert!(
        matches!(&qualified, Error::UnknownColumn { nearest, .. } if nearest == &["id"]),
        "{qualified:?}"
    );
}

#[test]
fn unknown_tables_and_functions_have_neighbours() {
    match error(&with_table(), "SELECT * FROM\n peple") {
        Error::UnknownTable {
            name,
            nearest,
            position,
        } => {
            assert_eq!(
                (name.as_str(), nearest),
                ("peple", vec!["people".to_string()])
            );
            assert_eq!(position, Some(Position { line: 2, column: 2 }));
        }
        other => panic!("{other:?}"),
    }
    match error(&with_table(), "SELECT summ(id) FROM people") {
        Error::UnknownFunction { name, nearest, .. } => {
            assert_eq!(name, "summ");
            assert!(nearest.contains(&"sum".to_string()), "{nearest:?}");
        }
        other => panic!("{other:?}"),
    }
    let table_function = error(&with_table(), "SELECT * FROM number(3)");
    assert!(
        matches!(&table_function, Error::UnknownFunction { nearest, .. } if nearest.contains(&"numbers".to_string())),
        "{table_function:?}"
    );
}

#[test]
fn ambiguous_columns_are_told_apart_from_unknown_ones() {
    let error = error(&with_table(), "SELECT id FROM people a, people b");
    assert!(
        matches!(&error, Error::AmbiguousColumn { name, .. } if name == "id"),
        "{error:?}"
    );
}

#[test]
fn kinds() {
    let session = with_table();
    type Check = fn(&Error) -> bool;
    let cases: &[(&str, Check)] = &[
        ("SELECT name + 1 FROM people WHERE id = 1", |e| {
            matches!(e, Error::Type { .. })
        }),
        ("SELECT sum(name) FROM people", |e| {
            matches!(e, Error::Type { .. })
        }),
        ("SELECT CAST('x' AS INT)", |e| {
            matches!(e, Error::Type { .. })
        }),
        ("SELECT id / (id - id) FROM people", |e| {
            matches!(e, Error::DivideByZero)
        }),
        ("SELECT 1 / 0", |e| matches!(e, Error::DivideByZero)),
        ("SELECT id FROM people GROUP BY name", |e| {
            matches!(e, Error::Planning { .. })
        }),
        ("SELECT 9223372036854775807 + id FROM people", |e| {
            matches!(e, Error::Overflow { .. })
        }),
        ("SELECT 9223372036854775807 + 1", |e| {
            matches!(e, Error::Overflow { .. })
        }),
        ("SELECT id AS a FROM people WHERE sum(id) > 1", |e| {
            matches!(e, Error::Planning { .. })
        }),
    ];
    for (sql, check) in cases {
        let error = error(&session, sql);
        assert!(check(&error), "{sql}: {error:?}");
        let text = error.to_string();
        for inner in [
            "DataFusion",
            "Error during planning",
            "backtrace",
            "ArrowError",
        ] {
            assert!(!text.contains(inner), "{sql}: {text}");
        }
    }
}

#[test]
fn arithmetic_that_overflows_is_an_error_wherever_it_stands() {
    let session = with_table();
    for sql in [
        "SELECT id * 9223372036854775807 FROM people",
        "SELECT -9223372036854775807 - id FROM people",
        "SELECT -x FROM (VALUES (-9223372036854775808)) AS t(x)",
        "SELECT 1 - number FROM numbers(3)",
        "SELECT count(*) FROM people WHERE id * 9223372036854775807 > 0",
        "SELECT id * 9223372036854775807, count(*) FROM people GROUP BY 1",
        "SELECT name, max(id * 9223372036854775807) FROM people GROUP BY name",
        "SELECT count(*) FILTER (WHERE id * 9223372036854775807 > 0) FROM people",
        "SELECT name FROM people ORDER BY id * 9223372036854775807",
        "SELECT count(*) FROM people a JOIN people b ON a.id * 9223372036854775807 > b.id",
        "SELECT count(*) FROM people a JOIN people b \
         ON a.name = b.name AND a.id * 9223372036854775807 + b.id > 0",
        "SELECT 2 * (9223372036854775807 - 1)",
        "SELECT abs(-9223372036854775807) + 2",
        "SELECT id FROM people WHERE id < 9223372036854775807 + 1",
        "WITH m AS (SELECT 9223372036854775807 AS x) SELECT x + 1 FROM m",
    ] {
        match error(&session, sql) {
            Error::Overflow { aggregate, message } => {
                assert_eq!(aggregate, "arithmetic", "{sql}");
                assert!(
                    message.contains("does not fit its type"),
                    "{sql}: {message}"
                );
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn arithmetic_that_fits_has_its_value() {
    let session = with_table();
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT sum(id + 1), max(-id), min(id * id), sum(id - 2) FROM people",
            &["9|-1|1|0"],
        ),
        (
            "SELECT id % 2 * 10 - 5 AS k, count(*) FROM people WHERE id * 2 > 2 GROUP BY k ORDER BY k",
            &["-5|1", "5|1"],
        ),
        (
            "SELECT 9223372036854775804 + id FROM people ORDER BY -id LIMIT 1",
            &["9223372036854775807"],
        ),
        ("SELECT 9223372036854775806 + 1", &["9223372036854775807"]),
        (
            "SELECT CASE WHEN false THEN 9223372036854775807 + 1 ELSE 0 END",
            &["0"],
        ),
        (
            "SELECT 18446744073709551614 + number FROM numbers(2) ORDER BY 1",
            &["18446744073709551614", "18446744073709551615"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(rows(&session, sql), *expected, "{sql}");
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let sql = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    let start = std::time::Instant::now();
    let error = error(&session(), &sql);
    assert!(matches!(error, Error::Syntax { .. }), "{error:?}");
    eprintln!("parentheses: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let sql = format!("SELECT {}", vec!["1"; 1000].join(" + "));
    let _ = run(&session(), &sql);
    eprintln!("sum: {:?}", start.elapsed());
}
