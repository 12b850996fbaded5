//! Parquet files: what is text, what bounds may be believed, what files of one table have in common.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{error, rows, run, session};
use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array,
    Int64Array, IntervalDayTimeArray, IntervalYearMonthArray, ListArray, RecordBatch, StringArray,
    StructArray, Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{Field, IntervalDayTime};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use grouse::{Error, Session};
use tempfile::TempDir;

/// Whether a file keeps the Arrow schema that it was written from.
#[derive(Clone, Copy, PartialEq)]
enum Types {
    Kept,
    Forgotten,
}

struct Folder {
    folder: TempDir,
    session: Session,
}

impl Folder {
    fn new() -> Folder {
        Folder {
            folder: tempfile::tempdir().unwrap(),
            session: session(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes columns as row groups of two rows, with page indexes and Bloom filters.
    fn write(&self, name: &str, types: Types, columns: &[(&str, ArrayRef)]) {
        let batch = RecordBatch::try_from_iter(columns.to_vec()).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(2))
            .set_bloom_filter_enabled(true)
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(types == Types::Forgotten);
        let file = File::create(self.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    /// `{}` in the SQL is the folder.
    #[track_caller]
    fn check(&self, sql: &str, expected: &[&str]) {
        let sql = sql.replace("{}", self.folder.path().to_str().unwrap());
        assert_eq!(rows(&self.session, &sql), expected, "{sql}");
    }

    fn error(&self, sql: &str) -> Error {
        let sql = sql.replace("{}", self.folder.path().to_str().unwrap());
        error(&self.session, &sql)
    }
}

fn bytes(values: &[&[u8]]) -> ArrayRef {
    Arc::new(BinaryArray::from(values.to_vec()))
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

// Bytes without annotation were handed out as text whatever they held: invalid UTF-8 crashed the process.
#[test]
fn bytes_without_annotation_are_text_or_an_error() {
    let folder = Folder::new();
    let column = bytes(&[b"abc", "é".as_bytes(), b"abc"]);
    folder.write("text.parquet", Types::Forgotten, &[("b", column)]);
    let sql =
        "SELECT b, count(*), arrow_typeof(max(b)) FROM '{}/text.parquet' GROUP BY b ORDER BY b";
    folder.check(sql, &["abc|2|Utf8View", "é|1|Utf8View"]);
    folder.check(
        "SELECT count(*) FROM '{}/text.parquet' WHERE b = 'abc'",
        &["2"],
    );

    let column = bytes(&[b"abc", b"abc", b"\x00\xff"]);
    let good: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    folder.write(
        "bytes.parquet",
        Types::Forgotten,
        &[("good", good), ("bad", column)],
    );
    for sql in [
        "SELECT * FROM '{}/bytes.parquet'",
        "SELECT bad, count(*) FROM '{}/bytes.parquet' GROUP BY bad",
        "SELECT max(bad) FROM '{}/bytes.parquet'",
        "SELECT count(*) FROM '{}/bytes.parquet' WHERE bad LIKE '%a%'",
        "SELECT bad FROM read_parquet('{}/bytes.parquet', binary_as_string => true)",
        "CREATE TABLE m AS SELECT * FROM '{}/bytes.parquet'",
    ] {
        let error = folder.error(sql);
        assert!(matches!(error, Error::Format { .. }), "{sql}: {error:?}");
        for part in ["/bytes.parquet", "'bad'", "binary_as_string => false"] {
            assert!(error.to_string().contains(part), "{sql}: {error}");
        }
    }
    folder.check(
        "SELECT good FROM '{}/bytes.parquet' WHERE good > 'x' ORDER BY good",
        &["y", "z"],
    );
    let sql = "SELECT bad, count(*) FROM read_parquet('{}/bytes.parquet', binary_as_string => false) GROUP BY bad ORDER BY bad";
    folder.check(sql, &["00ff|1", "616263|2"]);
    run(
        &folder.session,
        "SET datafusion.execution.parquet.binary_as_string = false",
    )
    .unwrap();
    folder.check("SELECT max(bad) FROM '{}/bytes.parquet'", &["616263"]);
}

// The reader gives days and milliseconds, so that 14 months of another writer were an interval of nothing, and then refused.
#[test]
fn intervals_keep_their_months() {
    let folder = Folder::new();
    let days = |days| Some(IntervalDayTime::new(days, 1000));
    let days = vec![days(2), None, days(40)];
    let columns: [(&str, ArrayRef); 3] = [
        ("i", Arc::new(IntervalDayTimeArray::from(days))),
        ("y", Arc::new(IntervalYearMonthArray::from(vec![14, 1, 1]))),
        ("x", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ];
    folder.write("kept.parquet", Types::Kept, &columns);
    folder.check("SELECT count(i) FROM '{}/kept.parquet'", &["2"]);
    folder.write("forgotten.parquet", Types::Forgotten, &columns);
    folder.check(
        "SELECT x, i = INTERVAL '2 days 1 second', y = INTERVAL '14 months' FROM '{}/forgotten.parquet' ORDER BY x",
        &["1|true|true", "2|NULL|false", "3|false|false"],
    );
    folder.check(
        "SELECT x FROM '{}/forgotten.parquet' WHERE y > INTERVAL '1 year' OR i > INTERVAL '1 month' ORDER BY x",
        &["1", "3"],
    );
    folder.check(
        "SELECT y = INTERVAL '1 month', count(*), count(i), max(x) FROM '{}/forgotten.parquet' GROUP BY y ORDER BY y",
        &["true|2|1|3", "false|1|1|1"],
    );
    folder.check(
        "SELECT DATE '2024-01-31' + y AS d FROM '{}/forgotten.parquet' WHERE i IS NULL",
        &["2024-02-29T00:00:00"],
    );
}

// A file with such a column was refused, also where nobody read the column.
#[test]
fn intervals_in_lists_and_structs_keep_their_months() {
    let folder = Folder::new();
    let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![
        Some(14),
        None,
        Some(1),
        Some(26),
    ]));
    let item = Arc::new(Field::new_list_field(months.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([2, 0, 2]);
    let lists = ListArray::new(item, offsets, Arc::clone(&months), None);
    let field = Arc::new(Field::new("i", months.data_type().clone(), true));
    let structs = StructArray::from(vec![(field, months.slice(0, 3))]);
    let columns: [(&str, ArrayRef); 3] = [
        ("l", Arc::new(lists)),
        ("s", Arc::new(structs)),
        ("x", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ];
    folder.write("nested.parquet", Types::Forgotten, &columns);
    folder.check("SELECT sum(x) FROM '{}/nested.parquet'", &["6"]);
    folder.check(
        "SELECT x, len(l), l[1] = INTERVAL '14 months', l[2] = INTERVAL '26 months' FROM '{}/nested.parquet' ORDER BY x",
        &["1|2|true|NULL", "2|0|NULL|NULL", "3|2|false|true"],
    );
    folder.check(
        "SELECT x, s.i = INTERVAL '14 months' FROM '{}/nested.parquet' ORDER BY x",
        &["1|true", "2|NULL", "3|false"],
    );
    folder.check(
        "SELECT x FROM '{}/nested.parquet' WHERE s.i > INTERVAL '1 year'",
        &["1"],
    );
}

// Most writers store microseconds or milliseconds, and DataFusion compares no times of two units.
#[test]
fn times_of_any_unit_are_times() {
    let folder = Folder::new();
    let micros = [32_400_000_000, 37_800_000_000, 86_399_000_000];
    let millis = [32_400_000, 32_400_001, 0];
    let columns: [(&str, ArrayRef); 3] = [
        ("i", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("u", Arc::new(Time64MicrosecondArray::from(micros.to_vec()))),
        ("m", Arc::new(Time32MillisecondArray::from(millis.to_vec()))),
    ];
    for types in [Types::Kept, Types::Forgotten] {
        folder.write("times.parquet", types, &columns);
        for (condition, expected) in [
            ("u < TIME '10:30:00'", "1"),
            ("u = TIME '10:30:00'", "1"),
            ("u >= '10:30:00'", "2"),
            ("u IN (TIME '10:30:00', TIME '23:59:59')", "2"),
            ("u IN (SELECT TIME '10:30:00')", "1"),
            ("u BETWEEN TIME '09:00:00' AND m", "1"),
            ("coalesce(u, TIME '00:00:00') > m", "2"),
            ("CASE WHEN i = 1 THEN u ELSE TIME '00:00:00' END = m", "2"),
        ] {
            let sql = format!("SELECT count(*) FROM '{{}}/times.parquet' WHERE {condition}");
            folder.check(&sql, &[expected]);
        }
        folder.check(
            "SELECT min(u), max(u), max(u) > TIME '10:00:00', min(m) FROM '{}/times.parquet'",
            &["09:00:00|23:59:59|true|00:00:00"],
        );
        folder.check(
            "SELECT a.i, b.i FROM '{}/times.parquet' a JOIN '{}/times.parquet' b ON a.u = b.m",
            &["1|1"],
        );
        folder.check(
            "SELECT u FROM '{}/times.parquet' WHERE i = 1 UNION SELECT TIME '09:00:00'",
            &["09:00:00"],
        );
        folder.check(
            "SELECT u, count(*) FROM '{}/times.parquet' GROUP BY u ORDER BY u DESC LIMIT 1",
            &["23:59:59|1"],
        );
    }
}

#[test]
fn bytes_that_the_file_knows_to_be_bytes_stay_bytes() {
    let folder = Folder::new();
    let sql = "COPY (SELECT x'00ff' AS b, 'é' AS t) TO '{}/own.parquet' STORED AS PARQUET";
    let sql = sql.replace("{}", folder.folder.path().to_str().unwrap());
    run(&folder.session, &sql).unwrap();
    folder.check(
        "SELECT b, t, arrow_typeof(b) FROM '{}/own.parquet'",
        &["00ff|é|BinaryView"],
    );
    folder.write("kept.parquet", Types::Kept, &[("b", bytes(&[b"abc"]))]);
    folder.check("SELECT b FROM '{}/kept.parquet'", &["616263"]);
    let sql = "SELECT b FROM read_parquet('{}/kept.parquet', binary_as_string => true)";
    folder.check(sql, &["abc"]);
    folder.write("odd.parquet", Types::Kept, &[("b", bytes(&[b"a\xff"]))]);
    let cast = folder.error("SELECT b::VARCHAR FROM '{}/odd.parquet'");
    assert!(cast.to_string().contains("a\\xFF are not UTF-8"), "{cast}");
    folder.check(
        "SELECT TRY_CAST(b AS VARCHAR) FROM '{}/odd.parquet'",
        &["NULL"],
    );
    // Beside text, bytes make the column one of bytes.
    folder.write(
        "plain.parquet",
        Types::Forgotten,
        &[("b", bytes(&[b"xyz"]))],
    );
    let sql = "SELECT b FROM read_parquet(['{}/plain.parquet', '{}/kept.parquet']) ORDER BY b";
    folder.check(sql, &["616263", "78797a"]);
    // The same file as text and as bytes in one session.
    folder.check("SELECT b FROM '{}/plain.parquet'", &["xyz"]);
    let sql = "SELECT b FROM read_parquet('{}/plain.parquet', binary_as_string => false)";
    folder.check(sql, &["78797a"]);
    let root = folder.folder.path().display();
    let sql = format!("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{root}/kept.parquet'");
    run(&folder.session, &sql).unwrap();
    folder.check("SELECT b FROM e", &["616263"]);
    // An option of the table was taken and not applied.
    let sql = format!(
        "CREATE EXTERNAL TABLE o STORED AS PARQUET LOCATION '{root}/kept.parquet' OPTIONS ('binary_as_string' 'true')"
    );
    run(&folder.session, &sql).unwrap();
    folder.check("SELECT b FROM o", &["abc"]);
    let sql = format!(
        "CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{root}/plain.parquet' OPTIONS ('binary_as_string' 'false')"
    );
    run(&folder.session, &sql).unwrap();
    folder.check("SELECT b FROM f", &["78797a"]);
    let sql = format!(
        "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{root}/plain.parquet' OPTIONS ('no_such' 'true')"
    );
    assert!(run(&folder.session, &sql).is_err());
}

// Bounds leave NaN out: row groups with NaN were pruned, and a file of [1.0, NaN] was read as [1.0, 1.0].
#[test]
fn nan_is_in_no_bounds() {
    let folder = Folder::new();
    let nan = f64::NAN;
    folder.write("nan.parquet", Types::Kept, &[("x", floats(&[1.0, nan]))]);
    folder.check("SELECT x FROM '{}/nan.parquet'", &["1.0", "NaN"]);
    folder.check("SELECT min(x), max(x) FROM '{}/nan.parquet'", &["1.0|NaN"]);
    folder.check("SELECT count(*) FROM '{}/nan.parquet' WHERE x = 1", &["1"]);

    let groups = floats(&[0.0, 0.5, 1.0, nan, 2.0, 2.5, 3.0, 3.0]);
    let narrow: ArrayRef = Arc::new(Float32Array::from(vec![
        0.0,
        0.5,
        1.0,
        f32::NAN,
        2.0,
        2.5,
        3.0,
        3.0,
    ]));
    folder.write(
        "groups.parquet",
        Types::Kept,
        &[("x", groups), ("y", narrow)],
    );
    for (predicate, expected) in [
        ("x > 2.4", "4"),
        ("x >= 100", "1"),
        ("x <> 1", "7"),
        ("NOT (x < 2.4)", "4"),
        ("NOT (x <= 100)", "1"),
        ("x BETWEEN 1 AND 2", "2"),
        ("x = 'NaN'::double", "1"),
        ("x > 2.4 AND x < 100", "3"),
        ("x IS NULL", "0"),
    ] {
        for column in ["x", "y"] {
            let predicate = predicate.replace('x', column);
            let sql = format!("SELECT count(*) FROM '{{}}/groups.parquet' WHERE {predicate}");
            folder.check(&sql, &[expected]);
        }
    }
    folder.check(
        "SELECT min(x), max(x), max(y) FROM '{}/groups.parquet'",
        &["0.0|NaN|NaN"],
    );
    folder.check(
        "SELECT x FROM '{}/groups.parquet' ORDER BY x DESC LIMIT 2",
        &["NaN", "3.0"],
    );
    folder.check("SELECT max(x) FROM '{}/*.parquet'", &["NaN"]);
}

// Writers put -0.0 as the least and 0.0 as the greatest value where either occurs.
#[test]
fn bounds_do_not_tell_zeros_apart() {
    let folder = Folder::new();
    folder.write("zero.parquet", Types::Kept, &[("x", floats(&[0.0]))]);
    folder.check("SELECT min(x), max(x) FROM '{}/zero.parquet'", &["0.0|0.0"]);
    folder.write(
        "both.parquet",
        Types::Kept,
        &[("x", floats(&[0.0, -0.0, -0.0, -0.0]))],
    );
    folder.check(
        "SELECT x FROM '{}/both.parquet'",
        &["0.0", "-0.0", "-0.0", "-0.0"],
    );
    folder.check("SELECT count(*) FROM '{}/both.parquet' WHERE x = 0", &["4"]);
    folder.check(
        "SELECT count(*) FROM '{}/both.parquet' WHERE x = -0.0",
        &["4"],
    );
}

#[test]
fn bounds_that_are_believed_still_prune() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int64Array::from((0..100).collect::<Vec<_>>()));
    folder.write("n.parquet", Types::Kept, &[("n", numbers)]);
    folder.check(
        "SELECT min(n), max(n), count(*) FROM '{}/n.parquet'",
        &["0|99|100"],
    );
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM '{}/n.parquet' WHERE n >= 98 + length('')";
    let sql = sql.replace("{}", folder.folder.path().to_str().unwrap());
    let plan = rows(&folder.session, &sql).join("\n");
    let pruned = "row_groups_pruned_statistics=50 total → 1 matched";
    assert!(plan.contains(pruned), "{plan}");
}

// Files whose columns differed in width were refused.
#[test]
fn columns_of_several_files_are_widened() {
    let folder = Folder::new();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![7, -1, 3]));
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40, 5, 5]));
    folder.write(
        "1.parquet",
        Types::Kept,
        &[("a", Arc::clone(&narrow)), ("b", Arc::clone(&wide))],
    );
    folder.write("2.parquet", Types::Kept, &[("b", narrow), ("a", wide)]);
    let glob = "'{}/[12].parquet'";
    folder.check(
        &format!("SELECT arrow_typeof(min(a)), min(a), max(a), sum(b), count(*) FROM {glob}"),
        &["Int64|-1|1099511627776|1099511627795|6"],
    );
    folder.check(
        &format!("SELECT a FROM {glob} WHERE a > 6 ORDER BY a"),
        &["7", "1099511627776"],
    );
    folder.check(
        &format!("SELECT a, count(*) FROM {glob} WHERE a = 5 GROUP BY a"),
        &["5|2"],
    );
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    folder.write("3.parquet", Types::Kept, &[("a", flags)]);
    let error = folder.error("SELECT * FROM '{}/*.parquet'");
    for part in ["3.parquet", "1.parquet", "'a'", "BOOLEAN", "BIGINT"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

// Each of two columns was NULL where the other was not.
#[test]
fn columns_of_several_files_that_differ_in_case_are_an_error() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    folder.write("1.parquet", Types::Kept, &[("a", Arc::clone(&numbers))]);
    folder.write("2.parquet", Types::Kept, &[("A", Arc::clone(&numbers))]);
    let error = folder.error("SELECT * FROM '{}/[12].parquet'");
    for part in [
        "2.parquet",
        "'A'",
        "'a' in",
        "1.parquet",
        "UNION ALL BY NAME",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let both = [("a", Arc::clone(&numbers)), ("A", numbers)];
    folder.write("3.parquet", Types::Kept, &both);
    folder.check("SELECT sum(a), sum(\"A\") FROM '{}/[13].parquet'", &["2|1"]);
}

// 9999 does not fit nanoseconds: an error that named nothing, and max answered from the other file's bounds.
#[test]
fn moments_beyond_nanoseconds_name_their_file() {
    let folder = Folder::new();
    let fine: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![
        1_577_836_800_123_456_789,
    ]));
    let far: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
        253_402_214_400_000_000,
    ]));
    let day: ArrayRef = Arc::new(Date32Array::from(vec![2_932_896]));
    folder.write("ns.parquet", Types::Kept, &[("t", fine)]);
    for (name, column) in [("far.parquet", far), ("day.parquet", day)] {
        folder.write(name, Types::Kept, &[("t", column)]);
        for (a, b) in [("ns.parquet", name), (name, "ns.parquet")] {
            let files = format!("read_parquet(['{{}}/{a}', '{{}}/{b}'])");
            for sql in [
                format!("SELECT t FROM {files}"),
                format!("SELECT max(t) FROM {files}"),
                format!("SELECT t, count(*) FROM {files} GROUP BY t"),
            ] {
                let error = folder.error(&sql).to_string();
                for part in [name, "column 't'", "nanoseconds", "TIMESTAMP(6)"] {
                    assert!(error.contains(part), "{sql}: {error}");
                }
            }
        }
    }
    folder.check(
        "SELECT t FROM '{}/far.parquet' UNION ALL SELECT CAST(t AS TIMESTAMP(6)) FROM '{}/ns.parquet' ORDER BY t",
        &["2020-01-01T00:00:00.123457", "9999-12-31T00:00:00"],
    );
}

// A file whose page index was damaged gave right answers and nobody heard of the damage.
#[test]
fn a_damaged_page_index_is_told_once() {
    let folder = Folder::new();
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    folder.write("x.parquet", Types::Kept, &[("n", column)]);
    let path = folder.path("x.parquet");
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let chunk = reader.metadata().row_group(0).column(0);
    let start = chunk.column_index_offset().unwrap() as usize;
    let end = start + chunk.column_index_length().unwrap() as usize;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[start..end].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    folder.check("SELECT sum(n) FROM '{}/x.parquet' WHERE n > 1", &["5"]);
    let warnings = folder.session.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["page index", "/x.parquet'", "without it"] {
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
    folder.check("SELECT sum(n) FROM '{}/x.parquet'", &["6"]);
    assert!(folder.session.take_warnings().is_empty());
}

// A page of more values than its levels made the decoder panic: an internal error, and words on standard error.
#[test]
fn levels_that_end_before_their_page_are_an_error() {
    let folder = Folder::new();
    let rows = (0..400).map(|row| (row % 2 == 1).then_some(row));
    let column: ArrayRef = Arc::new(Int64Array::from_iter(rows));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // 51 bytes of levels: the number of their bytes, which is 50 times two and one.
    let levels = bytes.windows(5).position(|at| at == [51, 0, 0, 0, 101]);
    bytes[levels.unwrap() + 4] = 127;
    // 450 values instead of 400, wherever the file counts them.
    for at in 0..bytes.len() - 1 {
        if bytes[at..at + 2] == [0xa0, 0x06] {
            bytes[at..at + 2].copy_from_slice(&[0x84, 0x07]);
        }
    }
    std::fs::write(folder.path("x.parquet"), bytes).unwrap();
    for sql in [
        "SELECT * FROM '{}/x.parquet'",
        "SELECT sum(n) FROM '{}/x.parquet'",
        "SELECT n, count(*) FROM '{}/x.parquet' WHERE n > 3 GROUP BY n",
        "SELECT n FROM '{}/*.parquet' ORDER BY n LIMIT 3",
    ] {
        match folder.error(sql) {
            Error::Format { path, message, .. } => {
                assert!(path.ends_with("x.parquet"), "{sql}: {path}");
                assert!(message.contains("damaged"), "{sql}: {message}");
            }
            other => panic!("{sql}: {other}"),
        }
    }
    folder.check("SELECT 1", &["1"]);
}
