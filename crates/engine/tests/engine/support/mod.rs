//! What the engine's tests share: a session, answers as text, files of every format, a server on loopback.

pub mod server;

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use futures::TryStreamExt;
use grouse::{Audience, Error, Session, SessionOptions};
use tempfile::TempDir;

/// A session with two threads and little memory.
pub fn session() -> Session {
    session_of_threads(2)
}

/// The same with so many threads.
pub fn session_of_threads(threads: usize) -> Session {
    Session::new(SessionOptions {
        threads,
        memory_limit: Some(1 << 30),
        settable: Audience::Test,
        ..Default::default()
    })
    .unwrap()
}

/// A session whose scans have a stream for each of two workers, however small the file.
pub fn two_streams() -> Session {
    let session = session();
    rows(
        &session,
        "SET datafusion.optimizer.repartition_file_min_size = 0",
    );
    session
}

/// The same session with aggregations of DataFusion.
pub fn by_datafusion(session: Session) -> Session {
    rows(&session, "SET group_by_operator = 'datafusion'");
    session
}

/// The batches of one statement.
pub fn run(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, Error> {
    session.handle().block_on(async {
        let query = session.query(sql).await?;
        query.execute()?.try_collect().await.map_err(Error::from)
    })
}

/// Holds the rows of one statement against those that are right.
#[track_caller]
pub fn check(session: &Session, sql: &str, expected: &[&str]) {
    assert_eq!(rows(session, sql), expected, "{sql}");
}

/// Writes a file, and says where it is.
pub fn write(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_string()
}

/// The rows of one statement as text: `a|b` per row.
pub fn rows(session: &Session, sql: &str) -> Vec<String> {
    let batches = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    batches.iter().flat_map(rows_of).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    let row = |row: usize| {
        columns
            .iter()
            .map(|column| column.value(row).to_string())
            .collect::<Vec<_>>()
            .join("|")
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The rows of one statement, sorted.
pub fn sorted(session: &Session, sql: &str) -> Vec<String> {
    let mut rows = rows(session, sql);
    rows.sort();
    rows
}

/// The plans of a query as text.
pub fn plan(session: &Session, sql: &str) -> String {
    rows(session, &format!("EXPLAIN {sql}")).join("\n")
}

/// Whether our answer is DataFusion's and has more rows than `rows_min`.
pub fn assert_as_datafusion(ours: &Session, datafusion: &Session, sql: &str, rows_min: usize) {
    let answer = sorted(ours, sql);
    assert!(answer.len() > rows_min, "{sql}");
    assert_eq!(answer, sorted(datafusion, sql), "{sql}");
}

/// The error of one statement.
pub fn error(session: &Session, sql: &str) -> Error {
    match run(session, sql) {
        Ok(batches) => panic!("{sql} gave {batches:?}"),
        Err(error) => error.kind().clone(),
    }
}

/// Three rows: `id` 1 to 3, `name` a to c.
pub fn sample() -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    RecordBatch::try_from_iter([("id", id), ("name", name)]).unwrap()
}

/// Writes a batch as Parquet.
pub fn write_parquet(path: &Path, batch: &RecordBatch) {
    write_parquet_as(path, batch, None);
}

/// The same with other properties than the writer's own.
pub fn write_parquet_as(path: &Path, batch: &RecordBatch, properties: Option<WriterProperties>) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), properties).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Our operator and DataFusion's over the files of a folder.
pub struct Sides {
    pub folder: TempDir,
    pub ours: Session,
    pub datafusion: Session,
}

impl Sides {
    pub fn over(folder: TempDir) -> Sides {
        Sides {
            folder,
            ours: session(),
            datafusion: by_datafusion(session()),
        }
    }

    /// A query without its SELECT and with `{}` for the files.
    pub fn sql(&self, query: &str) -> String {
        let files = format!("'{}/*.parquet'", self.folder.path().display());
        format!("SELECT {}", query.replace("{}", &files))
    }

    /// Our plan of a query whose answers are the same and have more rows than `rows_min`.
    pub fn plan_of_same(&self, query: &str, rows_min: usize) -> String {
        let sql = self.sql(query);
        assert_as_datafusion(&self.ours, &self.datafusion, &sql, rows_min);
        plan(&self.ours, &sql)
    }
}
