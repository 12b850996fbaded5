//! `grouse-decode`: how long it takes only to decode columns, the floor under any query over them.
//!
//! In: lines `path<TAB>column,column` on standard input. Out: for each, `seconds<TAB>rows`, or
//! `error<TAB>text`. Strings are decoded as DataFusion reads them: checked UTF-8 in views.
//! Invariant: each batch is dropped as soon as it is decoded; threads take row groups in turn.

use std::fs::File;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use arrow::datatypes::{DataType, Field, Schema};
use clap::Parser;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH_ROWS: usize = 8_192;

/// Decodes columns of Parquet files and drops them, to time nothing but that.
#[derive(Parser)]
#[command(name = "grouse-decode", version)]
struct DecodeArguments {
    /// Worker threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

#[derive(Debug, thiserror::Error)]
enum DecodeError {
    #[error("expected path<TAB>columns")]
    Request,
    #[error("{path}: {source}")]
    Io {
        path: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Parquet(#[from] ParquetError),
    #[error("no column {0}")]
    Column(String),
    #[error("a decoding thread stopped early")]
    Thread,
}

fn main() -> ExitCode {
    let threads = DecodeArguments::parse().threads.max(1);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else {
            return ExitCode::FAILURE;
        };
        let answer = match decode_timed(&line, threads) {
            Ok((seconds, rows)) => writeln!(output, "{seconds:.6}\t{rows}"),
            Err(error) => writeln!(output, "error\t{error}"),
        };
        if answer.and_then(|()| output.flush()).is_err() {
            return ExitCode::FAILURE; // whoever asked is gone
        }
    }
    ExitCode::SUCCESS
}

fn decode_timed(line: &str, threads: usize) -> Result<(f64, usize), DecodeError> {
    let (path, columns) = line.split_once('\t').ok_or(DecodeError::Request)?;
    let columns: Vec<&str> = columns.split(',').collect();
    let started = Instant::now();
    let scan = Scan::open(path, &columns)?;
    let row_groups = AtomicUsize::new(0);
    let rows = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| scan.decode_share(&row_groups)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| DecodeError::Thread)?)
            .sum::<Result<usize, _>>()
    })?;
    Ok((started.elapsed().as_secs_f64(), rows))
}

/// One file and the columns wanted of it.
struct Scan {
    path: String,
    metadata: ArrowReaderMetadata,
    columns: ProjectionMask,
}

impl Scan {
    fn open(path: &str, columns: &[&str]) -> Result<Self, DecodeError> {
        let file = open(path)?;
        let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let names: Vec<&String> = found.schema().fields().iter().map(|f| f.name()).collect();
        if let Some(absent) = columns.iter().find(|c| names.iter().all(|n| n != *c)) {
            return Err(DecodeError::Column((*absent).to_string()));
        }
        let options = ArrowReaderOptions::new().with_schema(Arc::new(as_views(found.schema())));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options)?;
        let columns = ProjectionMask::columns(metadata.parquet_schema(), columns.iter().copied());
        Ok(Self {
            path: path.to_string(),
            metadata,
            columns,
        })
    }

    /// Takes row groups until there are none left, and counts their rows.
    fn decode_share(&self, row_groups: &AtomicUsize) -> Result<usize, DecodeError> {
        let mut rows = 0;
        loop {
            let row_group = row_groups.fetch_add(1, Ordering::Relaxed);
            if row_group >= self.metadata.metadata().num_row_groups() {
                return Ok(rows);
            }
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
                open(&self.path)?,
                self.metadata.clone(),
            )
            .with_row_groups(vec![row_group])
            .with_projection(self.columns.clone())
            .with_batch_size(BATCH_ROWS)
            .build()?;
            for batch in reader {
                rows += batch.map_err(ParquetError::from)?.num_rows();
            }
        }
    }
}

fn open(path: &str) -> Result<File, DecodeError> {
    File::open(path).map_err(|source| DecodeError::Io {
        path: path.to_string(),
        source,
    })
}

/// The schema with text, annotated as such or not, as string views.
fn as_views(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Binary | DataType::Utf8 => DataType::Utf8View,
            other => other.clone(),
        };
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Schema::new(fields.collect::<Vec<_>>())
}
