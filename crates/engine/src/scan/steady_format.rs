//! Formats whose scans read one version of each file.
//!
//! In: a format. Out: the same with a source that opens files as planning found them.
//! Invariant: but for that, everything is the format's own.
//! Not here: what a version is (steady.rs); Parquet, which has readers of its own (parquet.rs).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{Result, Statistics};
use datafusion::datasource::file_format::{FileFormat, FileMeta};
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};

use super::steady::{Pinned, SteadyOpener};
use crate::scan::wrapped::as_wrapped;

/// A format.
#[derive(Debug)]
pub(crate) struct Steady {
    format: Arc<dyn FileFormat>,
}

impl Steady {
    pub(crate) fn new(format: Arc<dyn FileFormat>) -> Steady {
        Steady { format }
    }
}

fn pinned(store: &Arc<dyn ObjectStore>, object: &ObjectMeta) -> Arc<dyn ObjectStore> {
    Arc::new(Pinned::new(Arc::clone(store), object.clone()))
}

#[async_trait]
impl FileFormat for Steady {
    as_wrapped!(format: get_ext, get_ext_with_compression, compression_type);

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        self.format.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let store = pinned(store, object);
        self.format.infer_stats(state, &store, schema, object).await
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        let store = pinned(store, object);
        self.format
            .infer_ordering(state, &store, schema, object)
            .await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        let store = pinned(store, object);
        self.format
            .infer_stats_and_ordering(state, &store, schema, object)
            .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The format looks for its own source.
        let Some(steady) = conf.file_source().downcast_ref::<SteadySource>() else {
            return self.format.create_physical_plan(state, conf).await;
        };
        let inner = Arc::clone(&steady.source);
        let conf = FileScanConfigBuilder::from(conf).with_source(inner).build();
        let plan = self.format.create_physical_plan(state, conf).await?;
        let scan = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let Some(scan) = scan else {
            return Ok(plan);
        };
        let source = SteadySource {
            source: Arc::clone(scan.file_source()),
        };
        let conf = FileScanConfigBuilder::from(scan.clone()).with_source(Arc::new(source));
        Ok(DataSourceExec::from_data_source(conf.build()))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.format
            .create_writer_physical_plan(input, state, conf, order)
            .await
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(SteadySource {
            source: self.format.file_source(schema),
        })
    }
}

/// A source whose files are opened as planning found them.
pub(super) struct SteadySource {
    source: Arc<dyn FileSource>,
}

impl SteadySource {
    /// A source that opens files as planning found them.
    pub(super) fn around(source: Arc<dyn FileSource>) -> SteadySource {
        SteadySource { source }
    }

    /// The format's own.
    pub(super) fn source(&self) -> &Arc<dyn FileSource> {
        &self.source
    }
}

impl FileSource for SteadySource {
    as_wrapped!(
        source: table_schema, filter, projection, metrics, file_type, fmt_extra,
        supports_repartitioning, repartitioned, apply_expressions
    );

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let source = Arc::clone(&self.source);
        Ok(Arc::new(SteadyOpener::new(
            source, store, config, partition,
        )))
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(SteadySource {
            source: self.source.with_batch_size(rows),
        })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let pushed = self.source.try_pushdown_projection(projection)?;
        Ok(pushed.map(|source| Arc::new(SteadySource { source }) as Arc<dyn FileSource>))
    }
}
