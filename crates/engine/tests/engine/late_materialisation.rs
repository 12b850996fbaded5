//! Scans that read the other columns only where a rare condition holds: when they do, and that answers stay the same.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::properties::WriterProperties;
use grouse::{Error, Session};

use crate::support::{
    assert_as_datafusion, by_datafusion, error, rows, two_streams, write_parquet_as,
};

const ROWS: i64 = 60_000;

/// Three row groups. `address` and `title` are long strings with NULLs, one in 2,000 of which has the word `needle`; `id` has
/// 15,000 values in no order, `kind` four.
fn write(path: &Path) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(20_000))
        .set_data_page_row_count_limit(1_000)
        .set_dictionary_page_size_limit(1 << 10)
        .build();
    let text = |salt: i64| -> StringArray {
        let of = |row: i64| {
            let word = if (row + salt) % 1_999 == 7 {
                "needle"
            } else {
                "straw"
            };
            ((row + salt) % 11 != 0).then(|| format!("{salt}/{word}/{row:0100}"))
        };
        (0..ROWS).map(of).collect()
    };
    let id: Int64Array = (0..ROWS)
        .map(|row| (row % 4 != 3).then_some(row * 7_919 % ROWS / 4))
        .collect();
    let kind: StringArray = (0..ROWS)
        .map(|row| Some(["a", "b", "c", ""][row as usize % 4]))
        .collect();
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(id) as ArrayRef),
        ("kind", Arc::new(kind)),
        ("address", Arc::new(text(0))),
        ("title", Arc::new(text(3))),
    ])
    .unwrap();
    write_parquet_as(path, &batch, Some(properties));
}

/// Rows that the scan itself left out.
fn left_out(session: &Session, sql: &str) -> bool {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    assert!(
        plan.contains("GroupByExec") && plan.contains("pushdown_rows_pruned="),
        "{plan}"
    );
    !plan.contains("pushdown_rows_pruned=0,")
}

#[test]
fn rare_conditions_are_read_first_and_answers_stay() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    write(&file);
    let (ours, datafusion) = (two_streams(), by_datafusion(two_streams()));
    for (condition, is_late) in [
        ("address LIKE '%needle%'", true),
        (
            "kind <> '' AND address LIKE '%needle%' AND title NOT LIKE '%needle%'",
            true,
        ),
        ("title LIKE '%needle%' OR title IS NULL", false),
        ("address LIKE '%straw%'", true),
        ("address NOT LIKE '%straw%'", false),
        ("address LIKE '%ne%le%'", false),
        ("address ILIKE '%NEEDLE%' AND id > 5", true),
        ("id = 1001", true),
        ("1001 = id AND kind = 'b'", true),
        ("id = 0", false),
        ("kind = 'a'", false),
        ("id % 3 = 1 AND address LIKE '%needle%' AND id < 9000", true),
    ] {
        let sql = format!(
            "SELECT kind, count(*) AS c, min(title) AS lo, max(address) AS hi, sum(id) AS s FROM '{}' \
             WHERE {condition} GROUP BY kind",
            file.display()
        );
        assert_as_datafusion(&ours, &datafusion, &sql, 0);
        assert_eq!(left_out(&ours, &sql), is_late, "{condition}");
    }
    // Nothing long is left to be read late.
    let sql = format!(
        "SELECT kind, count(*) FROM '{}' WHERE title LIKE '%needle%' GROUP BY kind",
        file.display()
    );
    assert_as_datafusion(&ours, &datafusion, &sql, 0);
    assert!(!left_out(&ours, &sql));
}

#[test]
fn errors_of_other_conditions_are_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    write(&file);
    let session = two_streams();
    let of = |condition: &str| {
        let sql = format!(
            "SELECT kind, min(title) FROM '{}' WHERE address LIKE '%needle%' AND {condition} GROUP BY kind",
            file.display()
        );
        error(&session, &sql)
    };
    let divided = of("10 / (id - id) > 1");
    assert!(matches!(divided.kind(), Error::DivideByZero), "{divided:?}");
    let cast = of("CAST(title AS INT) > 1");
    assert!(matches!(cast, Error::Type { .. }), "{cast:?}");
}
