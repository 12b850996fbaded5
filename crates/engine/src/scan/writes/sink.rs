//! The sink of a COPY or INSERT into files: DataFusion's formats, our files.
//!
//! In: rows in order. Out: the number of rows, once all files have their names.
//! Invariant: the files get their names only after the last row has been read without an error and every writer has ended;
//! as many rows are written as were read.
//! Not here: bytes (DataFusion's sinks), temporary names (stage.rs).

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::mpsc;

use super::arrow::ArrowSink;
use super::request::{Existing, JsonLayout, Writes};
use super::split::{PartitionColumns, PartitionValues, Splitter};
use super::stage::StagedFiles;
use super::target::{WriteTarget, is_one_file, name_of};
use super::text::TextSink;
use super::upload::Uploads;
use crate::error::Error;
use crate::scan::access::Access;
use crate::scan::external::with_nullable;
use crate::scan::parquet::time_units::{batch_in_file_units, schema_in_file_units};

/// DataFusion's sink, whose files appear when all are whole.
#[derive(Debug)]
pub(super) struct WholeFiles {
    /// DataFusion's node, of which only the sink is used.
    datafusion: DataSinkExec,
    /// Its columns; those of folders may be NULL, whatever it says: NULL has a folder of its own.
    schema: SchemaRef,
}

/// A new file and its rows, as DataFusion's sinks want them.
type Files = mpsc::UnboundedSender<(Path, mpsc::Receiver<RecordBatch>)>;

impl WholeFiles {
    /// For a node that writes files; `None` = it writes something else.
    pub(super) fn around(node: &DataSinkExec) -> Option<WholeFiles> {
        let writer = writer(node.sink())?;
        let folders = &writer.config().table_partition_cols;
        Some(WholeFiles {
            datafusion: node.clone(),
            schema: with_nullable(node.sink().schema(), folders),
        })
    }

    fn writer(&self) -> DataFusionResult<RowWriter<'_>> {
        let writer = writer(self.datafusion.sink());
        writer.ok_or_else(|| Error::Internal("a sink of files without files".to_string()).into())
    }
}

/// Who makes bytes of rows.
enum RowWriter<'a> {
    Text(TextSink<'a>),
    Columns(&'a dyn FileSink),
}

/// The writer behind a sink of files.
fn writer(sink: &dyn DataSink) -> Option<RowWriter<'_>> {
    if let Some(sink) = sink.downcast_ref::<CsvSink>() {
        return Some(RowWriter::Text(TextSink::Csv(sink)));
    }
    if let Some(sink) = sink.downcast_ref::<JsonSink>() {
        return Some(RowWriter::Text(TextSink::Json(sink)));
    }
    let parquet = sink.downcast_ref::<ParquetSink>();
    let arrow = || {
        sink.downcast_ref::<ArrowSink>()
            .map(|sink| sink as &dyn FileSink)
    };
    let columns = parquet.map(|sink| sink as &dyn FileSink).or_else(arrow);
    columns.map(RowWriter::Columns)
}

impl RowWriter<'_> {
    fn config(&self) -> &FileSinkConfig {
        match self {
            RowWriter::Text(sink) => sink.config(),
            RowWriter::Columns(sink) => sink.config(),
        }
    }

    async fn write(
        &self,
        context: &Arc<TaskContext>,
        feeding: SpawnedTask<DataFusionResult<()>>,
        files: mpsc::UnboundedReceiver<(Path, mpsc::Receiver<RecordBatch>)>,
        store: Arc<dyn ObjectStore>,
    ) -> DataFusionResult<u64> {
        match self {
            RowWriter::Text(sink) => sink.write(context, feeding, files, store).await,
            RowWriter::Columns(sink) => {
                sink.spawn_writer_tasks_and_join(context, feeding, files, store)
                    .await
            }
        }
    }
}

impl DisplayAs for WholeFiles {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.datafusion.sink().fmt_as(kind, f)
    }
}

#[async_trait]
impl DataSink for WholeFiles {
    fn metrics(&self) -> Option<MetricsSet> {
        self.datafusion.sink().metrics()
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> DataFusionResult<u64> {
        let writer = self.writer()?;
        let data = match self.datafusion.sink().is::<ParquetSink>() {
            true => in_file_units(data),
            false => data,
        };
        let config = writer.config();
        let writes = context.session_config().get_extension::<Writes>();
        let writes = writes.unwrap_or_default();
        let layout = FileLayout::of(config, &writes, context)?;
        let stage = open_stage(config, &writes, context).await?;
        let rows = Arc::new(AtomicU64::new(0));
        let (files, waiting) = mpsc::unbounded_channel();
        let feed = Feed {
            stage: Arc::clone(&stage),
            files,
            rows: Arc::clone(&rows),
            batches_max: batches_max(context),
            end: match (&writer, writes.json) {
                (RowWriter::Text(TextSink::Json(_)), JsonLayout::Array) => End::Marked,
                _ => End::Open,
            },
        };
        let feeding = SpawnedTask::spawn(feed.run(data, layout));
        let uploads = Arc::new(Uploads(Arc::clone(&stage)));
        let context = match stage.is_stream() {
            true => &in_small_parts(context),
            false => context,
        };
        let written = writer.write(context, feeding, waiting, uploads).await;
        // DataFusion's writers tell of a full disk as of an internal error.
        let written = match (stage.failure(), written) {
            (Some(failure), _) => Err(failure.into()),
            (None, written) => written,
        };
        let read = rows.load(Ordering::Acquire);
        let checked = written.and_then(|written| match written == read {
            true => Ok(written),
            false => Err(Error::Internal(format!("{written} of {read} rows were written")).into()),
        });
        match checked {
            Ok(written) => stage.commit().await.map(|()| written).map_err(Into::into),
            Err(error) => {
                stage.discard();
                Err(error)
            }
        }
    }
}

/// The rows as Parquet has them.
fn in_file_units(data: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = schema_in_file_units(&data.schema());
    let data = data.map(|batch| Ok::<_, DataFusionError>(batch_in_file_units(batch?)?));
    Box::pin(RecordBatchStreamAdapter::new(schema, data))
}

async fn open_stage(
    config: &FileSinkConfig,
    writes: &Arc<Writes>,
    context: &Arc<TaskContext>,
) -> DataFusionResult<Arc<StagedFiles>> {
    let (config, context, writes) = (config.clone(), Arc::clone(context), Arc::clone(writes));
    // A pipe waits for its reader.
    let opening = tokio::task::spawn_blocking(move || {
        let target = WriteTarget::of(&config, &context)?;
        let access = Access::of(context.session_config())?;
        let name = name_of(&config);
        let stage = Arc::new(StagedFiles::open(name, target, writes.existing, access)?);
        writes.watch(&stage);
        Ok::<_, Error>(stage)
    });
    let stage = opening.await;
    Ok(stage.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??)
}

/// Bytes that a writer gathers for a stream: whoever reads it does not wait for megabytes.
const STREAM_PART_BYTES: usize = 64 << 10;

/// What DataFusion's writers see of the context, with parts of that size.
fn in_small_parts(context: &TaskContext) -> Arc<TaskContext> {
    let mut config = context.session_config().clone();
    let options = config.options_mut();
    options.execution.objectstore_writer_buffer_size = STREAM_PART_BYTES;
    let context = TaskContext::default().with_runtime(context.runtime_env());
    Arc::new(context.with_session_config(config))
}

fn batches_max(context: &TaskContext) -> usize {
    let options = context.session_config().options();
    options
        .execution
        .max_buffered_batches_per_output_file
        .get()
        .max(2)
}

/// Which rows go to which file.
#[derive(Debug)]
enum FileLayout {
    /// All to one.
    One,
    /// To files of so many rows.
    Rows(FileNames, usize),
    /// By the values of columns.
    Keys(FileNames, Splitter),
}

impl FileLayout {
    fn of(
        config: &FileSinkConfig,
        writes: &Writes,
        context: &TaskContext,
    ) -> DataFusionResult<FileLayout> {
        if is_one_file(config) {
            return Ok(FileLayout::One);
        }
        let names = FileNames::new(config, writes);
        if config.table_partition_cols.is_empty() {
            let options = context.session_config().options();
            let rows_max = options.execution.soft_max_rows_per_output_file.get();
            return Ok(FileLayout::Rows(names, rows_max));
        }
        let columns = config.table_partition_cols.iter();
        let columns = columns.map(|(name, _)| name.clone()).collect();
        let kept = match config.keep_partition_by_columns {
            true => PartitionColumns::InFiles,
            false => PartitionColumns::InPathsOnly,
        };
        let schema = with_nullable(config.output_schema(), &config.table_partition_cols);
        let splitter = Splitter::new(columns, &schema, kept)?;
        Ok(FileLayout::Keys(names, splitter))
    }
}

/// Names of files in a folder.
#[derive(Debug)]
struct FileNames {
    pattern: String,
    extension: String,
    unique: String,
}

impl FileNames {
    fn new(config: &FileSinkConfig, writes: &Writes) -> FileNames {
        let pattern = match (&writes.pattern, writes.existing) {
            (Some(pattern), _) if pattern.contains("{i}") || pattern.contains("{uuid}") => {
                pattern.clone()
            }
            (Some(pattern), _) => format!("{pattern}{{i}}"),
            (None, Existing::Added) => "data_{uuid}_{i}".to_string(),
            (None, _) => "data_{i}".to_string(),
        };
        let extension = writes.extension.as_ref().unwrap_or(&config.file_extension);
        // Seeded by the system for each of them.
        let random = || RandomState::new().build_hasher().finish();
        FileNames {
            pattern,
            extension: extension.trim_start_matches('.').to_string(),
            unique: format!("{:016x}{:016x}", random(), random()),
        }
    }

    fn name(&self, nth: usize) -> String {
        let name = self.pattern.replace("{i}", &nth.to_string());
        let name = name.replace("{uuid}", &self.unique);
        format!("{name}.{}", self.extension)
    }
}

/// Whether a file's writer hears that no more rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// By a batch without rows, which is sent for nothing else.
    Marked,
}

/// Deals rows to files.
struct Feed {
    stage: Arc<StagedFiles>,
    files: Files,
    rows: Arc<AtomicU64>,
    batches_max: usize,
    end: End,
}

impl Feed {
    async fn run(
        self,
        data: SendableRecordBatchStream,
        layout: FileLayout,
    ) -> DataFusionResult<()> {
        match layout {
            FileLayout::One => self.one(data).await,
            FileLayout::Rows(names, rows_max) => self.by_rows(data, &names, rows_max).await,
            FileLayout::Keys(names, splitter) => self.by_keys(data, &names, &splitter).await,
        }
    }

    async fn one(self, mut data: SendableRecordBatchStream) -> DataFusionResult<()> {
        let (file, mut is_empty) = (self.file(String::new())?, true);
        while let Some(batch) = data.next().await {
            is_empty = false;
            self.send(&file, batch?).await?;
        }
        if is_empty {
            // The head of a file comes with its first rows.
            let none = RecordBatch::new_empty(data.schema());
            self.send(&file, none).await?;
        }
        self.finish(&file, &data.schema()).await
    }

    async fn by_rows(
        self,
        mut data: SendableRecordBatchStream,
        names: &FileNames,
        rows_max: usize,
    ) -> DataFusionResult<()> {
        let (mut file, mut rows, mut nth) = (self.file(names.name(0))?, 0, 0);
        // A folder without a file could not be read.
        self.send(&file, RecordBatch::new_empty(data.schema()))
            .await?;
        while let Some(batch) = data.next().await {
            let batch = batch?;
            if rows >= rows_max {
                self.finish(&file, &data.schema()).await?;
                nth += 1;
                (file, rows) = (self.file(names.name(nth))?, 0);
            }
            rows += batch.num_rows();
            self.send(&file, batch).await?;
        }
        self.finish(&file, &data.schema()).await
    }

    async fn by_keys(
        self,
        mut data: SendableRecordBatchStream,
        names: &FileNames,
        splitter: &Splitter,
    ) -> DataFusionResult<()> {
        let mut open: HashMap<PartitionValues, mpsc::Sender<RecordBatch>> = HashMap::new();
        while let Some(batch) = data.next().await {
            for (key, rows) in splitter.split(&batch?)? {
                let file = match open.get(&key) {
                    Some(file) => file,
                    None => {
                        let name = format!("{}{}", splitter.folder(&key), names.name(0));
                        let file = self.file(name)?;
                        open.entry(key).or_insert(file)
                    }
                };
                self.send(file, rows).await?;
            }
        }
        for file in open.values() {
            self.finish(file, &data.schema()).await?;
        }
        Ok(())
    }

    /// A further file.
    fn file(&self, name: String) -> DataFusionResult<mpsc::Sender<RecordBatch>> {
        let path = self.stage.add(name)?;
        let (rows, waiting) = mpsc::channel(self.batches_max);
        self.files
            .send((path, waiting))
            .map_err(|_| writer_is_gone())?;
        Ok(rows)
    }

    async fn send(
        &self,
        file: &mpsc::Sender<RecordBatch>,
        batch: RecordBatch,
    ) -> DataFusionResult<()> {
        let rows = batch.num_rows() as u64;
        if rows == 0 && self.end == End::Marked {
            return Ok(());
        }
        file.send(batch).await.map_err(|_| writer_is_gone())?;
        self.rows.fetch_add(rows, Ordering::AcqRel);
        Ok(())
    }

    async fn finish(
        &self,
        file: &mpsc::Sender<RecordBatch>,
        schema: &SchemaRef,
    ) -> DataFusionResult<()> {
        if self.end == End::Open {
            return Ok(());
        }
        let none = RecordBatch::new_empty(Arc::clone(schema));
        file.send(none).await.map_err(|_| writer_is_gone())
    }
}

/// It has an error of its own to tell, which goes first.
fn writer_is_gone() -> DataFusionError {
    Error::Internal("the writer of a file ended before its rows".to_string()).into()
}
