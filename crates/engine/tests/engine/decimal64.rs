//! Decimals that a Parquet scan hands out in 64 bits: who gets them, and that answers are the same.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Sides, error, write_parquet, write_parquet_as};
use datafusion::arrow::array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::column::writer::ColumnWriter;
use datafusion::parquet::data_type::{ByteArray, FixedLenByteArray};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;

fn decimals(rows: i64, digits: (u8, i8), value: impl Fn(i64) -> Option<i128>) -> ArrayRef {
    let column: Decimal128Array = (0..rows).map(value).collect();
    Arc::new(column.with_precision_and_scale(digits.0, digits.1).unwrap())
}

/// Prices and quotas of few digits, `long` of as many as fit 64 bits, `wide` of more, `tiny` in 32 bits, NULLs.
fn table(rows: i64, seed: i64) -> RecordBatch {
    let number = |row: i64, below: i64| i128::from((row * 7919 + seed).rem_euclid(below));
    let some = |row: i64, value: i128| (row % 13 != 5).then_some(value);
    let long = |row: i64| some(row, number(row, 1_000_003) * 999_983_000_017 - (1 << 58));
    let keys: Int64Array = (0..rows).map(|row| Some(row % 6)).collect();
    let flags: StringArray = (0..rows)
        .map(|row| Some(["A", "N", "R"][row as usize % 3]))
        .collect();
    RecordBatch::try_from_iter([
        ("k", Arc::new(keys) as ArrayRef),
        ("flag", Arc::new(flags)),
        (
            "price",
            decimals(rows, (15, 2), |row| Some(number(row, 10_494_951) - 5_000)),
        ),
        (
            "quota",
            decimals(rows, (15, 2), |row| some(row, number(row, 11))),
        ),
        ("long", decimals(rows, (18, 4), long)),
        (
            "wide",
            decimals(rows, (38, 2), |row| Some(number(row, 1_000) << 80)),
        ),
        (
            "tiny",
            decimals(rows, (7, 3), |row| some(row, number(row, 10_000) - 777)),
        ),
    ])
    .unwrap()
}

fn write_files(folder: &Path) {
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(10_007));
    let properties = Some(groups.build());
    write_parquet_as(
        &folder.join("a.parquet"),
        &table(30_000, 0),
        properties.clone(),
    );
    write_parquet_as(&folder.join("b.parquet"), &table(20_000, 5), properties);
}

fn sides() -> Sides {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    Sides::over(folder)
}

#[test]
fn sums_and_arithmetic_take_words_and_answers_stay_the_same() {
    let sides = sides();
    for (query, words) in [
        (
            "k, sum(price), avg(quota) FROM {} GROUP BY k",
            Some("price, quota"),
        ),
        (
            "sum(long), avg(long), sum(tiny), avg(tiny), count(*) FROM {}",
            Some("long, tiny"),
        ),
        (
            "k, sum(price * (1 - quota)) FROM {} GROUP BY k",
            Some("price, quota"),
        ),
        (
            "k, sum(price * (1 - quota) * (1 + tiny)), sum(price), avg(quota) FROM {} WHERE k < 5 GROUP BY k",
            Some("price, quota, tiny"),
        ),
        // Results that no word holds, and operands that do not fit one beside those that do.
        (
            "k, max(long * long), avg(long * price), sum(long + long) FROM {} GROUP BY k",
            Some("price, long"),
        ),
        (
            "k, sum(price + wide), sum(wide) FROM {} GROUP BY k",
            Some("price"),
        ),
        // What else reads such a column gets it as it is.
        (
            "k, sum(price), max(price * 2), count(quota + 1) FROM {} GROUP BY k",
            Some("price, quota"),
        ),
        (
            "k, sum(price) FROM {} WHERE price > 100 AND quota IS NOT NULL GROUP BY k",
            Some("price"),
        ),
        (
            "k, sum(price) FILTER (WHERE price < 1000.5) FROM {} GROUP BY k",
            Some("price"),
        ),
        (
            "CAST(quota AS INT), sum(quota) FROM {} GROUP BY 1",
            Some("quota"),
        ),
        (
            "flag, sum(p) FROM (SELECT flag, price AS p, k FROM {} WHERE k > 1) GROUP BY flag HAVING sum(p) > 5",
            Some("p"),
        ),
        (
            "flag, k, sum(price) FROM {} GROUP BY GROUPING SETS ((flag), (k), ())",
            Some("price"),
        ),
        (
            "k, sum(price), count(DISTINCT price * 1.5) FROM {} GROUP BY k ORDER BY sum(price) DESC LIMIT 3",
            Some("price"),
        ),
        // A key, a value that leaves as it is, states of DataFusion's, each value once.
        ("quota, sum(quota) FROM {} GROUP BY quota", None),
        ("k, sum(price), max(price) FROM {} GROUP BY k", None),
        (
            "k, sum(tiny), array_agg(tiny ORDER BY tiny) FROM {} GROUP BY k",
            None,
        ),
        ("k, sum(DISTINCT quota) FROM {} GROUP BY k", None),
        ("k, sum(wide) FROM {} GROUP BY k", None),
    ] {
        let plan = sides.plan_of_same(query, 0);
        let shown = plan.contains("Decimal64") || plan.contains("decimal64=");
        assert_eq!(shown, words.is_some(), "{query}\n{plan}");
        if let Some(words) = words {
            assert!(
                plan.contains(&format!("decimal64=[{words}]")),
                "{query}\n{plan}"
            );
        }
    }
}

#[test]
fn files_that_hold_a_column_otherwise_keep_it() {
    let sides = sides();
    // A column of the same name and of other digits in one of the files.
    let rest = RecordBatch::try_from_iter([
        ("k", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        (
            "price",
            decimals(2, (12, 1), |row| Some(i128::from(row) + 7)),
        ),
    ]);
    write_parquet(&sides.folder.path().join("c.parquet"), &rest.unwrap());
    let plan = sides.plan_of_same("k, sum(price), sum(quota) FROM {} GROUP BY k", 0);
    assert!(!plan.contains("decimal64=[price"), "{plan}");
}

#[test]
fn a_sum_that_does_not_fit_is_an_error_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let most = 999_999_999_999_999_999;
    let columns = [("x", decimals(9, (18, 0), |_| Some(most)))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write_parquet(&folder.path().join("a.parquet"), &batch);
    let sides = Sides::over(folder);
    let plan = sides.plan_of_same("sum(x), avg(x), sum(x * x) FROM {}", 0);
    assert!(plan.contains("decimal64=[x]"), "{plan}");
    let message = error(&sides.ours, &sides.sql("sum(x * x * x) FROM {}")).to_string();
    assert!(message.contains("verflow"), "{message}");
}

/// A file of one column of decimals of 10 digits, two behind the point, as bytes of a kind of the writer's choice.
fn write_bytes(path: &Path, kind: &str, values: &[i64]) {
    let schema = format!("message table {{ required {kind} price (DECIMAL(10, 2)); }}");
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let bytes = values.iter().map(|value| i128::from(*value).to_be_bytes());
    let bytes: Vec<ByteArray> = bytes.map(|bytes| bytes.to_vec().into()).collect();
    match column.untyped() {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            writer.write_batch(&bytes, None, None).unwrap();
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => {
            let bytes: Vec<FixedLenByteArray> = bytes.into_iter().map(Into::into).collect();
            writer.write_batch(&bytes, None, None).unwrap();
        }
        _ => panic!("{kind} holds no bytes"),
    }
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn bytes_that_the_reader_only_makes_wide_stay_wide() {
    for kind in ["fixed_len_byte_array(16)", "binary"] {
        let folder = tempfile::tempdir().unwrap();
        write_bytes(&folder.path().join("a.parquet"), kind, &[12_345, -1, 0, 99]);
        let sides = Sides::over(folder);
        let plan = sides.plan_of_same("sum(price), avg(price), sum(price * 2) FROM {}", 0);
        assert!(!plan.contains("decimal64="), "{plan}");
    }
}
