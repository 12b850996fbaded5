//! Pipes: `/dev/stdin`, fifos and `<(…)`, which can be read only once.
//!
//! In: the path of a pipe, or of another file without a length.
//! Out: for CSV the bytes as they come, whose beginning is held until the rest is read. For all other formats a temporary
//! file without a name that has them all.
//! Invariant: no byte is read twice or lost, in bounded memory; a second reading of CSV is an error.
//! Not here: what the bytes are (csv/, format.rs).

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::context::SessionConfig;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::access::{Access, OwnPath};
use super::call::{FileCall, WantedOfFiles};
use super::csv::beginnings::BEGINNING_BYTES;
use super::csv::blocks::Blocks;
use super::csv::decode::{Decode, ReadingRules};
use super::csv::input::Input;
use super::csv::rejects::RejectsOf;
use super::csv::sniff::sniffed_table;
use super::csv::source::{BlockOrigin, batches};
use super::csv::table::csv_table_in;
use super::decompression::Decompression;
use super::format::{FileKind, common_reading};
use super::parquet::Bytes;
use super::text::{Extent, SAMPLE_ROWS};
use super::wrapped::as_wrapped;
use crate::error::{Error, Result};
use crate::runtime::options::SessionOptions;

/// Bytes that are read from a pipe at once: as many as Linux holds in one, four times.
const READ_BYTES: usize = 1 << 18;

type ByteChunks = BoxStream<'static, DataFusionResult<Bytes>>;

/// Whether a path is no file with a length.
pub(crate) fn is_pipe(path: &str) -> bool {
    Path::new(path).metadata().is_ok_and(|meta| {
        let kind = meta.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_socket()
    })
}

fn failed(path: &str, error: &std::io::Error) -> Error {
    Error::Io {
        path: path.to_string(),
        message: error.to_string(),
    }
}

async fn opened(path: &str) -> Result<File> {
    let name = path.to_string();
    // A fifo waits for somebody who writes.
    let file = tokio::task::spawn_blocking(move || File::open(name)).await;
    let file = file.map_err(|_| Error::Cancelled)?;
    file.map_err(|error| failed(path, &error))
}

fn chunks(file: File, path: &str) -> ByteChunks {
    let name = path.to_string();
    let next = move |file: File| {
        let name = name.clone();
        async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::with_capacity(READ_BYTES);
                let read = (&file).take(READ_BYTES as u64).read_to_end(&mut bytes);
                read.map(|_| (bytes, file))
            });
            let read = read
                .await
                .map_err(|_| DataFusionError::from(Error::Cancelled))?;
            let (bytes, file) =
                read.map_err(|error| DataFusionError::from(failed(&name, &error)))?;
            Ok((!bytes.is_empty()).then(|| (Bytes::from(bytes), file)))
        }
    };
    futures::stream::try_unfold(file, next).boxed()
}

/// A pipe whose beginning was read.
pub(crate) struct Pipe {
    name: String,
    /// Until somebody takes it.
    content: Mutex<Option<(Vec<u8>, ByteChunks)>>,
    extent: Extent,
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Pipe {
    /// Opens a pipe and reads its beginning, decompressed.
    async fn open(path: &str, decompression: &Decompression, bytes: usize) -> Result<Pipe> {
        let mut rest = decompression.stream(chunks(opened(path).await?, path), path)?;
        let mut beginning = Vec::new();
        let mut extent = Extent::Part;
        while beginning.len() < bytes && extent == Extent::Part {
            match rest.try_next().await? {
                Some(chunk) => beginning.extend_from_slice(&chunk),
                None => extent = Extent::Whole,
            }
        }
        Ok(Pipe {
            name: path.to_string(),
            content: Mutex::new(Some((beginning, rest))),
            extent,
        })
    }

    /// Its beginning, empty once it was taken, and whether that is all.
    fn beginning(&self) -> (Vec<u8>, Extent) {
        let content = self.content.lock();
        let beginning = content.as_ref().map(|(beginning, _)| beginning.clone());
        (beginning.unwrap_or_default(), self.extent)
    }

    /// Nobody has read it yet.
    pub(crate) fn is_whole(&self) -> bool {
        self.content.lock().is_some()
    }

    /// All its bytes, once.
    fn take(&self) -> DataFusionResult<ByteChunks> {
        let content = self.content.lock().take();
        let Some((beginning, rest)) = content else {
            let error = Error::unsupported(format!(
                "reading the pipe '{}' twice; CREATE TABLE t AS SELECT * FROM … keeps its rows",
                self.name
            ));
            return Err(error.into());
        };
        let beginning = futures::stream::iter([Ok(Bytes::from(beginning))]);
        Ok(beginning.chain(rest).boxed())
    }
}

/// CSV in a pipe.
#[derive(Debug)]
struct CsvPipe {
    pipe: Arc<Pipe>,
    rules: Arc<ReadingRules>,
    schema: SchemaRef,
}

impl PartitionStream for CsvPipe {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = context.session_config().batch_size();
        let stream = match self.pipe.take() {
            Ok(chunks) => self.batches(chunks, rows),
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        ))
    }
}

impl CsvPipe {
    fn batches(
        &self,
        chunks: ByteChunks,
        rows: usize,
    ) -> BoxStream<'static, DataFusionResult<datafusion::arrow::array::RecordBatch>> {
        let rules = &self.rules;
        let input = Input::of_stream(chunks, &self.pipe.name).encoded(rules.encoding);
        let blocks = Blocks::new(input, rules.dialect.clone(), rules.record_bytes_max);
        let columns: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = (Arc::clone(&self.schema), columns.as_slice());
        let decode = Decode::new(rules, &rules.layout, wanted, rows);
        let rejects = rules.rejects.as_ref();
        let rejects = rejects.map(|rejects| {
            let file = object_store::path::Path::from(self.pipe.name.as_str());
            rejects.of_file(&file, &rules.layout)
        });
        batches(BlockOrigin::Whole(Box::new(blocks)), decode, rejects)
    }
}

/// The table over CSV in a pipe.
fn csv_pipe(
    pipe: &Arc<Pipe>,
    rules: ReadingRules,
    schema: SchemaRef,
) -> Result<Arc<dyn TableProvider>> {
    let stream = CsvPipe {
        pipe: Arc::clone(pipe),
        rules: Arc::new(rules),
        schema: Arc::clone(&schema),
    };
    Ok(Arc::new(StreamingTable::try_new(
        schema,
        vec![Arc::new(stream)],
    )?))
}

/// A pipe that was opened, until it is read: names of one statement mean one reading of it.
#[derive(Debug, Clone)]
enum OpenPipe {
    Stream(Arc<Pipe>),
    Spooled(Arc<Spooled>),
}

impl OpenPipe {
    fn is_whole(&self) -> bool {
        match self {
            OpenPipe::Stream(pipe) => pipe.is_whole(),
            OpenPipe::Spooled(spooled) => spooled.is_whole(),
        }
    }
}

/// What to read a pipe from.
pub(crate) enum OpenedPipe {
    /// The table.
    Csv(Arc<dyn TableProvider>),
    /// A file of this kind.
    Spooled(Arc<Spooled>, FileKind),
}

/// The pipes of a session.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Mutex<HashMap<String, OpenPipe>>);

impl Pipes {
    /// The content of a pipe, which is opened unless one is open that nobody has read. CSV streams, all other formats
    /// are read where they lie.
    pub(crate) async fn open(
        &self,
        path: &str,
        call: &FileCall,
        state: &SessionState,
        rejects: Option<RejectsOf>,
    ) -> Result<OpenedPipe> {
        let kind = match call.kind {
            Some(kind) => kind,
            None => common_reading(&[path.to_string()])?.kind,
        };
        let known = self.0.lock().get(path).cloned();
        let open = match known.filter(OpenPipe::is_whole) {
            Some(open) => open,
            None => {
                let open = opened_as(path, kind, call, state).await?;
                self.0.lock().insert(path.to_string(), open.clone());
                open
            }
        };
        match open {
            OpenPipe::Stream(pipe) => {
                let table = csv_table_over((path, kind), call, &pipe, rejects)?;
                Ok(OpenedPipe::Csv(table))
            }
            OpenPipe::Spooled(spooled) => Ok(OpenedPipe::Spooled(spooled, kind)),
        }
    }
}

async fn opened_as(
    path: &str,
    kind: FileKind,
    call: &FileCall,
    state: &SessionState,
) -> Result<OpenPipe> {
    if !matches!(kind, FileKind::Csv | FileKind::Tsv) {
        let spooled = Spooled::new(path, state.config()).await?;
        return Ok(OpenPipe::Spooled(Arc::new(spooled)));
    }
    let compression = call.text.compression;
    let compression = compression.unwrap_or(CompressionTypeVariant::UNCOMPRESSED);
    let pool = &state.runtime_env().memory_pool;
    let decompression = Decompression::new(compression.into(), pool);
    let pipe = Pipe::open(path, &decompression, BEGINNING_BYTES).await?;
    Ok(OpenPipe::Stream(Arc::new(pipe)))
}

fn csv_table_over(
    (path, kind): (&str, FileKind),
    call: &FileCall,
    pipe: &Arc<Pipe>,
    rejects: Option<RejectsOf>,
) -> Result<Arc<dyn TableProvider>> {
    if call.text.sample_rows.is_some_and(|rows| rows > SAMPLE_ROWS) {
        return Err(Error::unsupported(format!(
            "a sample_size beyond {SAMPLE_ROWS} rows of a pipe ('{path}')"
        )));
    }
    let (bytes, extent) = pipe.beginning();
    let mut table = csv_table_in(path, kind, &call.text, (bytes, extent))?;
    if let Some(rejects) = rejects {
        let files = vec![(object_store::path::Path::from(path), path.to_string())];
        table.rules.rejects = Some(Arc::new(rejects.files(files, &table)));
    }
    if table.schema.fields().is_empty() {
        return Err(Error::bad_file(path.to_string(), "it has no columns"));
    }
    match call.wanted {
        WantedOfFiles::Dialect => sniffed_table(path, &table),
        WantedOfFiles::Rows => csv_pipe(pipe, table.rules, table.schema),
    }
}

/// What came through a pipe, as a file.
#[derive(Debug)]
pub(crate) struct Spooled {
    /// Where it can be opened; forgotten before the file is closed.
    own: OwnPath,
    /// Open, which keeps it.
    _file: File,
    is_read: Mutex<bool>,
}

impl Spooled {
    /// Reads a pipe to its end.
    pub(crate) async fn new(path: &str, config: &SessionConfig) -> Result<Spooled> {
        let (options, access) = (SessionOptions::of(config.options()), Access::of(config)?);
        let folder = options.temp_directory.first().cloned();
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        let bytes_max = options.max_temp_directory_size;
        let pipe = opened(path).await?;
        let name = path.to_string();
        let spooled = tokio::task::spawn_blocking(move || {
            let mut file = tempfile::tempfile_in(folder)?;
            let bytes_max = bytes_max.unwrap_or(u64::MAX);
            let copied = std::io::copy(&mut (&pipe).take(bytes_max.saturating_add(1)), &mut file)?;
            match copied > bytes_max {
                true => Err(std::io::Error::other(format!(
                    "more than the {bytes_max} bytes that max_temp_directory_size allows come through the pipe"
                ))),
                false => Ok(file),
            }
        });
        let file = spooled.await.map_err(|_| Error::Cancelled)?;
        let file = file.map_err(|error| failed(&name, &error))?;
        Ok(Spooled {
            own: access.allow_own(format!("/dev/fd/{}", file.as_raw_fd()).into()),
            _file: file,
            is_read: Mutex::new(false),
        })
    }

    /// Where it can be opened while this lives.
    pub(crate) fn path(&self) -> String {
        self.own.path().display().to_string()
    }

    pub(crate) fn is_whole(&self) -> bool {
        !*self.is_read.lock()
    }
}

/// The table over a spooled file, which lives as long as that.
#[derive(Debug)]
pub(crate) struct SpooledTable {
    pub(crate) spooled: Arc<Spooled>,
    pub(crate) table: Arc<dyn TableProvider>,
}

#[async_trait]
impl TableProvider for SpooledTable {
    as_wrapped!(table: schema, table_type, supports_filters_pushdown);

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        *self.spooled.is_read.lock() = true;
        self.table.scan(state, projection, filters, limit).await
    }
}
