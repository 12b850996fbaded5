//! Scans of JSON files.
//!
//! In: files and the columns that a query reads. Out: batches, from several workers where the records lie in lines.
//! Invariant: every record is read by exactly one worker.
//! Not here: parsing (records.rs), types (format.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{PhysicalExpr, apply_expression_roots};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::ObjectStore;

use super::chunks::chunks;
use super::records::{FilePart, Records, RecordsText, Root, first_byte};
use crate::scan::text::rows_of_batch;
use grouse_text::json::columns::{Object, Strictness};
use grouse_text::json::splitter::Layout;
use grouse_text::json::types::JsonType;

/// How the files of a table are read.
#[derive(Debug, Clone)]
pub(super) struct JsonReading {
    pub(super) fields: Arc<Vec<(String, JsonType)>>,
    pub(super) layout: Layout,
    pub(super) root: Root,
    pub(super) strictness: Strictness,
    pub(super) compression: FileCompressionType,
    pub(super) record_bytes_max: usize,
}

#[derive(Clone)]
pub(super) struct JsonSource {
    pub(super) reading: JsonReading,
    schema: TableSchema,
    projection: SplitProjection,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl JsonSource {
    pub(super) fn new(reading: JsonReading, schema: TableSchema) -> JsonSource {
        JsonSource {
            reading,
            projection: SplitProjection::unprojected(&schema),
            schema,
            batch_rows: crate::runtime::options::BATCH_SIZE_DEFAULT_ROWS,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl FileSource for JsonSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener = JsonOpener {
            source: self.clone(),
            store,
        };
        let schema = self.schema.file_schema();
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(JsonSource {
            batch_rows: rows,
            ..self.clone()
        })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(Some(Arc::new(JsonSource {
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
        "json"
    }

    fn supports_repartitioning(&self) -> bool {
        self.reading.layout == Layout::Lines && !self.reading.compression.is_compressed()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), f)
    }
}

struct JsonOpener {
    source: JsonSource,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Debug for JsonOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonOpener")
            .field("reading", &self.source.reading)
            .finish_non_exhaustive()
    }
}

impl FileOpener for JsonOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (source, store) = (self.source.clone(), Arc::clone(&self.store));
        Ok(Box::pin(async move {
            let part = match &file.range {
                None => FilePart::Whole,
                Some(range) => FilePart::Range {
                    start: u64::try_from(range.start).unwrap_or_default(),
                    end: u64::try_from(range.end).unwrap_or_default(),
                },
            };
            let JsonReading {
                fields,
                layout,
                root,
                strictness,
                compression,
                record_bytes_max,
            } = source.reading;
            let meta = &file.object_meta;
            let bytes = chunks(&store, meta, first_byte(part), compression).await?;
            let wanted = &source.projection.file_indices;
            let columns = Object::new(&fields, wanted, strictness);
            let mut records = Records::new(
                RecordsText::new(bytes, layout, part, record_bytes_max),
                columns,
                root,
                strictness,
            );
            records.batch_rows = rows_of_batch(source.batch_rows, wanted.len());
            records.schema = Arc::new(source.schema.file_schema().project(wanted)?);
            Ok(batches(records))
        }))
    }
}

fn batches(records: Records) -> BoxStream<'static, Result<RecordBatch>> {
    let next = |mut records: Records| async move {
        let batch = records.next().await?;
        Ok(batch.map(|batch| (batch, records)))
    };
    futures::stream::try_unfold(records, next).boxed()
}
