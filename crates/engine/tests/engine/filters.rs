//! Filters with loops of our own: that plans and scans still know what follows from their form.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::support::{assert_as_host, by_host, plan, rows, two_streams, write_parquet_as};

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
    let (ours, host) = (two_streams(), by_host(two_streams()));
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
        assert_as_host(&ours, &host, &sql, 100);
        let sql =
            format!("SELECT k, s, count(*), sum(v) FROM {table} WHERE {condition} GROUP BY k, s");
        assert_as_host(&ours, &host, &sql, 0);
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
