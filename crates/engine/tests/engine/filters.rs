//! Filters with loops of our own: that plans and scans still know what follows from their form.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::support::{
    Sides, assert_as_datafusion, by_datafusion, error, plan, rows, two_streams, write_parquet_as,
};

const ROWS: i64 = 10_000;

/// Ten row groups: `k` and `s` count up with them, `v` is in no order.
fn table(folder: &TempDir) -> String {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(ROWS as usize / 10))
        .set_bloom_filter_enabled(true)
        .build();
    let k: Int16Array = (0..ROWS).map(|row| Some((row / 700) as i16)).collect();
    let s: StringArray = (0..ROWS)
        .map(|row| Some(format!("s{:02}", row / 700)))
        .collect();
    let v: Int64Array = (0..ROWS).map(|row| Some(row * 7_919 % ROWS)).collect();
    let columns = [
        ("k", Arc::new(k) as ArrayRef),
        ("s", Arc::new(s)),
        ("v", Arc::new(v)),
    ];
    let path = folder.path().join("t.parquet");
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write_parquet_as(&path, &batch, Some(properties));
    format!("'{}'", path.display())
}

#[test]
fn a_column_that_is_compared_stays_constant_in_plans() {
    let folder = TempDir::new().unwrap();
    let table = table(&folder);
    let (ours, datafusion) = (two_streams(), by_datafusion(two_streams()));
    for condition in [
        "k = 3",
        "s = 's03'",
        "k = 3 AND s = 's03'",
        "k <> 3",
        "s <> ''",
    ] {
        let sql = format!(
            "SELECT k, s, v, row_number() OVER (PARTITION BY k, s ORDER BY v) AS n \
             FROM (SELECT * FROM {table} ORDER BY v LIMIT 9000) WHERE {condition}"
        );
        assert_as_datafusion(&ours, &datafusion, &sql, 100);
        let sql =
            format!("SELECT k, s, count(*), sum(v) FROM {table} WHERE {condition} GROUP BY k, s");
        assert_as_datafusion(&ours, &datafusion, &sql, 0);
    }
}

#[test]
fn scans_that_hold_rows_against_a_comparison_still_prune_by_it() {
    let folder = TempDir::new().unwrap();
    let table = table(&folder);
    let session = two_streams();
    rows(
        &session,
        "SET datafusion.execution.parquet.pushdown_filters = true",
    );
    // Pieces that keep the order of rows are cut from what bounds leave.
    rows(&session, "SET preserve_insertion_order = 'off'");
    for condition in ["k = 3", "s = 's03'", "k < 1"] {
        let sql = format!("SELECT v FROM {table} WHERE {condition}");
        assert!(plan(&session, &sql).contains("pruning_predicate="));
        let told = rows(&session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        let by = "row_groups_pruned_statistics=10 total → ";
        let (_, matched) = told.split_once(by).unwrap_or_else(|| panic!("{told}"));
        assert!(
            matched.starts_with(['1', '2']) && !matched.starts_with("10"),
            "{told}"
        );
    }
}

/// Rows in no order: a text of few values and a number, both with NULLs, and one that is 0 in every fifth row.
fn shuffled() -> Sides {
    let folder = TempDir::new().unwrap();
    let number = |row: i64| row * 7_919 % 10_007;
    let t: StringArray = (0..ROWS)
        .map(|row| (number(row) % 11 != 0).then(|| format!("t{}", number(row) % 7)))
        .collect();
    let n: Int64Array = (0..ROWS)
        .map(|row| (number(row) % 13 != 0).then_some(number(row) % 100))
        .collect();
    let z: Int64Array = (0..ROWS).map(|row| Some(number(row) % 5)).collect();
    let batch = RecordBatch::try_from_iter([
        ("t", Arc::new(t) as ArrayRef),
        ("n", Arc::new(n)),
        ("z", Arc::new(z)),
    ]);
    write_parquet_as(&folder.path().join("t.parquet"), &batch.unwrap(), None);
    Sides::over(folder)
}

#[test]
fn rows_that_a_weak_filter_leaves_are_marked() {
    let sides = shuffled();
    for (query, is_marked) in [
        ("t, count(*), sum(z) FROM {} WHERE n > 10 GROUP BY t", true),
        (
            "z, count(*), avg(z) FROM {} WHERE n <> 3 OR t = 't1' GROUP BY z",
            true,
        ),
        // All rows, few.
        (
            "z, count(*) FROM {} WHERE z >= 0 AND length(t) > 0 GROUP BY z",
            true,
        ),
        ("z, count(n), sum(n) FROM {} WHERE n > 95 GROUP BY z", true),
        // NULL is not true; a text that is read row by row; keys and values that are NULL.
        (
            "t, count(*), sum(n), avg(n) FROM {} WHERE t <> 't3' GROUP BY t",
            false,
        ),
        (
            "n, z, count(*) FROM {} WHERE length(t) = 2 GROUP BY n, z",
            true,
        ),
        // More keys than are added up by code, and strings row by row.
        (
            "n * 1000003 AS k, sum(z) FROM {} WHERE z < 4 GROUP BY n * 1000003",
            true,
        ),
        (
            "t || n AS k, count(*) FROM {} WHERE z < 4 GROUP BY t || n",
            false,
        ),
        // What fails for rows that are left out, in keys, arguments and below.
        (
            "z, sum(100 / z), count(*) FROM {} WHERE z <> 0 GROUP BY z",
            true,
        ),
        (
            "100 / z AS k, count(*) FROM {} WHERE z <> 0 GROUP BY 100 / z",
            true,
        ),
        (
            "z, sum(100 / z * n), sum(100 / z * n * (n + 1)), count(*) FROM {} WHERE z <> 0 GROUP BY z",
            true,
        ),
        (
            "z, sum(CAST(n || '' AS INT) / z) FROM {} WHERE z > 0 GROUP BY z",
            true,
        ),
        // Functions that may be dear where they are not wanted.
        (
            "z, sum(CAST(substr(t, 2) AS INT)) FROM {} WHERE t IS NOT NULL GROUP BY z",
            false,
        ),
        (
            "z, sum(length(repeat(t, z))) FROM {} WHERE z < 4 GROUP BY z",
            false,
        ),
        // No aggregates.
        ("DISTINCT z FROM {} WHERE n > 10", true),
        ("z FROM {} WHERE n > 10 GROUP BY z", true),
        // Aggregates that see rows.
        ("z, count(*), max(n) FROM {} WHERE n > 10 GROUP BY z", false),
        (
            "z, count(*) FILTER (WHERE n > 50) FROM {} WHERE n > 10 GROUP BY z",
            false,
        ),
        (
            "z, count(DISTINCT n), count(*) FROM {} WHERE n > 10 GROUP BY z",
            false,
        ),
        (
            "z, t, count(*) FROM {} WHERE n > 10 GROUP BY ROLLUP (z, t)",
            false,
        ),
        ("count(*), sum(n) FROM {} WHERE n > 10", false),
    ] {
        let plan = sides.plan_of_same(query, 0);
        assert_eq!(
            plan.contains("selection=true"),
            is_marked,
            "{query}: {plan}"
        );
    }
}

#[test]
fn a_marking_filter_that_leaves_no_row_gives_no_group() {
    let sides = shuffled();
    let sql = sides.sql("z, count(n) FROM {} WHERE length(t) > 2 GROUP BY z");
    assert!(plan(&sides.ours, &sql).contains("selection=true"));
    assert!(rows(&sides.ours, &sql).is_empty());
}

#[test]
fn marked_rows_are_told_as_the_filter_leaves_them() {
    let sides = shuffled();
    let sql = sides.sql("z, count(*), sum(z) FROM {} WHERE n > 9 GROUP BY z");
    let left = rows(&sides.ours, &sides.sql("count(*) FROM {} WHERE n > 9"));
    let told = rows(&sides.ours, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let filter = told
        .split_once("selection=true, metrics=[")
        .expect("a filter")
        .1;
    let spoken = |rows: &str| format!("{:.2} K", rows.parse::<f64>().unwrap() / 1e3);
    assert!(
        filter.starts_with(&format!("output_rows={}", spoken(&left[0]))),
        "{told}"
    );
    for counter in ["rows_in", "rows_pre_aggregated"] {
        let own = format!("{counter}={}", spoken(&left[0]));
        assert!(told.contains(&own), "{told}");
    }
    // NULLs that the filter leaves out are in nobody's way.
    let sql = sides.sql("z, sum(n) FROM {} WHERE n > 9 GROUP BY z");
    let told = rows(&sides.ours, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let own = format!("rows_pre_aggregated={}", spoken(&left[0]));
    assert!(told.contains(&own), "{told}");
}

#[test]
fn an_error_of_a_row_that_is_left_is_one() {
    let sides = shuffled();
    for query in [
        "z, sum(100 / (z - 1)) FROM {} WHERE z <> 0 GROUP BY z",
        "100 / (z - 1) AS k, count(*) FROM {} WHERE z <> 0 GROUP BY 100 / (z - 1)",
        "z, count(*) FROM {} WHERE 100 / z > 3 GROUP BY z",
    ] {
        let sql = sides.sql(query);
        assert!(
            plan(&sides.ours, &sql).contains("selection=true"),
            "{query}"
        );
        let error = error(&sides.ours, &sql).to_string();
        assert!(error.contains("division by zero"), "{error}");
    }
}

/// A filter of a join on a key of a grouping was put on the file's column of the same name, though the key was computed.
#[test]
fn a_key_with_the_name_of_a_column_is_not_that_column() {
    let folder = TempDir::new().unwrap();
    let table = table(&folder);
    let session = two_streams();
    let keys = format!("(SELECT DISTINCT -v AS v FROM {table}) t");
    let sql =
        format!("SELECT count(*) FROM {keys} JOIN (VALUES (-2), (-9999), (5)) s(x) ON s.x = t.v");
    assert_eq!(rows(&session, &sql), ["2"]);
    let counted =
        format!("(SELECT count(*) FROM (SELECT * FROM {table}) u WHERE u.v = t.v AND u.k < 20)");
    let sql = format!(
        "SELECT DISTINCT {counted} FROM (SELECT -v AS v FROM (SELECT * FROM {table})) t ORDER BY 1"
    );
    assert_eq!(rows(&session, &sql), ["0", "1"]);
}
