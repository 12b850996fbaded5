//! Group keys as short as the footers of Parquet files allow: who gets them, that answers are the same, and what a footer
//! that lies comes to.

use std::path::Path;
use std::sync::Arc;

use crate::support::{
    assert_as_datafusion, by_datafusion, error, plan, rows, session, sorted, write_parquet,
};
use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray, new_null_array,
};
use tempfile::TempDir;

const ROWS: i64 = 20_000;

/// Keys of many groups, so that no direct table holds them; `n` has NULLs.
fn table(shift: i64) -> RecordBatch {
    let each = |of: fn(i64) -> i64| (0..ROWS).map(move |row| of(row) + shift);
    let id: Int64Array = each(|row| row * 7 % 5_000 - 2_000).map(Some).collect();
    let n: Int64Array = each(|row| row % 701)
        .map(|n| (n % 10 != 3).then_some(n))
        .collect();
    let day: Date32Array = each(|row| row % 900).map(|day| Some(day as i32)).collect();
    let price = each(|row| row * 31 % 4_000).map(|cents| Some(i128::from(cents)));
    let price = Decimal128Array::from_iter(price);
    let price = price.with_precision_and_scale(15, 2).expect("15 digits");
    let ratio: Float64Array = each(|row| row % 50).map(|n| Some(n as f64 / 8.0)).collect();
    let name: StringArray = each(|row| row % 3_000)
        .map(|n| Some(format!("{n}")))
        .collect();
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(id) as ArrayRef, true),
        ("n", Arc::new(n), true),
        ("day", Arc::new(day), true),
        ("price", Arc::new(price), true),
        ("ratio", Arc::new(ratio), true),
        ("name", Arc::new(name), true),
    ])
    .unwrap()
}

fn two_files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_parquet(&folder.path().join("a.parquet"), &table(0));
    write_parquet(&folder.path().join("b.parquet"), &table(100));
    // Files without values have no bounds.
    let schema = table(0).schema();
    let nulls = schema.fields().iter();
    let nulls = nulls.map(|field| new_null_array(field.data_type(), 3));
    let nulls = RecordBatch::try_new(Arc::clone(&schema), nulls.collect()).unwrap();
    write_parquet(&folder.path().join("c.parquet"), &nulls);
    write_parquet(
        &folder.path().join("d.parquet"),
        &RecordBatch::new_empty(schema),
    );
    folder
}

#[test]
fn keys_have_the_bits_that_their_values_need() {
    let folder = two_files();
    let files = format!("'{}/*.parquet'", folder.path().display());
    let (ours, datafusion) = (session(), by_datafusion(session()));
    // Each column can be NULL as far as the file's schema says, which takes a bit.
    for (query, bits) in [
        ("id, n, count(*) FROM {} GROUP BY id, n", Some(13 + 10 + 2)),
        (
            "id, day, price, count(*) FROM {} WHERE n > 5 GROUP BY id, day, price",
            Some(13 + 10 + 13 + 3),
        ),
        (
            "name, id, sum(n) FROM {} GROUP BY name, id",
            Some(32 + 13 + 2),
        ),
        // What the inner grouping yields are no codes.
        (
            "name, id, count(*) FROM (SELECT name, id, day FROM {} GROUP BY name, id, day) GROUP BY name, id",
            Some(128 + 13 + 2),
        ),
        // Zeros and NaN have no order that bounds could be stated in.
        (
            "ratio, id, count(*) FROM {} GROUP BY ratio, id",
            Some(64 + 13 + 2),
        ),
        (
            "i, n, count(*) FROM (SELECT n, id AS i FROM {} WHERE ratio < 4) GROUP BY i, n",
            Some(13 + 10 + 2),
        ),
        (
            "id, n, count(*) FROM (SELECT DISTINCT id, n, ratio FROM {}) GROUP BY id, n",
            Some(13 + 10 + 2),
        ),
        (
            "id, n, count(*) FROM {} GROUP BY GROUPING SETS ((id), (id, n), ())",
            Some(13 + 10 + 2 + 8),
        ),
        (
            "a.id, b.n, count(*) FROM {} a LEFT JOIN (SELECT * FROM {} WHERE n < 40) b ON a.id = b.id GROUP BY a.id, b.n",
            Some(13 + 10 + 2),
        ),
        (
            "b.day, b.n, count(*) FROM {} a RIGHT JOIN {} b ON a.price = b.price AND a.n = b.n GROUP BY b.day, b.n",
            Some(10 + 10 + 2),
        ),
        (
            "id, n, count(*) FROM {} WHERE id IN (SELECT n FROM {}) GROUP BY id, n",
            Some(13 + 10 + 2),
        ),
        (
            "a.day, b.n, count(*) FROM {} a JOIN {} b ON a.price = b.price AND a.id = b.id GROUP BY a.day, b.n",
            Some(10 + 10 + 2),
        ),
        // Nobody states bounds of what is computed, and one word is one word.
        (
            "id + 1, n + 1, count(*) FROM {} GROUP BY id + 1, n + 1",
            None,
        ),
        ("id, count(*) FROM {} GROUP BY id", None),
    ] {
        let sql = format!("SELECT {}", query.replace("{}", &files));
        let plan = plan(&ours, &sql);
        match bits {
            Some(bits) => assert!(plan.contains(&format!("key_bits={bits}")), "{sql}\n{plan}"),
            None => assert!(!plan.contains("key_bits"), "{sql}\n{plan}"),
        }
        assert_as_datafusion(&ours, &datafusion, &sql, 100);
    }
}

/// Bounds that lie at the ends of their type, and a column of one value.
#[test]
fn bounds_may_span_a_whole_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.parquet");
    let rows_of = |of: fn(i32) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values((0..3_000).map(of)))
    };
    let wide = rows_of(|row| [i32::MIN, -1, i32::MAX][row as usize % 3] ^ (row % 5));
    let batch = RecordBatch::try_from_iter([
        ("wide", wide),
        ("one", rows_of(|_| -7)),
        ("row", rows_of(|row| row * 1_000)),
    ]);
    write_parquet(&path, &batch.unwrap());
    let sql = format!(
        "SELECT wide, one, row, count(*) FROM '{}' GROUP BY wide, one, row",
        path.display()
    );
    let (ours, datafusion) = (session(), by_datafusion(session()));
    assert!(plan(&ours, &sql).contains(&format!("key_bits={}", 32 + 1 + 22)));
    assert_eq!(sorted(&ours, &sql), sorted(&datafusion, &sql));
}

/// DataFusion takes bounds of a timestamp without a zone for such in the table's zone.
#[test]
fn bounds_of_naive_timestamps_say_nothing_of_moments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("naive.parquet");
    let seconds = |row: i64| 1_600_000_000 + row % 700;
    let naive = (0..3_000).map(|row| seconds(row) * 1_000_000);
    let batch = RecordBatch::try_from_iter([
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from_iter_values(naive)) as ArrayRef,
        ),
        ("k", Arc::new(Int64Array::from_iter_values(0..3_000))),
    ]);
    write_parquet(&path, &batch.unwrap());
    let (ours, datafusion) = (session(), by_datafusion(session()));
    for session in [&ours, &datafusion] {
        rows(session, "SET TIME ZONE = 'America/New_York'");
        let columns = "t TIMESTAMP(6) WITH TIME ZONE, k BIGINT";
        let place = path.display();
        let create =
            format!("CREATE EXTERNAL TABLE z ({columns}) STORED AS PARQUET LOCATION '{place}'");
        rows(session, &create);
    }
    let sql = "SELECT t, k, count(*) FROM z GROUP BY t, k";
    assert_eq!(sorted(&ours, sql), sorted(&datafusion, sql));
    assert_eq!(
        rows(&ours, "SELECT min(t) FROM z"),
        ["2020-09-13T12:26:40-04:00"]
    );
}

/// Replaces the bytes of a number in the footer, which ends in its length and four letters.
fn falsify(path: &Path, from: i64, to: i64) {
    let mut bytes = std::fs::read(path).unwrap();
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let footer = &mut bytes[end - length..end];
    let mut replaced = 0;
    for at in 0..footer.len() - 8 {
        if footer[at..at + 8] == from.to_le_bytes() {
            footer[at..at + 8].copy_from_slice(&to.to_le_bytes());
            replaced += 1;
        }
    }
    assert!(replaced > 0, "the footer has {from}");
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_footer_that_lies_is_an_error_that_names_the_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lies.parquet");
    let last = 0x0102_0304_0506_0708_i64;
    let numbers = |of: fn(i64) -> i64, last: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..999).map(of).chain([last])))
    };
    let batch = RecordBatch::try_from_iter([
        ("id", numbers(|row| row * 1_000, last)),
        ("n", numbers(|row| row, 5)),
    ]);
    write_parquet(&path, &batch.unwrap());
    falsify(&path, last, 999_000);
    let sql = format!(
        "SELECT id, n, count(*) FROM '{}' GROUP BY id, n",
        path.display()
    );
    let ours = session();
    let message = error(&ours, &sql).to_string();
    assert!(
        message.contains(&format!("column id has the value {last}")),
        "{message}"
    );
    assert!(message.contains("footer"), "{message}");
    // The session goes on.
    assert_eq!(rows(&ours, "SELECT 1"), ["1"]);
}
