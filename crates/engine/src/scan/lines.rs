//! Lines: text files that the host's own sources would misread, read by its decoders from mended bytes.
//!
//! In: files of one CSV column, whose empty lines are NULL.
//! Out: batches.
//! Invariant: a file is read whole and in order, by one worker.
//! Not here: all other text, which the host reads in parallel; what is mended (mend.rs).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, apply_expression_roots};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, ObjectMeta, ObjectStore};

use super::mend::EmptyLines;

/// What is misread, and how it is read instead.
#[derive(Debug, Clone)]
pub(crate) enum Lines {
    /// CSV of one column.
    OneColumn(csv::reader::Format, EmptyLines),
}

impl Lines {
    fn decoder(&self, schema: SchemaRef, columns: &[usize], rows: usize) -> Result<Decoder> {
        Ok(match self {
            Lines::OneColumn(format, _) => Decoder::Csv(Box::new(
                csv::ReaderBuilder::new(schema)
                    .with_format(format.clone())
                    .with_batch_size(rows)
                    .with_projection(columns.to_vec())
                    .build_decoder(),
            )),
        })
    }

    fn mender(&self) -> Mender {
        match self {
            Lines::OneColumn(_, lines) => {
                let mut lines = lines.clone();
                Box::new(move |chunk| lines.mend(chunk))
            }
        }
    }
}

/// Mends one chunk of bytes after the other.
type Mender = Box<dyn FnMut(&[u8]) -> Vec<u8> + Send>;

/// The host's decoders.
enum Decoder {
    Csv(Box<csv::reader::Decoder>),
}

impl Decoder {
    /// How many bytes were taken; 0 = a batch is full or there are none.
    fn decode(&mut self, bytes: &[u8]) -> Result<usize, ArrowError> {
        match self {
            Decoder::Csv(decoder) => decoder.decode(bytes),
        }
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        match self {
            Decoder::Csv(decoder) => decoder.flush(),
        }
    }
}

/// The host's format with another source.
#[derive(Debug)]
pub(crate) struct LinesFormat {
    pub(crate) host: Arc<dyn FileFormat>,
    pub(crate) lines: Lines,
    pub(crate) compression: FileCompressionType,
}

#[async_trait]
impl FileFormat for LinesFormat {
    fn get_ext(&self) -> String {
        self.host.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.host.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        Some(self.compression)
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        self.host.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.host.infer_stats(state, store, schema, object).await
    }

    async fn create_physical_plan(
        &self,
        _state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let conf = FileScanConfigBuilder::from(conf).with_file_compression_type(self.compression);
        Ok(DataSourceExec::from_data_source(conf.build()))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(LinesSource {
            lines: self.lines.clone(),
            projection: SplitProjection::unprojected(&schema),
            schema,
            batch_rows: crate::options::BATCH_SIZE_DEFAULT_ROWS,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

#[derive(Clone)]
struct LinesSource {
    lines: Lines,
    schema: TableSchema,
    projection: SplitProjection,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl FileSource for LinesSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let schema = self.schema.file_schema();
        let opener = LinesOpener {
            lines: self.lines.clone(),
            schema: Arc::clone(schema),
            columns: self.projection.file_indices.clone(),
            batch_rows: self.batch_rows,
            compression: config.file_compression_type,
            store,
        };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(LinesSource {
            batch_rows: rows,
            ..self.clone()
        })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(Some(Arc::new(LinesSource {
            projection: SplitProjection::new(self.schema.file_schema(), &merged),
            ..self.clone()
        })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        match self.lines {
            Lines::OneColumn(..) => "csv",
        }
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), f)
    }
}

struct LinesOpener {
    lines: Lines,
    schema: SchemaRef,
    columns: Vec<usize>,
    batch_rows: usize,
    compression: FileCompressionType,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Debug for LinesOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinesOpener")
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl FileOpener for LinesOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let decoder =
            self.lines
                .decoder(Arc::clone(&self.schema), &self.columns, self.batch_rows)?;
        let mut mend = self.lines.mender();
        let (store, compression) = (Arc::clone(&self.store), self.compression);
        Ok(Box::pin(async move {
            let location = &file.object_meta.location;
            let content = store.get_opts(location, GetOptions::default()).await?;
            let chunks = content.into_stream().map_err(DataFusionError::from).boxed();
            let chunks = compression.convert_stream(chunks)?;
            let chunks = chunks.map_ok(move |chunk| mend(&chunk)).boxed();
            Ok(batches(chunks, decoder))
        }))
    }
}

/// What is left of a file.
struct Rest {
    chunks: BoxStream<'static, Result<Vec<u8>>>,
    decoder: Decoder,
    chunk: Vec<u8>,
    taken: usize,
}

fn batches(
    chunks: BoxStream<'static, Result<Vec<u8>>>,
    decoder: Decoder,
) -> BoxStream<'static, Result<RecordBatch>> {
    let rest = Rest {
        chunks,
        decoder,
        chunk: Vec::new(),
        taken: 0,
    };
    let next = |mut rest: Rest| async move {
        let batch = rest.next().await?;
        Ok(batch.map(|batch| (batch, rest)))
    };
    futures::stream::try_unfold(rest, next).boxed()
}

impl Rest {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            // An empty chunk would tell the decoder that the file has ended.
            while self.taken == self.chunk.len() {
                let Some(chunk) = self.chunks.try_next().await? else {
                    break;
                };
                (self.chunk, self.taken) = (chunk, 0);
            }
            let taken = self.decoder.decode(&self.chunk[self.taken..])?;
            self.taken += taken;
            if taken == 0 {
                return Ok(self.decoder.flush()?);
            }
        }
    }
}
