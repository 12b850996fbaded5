//! Scans on their way: files, columns and conditions, and how the files are read as plain values.
//!
//! In: scans as they are planned; scans of messages. Out: scans that travel; scans that read on this machine.
//! Invariant: a scheduler can deal out the groups of files of a scan that travels, and needs neither its files nor their store.
//! Such a scan reads nothing itself.
//! Not here: messages (codec/scans.rs), readers (the engine).

mod numbers;

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, apply_expression_roots};
use grouse::{WireValue, distribution};
use object_store::ObjectStore;

/// The source of a scan that travels.
#[derive(Clone)]
pub(crate) struct TravellingSource {
    kind: String,
    values: Vec<WireValue>,
    schema: TableSchema,
    columns: Option<ProjectionExprs>,
    predicate: Option<Arc<dyn PhysicalExpr>>,
    format: String,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for TravellingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TravellingSource")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl TravellingSource {
    pub(crate) fn new(
        kind: &str,
        values: Vec<WireValue>,
        schema: TableSchema,
        format: &str,
    ) -> TravellingSource {
        TravellingSource {
            kind: kind.to_string(),
            values,
            schema,
            columns: None,
            predicate: None,
            format: format.to_string(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    pub(crate) fn with_columns(self, columns: Option<ProjectionExprs>) -> TravellingSource {
        TravellingSource { columns, ..self }
    }

    pub(crate) fn with_predicate(
        self,
        predicate: Option<Arc<dyn PhysicalExpr>>,
    ) -> TravellingSource {
        TravellingSource { predicate, ..self }
    }

    /// How the files are read.
    pub(crate) fn reading(&self) -> (&str, &[WireValue]) {
        (&self.kind, &self.values)
    }

    pub(crate) fn schema(&self) -> &TableSchema {
        &self.schema
    }

    pub(crate) fn columns(&self) -> Option<&ProjectionExprs> {
        self.columns.as_ref()
    }

    pub(crate) fn predicate(&self) -> Option<&Arc<dyn PhysicalExpr>> {
        self.predicate.as_ref()
    }

    pub(crate) fn format(&self) -> &str {
        &self.format
    }
}

impl FileSource for TravellingSource {
    fn create_file_opener(
        &self,
        _store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        internal_err!("a scan is run before it has readers of this machine")
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, _rows: usize) -> Arc<dyn FileSource> {
        Arc::new(self.clone())
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.predicate.clone()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.columns.as_ref()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        &self.format
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn repartitioned(
        &self,
        _partitions: usize,
        _bytes_min: usize,
        _order: Option<LexOrdering>,
        _config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let columns = self.columns.iter().flat_map(ProjectionExprs::iter);
        let columns = columns.map(|column| &column.expr);
        apply_expression_roots(columns.chain(&self.predicate), f)
    }
}

/// The scan of files that a node is.
pub(crate) fn scan_of(node: &dyn ExecutionPlan) -> Option<&FileScanConfig> {
    let scan = node.downcast_ref::<DataSourceExec>()?;
    scan.data_source().downcast_ref::<FileScanConfig>()
}

/// The plan with scans that travel; an error names one that has to stay.
pub(crate) fn travelling(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = |node: Arc<dyn ExecutionPlan>| {
        if let Some(scan) = numbers::travelling(node.as_ref()) {
            return Ok(Transformed::yes(scan));
        }
        let Some(scan) = scan_of(node.as_ref()) else {
            return Ok(Transformed::no(node));
        };
        let source = scan.file_source();
        if source.is::<TravellingSource>() {
            return Ok(Transformed::no(node));
        }
        let apart = distribution::source_apart(source.as_ref())?;
        let schema = source.table_schema().clone();
        let known = TravellingSource::new(apart.kind, apart.values, schema, source.file_type())
            .with_columns(source.projection().cloned())
            .with_predicate(source.filter());
        // Readers make it anew.
        let scan = FileScanConfigBuilder::from(scan.clone())
            .with_expr_adapter(None)
            .with_source(Arc::new(known));
        let node: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(scan.build());
        Ok(Transformed::yes(node))
    };
    plan.transform_up(changed).data()
}

/// The plan with scans that read on this machine, in batches of so many rows.
pub(crate) fn reading(
    plan: Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = |node: Arc<dyn ExecutionPlan>| {
        let Some(scan) = scan_of(node.as_ref()) else {
            return Ok(Transformed::no(node));
        };
        let Some(source) = scan.file_source().downcast_ref::<TravellingSource>() else {
            return Ok(Transformed::no(node));
        };
        if let Some(counting) = numbers::counting(scan, source)? {
            return Ok(Transformed::yes(counting));
        }
        let (kind, values) = source.reading();
        let (scan, values) = (scan.clone(), values.to_vec());
        let scan = distribution::with_source(scan, kind, values, runtime, batch_rows)?;
        let node: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(scan);
        Ok(Transformed::yes(node))
    };
    plan.transform_up(changed).data()
}
