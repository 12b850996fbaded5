//! Samples: how many rows they have, which, and that conditions come after them.

use crate::support::{rows, session, two_streams};

fn number(sql: &str) -> i64 {
    rows(&session(), sql)[0].parse().unwrap()
}

#[test]
fn a_percentage_is_near_its_share() {
    for sql in [
        "SELECT count(*) FROM numbers(100000) TABLESAMPLE BERNOULLI (10)",
        "SELECT count(*) FROM numbers(100000) TABLESAMPLE SYSTEM (10)",
        "SELECT count(*) FROM numbers(100000) USING SAMPLE 10%",
        "SELECT count(*) FROM numbers(100000) USING SAMPLE 10 PERCENT (bernoulli)",
        "SELECT count(*) FROM numbers(100000) SAMPLE 0.1",
        "SELECT count(*) FROM numbers(100000) TABLESAMPLE BERNOULLI (10) REPEATABLE (1)",
        "SELECT count(*) FROM (SELECT 1 FROM numbers(100000)) AS s TABLESAMPLE BERNOULLI (10) REPEATABLE (1)",
        "SELECT count(*) FROM (SELECT 1 FROM numbers(100000)) AS s TABLESAMPLE BERNOULLI (10)",
    ] {
        let rows = number(sql);
        // Nine standard deviations of a binomial distribution.
        assert!((9_150..=10_850).contains(&rows), "{sql}: {rows}");
    }
}

#[test]
fn a_number_of_rows_is_exact_and_spread_over_the_table() {
    for sql in [
        "SELECT count(*) FROM numbers(100000) AS n(v) TABLESAMPLE reservoir(1000 ROWS)",
        "SELECT count(DISTINCT v) FROM numbers(100000) AS n(v) USING SAMPLE 1000",
        "SELECT count(*) FROM numbers(100000) AS n(v) USING SAMPLE 1000 ROWS",
        "SELECT count(*) FROM numbers(100000) AS n(v) USING SAMPLE reservoir(1%)",
        "SELECT count(*) FROM numbers(100000) AS n(v) TABLESAMPLE reservoir(1000 ROWS) REPEATABLE (7)",
    ] {
        assert_eq!(number(sql), 1000, "{sql}");
        let late = sql.replacen("count(*)", "count(*) FILTER (WHERE v >= 50000)", 1);
        let late = late.replacen(
            "count(DISTINCT v)",
            "count(DISTINCT v) FILTER (WHERE v >= 50000)",
            1,
        );
        let late = number(&late);
        // Half of them, within nine standard deviations.
        assert!(
            (357..=643).contains(&late),
            "{sql}: {late} in the second half"
        );
    }
}

#[test]
fn conditions_see_the_sample_and_not_the_table() {
    let sql = "SELECT count(*) FROM numbers(100000) AS n(v) TABLESAMPLE reservoir(1000 ROWS) WHERE v < 10000";
    let rows = number(sql);
    assert!((15..=190).contains(&rows), "{rows}");
    let sql = "SELECT count(*) FROM numbers(100000) AS n(v) WHERE v < 50000 USING SAMPLE 1000 ROWS";
    let rows = number(sql);
    assert!((357..=643).contains(&rows), "{rows}");
}

#[test]
fn a_seed_gives_the_same_rows_with_any_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let made = session();
    rows(
        &made,
        &format!(
            "COPY (SELECT v, v % 7 AS k, NULLIF(v % 3, 0) AS z FROM numbers(50000) AS n(v)) TO '{}'",
            path.display()
        ),
    );
    for sample in [
        "TABLESAMPLE BERNOULLI (3) REPEATABLE (42)",
        "TABLESAMPLE reservoir(500 ROWS) REPEATABLE (42)",
        "TABLESAMPLE reservoir(3%) REPEATABLE (42)",
    ] {
        let sql = format!(
            "SELECT count(*), sum(v), sum(k), sum(z) FROM '{}' {sample}",
            path.display()
        );
        let first = rows(&made, &sql);
        for session in [session(), two_streams()] {
            assert_eq!(rows(&session, &sql), first, "{sql}");
            rows(&session, "SET threads = 5");
            assert_eq!(rows(&session, &sql), first, "{sql}");
        }
        let other = sql.replace("42", "43");
        assert_ne!(rows(&made, &other), first, "{sql}");
    }
}

#[test]
fn equal_rows_are_chosen_one_by_one() {
    let sql = "SELECT k, count(*) FROM (SELECT v % 2 AS k FROM numbers(20000) AS n(v)) AS s \
               TABLESAMPLE BERNOULLI (10) REPEATABLE (5) GROUP BY k ORDER BY k";
    let found = rows(&session(), sql);
    assert_eq!(found.len(), 2, "{found:?}");
    for row in &found {
        let rows: i64 = row.split('|').nth(1).unwrap().parse().unwrap();
        assert!((730..=1270).contains(&rows), "{row}");
    }
    assert_eq!(rows(&session(), sql), found);
}
