//! Timestamps in 96 bits, which Spark, Hive and Impala write: a day by its Julian number and nanoseconds within it.

use std::fs::File;
use std::sync::Arc;

use crate::support::{check, error, rows, run, session, write_parquet};
use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

const EPOCH: i64 = 2_440_588;

/// A timestamp of so many days since 1970 and nanoseconds within the last of them.
fn timestamp(days: i64, nanos: u64) -> Int96 {
    let mut timestamp = Int96::new();
    timestamp.set_data(nanos as u32, (nanos >> 32) as u32, (days + EPOCH) as u32);
    timestamp
}

/// The first timestamp of the year 1, one microsecond and 500 nanoseconds of 1970, and the last microsecond of the year 9999.
fn far() -> Vec<Int96> {
    let last = 86_399_999_999_000;
    vec![
        timestamp(-719_162, 0),
        timestamp(0, 1_500),
        timestamp(2_932_896, last),
    ]
}

/// One leaf of a file: its type, its values and their levels.
fn write(
    folder: &TempDir,
    name: &str,
    column: &str,
    values: &[Int96],
    levels: [&[i16]; 2],
) -> String {
    let path = folder.path().join(name);
    let schema = parse_message_type(&format!("message m {{ {column} }}")).unwrap();
    let file = File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut leaf = group.next_column().unwrap().unwrap();
    let [definitions, repetitions] =
        levels.map(|levels| Some(levels).filter(|all| !all.is_empty()));
    let typed = leaf.typed::<Int96Type>();
    typed.write_batch(values, definitions, repetitions).unwrap();
    leaf.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    path.to_str().unwrap().to_string()
}

fn plain(folder: &TempDir, name: &str, values: &[Int96]) -> String {
    // The last row is NULL.
    let mut definitions = vec![1_i16; values.len()];
    definitions.push(0);
    write(
        folder,
        name,
        "optional int96 at;",
        values,
        [&definitions, &[]],
    )
}

// They wrapped around: the year 9999 was 1816.
#[test]
fn timestamps_beyond_nanoseconds_are_read() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let path = plain(&folder, "far.parquet", &far());
    let strings = [
        "0001-01-01 00:00:00",
        "1970-01-01 00:00:00.000001",
        "9999-12-31 23:59:59.999999",
        "NULL",
    ];
    let sql = format!("SELECT at::VARCHAR FROM '{path}' ORDER BY at");
    check(&session, &sql, &strings);
    let sql =
        format!("SELECT at::VARCHAR, count(*) FROM '{path}' GROUP BY at ORDER BY at DESC LIMIT 1");
    check(&session, &sql, &["9999-12-31 23:59:59.999999|1"]);
    let sql = format!(
        "SELECT count(at), min(at)::VARCHAR FROM '{path}' WHERE at < TIMESTAMP '1900-01-01'"
    );
    check(&session, &sql, &["1|0001-01-01 00:00:00"]);
    let sql =
        format!("SELECT count(*) FROM '{path}' WHERE at = TIMESTAMP '9999-12-31 23:59:59.999999'");
    check(&session, &sql, &["1"]);
    run(
        &session,
        &format!("CREATE EXTERNAL TABLE far STORED AS PARQUET LOCATION '{path}'"),
    )
    .unwrap();
    check(&session, "SELECT max(at)::VARCHAR FROM far", &strings[2..3]);
}

#[test]
fn timestamps_that_do_not_fit_their_unit_are_an_error() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    // The last day of 32 bits, beyond microseconds, which would wrap around to another day.
    let beyond = [timestamp(0, 0), timestamp(i64::from(i32::MAX) - EPOCH, 0)];
    let path = plain(&folder, "beyond.parquet", &beyond);
    for sql in [
        "SELECT at FROM",
        "SELECT max(at) FROM",
        "SELECT at, count(*) FROM",
    ] {
        let group = if sql.contains("count") {
            "GROUP BY at"
        } else {
            ""
        };
        let message = error(&session, &format!("{sql} '{path}' {group}")).to_string();
        assert!(message.contains("INT96"), "{message}");
    }
    check(&session, &format!("SELECT count(*) FROM '{path}'"), &["3"]);
    let path = plain(&folder, "far.parquet", &far());
    run(
        &session,
        "SET datafusion.execution.parquet.coerce_int96 = 'ns'",
    )
    .unwrap();
    let message = error(&session, &format!("SELECT at FROM '{path}'")).to_string();
    assert!(message.contains("coerce_int96 = 'us'"), "{message}");
    let near = plain(
        &folder,
        "near.parquet",
        &[timestamp(0, 1_500), timestamp(-1, 1)],
    );
    let sql = format!("SELECT at::VARCHAR FROM '{near}' WHERE at IS NOT NULL ORDER BY at");
    let nanos = [
        "1969-12-31 00:00:00.000000001",
        "1970-01-01 00:00:00.000001500",
    ];
    let strings = rows(&session, &sql);
    let is_same = strings
        .iter()
        .zip(nanos)
        .all(|(text, nanos)| nanos.starts_with(text.as_str()));
    assert!(
        is_same && strings.len() == 2 && strings[1].ends_with("15"),
        "{strings:?}"
    );
}

#[test]
fn timestamps_within_lists_and_structs_are_read() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let list = "optional group all (LIST) { repeated group list { optional int96 element; } }";
    // [0001-01-01, NULL], NULL, [], [1970-01-01, 9999-12-31]
    let levels = [&[3, 2, 0, 1, 3, 3][..], &[0, 1, 0, 0, 0, 1]];
    let path = write(&folder, "lists.parquet", list, &far(), levels);
    let sql = format!("SELECT len(\"all\"), year(\"all\"[1]), year(\"all\"[2]) FROM '{path}'");
    let expected = ["2|1|NULL", "NULL|NULL|NULL", "0|NULL|NULL", "2|1970|9999"];
    check(&session, &sql, &expected);
    let group = "optional group s { optional int96 at; }";
    let path = write(
        &folder,
        "structs.parquet",
        group,
        &far(),
        [&[2, 0, 2, 1, 2], &[]],
    );
    let sql = format!("SELECT year(s.at), s IS NULL FROM '{path}'");
    let expected = [
        "1|false",
        "NULL|true",
        "1970|false",
        "NULL|false",
        "9999|false",
    ];
    check(&session, &sql, &expected);
}

// One file has microseconds, as newer writers do.
#[test]
fn timestamps_of_both_kinds_are_one_column() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    plain(&folder, "a.parquet", &far());
    let other = folder.path().join("b.parquet");
    let copy = format!(
        "COPY (SELECT CAST('2020-01-01 00:00:00.000001' AS TIMESTAMP(6)) AS at) TO '{}'",
        other.display()
    );
    run(&session, &copy).unwrap();
    let sql = format!(
        "SELECT year(at), count(*) FROM '{}' GROUP BY 1 ORDER BY 1",
        folder.path().display()
    );
    check(
        &session,
        &sql,
        &["1|1", "1970|1", "2020|1", "9999|1", "NULL|1"],
    );
}

// Twelve bytes that a file calls bytes were timestamps to a table that some other file has such timestamps for.
#[test]
fn bytes_are_no_timestamps() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    plain(&folder, "a.parquet", &[timestamp(0, 1_500)]);
    let bytes: ArrayRef = Arc::new(
        FixedSizeBinaryArray::try_from_iter([b"123456789012"].into_iter()).expect("bytes"),
    );
    let batch = RecordBatch::try_from_iter([("at", bytes)]).unwrap();
    write_parquet(&folder.path().join("b.parquet"), &batch);
    let table = format!(
        "CREATE EXTERNAL TABLE stamps (at TIMESTAMP) STORED AS PARQUET LOCATION '{}/'",
        folder.path().display()
    );
    run(&session, &table).unwrap();
    let message = error(&session, "SELECT max(at) FROM stamps").to_string();
    assert!(message.contains("'at' is BLOB"), "{message}");
}
