//! A table to a Parquet file, row groups made in parallel.
//!
//! In: a `Table`. Out: the file, complete or absent.
//! Invariant: row groups land in order, so the bytes do not depend on the thread count; memory is
//! about two encoded row groups per thread, whatever the table's size.
//! Not here: what the rows hold.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;

/// The rows of one row group, a batch at a time.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + 'a>;

/// A table that can make any of its row groups on its own.
pub trait Table: Sync {
    /// Columns of the file.
    fn schema(&self) -> SchemaRef;
    /// How many row groups the file has.
    fn row_groups(&self) -> usize;
    /// The batches of one of them.
    fn batches(&self, row_group: usize) -> Batches<'_>;
    /// Encodings that differ from the writer's defaults.
    fn properties(&self, defaults: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        defaults
    }
}

/// What was written.
pub struct Written {
    /// Where
    pub path: PathBuf,
    /// Rows of the table
    pub rows: u64,
    /// Size of the file
    pub bytes: u64,
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system refused
    #[error("cannot write {path}: {source}; check the folder and the free space")]
    Io {
        /// File concerned
        path: PathBuf,
        /// What the system said
        source: std::io::Error,
    },
    /// The encoder refused
    #[error("cannot encode: {0}")]
    Parquet(#[from] ParquetError),
    /// A batch did not fit the schema
    #[error("cannot build a batch: {0}")]
    Arrow(#[from] ArrowError),
    /// A worker ended early
    #[error("a worker thread stopped before its row groups were made")]
    Worker,
    /// An argument out of range
    #[error("--{option} {value}: must be {range}")]
    Argument {
        /// Name of the option
        option: &'static str,
        /// What was given
        value: String,
        /// What is accepted
        range: &'static str,
    },
}

/// Column chunks of one row group and how many rows they hold.
struct Encoded {
    chunks: Vec<ArrowColumnChunk>,
    rows: u64,
}

/// Writes `table` to `path` with `threads` workers.
pub fn write_table(table: &dyn Table, path: &Path, threads: usize) -> Result<Written, WriteError> {
    let io = |source| WriteError::Io {
        path: path.to_path_buf(),
        source,
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(io)?;
    }
    let unfinished = path.with_extension("part");
    let outcome = File::create(&unfinished)
        .map_err(io)
        .and_then(|file| write_file(table, file, threads));
    let rows = match outcome {
        Ok(rows) => rows,
        Err(error) => {
            // The first error is the one to report; a file that is not there need not be removed.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
    };
    fs::rename(&unfinished, path).map_err(io)?;
    let bytes = fs::metadata(path).map_err(io)?.len();
    Ok(Written {
        path: path.to_path_buf(),
        rows,
        bytes,
    })
}

fn write_file(table: &dyn Table, file: File, threads: usize) -> Result<u64, WriteError> {
    let defaults = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("grouse-datagen ", env!("CARGO_PKG_VERSION")).to_string());
    let options = ArrowWriterOptions::new()
        .with_properties(table.properties(defaults).build())
        .with_skip_arrow_metadata(true);
    let writer = ArrowWriter::try_new_with_options(file, table.schema(), options)?;
    let (mut writer, factory) = writer.into_serialized_writer()?;
    let threads = threads.clamp(1, table.row_groups().max(1));
    let rows = thread::scope(|scope| {
        let mut results = Vec::with_capacity(threads);
        for worker in 0..threads {
            let (sender, receiver) = sync_channel(1);
            let factory = &factory;
            scope.spawn(move || encode_share(table, factory, worker..threads, &sender));
            results.push(receiver);
        }
        append_in_order(&mut writer, table.row_groups(), &results)
    })?;
    writer.close()?;
    Ok(rows)
}

/// Worker `share.start` of `share.end` makes every `share.end`th row group.
fn encode_share(
    table: &dyn Table,
    factory: &ArrowRowGroupWriterFactory,
    share: std::ops::Range<usize>,
    sender: &SyncSender<Result<Encoded, WriteError>>,
) {
    for row_group in (share.start..table.row_groups()).step_by(share.end) {
        let encoded = encode(table, factory, row_group);
        let failed = encoded.is_err();
        // A closed channel means that the file was given up: there is nothing left to do.
        if sender.send(encoded).is_err() || failed {
            return;
        }
    }
}

fn encode(
    table: &dyn Table,
    factory: &ArrowRowGroupWriterFactory,
    row_group: usize,
) -> Result<Encoded, WriteError> {
    let schema = table.schema();
    let mut writers = factory.create_column_writers(row_group)?;
    let mut rows = 0;
    for batch in table.batches(row_group) {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        let columns = schema.fields().iter().zip(batch.columns());
        for (writer, (field, column)) in writers.iter_mut().zip(columns) {
            // Every table here is flat: one leaf a column.
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
    }
    let chunks = writers
        .into_iter()
        .map(|writer| writer.close())
        .collect::<Result<_, _>>()?;
    Ok(Encoded { chunks, rows })
}

fn append_in_order(
    writer: &mut SerializedFileWriter<File>,
    row_groups: usize,
    results: &[Receiver<Result<Encoded, WriteError>>],
) -> Result<u64, WriteError> {
    let mut rows = 0;
    for row_group in 0..row_groups {
        let encoded = results[row_group % results.len()]
            .recv()
            .map_err(|_| WriteError::Worker)??;
        let mut target = writer.next_row_group()?;
        for chunk in encoded.chunks {
            chunk.append_to_row_group(&mut target)?;
        }
        target.close()?;
        rows += encoded.rows;
    }
    Ok(rows)
}
