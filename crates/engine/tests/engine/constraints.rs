//! Constraints of tables in memory: rows that do not keep them are refused, all of a statement's.

use std::thread;

use crate::support::{error, rows, session, session_of_threads};
use futures::TryStreamExt;
use grouse::Session;

fn with_table() -> Session {
    let session = session();
    rows(
        &session,
        "CREATE TABLE t(id INT PRIMARY KEY, e VARCHAR UNIQUE, n INT NOT NULL CHECK (n > 0), CHECK (id <> n))",
    );
    rows(
        &session,
        "INSERT INTO t VALUES (1, 'a', 2), (2, NULL, 3), (3, NULL, 1)",
    );
    session
}

#[test]
fn rows_that_do_not_keep_constraints_are_refused() {
    let session = with_table();
    for (sql, says) in [
        (
            "INSERT INTO t VALUES (4, 'b', 1), (1, 'c', 9)",
            "PRIMARY KEY (id) has the value 1 twice",
        ),
        (
            "INSERT INTO t VALUES (7, 'b', 1), (7, 'c', 9)",
            "PRIMARY KEY (id) has the value 7 twice",
        ),
        (
            "INSERT INTO t VALUES (4, 'a', 1)",
            "UNIQUE (e) has the value a twice",
        ),
        ("INSERT INTO t SELECT NULL, 'd', 1", "'id' is NOT NULL"),
        ("INSERT INTO t(id, e) VALUES (4, 'd')", "'n' is NOT NULL"),
        ("INSERT INTO t VALUES (4, 'd', 0)", "CHECK (n > 0)"),
        ("INSERT INTO t VALUES (4, 'd', 4)", "CHECK (id <> n)"),
        (
            "UPDATE t SET id = 9",
            "PRIMARY KEY (id) has the value 9 twice",
        ),
        ("UPDATE t SET n = NULL WHERE id = 1", "'n' is NOT NULL"),
    ] {
        let message = error(&session, sql).to_string();
        assert!(message.contains(says), "{sql}: {message}");
        assert_eq!(
            rows(&session, "SELECT count(*), sum(id), sum(n) FROM t"),
            ["3|6|6"],
            "{sql}"
        );
    }
    rows(&session, "INSERT INTO t VALUES (4, NULL, 9)");
    rows(&session, "UPDATE t SET id = 5 WHERE id = 4");
    rows(&session, "DELETE FROM t WHERE id = 1");
    rows(&session, "INSERT INTO t VALUES (1, 'a', 7)");
    assert_eq!(
        rows(&session, "SELECT id, e FROM t ORDER BY id"),
        ["1|a", "2|NULL", "3|NULL", "5|NULL"]
    );
}

#[test]
fn tables_of_queries_are_checked() {
    let session = session();
    for (sql, says) in [
        (
            "CREATE TABLE u(x INT PRIMARY KEY, y INT) AS VALUES (1, 1), (1, 2)",
            "PRIMARY KEY (x)",
        ),
        (
            "CREATE TABLE u(x INT PRIMARY KEY, y INT) AS VALUES (NULL, 1)",
            "'x' is NOT NULL",
        ),
        (
            "CREATE TABLE u(x INT, y INT, UNIQUE (x, y)) AS VALUES (1, 1), (1, 1)",
            "UNIQUE (x, y) has the value 1, 1 twice",
        ),
        (
            "CREATE TABLE u(x INT NOT NULL) AS SELECT NULL",
            "'x' is NOT NULL",
        ),
        (
            "CREATE TABLE u(x DOUBLE UNIQUE) AS VALUES (0.0), (-0.0)",
            "UNIQUE (x)",
        ),
        (
            "CREATE TABLE u(x INT, UNIQUE NULLS NOT DISTINCT (x)) AS VALUES (NULL), (NULL)",
            "UNIQUE (x)",
        ),
        ("CREATE TABLE u(x INT CHECK (x + 1))", "no condition"),
        ("CREATE TABLE u(x INT, UNIQUE (z))", "'z'"),
    ] {
        let message = error(&session, sql).to_string();
        assert!(message.contains(says), "{sql}: {message}");
        assert!(session.tables().is_empty(), "{sql}");
    }
}

/// DataFusion took a UNIQUE column with several NULL for one that never repeats.
#[test]
fn a_nullable_unique_column_repeats_null() {
    let session = session();
    rows(
        &session,
        "CREATE TABLE u(x INT UNIQUE, y INT) AS VALUES (NULL, 2), (NULL, 1)",
    );
    assert_eq!(rows(&session, "SELECT DISTINCT x FROM u"), ["NULL"]);
    assert_eq!(
        rows(&session, "SELECT x, count(*) FROM u GROUP BY x"),
        ["NULL|2"]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT count(*) FROM (SELECT x, y FROM u GROUP BY x, y)"
        ),
        ["2"]
    );
}

#[test]
fn a_table_that_cannot_be_made_leaves_the_old_one() {
    let session = session();
    rows(&session, "CREATE TABLE u(x INT) AS VALUES (1)");
    error(
        &session,
        "CREATE OR REPLACE TABLE u(x INT PRIMARY KEY) AS VALUES (2), (2)",
    );
    error(
        &session,
        "CREATE OR REPLACE TABLE u AS SELECT CAST('z' AS INT) AS x",
    );
    assert_eq!(rows(&session, "FROM u"), ["1"]);
    rows(
        &session,
        "CREATE OR REPLACE TABLE u AS SELECT x + 1 AS x FROM u",
    );
    assert_eq!(rows(&session, "FROM u"), ["2"]);
    rows(&session, "CREATE TABLE IF NOT EXISTS u(y INT)");
    assert_eq!(rows(&session, "FROM u"), ["2"]);
    assert!(
        error(&session, "CREATE TABLE u(y INT)")
            .to_string()
            .contains("already exists")
    );
}

/// A key without NULL decides the other columns, as in PostgreSQL.
#[test]
fn a_primary_key_decides_the_other_columns() {
    let session = with_table();
    assert_eq!(
        rows(&session, "SELECT id, n FROM t GROUP BY id ORDER BY id"),
        ["1|2", "2|3", "3|1"]
    );
}

// Statements that had looked at the rows before another one changed them ended in an error.
#[test]
fn statements_at_once_change_a_table_one_after_the_other() {
    let session = session_of_threads(2);
    rows(&session, "CREATE TABLE c(id INT PRIMARY KEY, n INT)");
    rows(&session, "INSERT INTO c VALUES (0, 0)");
    thread::scope(|scope| {
        for worker in 0..4 {
            let session = &session;
            scope.spawn(move || {
                for step in 0..10 {
                    let id = 1 + worker * 10 + step;
                    rows(
                        session,
                        &format!("INSERT INTO c VALUES ({id}, 1) RETURNING id"),
                    );
                    rows(
                        session,
                        "INSERT INTO c VALUES (0, 1) ON CONFLICT (id) DO UPDATE SET n = n + 1",
                    );
                    rows(
                        session,
                        "MERGE INTO c USING (SELECT 0 AS id) s ON c.id = s.id WHEN MATCHED THEN UPDATE SET n = c.n + 1",
                    );
                }
            });
        }
    });
    let counted = rows(&session, "SELECT count(*), max(n) FROM c");
    assert_eq!(counted, ["41|80"]);
}

#[test]
fn rows_of_several_batches_are_changed_in_their_places() {
    let session = session();
    rows(
        &session,
        "CREATE TABLE big(id BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
    );
    rows(
        &session,
        "INSERT INTO big SELECT range, 0 FROM range(20000)",
    );
    rows(
        &session,
        "MERGE INTO big USING (SELECT range AS id FROM range(8000, 8400)) s ON big.id = s.id \
         WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.id",
    );
    let counted = "SELECT count(*), count(DISTINCT id), sum(n) FROM big";
    assert_eq!(rows(&session, counted), ["19800|19800|1640000"]);
    rows(
        &session,
        "INSERT INTO big SELECT range, 1 FROM range(7999, 8003) WHERE true ON CONFLICT (id) DO UPDATE SET n = excluded.n",
    );
    assert_eq!(rows(&session, counted), ["19802|19802|1632003"]);
    for (sql, says) in [
        ("INSERT INTO big VALUES (8001, 1) RETURNING n", "8001 twice"),
        (
            "MERGE INTO big USING (SELECT 5 AS id) s ON big.id = s.id WHEN MATCHED THEN UPDATE SET id = 6",
            "6 twice",
        ),
        (
            "INSERT INTO big VALUES (19999, 1) ON CONFLICT (id) DO UPDATE SET n = NULL",
            "'n' is NOT NULL",
        ),
    ] {
        let message = error(&session, sql).to_string();
        assert!(message.contains(says), "{sql}: {message}");
        assert_eq!(rows(&session, counted), ["19802|19802|1632003"], "{sql}");
    }
    // A key that goes is free for the statement that deletes its row.
    rows(
        &session,
        "MERGE INTO big USING (VALUES (5, 6), (6, 5)) s(id, new) ON big.id = s.id WHEN MATCHED THEN UPDATE SET id = s.new, n = 7",
    );
    let swapped = "SELECT id, n FROM big WHERE n = 7 ORDER BY id";
    assert_eq!(rows(&session, swapped), ["5|7", "6|7"]);
    assert_eq!(rows(&session, counted), ["19802|19802|1632017"]);
}

#[test]
fn rows_do_not_go_to_tables_that_have_lost_their_name() {
    for (change, after) in [
        ("DROP TABLE t", None),
        ("CREATE OR REPLACE TABLE t(k INT)", Some("0")),
        ("CREATE OR REPLACE VIEW t AS SELECT 1 AS k", Some("1")),
        ("ALTER TABLE t ADD COLUMN w INT", Some("1")),
        ("ALTER TABLE t RENAME COLUMN k TO j", Some("1")),
    ] {
        let session = session();
        rows(&session, "CREATE TABLE t(k INT)");
        rows(&session, "INSERT INTO t VALUES (1)");
        let insert = session.query("INSERT INTO t VALUES (7)");
        let insert = session.handle().block_on(insert).unwrap();
        rows(&session, change);
        let ended: Result<Vec<_>, _> = session
            .handle()
            .block_on(insert.execute().unwrap().try_collect());
        let message = ended.unwrap_err().to_string();
        assert!(message.contains("run it again"), "{change}: {message}");
        if let Some(after) = after {
            assert_eq!(
                rows(&session, "SELECT count(*) FROM t"),
                [after],
                "{change}"
            );
        }
    }
    // One that only has another name is the same table.
    let session = session();
    rows(&session, "CREATE TABLE t(k INT)");
    let insert = session.query("INSERT INTO t VALUES (7)");
    let insert = session.handle().block_on(insert).unwrap();
    rows(&session, "ALTER TABLE t RENAME TO u");
    let ended: Result<Vec<_>, _> = session
        .handle()
        .block_on(insert.execute().unwrap().try_collect());
    ended.unwrap();
    assert_eq!(rows(&session, "SELECT k FROM u"), ["7"]);
}
