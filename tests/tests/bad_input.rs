//! Bad input: each case ends in a typed error that says what was wrong, nothing panics, and the session works afterwards.
//!
//! In: files that are missing, cut, or not what their name says; SQL that means nothing. Out: the variant of the error.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::parquet::file::metadata::{
    ColumnChunkMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use grouse::{Error, Session, SessionOptions};
use grouse_tests::answer::{Answer, batches};
use grouse_tests::cell::Cell;
use tempfile::TempDir;

/// A session and a folder with one good file of each format.
struct Bench {
    session: Session,
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench {
            session: Session::new(SessionOptions::default()).expect("default options"),
            folder: tempfile::tempdir().expect("a folder"),
        };
        let parquet = bench.path("good.parquet");
        batches(
            &bench.session,
            &format!("COPY (SELECT number, 'text ' || number AS s FROM numbers(10000)) TO '{}' STORED AS PARQUET", parquet.display()),
        )
        .expect("a file that can be written");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a folder of ours");
        path
    }

    /// The error of `sql`; the session has to answer the next query.
    fn error(&self, sql: &str) -> Error {
        let error = match Answer::ask(&self.session, sql) {
            Ok(answer) => panic!("{sql}\ngave {answer:?} instead of an error"),
            Err(error) => error,
        };
        let alive = Answer::ask(&self.session, "SELECT count(*) FROM numbers(10)")
            .expect("the session goes on");
        assert_eq!(alive.rows, [[Cell::Int(10)]], "after {sql}");
        let message = error.to_string();
        assert!(
            !message.is_empty() && !message.contains("panicked"),
            "{sql}\n{message}"
        );
        assert!(!matches!(error, Error::Internal(_)), "{sql}\n{message}");
        error
    }

    /// The error of counting the rows of a file, by a grouping that reads every column.
    fn file_error(&self, path: &Path) -> Error {
        self.error(&format!(
            "SELECT s, count(*), max(number) FROM '{}' GROUP BY s",
            path.display()
        ))
    }
}

/// Fails unless the error is of the pattern and its message names all the words.
macro_rules! assert_error {
    ($error:expr, $pattern:pat, $($word:expr),*) => {{
        let error = $error;
        let message = error.to_string();
        assert!(matches!(error.kind(), $pattern), "{error:?}");
        $(assert!(message.to_lowercase().contains(&$word.to_lowercase()), "no {:?} in: {message}", $word);)*
    }};
}

#[test]
fn missing_file() {
    let bench = Bench::new();
    let path = bench.path("missing.parquet");
    assert_error!(
        bench.file_error(&path),
        Error::Io { .. } | Error::UnknownTable { .. },
        "missing.parquet"
    );
    assert_error!(
        bench.error("SELECT * FROM '/no/such/folder/*.csv'"),
        Error::Io { .. } | Error::UnknownTable { .. },
        "/no/such/folder"
    );
}

#[test]
fn truncated_parquet() {
    let bench = Bench::new();
    let whole = fs::read(bench.path("good.parquet")).expect("written above");
    for keep in [
        0,
        1,
        4,
        8,
        100,
        whole.len() / 2,
        whole.len() - 100,
        whole.len() - 1,
    ] {
        let path = bench.write("cut.parquet", &whole[..keep]);
        assert_error!(bench.file_error(&path), Error::Format { .. }, "cut.parquet");
    }
}

#[test]
fn wrong_magic() {
    let bench = Bench::new();
    let path = bench.write(
        "really.parquet",
        b"number,s\n1,this is a CSV file that was given another name\n",
    );
    assert_error!(
        bench.file_error(&path),
        Error::Format { .. },
        "really.parquet"
    );
    let path = bench.write(
        "really.arrow",
        b"number,s\n1,this is a CSV file that was given another name\n",
    );
    assert_error!(
        bench.file_error(&path),
        Error::Format { .. },
        "really.arrow"
    );
}

/// Whatever byte is flipped, the answer is right, or an error comes: never a panic, never a session that is stuck.
#[test]
fn damaged_parquet() {
    let bench = Bench::new();
    let whole = fs::read(bench.path("good.parquet")).expect("written above");
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let path = bench.write(&format!("damaged{at}.parquet"), &damaged);
        let sql = format!(
            "SELECT s, count(*), max(number) FROM '{}' GROUP BY s",
            path.display()
        );
        let _ = Answer::ask(&bench.session, &sql);
        let alive = Answer::ask(&bench.session, "SELECT count(*) FROM numbers(10)")
            .expect("the session goes on");
        assert_eq!(
            alive.rows,
            [[Cell::Int(10)]],
            "after a damaged byte at {at}"
        );
    }
}

/// The same file with a footer that says something else of each column chunk.
fn with_chunks(
    whole: &[u8],
    change: impl Fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder,
) -> Vec<u8> {
    let end = whole.len() - 8;
    let length: [u8; 4] = whole[end..end + 4].try_into().expect("four bytes");
    let start = end - u32::from_le_bytes(length) as usize;
    let footer = ParquetMetaDataReader::decode_metadata(&whole[start..end]).expect("its footer");
    let mut builder = footer.into_builder();
    let mut groups = builder.take_row_groups();
    for chunk in groups.iter_mut().flat_map(|group| group.columns_mut()) {
        *chunk = change(chunk.clone().into_builder())
            .build()
            .expect("a chunk");
    }
    let footer = builder.set_row_groups(groups).build();
    let mut file = whole[..start].to_vec();
    ParquetMetaDataWriter::new(&mut file, &footer)
        .finish()
        .expect("a footer");
    file
}

/// Page indexes only save work: one that would lie behind the file's end is left out. The reader of footers panicked.
#[test]
fn page_indexes_behind_the_end() {
    let bench = Bench::new();
    let whole = fs::read(bench.path("good.parquet")).expect("written above");
    let size = whole.len() as i64;
    for offset in [size - 10, size, 1 << 40, i64::MAX - 4096] {
        let file = with_chunks(&whole, |chunk| {
            chunk
                .set_column_index_offset(Some(offset))
                .set_column_index_length(Some(100_000))
                .set_offset_index_offset(Some(offset))
                .set_offset_index_length(Some(100_000))
        });
        let path = bench.write(&format!("elsewhere{offset}.parquet"), &file);
        let sql = format!("SELECT count(*), max(number) FROM '{}'", path.display());
        let answer = Answer::ask(&bench.session, &sql).expect("pages are where they were");
        assert_eq!(
            answer.rows,
            [[Cell::Int(10_000), Cell::Int(9_999)]],
            "{offset}"
        );
    }
}

/// Columns that begin before the file or end behind it: an error that names the file. Readers panicked at negative places.
#[test]
fn columns_outside_of_the_file() {
    let bench = Bench::new();
    let whole = fs::read(bench.path("good.parquet")).expect("written above");
    let changes: [fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder; 6] = [
        |chunk| chunk.set_total_compressed_size(-1),
        |chunk| chunk.set_total_compressed_size(i64::MAX),
        |chunk| chunk.set_total_compressed_size(1 << 30),
        |chunk| chunk.set_dictionary_page_offset(Some(-4)),
        |chunk| chunk.set_data_page_offset(i64::MIN),
        |chunk| chunk.set_num_values(-1),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let file = with_chunks(&whole, change);
        let name = format!("outside{at}.parquet");
        let path = bench.write(&name, &file);
        assert_error!(
            bench.file_error(&path),
            Error::Format { .. },
            name,
            "outside of the file"
        );
    }
}

/// An Arrow IPC file as COPY writes it: compressed with LZ4.
fn arrow_file(bench: &Bench) -> Vec<u8> {
    let path = bench.path("good.arrow");
    let copy = format!(
        "COPY (SELECT number, 'text ' || number AS s FROM numbers(10000)) TO '{}' STORED AS ARROW",
        path.display()
    );
    batches(&bench.session, &copy).expect("a file that can be written");
    fs::read(&path).expect("written above")
}

#[test]
fn truncated_arrow() {
    let bench = Bench::new();
    let whole = arrow_file(&bench);
    for keep in [0, 1, 7, 8, 12, 100, whole.len() / 2, whole.len() - 1] {
        let path = bench.write("cut.arrow", &whole[..keep]);
        assert_error!(bench.file_error(&path), Error::Format { .. }, "cut.arrow");
    }
}

#[test]
fn arrow_that_claims_more_than_there_is() {
    // Each 8 bytes in turn say that they are a length of 2^49, as a compressed buffer's first 8 bytes once did. The reader
    // would have allocated that, and the process would have been gone.
    let bench = Bench::new();
    let whole = arrow_file(&bench);
    let claim = (1_i64 << 49).to_le_bytes();
    let mut refused = 0;
    let tail = whole.len() - 600..whole.len();
    for at in (8..1024).step_by(8).chain(tail.step_by(8)) {
        let mut damaged = whole.clone();
        let end = (at + 8).min(damaged.len());
        damaged[at..end].copy_from_slice(&claim[..end - at]);
        let path = bench.write("damaged.arrow", &damaged);
        let sql = format!("SELECT s, max(number) FROM '{}' GROUP BY s", path.display());
        match Answer::ask(&bench.session, &sql) {
            Ok(_) => {} // padding, or a value
            Err(Error::Internal(message)) => panic!("byte {at}: {message}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10, "only {refused} were refused");
}

#[test]
fn csv_with_a_bad_row() {
    let bench = Bench::new();
    let mut text = "number,s\n".to_string();
    (0..3000).for_each(|row| text += &format!("{row},text\n"));
    let path = bench.write(
        "columns.csv",
        (text.clone() + "1,too,many,columns\n").as_bytes(),
    );
    assert_error!(bench.file_error(&path), Error::Format { .. }, "columns.csv");
    // The type was inferred from the first megabyte.
    let path = bench.write(
        "type.csv",
        ("number,s\n".to_string() + &"1,text\n".repeat(300_000) + "not a number,text\n").as_bytes(),
    );
    assert_error!(
        bench.file_error(&path),
        Error::Format { .. } | Error::Type { .. },
        "not a number"
    );
    let path = bench.write("encoding.csv", &[text.as_bytes(), b"1,\xff\xfe\n"].concat());
    assert_error!(bench.file_error(&path), Error::Format { .. }, "UTF-8");
}

#[test]
fn json_with_a_bad_row() {
    let bench = Bench::new();
    let path = bench.write(
        "cut.json",
        b"{\"number\": 1, \"s\": \"a\"}\n{\"number\": 2, \"s\": \n",
    );
    assert_error!(bench.file_error(&path), Error::Format { .. }, "json");
}

#[test]
fn files_without_columns_or_rows() {
    let bench = Bench::new();
    let path = bench.write("empty.csv", b"");
    assert_error!(
        bench.error(&format!("SELECT x FROM '{}'", path.display())),
        Error::UnknownColumn { .. } | Error::Format { .. },
        ""
    );
    let path = bench.write("header.csv", b"number,s\n");
    let answer = Answer::ask(
        &bench.session,
        &format!("SELECT s, count(*) FROM '{}' GROUP BY s", path.display()),
    );
    assert!(
        answer
            .expect("a header is a table without rows")
            .rows
            .is_empty()
    );
}

#[test]
fn parquet_without_columns() {
    use datafusion::parquet::arrow::ArrowWriter;
    let bench = Bench::new();
    let path = bench.path("none.parquet");
    let schema = std::sync::Arc::new(arrow::datatypes::Schema::empty());
    let writer = ArrowWriter::try_new(
        fs::File::create(&path).expect("a folder of ours"),
        schema,
        None,
    );
    match writer.and_then(|writer| writer.close()) {
        Ok(_) => {
            let answer = Answer::ask(
                &bench.session,
                &format!("SELECT count(*) FROM '{}'", path.display()),
            );
            assert!(
                matches!(&answer, Err(Error::Format { .. }))
                    || answer.is_ok_and(|answer| answer.rows == [[Cell::Int(0)]])
            );
            assert_error!(
                bench.error(&format!("SELECT x FROM '{}'", path.display())),
                Error::UnknownColumn { .. } | Error::Format { .. },
                ""
            );
        }
        Err(error) => panic!("the writer refuses a file without columns: {error}"),
    }
}

#[test]
fn unknown_names() {
    let bench = Bench::new();
    let path = bench.path("good.parquet");
    let error = bench.error(&format!(
        "SELECT\n  numbr, count(*) FROM '{}' GROUP BY numbr",
        path.display()
    ));
    assert_error!(
        error,
        Error::UnknownColumn { .. },
        "numbr",
        "number",
        "line 2",
        "column 3"
    );
    assert_error!(
        bench.error("SELECT * FROM nowhere"),
        Error::UnknownTable { .. },
        "nowhere"
    );
    assert_error!(
        bench.error("SELECT summ(number) FROM numbers(3)"),
        Error::UnknownFunction { .. },
        "summ",
        "sum"
    );
    assert_error!(
        bench.error("SELECT * FROM numers(3)"),
        Error::UnknownFunction { .. },
        "numers",
        "numbers"
    );
    assert_error!(
        bench.error("SET grouse.theads = 3"),
        Error::Invalid { .. },
        "theads",
        "threads"
    );
}

#[test]
fn syntax() {
    let bench = Bench::new();
    assert_error!(
        bench.error("SELECT count(*)\nFORM numbers(3)"),
        Error::Syntax { .. } | Error::UnknownColumn { .. },
        "line 2"
    );
    assert_error!(bench.error("SELECT 'open"), Error::Syntax { .. }, "line 1");
    assert_error!(
        bench.error("SELECT count(* FROM numbers(3)"),
        Error::Syntax { .. },
        "line 1"
    );
    assert_error!(
        bench.error("SELECT number, count(*) FROM numbers(3)"),
        Error::Planning { .. },
        "number",
        "GROUP BY"
    );
    assert_error!(
        bench.error("SELECT sum(count(*)) FROM numbers(3)"),
        Error::Planning { .. } | Error::Unsupported { .. },
        "aggregate"
    );
}

#[test]
fn types() {
    let bench = Bench::new();
    assert_error!(
        bench.error("SELECT sum('a') FROM numbers(3)"),
        Error::Type { .. } | Error::Planning { .. },
        "sum"
    );
    assert_error!(
        bench.error("SELECT avg(number > 1) FROM numbers(3)"),
        Error::Type { .. } | Error::Planning { .. },
        "avg"
    );
    assert_error!(
        bench.error("SELECT CAST('x' || number AS INT) FROM numbers(1)"),
        Error::Type { .. },
        "x0"
    );
    assert_error!(
        bench.error("SELECT DATE '2024-13-01'"),
        Error::Type { .. },
        "2024-13-01"
    );
    assert_error!(
        bench.error("SELECT count(*) FROM numbers(3) GROUP BY CAST('x' || number AS INT)"),
        Error::Type { .. },
        "x"
    );
}

#[test]
fn arithmetic() {
    let bench = Bench::new();
    for divided in [
        "1 / (number - number)",
        "number % (number * 0)",
        "CAST(1 AS DECIMAL(9, 2)) / CAST(number * 0 AS DECIMAL(9, 2))",
    ] {
        assert_error!(
            bench.error(&format!(
                "SELECT {divided}, count(*) FROM numbers(3) GROUP BY 1"
            )),
            Error::DivideByZero,
            "zero"
        );
        assert_error!(
            bench.error(&format!("SELECT sum({divided}) FROM numbers(3)")),
            Error::DivideByZero,
            "zero"
        );
    }
    let huge = "(VALUES (9223372036854775807), (1)) AS t(x)";
    assert_error!(
        bench.error(&format!("SELECT sum(x) FROM {huge}")),
        Error::Overflow { .. },
        "sum",
        "CAST"
    );
    assert_error!(
        bench.error(&format!("SELECT x % 1, sum(x) FROM {huge} GROUP BY x % 1")),
        Error::Overflow { .. },
        "sum",
        "CAST"
    );
    assert_error!(
        bench.error("SELECT CAST(number + 300 AS TINYINT), count(*) FROM numbers(3) GROUP BY 1"),
        Error::Overflow { .. } | Error::Type { .. },
        "TINYINT"
    );
}

#[test]
fn memory_limit() {
    let options = SessionOptions {
        memory_limit: Some(20 << 20),
        threads: 2,
        ..Default::default()
    };
    let session = Session::new(options).expect("a small limit");
    let sql =
        "SELECT number, count(*), max('text ' || number) FROM numbers(3000000) GROUP BY number";
    match Answer::ask(&session, sql) {
        Err(Error::OutOfMemory(out)) => {
            assert_eq!(out.limit_bytes, 20 << 20);
            assert!(out.asked_bytes > 0 && !out.operator.is_empty(), "{out:?}");
            let message = out.to_string();
            assert!(
                message.contains("memory_limit") && message.contains(&out.operator),
                "{message}"
            );
        }
        // an operator that spills may get through
        Ok(answer) => assert_eq!(answer.rows.len(), 3_000_000),
        Err(error) => panic!("{error:?}"),
    }
    let small = Answer::ask(
        &session,
        "SELECT number % 10, count(*) FROM numbers(1000000) GROUP BY 1",
    )
    .expect("a query that fits");
    assert_eq!(small.rows.len(), 10);
}

#[test]
fn values_longer_than_memory() {
    let options = SessionOptions {
        memory_limit: Some(64 << 20),
        ..Default::default()
    };
    let session = Session::new(options).expect("a small limit");
    for value in [
        "lpad('a', 2000000000, 'b')",
        "rpad('a', 2000000000)",
        "repeat('abc', 100000000)",
        "array_repeat(1, 2000000000)",
        "array_resize([1], 2000000000)",
        "repeat('abc', 10000 + number)",
    ] {
        let sql = format!("SELECT max(length({value})) FROM numbers(8192)");
        let sql = sql.replace("length(array", "cardinality(array");
        assert_error!(
            Answer::ask(&session, &sql).expect_err(value),
            Error::Execution(_),
            "memory_limit",
            "bytes at once"
        );
    }
    let short =
        "SELECT lpad('a', 3, 'b'), rpad('a', 2), repeat('ab', 2), lpad('a', 2000000000, '')";
    Answer::ask(&session, short).expect("values that fit");
}
