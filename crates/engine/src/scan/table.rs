//! The table over files that were found.
//!
//! In: files with their columns; projections, filters and limits. Out: scans of exactly those files.
//! Invariant: a file is read as often as it was named; a file that no filter leaves is not opened.
//! Not here: finding files (location.rs), their columns (files.rs, hive.rs).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{
    ColumnStatistics, DFSchema, Result, ScalarValue, Statistics, TableReference,
};
use datafusion::datasource::file_format::{FileFormat, FileMeta};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::{expr_applicable_for_cols, filter_partitioned_file};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::cache::cache_manager::CachedFileMetadata;
use datafusion::execution::cache::{SchemaFingerprint, TableScopedPath};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use futures::{StreamExt, TryStreamExt};

/// A table over files.
#[derive(Debug)]
pub(crate) struct FilesTable {
    store: ObjectStoreUrl,
    format: Arc<dyn FileFormat>,
    /// Columns of the files, then those that all rows of a file have in common.
    columns: TableSchema,
    /// Columns as they are seen, and where each is among `columns`.
    schema: SchemaRef,
    places: Vec<usize>,
    files: Vec<PartitionedFile>,
    /// What statistics of files were made for.
    fingerprint: Arc<SchemaFingerprint>,
    /// Orders that the user says the rows of every file have.
    declared: Vec<LexOrdering>,
}

impl FilesTable {
    /// A table whose columns are seen in the order of `places`.
    pub(crate) fn new(
        store: ObjectStoreUrl,
        format: Arc<dyn FileFormat>,
        columns: TableSchema,
        places: Vec<usize>,
        files: Vec<PartitionedFile>,
    ) -> Result<FilesTable> {
        let all = columns.table_schema();
        let schema = all.project(&places)?;
        let metadata = all.metadata().clone();
        Ok(FilesTable {
            store,
            format,
            schema: Arc::new(Schema::new_with_metadata(schema.fields, metadata)),
            places,
            fingerprint: Arc::new(SchemaFingerprint::from_schema(columns.file_schema())),
            columns,
            files,
            declared: Vec::new(),
        })
    }

    /// The table whose rows the user says to be sorted; nothing said = what the files say holds.
    pub(crate) fn with_declared_ordering(self, declared: Vec<LexOrdering>) -> FilesTable {
        FilesTable { declared, ..self }
    }

    /// Names of the columns that all rows of a file have in common.
    fn common_columns(&self) -> Vec<&str> {
        let common = self.columns.table_partition_cols().iter();
        common.map(|field| field.name().as_str()).collect()
    }

    /// The files that filters on common columns leave.
    fn left_by(&self, filters: &[Expr]) -> Result<Vec<&PartitionedFile>> {
        let names = self.common_columns();
        let filters: Vec<Expr> = filters
            .iter()
            .filter(|filter| is_decided(&names, filter))
            // DataFusion takes a file for which a filter is NULL.
            .map(|filter| Expr::IsTrue(Box::new(filter.clone())))
            .collect();
        if filters.is_empty() {
            return Ok(self.files.iter().collect());
        }
        let fields = self.columns.table_partition_cols().clone();
        let schema = DFSchema::try_from(Schema::new(fields))?;
        let mut left = Vec::new();
        for file in &self.files {
            if filter_partitioned_file(file.clone(), &filters, &schema)?.is_some() {
                left.push(file);
            }
        }
        Ok(left)
    }

    /// The files with what is known of them, up to those that hold `limit` rows; whether some were left out.
    async fn known(
        &self,
        state: &dyn Session,
        files: Vec<&PartitionedFile>,
        limit: Option<usize>,
    ) -> Result<(FileGroup, bool)> {
        let asks = state.config().collect_statistics();
        let at_once = state
            .config_options()
            .execution
            .meta_fetch_concurrency
            .get();
        let count = files.len();
        let mut known = futures::stream::iter(files)
            .map(|file| async move {
                let (statistics, ordering) = match asks {
                    true => self.ask(state, file).await?,
                    false => (self.unknown(), None),
                };
                let mut file = file.clone().with_ordering(ordering);
                file.statistics = Some(with_common(&statistics, &file.partition_values));
                Ok::<_, datafusion::common::DataFusionError>(file)
            })
            .boxed()
            .buffered(at_once);
        let (mut all, mut rows) = (FileGroup::default(), 0_usize);
        while let Some(file) = known.try_next().await? {
            if let Some(Precision::Exact(more)) = file.statistics.as_ref().map(|all| all.num_rows) {
                rows = rows.saturating_add(more);
            }
            all.push(file);
            if limit.is_some_and(|limit| rows > limit) {
                break;
            }
        }
        let is_cut = all.len() < count;
        Ok((all, is_cut))
    }

    fn unknown(&self) -> Arc<Statistics> {
        Arc::new(Statistics::new_unknown(self.columns.file_schema()))
    }

    /// What the format says of a file, once as long as the file is the same: a wide footer costs more than the rest of a plan.
    async fn ask(
        &self,
        state: &dyn Session,
        file: &PartitionedFile,
    ) -> Result<(Arc<Statistics>, Option<LexOrdering>)> {
        let (runtime, object) = (state.runtime_env(), &file.object_meta);
        let cache = runtime.cache_manager.get_file_statistic_cache();
        let key = TableScopedPath {
            table: Some(TableReference::bare(self.store.as_str())),
            path: object.location.clone(),
        };
        let known = cache.as_ref().and_then(|cache| cache.get(&key));
        let is_of = |known: &CachedFileMetadata| {
            known.meta == *object && known.is_valid_for(object, &self.fingerprint)
        };
        if let Some(known) = known.filter(is_of) {
            return Ok((known.statistics, known.ordering));
        }
        let store = runtime.object_store(&self.store)?;
        let schema = Arc::clone(self.columns.file_schema());
        let FileMeta {
            statistics,
            ordering,
            ..
        } = self
            .format
            .infer_stats_and_ordering(state, &store, schema, object)
            .await?;
        let statistics = Arc::new(statistics);
        if let Some(cache) = cache {
            let fingerprint = Arc::clone(&self.fingerprint);
            let (known, order) = (Arc::clone(&statistics), ordering.clone());
            let known = CachedFileMetadata::new(object.clone(), fingerprint, known, order);
            cache.put(&key, known);
        }
        Ok((statistics, ordering))
    }

    /// The files as groups, one for each worker at most, and what is known of all of them.
    fn grouped(
        &self,
        state: &dyn Session,
        files: FileGroup,
        is_cut: bool,
    ) -> Result<(Vec<FileGroup>, Statistics, Vec<LexOrdering>)> {
        let ordering = match self.declared.is_empty() {
            true => common_ordering(&files).into_iter().collect::<Vec<_>>(),
            false => self.declared.clone(),
        };
        let schema = self.columns.table_schema();
        let statistics = match state.config().collect_statistics() {
            true => {
                let all = files.iter().filter_map(|file| file.statistics.as_deref());
                Statistics::try_merge_iter(all, schema)?
            }
            false => Statistics::new_unknown(schema),
        };
        let statistics = match is_cut {
            true => statistics.to_inexact(),
            false => statistics,
        };
        let workers = state.config().target_partitions().max(1);
        let mut groups = files.split_files(workers);
        if let Some(ordering) = ordering.first()
            && state
                .config_options()
                .execution
                .split_file_groups_by_statistics
            && let Ok(sorted) = FileScanConfig::split_groups_by_statistics_with_target_partitions(
                schema, &groups, ordering, workers,
            )
            && sorted.len() <= workers
        {
            groups = sorted;
        }
        Ok((groups, statistics, ordering))
    }
}

/// Which filters the folders' columns decide, so that no row needs a look at them.
pub(super) fn decided(common: &[&str], filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
    let decided = filters
        .iter()
        .map(|filter| match is_decided(common, filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        });
    decided.collect()
}

/// Whether a filter says yes or no to a whole file.
fn is_decided(common: &[&str], filter: &Expr) -> bool {
    !common.is_empty() && expr_applicable_for_cols(common, filter)
}

/// What is known of a file's own columns and of those that all its rows have in common.
fn with_common(own: &Arc<Statistics>, values: &[ScalarValue]) -> Arc<Statistics> {
    if values.is_empty() {
        return Arc::clone(own);
    }
    let mut all = own.as_ref().clone();
    for value in values {
        let (nulls, bound) = match value.is_null() {
            true => (all.num_rows, Precision::Absent),
            false => (Precision::Exact(0), Precision::Exact(value.clone())),
        };
        all.column_statistics.push(ColumnStatistics {
            null_count: nulls,
            min_value: bound.clone(),
            max_value: bound,
            ..ColumnStatistics::new_unknown()
        });
    }
    Arc::new(all)
}

/// The order that the rows of every file have.
fn common_ordering(files: &FileGroup) -> Option<LexOrdering> {
    let mut files = files.iter();
    let mut common: Vec<_> = files.next()?.ordering.as_ref()?.iter().cloned().collect();
    for file in files {
        let one = file.ordering.as_ref()?;
        let same = common.iter().zip(one.iter()).take_while(|(a, b)| a == b);
        let count = same.count();
        common.truncate(count);
    }
    LexOrdering::new(common)
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(decided(&self.common_columns(), filters))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let names = self.common_columns();
        let decides_all = filters.iter().all(|filter| is_decided(&names, filter));
        let files = self.left_by(filters)?;
        let wanted: Vec<usize> = match projection {
            Some(wanted) => wanted.iter().map(|&column| self.places[column]).collect(),
            None => self.places.clone(),
        };
        if files.is_empty() {
            let schema = self.columns.table_schema().project(&wanted)?;
            return Ok(Arc::new(EmptyExec::new(Arc::new(schema))));
        }
        let rows_max = limit.filter(|_| decides_all);
        let (files, is_cut) = self.known(state, files, rows_max).await?;
        let (groups, statistics, ordering) = self.grouped(state, files, is_cut)?;
        let source = self.format.file_source(self.columns.clone());
        let scan = FileScanConfigBuilder::new(self.store.clone(), source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(Some(wanted))?
            .with_limit(limit)
            .with_output_ordering(ordering)
            .build();
        self.format.create_physical_plan(state, scan).await
    }
}
