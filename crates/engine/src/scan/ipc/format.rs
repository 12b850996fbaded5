//! DataFusion's format of Arrow IPC, whose files are checked before they are read.
//!
//! In: files and streams. Out: plans whose scan checks each file when it opens it.
//! Invariant: a table's column has the values of the file's column of that name, in the table's type; NULL where the file has
//! none. Decoding is DataFusion's, and so is what EXPLAIN says.
//! Not here: what is checked (messages.rs).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    ArrowSource, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSinkConfig,
    FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore};

use super::ipc_schema;
use super::messages::check;
use crate::scan::names::with_names_once;
use crate::scan::plain_types::batch_with_null_codes;
use crate::scan::widen::common_schema;
use crate::scan::wrapped::as_wrapped;

/// What DataFusion calls IPC streams.
pub(super) const STREAM: &str = "arrow_stream";

/// DataFusion's `ArrowFormat`, which believes what files say.
#[derive(Debug, Default)]
pub(crate) struct CheckedArrow {
    unchecked: ArrowFormat,
}

#[async_trait]
impl FileFormat for CheckedArrow {
    as_wrapped!(unchecked: get_ext, get_ext_with_compression);

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let mut schemas = Vec::new();
        for object in objects {
            check(store, &object.location, None, limit_bytes(state)).await?;
            let one = std::slice::from_ref(object);
            let schema = self.unchecked.infer_schema(state, store, one).await?;
            schemas.push((&object.location, with_names_once(&schema)));
        }
        schemas.sort_by_key(|(location, _)| *location);
        Ok(Arc::new(common_schema(&schemas)?))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.unchecked
            .infer_stats(state, store, schema, object)
            .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.unchecked.create_physical_plan(state, conf).await?;
        let scan = plan.downcast_ref::<DataSourceExec>();
        let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config else {
            return Ok(plan);
        };
        let source = CheckedSource {
            unchecked: Arc::clone(config.file_source()),
            limit_bytes: limit_bytes(state),
        };
        let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source));
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let writer = self
            .unchecked
            .create_writer_physical_plan(input, state, conf, order);
        writer.await
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.unchecked.file_source(schema)
    }
}

fn limit_bytes(state: &dyn Session) -> usize {
    bytes_max(state.runtime_env())
}

/// What a message of a file may claim at most.
pub(super) fn bytes_max(runtime: &RuntimeEnv) -> usize {
    match runtime.memory_pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes,
        _ => usize::MAX,
    }
}

/// DataFusion's source, whose files are checked when they are opened.
#[derive(Clone)]
pub(super) struct CheckedSource {
    pub(super) unchecked: Arc<dyn FileSource>,
    pub(super) limit_bytes: usize,
}

impl CheckedSource {
    fn around(&self, unchecked: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        let limit_bytes = self.limit_bytes;
        Arc::new(CheckedSource {
            unchecked,
            limit_bytes,
        })
    }
}

impl FileSource for CheckedSource {
    as_wrapped!(
        unchecked: table_schema, projection, metrics, file_type, fmt_extra,
        supports_repartitioning, repartitioned, apply_expressions
    );

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(CheckedOpener {
            source: self.clone(),
            config: config.clone(),
            partition,
            store,
        }))
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        self.around(self.unchecked.with_batch_size(rows))
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let pushed = self.unchecked.try_pushdown_projection(projection)?;
        Ok(pushed.map(|source| self.around(source)))
    }
}

struct CheckedOpener {
    source: CheckedSource,
    config: FileScanConfig,
    partition: usize,
    store: Arc<dyn ObjectStore>,
}

impl FileOpener for CheckedOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, config) = (Arc::clone(&self.store), self.config.clone());
        let (source, partition) = (self.source.clone(), self.partition);
        let (location, range) = (file.object_meta.location.clone(), file.range.clone());
        Ok(Box::pin(async move {
            let range = range.map(|range| range.start.max(0) as u64..range.end.max(0) as u64);
            check(&store, &location, range, source.limit_bytes).await?;
            let columns = ipc_schema(&store, &file.object_meta).await?;
            let source = of_file(&source.unchecked, with_names_once(&columns), &file)?;
            let opener = source.create_file_opener(store, &config, partition)?;
            let batches = opener.open(file)?.await.map_err(damaged)?;
            let batches =
                batches.map(|batch| Ok::<_, DataFusionError>(batch_with_null_codes(batch?)?));
            Ok(batches.map_err(damaged).boxed())
        }))
    }
}

/// A table's source for a file with these columns. DataFusion's takes the columns by their places.
fn of_file(
    table: &Arc<dyn FileSource>,
    columns: Schema,
    file: &PartitionedFile,
) -> Result<Arc<dyn FileSource>> {
    let wanted = table.table_schema().file_schema();
    let Some(projection) = table
        .projection()
        .filter(|_| !has_columns(wanted, &columns))
    else {
        return Ok(Arc::clone(table));
    };
    let columns = Arc::new(columns);
    let source: Arc<dyn FileSource> = match table.file_type() {
        STREAM => Arc::new(ArrowSource::new_stream_file_source(&columns)),
        _ => Arc::new(ArrowSource::new_file_source(&columns)),
    };
    let folders = table.table_schema().table_partition_cols().iter();
    let folders = folders.map(|field| field.name().as_str());
    let values: HashMap<&str, &ScalarValue> = folders.zip(&file.partition_values).collect();
    let adapter = DefaultPhysicalExprAdapterFactory.create(Arc::clone(wanted), columns)?;
    let projection = projection
        .clone()
        .try_map_exprs(|expr| adapter.rewrite(replace_columns_with_literals(expr, &values)?))?;
    let pushed = source.try_pushdown_projection(&projection)?;
    Ok(pushed.unwrap_or(source))
}

/// Whether a file has the columns of a table at their places.
fn has_columns(table: &Schema, file: &Schema) -> bool {
    let columns = |schema: &Schema| {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| (field.name().clone(), field.data_type().clone()));
        columns.collect::<Vec<_>>()
    };
    columns(table) == columns(file)
}

/// What arrays say that are made of a damaged file's bytes is about the file.
fn damaged(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ArrowError(inner, _)
            if matches!(inner.as_ref(), ArrowError::InvalidArgumentError(_)) =>
        {
            let message = "its values are not where it says that they are: it is damaged";
            ArrowError::IpcError(message.to_string()).into()
        }
        _ => error,
    }
}
