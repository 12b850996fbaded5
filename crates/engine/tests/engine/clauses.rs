//! Clauses of the parser's grammar, one statement each: an error that names the clause and its place, or the right rows.

use crate::support::{error, rows, run, session};
use grouse::{Error, Session};

fn with_table() -> Session {
    let session = session();
    rows(
        &session,
        "CREATE TABLE t(k VARCHAR, x INT, d TIMESTAMP) AS VALUES \
         ('a', 1, TIMESTAMP '2024-01-01'), ('a', 2, TIMESTAMP '2024-01-02'), ('b', 3, NULL)",
    );
    rows(
        &session,
        "CREATE TABLE u(x INT, y INT) AS VALUES (1, 10), (2, 20)",
    );
    session
}

/// Statements that are refused, with a part of what the error says; a caret stands before the clause.
const REFUSED: &[(&str, &str)] = &[
    ("SELECT x FROM t ^FOR UPDATE", "FOR UPDATE"),
    ("SELECT x FROM t ^FOR SHARE", "FOR SHARE"),
    ("SELECT x FROM t ^FOR UPDATE OF t NOWAIT", "FOR UPDATE"),
    ("SELECT x FROM t ^FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
    ("SELECT x FROM t ^FOR JSON AUTO", "FOR"),
    ("SELECT x FROM t ^FOR XML AUTO", "FOR"),
    ("SELECT x FROM t ^SETTINGS max_threads = 1", "SETTINGS"),
    ("SELECT x FROM t ^FORMAT JSON", "FORMAT"),
    ("SELECT x FROM t ORDER BY x LIMIT 1 ^FORMAT TSV", "FORMAT"),
    ("SELECT x FROM t ^FINAL", "FINAL"),
    ("SELECT x FROM t ^FINAL WHERE x > 1", "FINAL"),
    ("SELECT x FROM t ^CONNECT BY PRIOR x = x", "CONNECT BY"),
    (
        "SELECT x FROM t ^START WITH x = 1 CONNECT BY PRIOR x = x",
        "START WITH",
    ),
    ("SELECT x FROM t ^CLUSTER BY x", "CLUSTER BY"),
    ("SELECT x FROM t ^SORT BY x", "SORT BY"),
    (
        "SELECT x FROM t ^LATERAL VIEW explode(x) e AS y",
        "LATERAL VIEW",
    ),
    ("SELECT x FROM t ^WITH (NOLOCK)", "WITH"),
    ("SELECT x FROM t ^PARTITION (p0)", "PARTITION"),
    ("SELECT x FROM t GLOBAL JOIN u USING (x)", "GLOBAL"),
    (
        "SELECT x FROM t ORDER BY x ^WITH FILL FROM 0 TO 10",
        "WITH FILL",
    ),
    ("SELECT x FROM t ORDER BY x ^INTERPOLATE (x)", "INTERPOLATE"),
    ("SELECT x FROM t CROSS APPLY u", "CROSS APPLY"),
    ("SELECT x FROM t OUTER APPLY u", "OUTER APPLY"),
    ("SELECT x FROM t ^ARRAY JOIN x", "ARRAY JOIN"),
    ("SELECT x FROM (SELECT x ^INTO w FROM t)", "INTO"),
    (
        "WITH RECURSIVE ^r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r LIMIT 3) SELECT * FROM r",
        "LIMIT",
    ),
    (
        "WITH RECURSIVE ^r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3 ORDER BY n) SELECT * FROM r",
        "ORDER BY",
    ),
    (
        "SELECT x FROM t INTERSECT BY NAME SELECT x FROM u",
        "INTERSECT BY NAME",
    ),
    ("SELECT x FROM t |> SET x = 1", "SET"),
    ("SELECT x FROM t |> DROP x", "DROP"),
    ("SELECT x FROM t |> RENAME x AS y", "RENAME"),
    (
        "SELECT x FROM t |> TABLESAMPLE BERNOULLI (10)",
        "TABLESAMPLE",
    ),
    (
        "SELECT x FROM t |> AGGREGATE sum(x) GROUP BY k DESC",
        "AGGREGATE",
    ),
    ("SELECT * FROM t WITH ORDINALITY", "WITH ORDINALITY"),
    (
        "SELECT * FROM UNNEST([1, 2]) WITH OFFSET AS o",
        "WITH OFFSET",
    ),
    (
        "SELECT * FROM JSON_TABLE('[]', '$' COLUMNS (a INT PATH '$.a')) AS j",
        "JSON_TABLE",
    ),
    (
        "SELECT * FROM t MATCH_RECOGNIZE (MEASURES x AS y PATTERN (a) DEFINE a AS x > 1)",
        "MATCH_RECOGNIZE",
    ),
    // Functions.
    ("SELECT upper(k) ^FILTER (WHERE x > 1) FROM t", "FILTER"),
    ("SELECT upper(k) ^OVER () FROM t", "OVER"),
    ("SELECT upper(^DISTINCT k) FROM t", "DISTINCT"),
    ("SELECT upper(k ^ORDER BY k) FROM t", "ORDER BY"),
    (
        "SELECT upper(k) ^WITHIN GROUP (ORDER BY k) FROM t",
        "WITHIN GROUP",
    ),
    ("SELECT upper(k) IGNORE NULLS FROM t", "NULLS"),
    (
        "SELECT row_number() ^FILTER (WHERE x > 1) OVER () FROM t",
        "FILTER",
    ),
    (
        "SELECT rank() ^IGNORE NULLS OVER (ORDER BY x) FROM t",
        "IGNORE NULLS",
    ),
    ("SELECT sum(x) IGNORE NULLS OVER () FROM t", "NULLS"),
    ("SELECT array_agg(x ^LIMIT 2) FROM t", "LIMIT"),
    ("SELECT array_agg(k ^HAVING MAX x) FROM t", "HAVING"),
    (
        "SELECT string_agg(k, ',' ^ON OVERFLOW ERROR) FROM t",
        "ON OVERFLOW",
    ),
    ("SELECT sum(x) OVER ^w FROM t", "window 'w'"),
    ("SELECT sum(x) OVER (^w ORDER BY x) FROM t", "window 'w'"),
    ("SELECT quantileExact(0.5)(x) FROM t", "parameters"),
    // Expressions.
    (
        "SELECT CAST(k AS TIMESTAMP ^FORMAT 'YYYY') FROM t",
        "FORMAT",
    ),
    ("SELECT k FROM t WHERE k NOT LIKE ^ANY ('a', 'b')", "ANY"),
    ("SELECT CONVERT(x, CHAR) FROM t", "CONVERT"),
    ("SELECT floor(d ^TO DAY) FROM t", "TO"),
    ("SELECT INTERVAL '1' DAY ^TO SECOND", "TO"),
    ("SELECT STRUCT<a INT>(1)", "STRUCT"),
    // Writing.
    ("DELETE FROM t WHERE x > 0 ^LIMIT 1", "LIMIT"),
    ("UPDATE t SET x = 1 WHERE x = 2 ^LIMIT 1", "LIMIT"),
    ("UPDATE t SET x = 1 ^ORDER BY x", "ORDER BY"),
    ("INSERT ^OVERWRITE TABLE u SELECT 1, 2", "OVERWRITE"),
    (
        "EXPLAIN INSERT INTO u VALUES (1, 2) ^ON CONFLICT DO NOTHING",
        "ON",
    ),
    (
        "EXPLAIN INSERT INTO u VALUES (1, 2) ^RETURNING x",
        "RETURNING",
    ),
    (
        "EXPLAIN ^MERGE INTO u USING t ON u.x = t.x WHEN MATCHED THEN DELETE",
        "MERGE",
    ),
    ("TRUNCATE TABLE t, u", "TRUNCATE"),
    ("TRUNCATE TABLE t ^CASCADE", "CASCADE"),
    ("^BEGIN", "BEGIN"),
    ("^COMMIT", "COMMIT"),
    ("^ROLLBACK", "ROLLBACK"),
    ("^SAVEPOINT s", "transactions"),
    ("^RELEASE SAVEPOINT s", "transactions"),
    ("^START TRANSACTION", "transactions"),
    ("^END", "transactions"),
    ("EXPLAIN ^DELETE FROM t", "DELETE"),
    // Definitions.
    ("CREATE TABLE w (x INT ^REFERENCES t(x))", "REFERENCES"),
    (
        "CREATE TABLE w (x INT, ^FOREIGN KEY (x) REFERENCES t(x))",
        "FOREIGN KEY",
    ),
    ("CREATE TABLE w (x VARCHAR ^COLLATE nocase)", "COLLATE"),
    ("CREATE TABLE w (x INT ^COMMENT 'c')", "COMMENT"),
    (
        "CREATE TABLE w (x INT GENERATED ALWAYS AS IDENTITY)",
        "generated",
    ),
    (
        "CREATE TABLE w (x INT, y INT GENERATED ALWAYS AS (x + 1) STORED)",
        "generated",
    ),
    (
        "CREATE TABLE w (x INT PRIMARY KEY DEFERRABLE)",
        "DEFERRABLE",
    ),
    ("CREATE TABLE w (x INT) ^WITH (fillfactor = 70)", "WITH"),
    ("CREATE TABLE w ^LIKE t WITH (a = 1)", "LIKE"),
    ("CREATE TABLE w (x INT) ^PARTITION BY x", "PARTITION BY"),
    ("CREATE TABLE w (x INT) ^CLUSTER BY (x)", "CLUSTER BY"),
    ("CREATE TABLE w (x INT) ENGINE = Memory", "option"),
    ("CREATE ^MATERIALIZED VIEW w AS SELECT 1", "MATERIALIZED"),
    ("CREATE ^SECURE VIEW w AS SELECT 1", "SECURE"),
    ("^CREATE INDEX i ON t (x)", "INDEX"),
    ("^CREATE SEQUENCE s AS INT", "CREATE SEQUENCE"),
    ("^VACUUM", "VACUUM"),
    ("^GRANT SELECT ON t TO me", "GRANT"),
    ("DROP TABLE t ^CASCADE", "CASCADE"),
    ("DROP TABLE t, u", "DROP"),
    ("SHOW TABLES ^LIKE 'a'", "LIKE"),
    // Values of clauses.
    ("^SELECT x FROM t LIMIT 2 FETCH FIRST 1 ROWS ONLY", "two of"),
    ("SELECT x FROM t TABLESAMPLE BERNOULLI (120)", "percent"),
    ("SELECT x FROM t TABLESAMPLE (10)", "PERCENT"),
    (
        "SELECT x FROM t TABLESAMPLE BERNOULLI (10 ROWS)",
        "reservoir",
    ),
    ("SELECT x FROM t TABLESAMPLE (BUCKET 1 OUT OF 4)", "buckets"),
    ("^SELECT k FROM t GROUP BY ALL WITH ROLLUP", "GROUP BY ALL"),
    (
        "^SELECT k FROM t GROUP BY k WITH ROLLUP WITH CUBE",
        "more than one",
    ),
    (
        "SELECT x FROM t JOIN u USING (x) ^USING SAMPLE 10%",
        "USING SAMPLE",
    ),
];

#[test]
fn clauses_that_nobody_plans_are_refused_at_their_place() {
    let session = with_table();
    let mut wrong = Vec::new();
    for (marked, says) in REFUSED {
        let place = marked
            .find('^')
            .filter(|_| !marked.contains("(+)") || marked.contains("^("));
        let sql = marked.replacen('^', "", 1);
        match run(&session, &sql) {
            Ok(_) => wrong.push(format!("{sql}: was run")),
            Err(error) => {
                let message = error.to_string();
                if !message.contains(says) {
                    wrong.push(format!("{sql}: {message}"));
                }
                if message.contains(" { ") || message.contains("Some(") {
                    wrong.push(format!("{sql}: speaks Rust: {message}"));
                }
                let column = error.position().map(|at| at.column);
                let expected = place.map(|at| at as u64 + 1);
                if expected.is_some()
                    && column != expected
                    && !matches!(error, Error::Syntax { .. })
                {
                    wrong.push(format!("{sql}: at {column:?}, not {expected:?}: {message}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        REFUSED.len(),
        wrong.join("\n")
    );
    assert_eq!(rows(&session, "SELECT count(*), sum(x) FROM t"), ["3|6"]);
    assert_eq!(rows(&session, "SELECT count(*), sum(y) FROM u"), ["2|30"]);
}

/// Statements that are planned, and their rows.
const PLANNED: &[(&str, &[&str])] = &[
    (
        "SELECT k, sum(x) FROM t GROUP BY k WITH ROLLUP ORDER BY k NULLS LAST",
        &["a|3", "b|3", "NULL|6"],
    ),
    (
        "SELECT k, sum(x) FROM t GROUP BY 1 WITH ROLLUP ORDER BY k NULLS LAST",
        &["a|3", "b|3", "NULL|6"],
    ),
    (
        "SELECT k, x, count(*) FROM t GROUP BY k, x WITH CUBE ORDER BY k NULLS FIRST, x NULLS FIRST LIMIT 3",
        &["NULL|NULL|3", "NULL|1|1", "NULL|2|1"],
    ),
    (
        "SELECT k, sum(x) AS s FROM t GROUP BY k WITH TOTALS ORDER BY s DESC, k",
        &["a|3", "b|3", "NULL|6"],
    ),
    (
        "SELECT k, sum(x) AS s FROM t GROUP BY k WITH TOTALS ORDER BY s DESC, k DESC",
        &["b|3", "a|3", "NULL|6"],
    ),
    ("SELECT x FROM t PREWHERE k = 'a' WHERE x > 1", &["2"]),
    (
        "SELECT x FROM t PREWHERE k = 'a' OR k = 'b' WHERE x > 1 OR x < 0 ORDER BY x",
        &["2", "3"],
    ),
    ("FROM u", &["1|10", "2|20"]),
    ("FROM u WHERE x > 1", &["2|20"]),
    ("FROM u SELECT y WHERE x = 1", &["10"]),
    (
        "FROM t SELECT k, sum(x) GROUP BY k ORDER BY k",
        &["a|3", "b|3"],
    ),
    ("WITH c AS (FROM u) FROM c ORDER BY x LIMIT 1", &["1|10"]),
    ("SELECT * FROM (FROM u WHERE x > 1)", &["2|20"]),
    (
        "(FROM u WHERE x = 1) UNION ALL FROM u WHERE x = 2 ORDER BY x",
        &["1|10", "2|20"],
    ),
    ("SELECT extract(year FROM d) FROM t WHERE x = 1", &["2024"]),
    ("SELECT x IS DISTINCT FROM 1 FROM u WHERE x = 1", &["false"]),
    ("SELECT x FROM t MINUS SELECT x FROM u", &["3"]),
    ("SELECT 1_000_000", &["1000000"]),
    ("SELECT 1_0.2_5", &["10.25"]),
    ("SELECT 2 ^ 3", &["8.0"]),
    (
        "SELECT -2 ^ 2, 2 ^ 3 ^ 2, 2 * 3 ^ 2, 2 ^ -1",
        &["4.0|64.0|18.0|0.5"],
    ),
    (
        "SELECT 2 ** 3, -2 ** 2, 2 ** 3 ** 2, 2 ** 3::INT",
        &["8.0|4.0|64.0|8.0"],
    ),
    (
        "SELECT 1 - -x, - x + 2, 3 - 1 FROM u WHERE x = 1",
        &["2|1|2"],
    ),
    (
        "SELECT x FROM t ORDER BY x FETCH FIRST 2 ROWS ONLY",
        &["1", "2"],
    ),
    (
        "SELECT x FROM t ORDER BY x OFFSET 1 ROW FETCH NEXT ROW ONLY",
        &["2"],
    ),
    (
        "SELECT k FROM t ORDER BY k FETCH FIRST 1 ROW WITH TIES",
        &["a", "a"],
    ),
    (
        "SELECT x FROM t ORDER BY x FETCH FIRST 50 PERCENT ROWS ONLY",
        &["1", "2"],
    ),
    ("SELECT TOP 2 x FROM t ORDER BY x DESC", &["3", "2"]),
    ("SELECT TOP 1 WITH TIES k FROM t ORDER BY k", &["a", "a"]),
    (
        "SELECT n AS x FROM numbers(10) AS s(n) ORDER BY x DESC LIMIT 35%",
        &["9", "8", "7"],
    ),
    (
        "SELECT n FROM numbers(11) AS s(n) ORDER BY n LIMIT 25% OFFSET 2",
        &["2", "3"],
    ),
    (
        "SELECT n FROM numbers(10) AS s(n) ORDER BY 1 LIMIT (10 + 15)%",
        &["0", "1"],
    ),
    (
        "SELECT n FROM numbers(10) AS s(n) ORDER BY n LIMIT 20 PERCENT",
        &["0", "1"],
    ),
    ("SELECT DISTINCT k FROM t ORDER BY k LIMIT 50%", &["a"]),
    (
        "SELECT k, sum(x) FROM t GROUP BY k ORDER BY k DESC LIMIT 50%",
        &["b|3"],
    ),
    (
        "SELECT x FROM t UNION ALL SELECT 9 ORDER BY x LIMIT 50%",
        &["1", "2"],
    ),
    ("SELECT 7 LIMIT 10 % 3", &["7"]),
    ("SELECT sum(x) FROM t GROUP BY ()", &["6"]),
    ("SELECT 1 FROM t GROUP BY ()", &["1"]),
    ("SELECT 1 FROM t WHERE false GROUP BY ()", &["1"]),
    (
        "SELECT count(*), sum(x) FROM t WHERE false GROUP BY ()",
        &["0|NULL"],
    ),
    (
        "SELECT k, count(*) FROM t GROUP BY k, () ORDER BY k",
        &["a|2", "b|1"],
    ),
    (
        "SELECT k, count(*) FROM t GROUP BY DISTINCT k ORDER BY k",
        &["a|2", "b|1"],
    ),
    (
        "SELECT k, count(*) FROM t GROUP BY DISTINCT ROLLUP (k), ROLLUP (k) ORDER BY k NULLS LAST",
        &["a|2", "b|1", "NULL|3"],
    ),
    (
        "SELECT k, count(*) FROM t GROUP BY ROLLUP (1) ORDER BY k NULLS LAST",
        &["a|2", "b|1", "NULL|3"],
    ),
    ("SELECT k, x FROM t ORDER BY ALL", &["a|1", "a|2", "b|3"]),
    (
        "SELECT k, x + 1 FROM t ORDER BY ALL DESC",
        &["b|4", "a|3", "a|2"],
    ),
    ("SELECT * FROM u ORDER BY ALL DESC", &["2|20", "1|10"]),
    (
        "SELECT x FROM u UNION ALL SELECT 0 ORDER BY ALL",
        &["0", "1", "2"],
    ),
    (
        "SELECT k, sum(x) FROM t GROUP BY ALL ORDER BY ALL",
        &["a|3", "b|3"],
    ),
    (
        "SELECT x, sum(x) OVER w FROM t WINDOW w AS (ORDER BY x) ORDER BY x",
        &["1|1", "2|3", "3|6"],
    ),
    (
        "SELECT x FROM t WINDOW w AS (PARTITION BY k) ORDER BY count(*) OVER w, x",
        &["3", "1", "2"],
    ),
    (
        "SELECT x FROM t QUALIFY row_number() OVER w = 1 WINDOW w AS (PARTITION BY k ORDER BY x DESC) ORDER BY x",
        &["2", "3"],
    ),
    (
        "SELECT x, sum(x) OVER (w ORDER BY x) FROM t WINDOW w AS (PARTITION BY k) ORDER BY x",
        &["1|1", "2|3", "3|3"],
    ),
    (
        "WITH RECURSIVE c AS (SELECT x FROM u UNION ALL SELECT 5 ORDER BY x DESC LIMIT 1) SELECT * FROM c",
        &["5"],
    ),
    (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n",
        &["1", "2", "3"],
    ),
    (
        "SELECT CAST({'a': 1, 'b': 'x'} AS STRUCT(a INT, b VARCHAR)).b",
        &["x"],
    ),
    (
        "SELECT arrow_typeof(CAST(NULL AS STRUCT<a INT>))",
        &["Struct(\"a\": Int32)"],
    ),
    (
        "SELECT (NULL::STRUCT(a STRUCT(b INT, c VARCHAR(3))[], d DECIMAL(10, 2))).d",
        &["NULL"],
    ),
    ("SELECT /*+ PARALLEL(4) */ x FROM u ORDER BY x", &["1", "2"]),
    (
        "SELECT count(*) FROM t TABLESAMPLE reservoir(2 ROWS)",
        &["2"],
    ),
    (
        "SELECT count(*) FROM numbers(1000) USING SAMPLE reservoir(20%)",
        &["200"],
    ),
    ("SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100)", &["3"]),
    ("SELECT count(*) FROM t TABLESAMPLE SYSTEM (0)", &["0"]),
    (
        "FROM t USING SAMPLE 100% (bernoulli) ORDER BY x LIMIT 1",
        &["a|1|2024-01-01T00:00:00"],
    ),
];

#[test]
fn clauses_that_users_mean_give_their_rows() {
    let session = with_table();
    let mut wrong = Vec::new();
    for (sql, expected) in PLANNED {
        match run(&session, sql) {
            Ok(_) => {
                let found = rows(&session, sql);
                if found != *expected {
                    wrong.push(format!("{sql}: {found:?}"));
                }
            }
            Err(error) => wrong.push(format!("{sql}: {error}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        PLANNED.len(),
        wrong.join("\n")
    );
}

/// A condition that never holds is gone from the plan, in which DataFusion looks for it: all rows were deleted.
#[test]
fn a_condition_that_never_holds_changes_no_row() {
    let session = with_table();
    for sql in [
        "DELETE FROM t WHERE 1 = 0",
        "DELETE FROM t WHERE x > 5 AND x < 3",
        "DELETE FROM t WHERE NULL",
        "DELETE FROM t WHERE x = 77",
        "UPDATE t SET x = 0 WHERE false",
        "UPDATE t SET x = 0 WHERE x > 5 AND x < 3",
    ] {
        assert_eq!(rows(&session, sql), ["0"], "{sql}");
        assert_eq!(
            rows(&session, "SELECT count(*), sum(x) FROM t"),
            ["3|6"],
            "{sql}"
        );
    }
    assert_eq!(rows(&session, "DELETE FROM t WHERE x = 2"), ["1"]);
    assert_eq!(
        rows(&session, "UPDATE t SET x = x + 10 WHERE k = 'b'"),
        ["1"]
    );
    assert_eq!(
        rows(&session, "SELECT k, x FROM t ORDER BY x"),
        ["a|1", "b|13"]
    );
}

#[test]
fn from_first_makes_tables_and_files() {
    let session = with_table();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("u.csv");
    rows(&session, "CREATE TABLE v AS FROM u");
    assert_eq!(rows(&session, "SELECT sum(y) FROM v"), ["30"]);
    rows(&session, "CREATE VIEW vv AS FROM u WHERE x = 2");
    assert_eq!(rows(&session, "FROM vv"), ["2|20"]);
    rows(&session, "INSERT INTO v FROM u WHERE x = 1");
    assert_eq!(rows(&session, "SELECT sum(y) FROM v"), ["40"]);
    rows(
        &session,
        &format!("COPY (FROM u WHERE x = 1) TO '{}'", path.display()),
    );
    assert_eq!(
        rows(&session, &format!("FROM '{}'", path.display())),
        ["1|10"]
    );
    assert!(!rows(&session, "EXPLAIN FROM u").is_empty());
}

#[test]
fn underscores_stand_between_digits() {
    for sql in ["SELECT 1_", "SELECT 1__0", "SELECT 1_.5"] {
        assert!(
            matches!(error(&session(), sql), Error::Syntax { .. }),
            "{sql}"
        );
    }
}

#[test]
fn a_place_in_a_script_is_that_of_the_clause() {
    let failed = error(
        &with_table(),
        "SELECT\n  x -- FOR UPDATE\nFROM t\n  FOR UPDATE",
    );
    let at = failed.position().unwrap();
    assert_eq!((at.line, at.column), (4, 3), "{failed}");
}
