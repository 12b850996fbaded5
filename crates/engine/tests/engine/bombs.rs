//! Small files that would become large in memory: an error that names the file, and files like them that are honest.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, FixedSizeBinaryBuilder, Int64Array, ListArray, RecordBatch, StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::schema::parser::parse_message_type;
use datafusion::parquet::schema::types::SchemaDescriptor;
use grouse::{Error, Session, SessionOptions};

use crate::support::{rows, run, write_parquet, write_parquet_as};

const LIMIT: u64 = 64 << 20;

fn session() -> Session {
    Session::new(SessionOptions {
        threads: 2,
        memory_limit: Some(LIMIT),
        ..Default::default()
    })
    .unwrap()
}

/// The statement is refused for memory, with the file's name.
fn refused(sql: &str, path: &Path) {
    let session = session();
    let error = run(&session, sql).expect_err(sql);
    let text = error.to_string();
    assert!(
        matches!(error.kind(), Error::OutOfMemory(_) | Error::Format { .. }),
        "{text}"
    );
    assert!(
        text.contains(&path.display().to_string()) && text.contains("memory_limit"),
        "{text}"
    );
    assert_eq!(rows(&session, "SELECT 1"), ["1"]);
}

fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Levels in runs, with their length before them.
fn levels(runs: &[(u64, u8)]) -> Vec<u8> {
    let runs = runs.iter();
    let runs: Vec<u8> = runs
        .flat_map(|(count, level)| [number(count << 1), vec![*level]].concat())
        .collect();
    [&(runs.len() as u32).to_le_bytes(), runs.as_slice()].concat()
}

/// A file of one row, a list of so many NULLs, in less than a kilobyte.
fn long_list(path: &Path, values: u64) {
    let message =
        "message m { OPTIONAL group l (LIST) { REPEATED group list { OPTIONAL INT64 element; } } }";
    let schema = parse_message_type(message).unwrap();
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
    let data = [levels(&[(1, 0), (values - 1, 1)]), levels(&[(values, 2)])].concat();
    let size = number(2 * data.len() as u64);
    let page = [
        b"PAR1\x15\x00\x15".as_slice(),
        &size,
        b"\x15",
        &size,
        b"\x2c\x15",
        &number(2 * values),
        b"\x15\x00\x15\x06\x15\x06\x00\x00",
        &data,
    ]
    .concat();
    let bytes = page.len() as i64 - 4;
    let chunk = ColumnChunkMetaData::builder(schema.column(0))
        .set_num_values(values as i64)
        .set_data_page_offset(4)
        .set_total_compressed_size(bytes)
        .set_total_uncompressed_size(bytes)
        .build()
        .unwrap();
    let group = RowGroupMetaData::builder(Arc::clone(&schema))
        .set_num_rows(1)
        .set_total_byte_size(bytes)
        .add_column_metadata(chunk)
        .build()
        .unwrap();
    let file = FileMetaData::new(1, 1, None, None, schema, None);
    let mut written = page;
    let at = written.len();
    let metadata = ParquetMetaData::new(file, vec![group]);
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &metadata)
        .finish()
        .unwrap();
    written.extend(footer);
    assert!(written.len() - at < 1000);
    std::fs::write(path, written).unwrap();
}

#[test]
fn a_row_of_many_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.parquet");
    long_list(&path, 1000);
    let sql = format!("SELECT len(l) FROM '{}'", path.display());
    assert_eq!(rows(&session(), &sql), ["1000"]);
    long_list(&path, 100_000_000);
    refused(&sql, &path);
    let grouped = format!(
        "SELECT len(l), count(*) FROM '{}' GROUP BY 1",
        path.display()
    );
    refused(&grouped, &path);
}

#[test]
fn many_rows_of_equal_lists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lists.parquet");
    let (count, each) = (1_200_000_usize, 5_usize);
    let values = Int64Array::from(vec![7; count * each]);
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(each, count));
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(values), None));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(count))
        .build();
    let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
    write_parquet_as(&path, &batch, Some(properties));
    let sql = format!("SELECT sum(len(l)) FROM '{}'", path.display());
    assert_eq!(rows(&session(), &sql), [(count * each).to_string()]);
}

#[test]
fn a_page_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.parquet");
    let text = " ".repeat(100 << 20);
    for has_dictionary in [true, false] {
        let strings: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(), ""]));
        let batch = RecordBatch::try_from_iter([("s", strings)]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(has_dictionary)
            .set_dictionary_page_size_limit(1 << 30)
            .set_statistics_enabled(datafusion::parquet::file::properties::EnabledStatistics::None)
            .build();
        write_parquet_as(&path, &batch, Some(properties));
        assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
        let sql = format!("SELECT max(length(s)) FROM '{}'", path.display());
        refused(&sql, &path);
    }
}

#[test]
fn values_of_a_great_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fixed.parquet");
    let mut values = FixedSizeBinaryBuilder::new(20 << 20);
    values.append_null();
    let values: ArrayRef = Arc::new(values.finish());
    write_parquet(&path, &RecordBatch::try_from_iter([("b", values)]).unwrap());
    refused(&format!("SELECT count(b) FROM '{}'", path.display()), &path);
}

/// What a batch may take follows from the session's own size of batches.
#[test]
fn values_of_some_length_in_batches_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fixed.parquet");
    let mut values = FixedSizeBinaryBuilder::new(20 << 10);
    values.append_value([7; 20 << 10]).unwrap();
    let values: ArrayRef = Arc::new(values.finish());
    write_parquet(&path, &RecordBatch::try_from_iter([("b", values)]).unwrap());
    let sql = format!("SELECT count(b) FROM '{}'", path.display());
    for (batch_size, may_be_read) in [(8_192, true), (50_000, false), (1_000, true)] {
        let session = session();
        run(&session, &format!("SET batch_size = {batch_size}")).unwrap();
        match run(&session, &sql) {
            Ok(_) => assert!(may_be_read, "{batch_size}"),
            Err(error) => {
                let text = error.to_string();
                assert!(!may_be_read && text.contains("batch_size"), "{text}");
            }
        }
    }
}

/// A column `v` of a hundred rows in two members. The window of the first one is what its header says.
fn xz_with_a_window(header: &str, row: &str) -> Vec<u8> {
    let [first, second] = [format!("{header}{}", row.repeat(50)), row.repeat(50)];
    let pack = |text: &str| {
        let mut packed = Vec::with_capacity(text.len() + 1024);
        let check = liblzma::stream::Check::Crc32;
        let mut stream = liblzma::stream::Stream::new_easy_encoder(6, check).unwrap();
        let finish = liblzma::stream::Action::Finish;
        stream
            .process_vec(text.as_bytes(), &mut packed, finish)
            .unwrap();
        packed
    };
    [pack(&first), pack(&second)].concat()
}

/// Writes 4 GiB for the window of the first block, whose header has its checksum behind it.
fn widen(bytes: &mut [u8]) {
    let end = 12 + usize::from(bytes[12]) * 4;
    bytes[16] = 40;
    let sum = bytes[12..end].iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ (0xEDB8_8320 * (sum & 1))
        })
    });
    bytes[end..end + 4].copy_from_slice(&(!sum).to_le_bytes());
}

#[test]
fn a_window_of_four_gigabytes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, header, row) in [("x.csv.xz", "v\n", "1\n"), ("x.json.xz", "", "{\"v\":1}\n")] {
        let path = folder.path().join(name);
        let sql = format!("SELECT count(*), sum(v) FROM '{}'", path.display());
        let mut bytes = xz_with_a_window(header, row);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(rows(&session(), &sql), ["100|100"], "{name}");
        widen(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        refused(&sql, &path);
    }
}

#[test]
fn a_record_of_json_that_does_not_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.json");
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(3 << 20));
    for text in [format!("{long}\n"), format!("[{long}]"), long.clone()] {
        std::fs::write(&path, text).unwrap();
        let read = |options: &str| {
            let sql = format!(
                "SELECT max(length(a)) FROM read_json('{}'{options})",
                path.display()
            );
            run(&session(), &sql).map(|_| ())
        };
        assert_eq!(read(""), Ok(()));
        assert_eq!(read(", maximum_object_size => 4000000"), Ok(()));
        let text = read(", maximum_object_size => 1000000")
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("long.json") && text.contains("maximum_object_size"),
            "{text}"
        );
    }
}

/// Records of a megabyte are batches of a few, not of 8,192.
#[test]
fn long_records_are_short_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.json");
    let record = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 20));
    std::fs::write(&path, record.repeat(60)).unwrap();
    let batches = run(&session(), &format!("SELECT a FROM '{}'", path.display())).unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 60);
    let bytes = batches.iter().map(|batch| batch.get_array_memory_size());
    assert!(bytes.max().unwrap() < 48 << 20);
}
