//! Text files: what is said of the beginnings from which their columns are found, how much is read at once, what a query wants.
//!
//! In: the number of columns; DataFusion's projections.
//! Out: how much of a file is looked at, how many rows a batch has, how long a record may be, which columns are read.
//! Invariant: columns that nobody wants are not decoded.
//! Not here: CSV (csv/), JSON (json/).

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, apply_expression_roots};

pub(crate) use crate::error::from_datafusion::SAMPLE_ROWS;
use crate::runtime::options::BATCH_SIZE_DEFAULT_ROWS;
use crate::scan::decompression::Decompression;

/// Whether the bytes at hand are all of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole file.
    Whole,
    /// The file goes on.
    Part,
}

/// Bytes of a record, unless the call says otherwise: a file that is small because it is compressed may have one of gigabytes.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// Text of which a batch is made: of records of a megabyte, 8,192 rows would be eight gigabytes.
pub(crate) const BATCH_TEXT_BYTES: usize = 16 << 20;

/// Values of a batch: of ten thousand columns, 8,192 rows would take 2.6 GB before the first of them is full.
const BATCH_VALUES_MAX: usize = 2 << 20;
const BATCH_ROWS_MIN: usize = 64;

/// Rows of a batch that is to have `rows` of them; fewer if it is wide.
fn rows_of_batch(rows: usize, columns: usize) -> usize {
    let most = BATCH_VALUES_MAX / columns.max(1);
    rows.min(most.max(BATCH_ROWS_MIN))
}

/// The scan of files that are compressed so, by another source if there is one.
pub(crate) fn scan_of(
    files: FileScanConfig,
    source: Option<Arc<dyn FileSource>>,
    compression: FileCompressionType,
) -> Arc<dyn ExecutionPlan> {
    let mut files = FileScanConfigBuilder::from(files).with_file_compression_type(compression);
    if let Some(source) = source {
        files = files.with_source(source);
    }
    DataSourceExec::from_data_source(files.build())
}

/// What a query wants of text files.
#[derive(Clone)]
pub(crate) struct TextScan {
    schema: TableSchema,
    projection: SplitProjection,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
    /// Of the session that planned it.
    pool: Arc<dyn MemoryPool>,
}

impl TextScan {
    /// All columns.
    pub(crate) fn new(schema: TableSchema) -> TextScan {
        TextScan {
            projection: SplitProjection::unprojected(&schema),
            schema,
            batch_rows: BATCH_SIZE_DEFAULT_ROWS,
            metrics: ExecutionPlanMetricsSet::new(),
            pool: Arc::new(UnboundedMemoryPool::default()),
        }
    }

    /// The same, whose decompression counts in `pool`.
    pub(crate) fn counting(&self, pool: &Arc<dyn MemoryPool>) -> TextScan {
        TextScan {
            pool: Arc::clone(pool),
            ..self.clone()
        }
    }

    /// Of files that are compressed so.
    pub(crate) fn decompression(&self, compression: FileCompressionType) -> Decompression {
        Decompression::new(compression, &self.pool)
    }

    /// The same in batches of so many rows.
    pub(crate) fn with_batch_size(&self, rows: usize) -> TextScan {
        TextScan {
            batch_rows: rows,
            ..self.clone()
        }
    }

    /// What `projection` makes of it.
    pub(crate) fn projected(&self, projection: &ProjectionExprs) -> Result<TextScan> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(TextScan {
            projection: SplitProjection::new(self.schema.file_schema(), &merged),
            ..self.clone()
        })
    }

    /// The places of the columns that are read.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.projection.file_indices
    }

    /// These columns.
    pub(crate) fn read_schema(&self) -> Result<SchemaRef> {
        let schema = self.schema.file_schema().project(self.columns())?;
        Ok(Arc::new(schema))
    }

    /// Rows of a batch of them.
    pub(crate) fn batch_rows(&self) -> usize {
        rows_of_batch(self.batch_rows, self.columns().len())
    }

    /// `opener`, which gives these columns, with what the projection computes of them.
    pub(crate) fn computing(&self, opener: Arc<dyn FileOpener>) -> Result<Arc<dyn FileOpener>> {
        let schema = self.schema.file_schema();
        ProjectionOpener::try_new(self.projection.clone(), opener, schema)
    }

    pub(crate) fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    pub(crate) fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    pub(crate) fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    pub(crate) fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_batches_have_fewer_rows() {
        assert_eq!(rows_of_batch(8_192, 0), 8_192);
        assert_eq!(rows_of_batch(8_192, 256), 8_192);
        assert_eq!(rows_of_batch(8_192, 1_024), 2_048);
        assert_eq!(rows_of_batch(8_192, 1_000_000), BATCH_ROWS_MIN);
        assert_eq!(rows_of_batch(7, 1_000_000), 7);
    }
}
