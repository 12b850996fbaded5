//! Arrow IPC files of a COPY: DataFusion's format with a sink of ours.
//!
//! In: batches. Out: IPC files, compressed with LZ4.
//! Invariant: a column of codes is written as its values, since an IPC file has room for one dictionary only and every
//! batch may come with its own.
//! Not here: reading (ipc/); temporary names (stage.rs).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::MetadataVersion;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use datafusion::catalog::Session;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, GetExt, Result, Statistics};
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSink, FileSinkConfig, FileSource};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::Error;
use crate::scan::ipc::CheckedArrow;
use crate::scan::wrapped::as_wrapped;

/// Bytes of a file that wait before they are put.
const WAITING_BYTES: usize = 1 << 20;

/// IPC aligns its buffers to this.
const ALIGNMENT: usize = 64;

/// Makes the format.
#[derive(Debug, Default)]
pub(crate) struct ArrowFactory;

impl FileFormatFactory for ArrowFactory {
    fn create(
        &self,
        _: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let unknown = options.keys().find(|key| key.starts_with("format."));
        match unknown {
            Some(key) => {
                Err(Error::invalid(key.clone(), "files of Arrow IPC have no options").into())
            }
            None => Ok(Arc::new(Arrow(CheckedArrow::default()))),
        }
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(Arrow(CheckedArrow::default()))
    }
}

impl GetExt for ArrowFactory {
    fn get_ext(&self) -> String {
        "arrow".to_string()
    }
}

/// DataFusion's format, but for writing.
#[derive(Debug)]
struct Arrow(CheckedArrow);

#[async_trait]
impl FileFormat for Arrow {
    as_wrapped!(0: get_ext, get_ext_with_compression, compression_type);

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        self.0.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(state, store, schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(state, config).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if config.insert_op != InsertOp::Append {
            return Err(Error::unsupported("INSERT OVERWRITE of Arrow files").into());
        }
        let sink = Arc::new(ArrowSink { config });
        Ok(Arc::new(DataSinkExec::new(input, sink, order)))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(schema)
    }
}

/// Writes IPC files.
#[derive(Debug)]
pub(super) struct ArrowSink {
    config: FileSinkConfig,
}

impl DisplayAs for ArrowSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrowSink(file={})", self.config.original_url)
    }
}

#[async_trait]
impl FileSink for ArrowSink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        _: &Arc<TaskContext>,
        feeding: SpawnedTask<Result<()>>,
        mut files: mpsc::UnboundedReceiver<(Path, mpsc::Receiver<RecordBatch>)>,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let schema = without_codes(&get_writer_schema(&self.config));
        let mut writing = JoinSet::new();
        while let Some((path, rows)) = files.recv().await {
            let writer = BufWriter::new(Arc::clone(&store), path);
            writing.spawn(write_file(rows, Arc::clone(&schema), writer));
        }
        let mut rows = 0;
        while let Some(written) = writing.join_next().await {
            rows += written.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        }
        let fed = feeding.join_unwind().await;
        fed.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        Ok(rows)
    }
}

#[async_trait]
impl DataSink for ArrowSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}

async fn write_file(
    mut rows: mpsc::Receiver<RecordBatch>,
    schema: SchemaRef,
    mut file: BufWriter,
) -> Result<u64> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?
        .try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options)?;
    let mut written = 0;
    while let Some(batch) = rows.recv().await {
        written += batch.num_rows() as u64;
        writer.write(&with_values(&batch, &schema)?)?;
        if writer.get_ref().len() > WAITING_BYTES {
            let bytes = std::mem::take(writer.get_mut());
            file.write_all(&bytes).await?;
        }
    }
    writer.finish()?;
    file.write_all(writer.get_ref()).await?;
    file.shutdown().await?;
    Ok(written)
}

/// The schema with columns of values where they are codes.
fn without_codes(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, values) => {
            let field: Field = field.as_ref().clone();
            Arc::new(field.with_data_type(values.as_ref().clone()))
        }
        _ => Arc::clone(field),
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn with_values(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
