//! Columns of Arrow that no SQL makes: values under a NULL struct, narrow decimals, intervals of days and milliseconds.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Decimal32Array, Decimal64Array, Decimal128Array, DictionaryArray,
    Int8Array, Int64Array, IntervalDayTimeArray, StringArray, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, IntervalDayTime};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use grouse::Session;

use crate::support::{check, run, session, write_parquet};

fn with_table(columns: Vec<(&str, ArrayRef)>) -> Session {
    let session = session();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    session.register("t", Arc::new(table)).unwrap();
    session
}

#[test]
fn the_field_of_a_null_struct_is_null() {
    let field =
        |name: &str, of: &DataType, nullable| Arc::new(Field::new(name, of.clone(), nullable));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 7]));
    let inner: ArrayRef = Arc::new(StructArray::new(
        vec![field("y", &DataType::Int64, false)].into(),
        vec![Arc::clone(&values)],
        Some(NullBuffer::from(vec![true, false, true])),
    ));
    let fields = vec![
        field("x", &DataType::Int64, false),
        field("in", inner.data_type(), true),
    ];
    let outer: ArrayRef = Arc::new(StructArray::new(
        fields.into(),
        vec![values, inner],
        Some(NullBuffer::from(vec![true, true, false])),
    ));
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let session = with_table(vec![("k", keys), ("s", outer)]);
    check(
        &session,
        "SELECT sum(s['x']), count(s['x']) FROM t",
        &["3|2"],
    );
    check(
        &session,
        "SELECT k, s['x'], s['in']['y'] FROM t ORDER BY k",
        &["1|1|1", "2|2|NULL", "3|NULL|NULL"],
    );
    check(&session, "SELECT k FROM t WHERE s['x'] IS NULL", &["3"]);
    check(
        &session,
        "SELECT s['x'] AS x, count(*) FROM t GROUP BY s['x'] ORDER BY x",
        &["1|1", "2|1", "NULL|1"],
    );
    check(
        &session,
        "SELECT max(s['in']['y']) OVER (ORDER BY k) FROM t ORDER BY k",
        &["1", "1", "1"],
    );
    check(
        &session,
        "SELECT k FROM t ORDER BY s['x'] DESC NULLS LAST LIMIT 2",
        &["2", "1"],
    );
}

#[test]
fn narrow_decimals_are_summed_wide() {
    let small = Decimal32Array::from(vec![Some(999_999_999), Some(999_999_999), None]);
    let small: ArrayRef = Arc::new(small.with_precision_and_scale(9, 2).unwrap());
    let medium = Decimal64Array::from(vec![Some(999_999_999_999_999_999); 3]);
    let medium: ArrayRef = Arc::new(medium.with_precision_and_scale(18, 0).unwrap());
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2]));
    let session = with_table(vec![("k", keys), ("a", small), ("b", medium)]);
    check(
        &session,
        "SELECT sum(a), avg(a), sum(b), min(a), max(b), count(a) FROM t",
        &["19999999.98|9999999.990000|2999999999999999997|9999999.99|999999999999999999|2"],
    );
    check(
        &session,
        "SELECT k, sum(a), sum(b) FROM t GROUP BY k ORDER BY k",
        &[
            "1|19999999.98|1999999999999999998",
            "2|NULL|999999999999999999",
        ],
    );
    check(
        &session,
        "SELECT a + a, a * 2 > a, b * b, -b - b, arrow_typeof(a), arrow_typeof(b) FROM t WHERE a IS NOT NULL LIMIT 1",
        &[
            "19999999.98|true|999999999999999998000000000000000001|-1999999999999999998|Decimal128(9, 2)|Decimal128(18, 0)",
        ],
    );
    check(
        &session,
        "SELECT k, sum(a) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING), avg(b) OVER (), lag(a) OVER (ORDER BY k) FROM t ORDER BY k, a",
        &[
            "1|9999999.99|999999999999999999.0000|NULL",
            "1|19999999.98|999999999999999999.0000|9999999.99",
            "2|19999999.98|999999999999999999.0000|9999999.99",
        ],
    );
}

#[test]
fn intervals_of_days_and_milliseconds_compare_by_length() {
    let day = IntervalDayTime::new(1, 0);
    let hours = IntervalDayTime::new(0, 86_400_000);
    let longer = IntervalDayTime::new(0, 86_400_001);
    let intervals: ArrayRef = Arc::new(IntervalDayTimeArray::from(vec![day, hours, longer]));
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let session = with_table(vec![("k", keys), ("i", intervals)]);
    check(
        &session,
        "SELECT count(*) FROM t a JOIN t b ON a.i = b.i",
        &["5"],
    );
    check(
        &session,
        "SELECT count(DISTINCT i), count(*) FROM t",
        &["2|3"],
    );
    check(
        &session,
        "SELECT n FROM (SELECT i, count(*) AS n FROM t GROUP BY i) ORDER BY n",
        &["1", "2"],
    );
    check(
        &session,
        "SELECT k FROM t ORDER BY i DESC, k",
        &["3", "1", "2"],
    );
}

// The bounds of the build side filtered the other one: of structs with NULL inside they are NULL, of maps an error.
#[test]
fn joins_by_structs_lists_and_maps() {
    let session = session();
    let make = "CREATE TABLE t AS SELECT k, named_struct('x', x, 'y', k) AS s, [x, k] AS l, MAP {'k': x} AS m
        FROM (VALUES (1, 5), (2, 6), (3, NULL)) v(k, x)";
    run(&session, make).unwrap();
    for key in ["s", "l", "m", "[l]"] {
        check(
            &session,
            &format!("SELECT a.k FROM t a JOIN t b ON a.{key} = b.{key} ORDER BY 1")
                .replace("a.[", "[a.")
                .replace("b.[", "[b."),
            &["1", "2", "3"],
        );
    }
}

// The reader of Parquet makes no dictionaries of booleans and decimals, which writers of Arrow ask for. Those of bytes of one length
// are in the Python tests: Arrow's own writer stores other bytes.
#[test]
fn dictionaries_in_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("coded.parquet");
    let decimals = Decimal128Array::from(vec![150, -25]);
    let decimals = decimals.with_precision_and_scale(30, 2).unwrap();
    let values: Vec<(&str, ArrayRef)> = vec![
        ("bo", Arc::new(BooleanArray::from(vec![true, false]))),
        ("de", Arc::new(decimals)),
        ("nu", Arc::new(Int64Array::from(vec![7, 8]))),
        ("te", Arc::new(StringArray::from(vec!["x", "y"]))),
    ];
    let keys = Int8Array::from(vec![Some(1), None, Some(0), Some(1)]);
    let coded = values.into_iter().map(|(name, values)| {
        let coded = DictionaryArray::new(keys.clone(), values);
        (name, Arc::new(coded) as ArrayRef)
    });
    write_parquet(&path, &RecordBatch::try_from_iter(coded).unwrap());
    let path = path.display();
    let session = session();
    check(
        &session,
        &format!("SELECT bo, de, nu, te FROM '{path}'"),
        &[
            "false|-0.25|8|y",
            "NULL|NULL|NULL|NULL",
            "true|1.50|7|x",
            "false|-0.25|8|y",
        ],
    );
    for (column, least) in [("bo", "false"), ("de", "-0.25"), ("nu", "7"), ("te", "x")] {
        check(
            &session,
            &format!(
                "SELECT min({column}), count({column}), count(DISTINCT {column}) FROM '{path}'"
            ),
            &[&format!("{least}|3|2")],
        );
        check(
            &session,
            &format!("SELECT count(*) FROM '{path}' a JOIN '{path}' b ON a.{column} = b.{column}"),
            &["5"],
        );
    }
}
