//! Tables, formats and sources of files that wrap another one: the methods in which they are that one.
//!
//! In: the field that holds it, names of methods. Out: these methods of `TableProvider`, `FileFormat` or `FileSource`, but for
//! asynchronous ones.
//! Invariant: a method that is not named is the trait's own or the wrapper's.
//! Not here: functions (functions/wrapped.rs).

/// `as_wrapped!(inner: metrics, file_type)` within an `impl` has these methods call those of `self.inner`.
macro_rules! as_wrapped {
    ($inner:tt: $($method:ident),+ $(,)?) => {
        $($crate::scan::wrapped::wrapped_method!($inner $method);)+
    };
}

macro_rules! wrapped_method {
    ($inner:tt schema) => {
        fn schema(&self) -> ::datafusion::arrow::datatypes::SchemaRef {
            self.$inner.schema()
        }
    };
    ($inner:tt constraints) => {
        fn constraints(&self) -> Option<&::datafusion::common::Constraints> {
            self.$inner.constraints()
        }
    };
    ($inner:tt table_type) => {
        fn table_type(&self) -> ::datafusion::logical_expr::TableType {
            self.$inner.table_type()
        }
    };
    ($inner:tt get_table_definition) => {
        fn get_table_definition(&self) -> Option<&str> {
            self.$inner.get_table_definition()
        }
    };
    ($inner:tt get_column_default) => {
        fn get_column_default(&self, column: &str) -> Option<&::datafusion::logical_expr::Expr> {
            self.$inner.get_column_default(column)
        }
    };
    ($inner:tt supports_filters_pushdown) => {
        fn supports_filters_pushdown(
            &self,
            filters: &[&::datafusion::logical_expr::Expr],
        ) -> ::datafusion::common::Result<Vec<::datafusion::logical_expr::TableProviderFilterPushDown>> {
            self.$inner.supports_filters_pushdown(filters)
        }
    };
    ($inner:tt table_schema) => {
        fn table_schema(&self) -> &::datafusion::datasource::table_schema::TableSchema {
            self.$inner.table_schema()
        }
    };
    ($inner:tt filter) => {
        fn filter(&self) -> Option<::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>> {
            self.$inner.filter()
        }
    };
    ($inner:tt projection) => {
        fn projection(&self) -> Option<&::datafusion::physical_expr::projection::ProjectionExprs> {
            self.$inner.projection()
        }
    };
    ($inner:tt metrics) => {
        fn metrics(&self) -> &::datafusion::physical_plan::metrics::ExecutionPlanMetricsSet {
            self.$inner.metrics()
        }
    };
    ($inner:tt file_type) => {
        fn file_type(&self) -> &str {
            self.$inner.file_type()
        }
    };
    ($inner:tt fmt_extra) => {
        fn fmt_extra(&self, style: ::datafusion::physical_plan::DisplayFormatType, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            self.$inner.fmt_extra(style, f)
        }
    };
    ($inner:tt supports_repartitioning) => {
        fn supports_repartitioning(&self) -> bool {
            self.$inner.supports_repartitioning()
        }
    };
    ($inner:tt repartitioned) => {
        fn repartitioned(
            &self,
            partitions: usize,
            bytes_min: usize,
            order: Option<::datafusion::physical_expr::LexOrdering>,
            config: &::datafusion::datasource::physical_plan::FileScanConfig,
        ) -> ::datafusion::common::Result<Option<::datafusion::datasource::physical_plan::FileScanConfig>> {
            self.$inner.repartitioned(partitions, bytes_min, order, config)
        }
    };
    ($inner:tt reorder_files) => {
        fn reorder_files(
            &self,
            files: Vec<::datafusion::datasource::listing::PartitionedFile>,
        ) -> Vec<::datafusion::datasource::listing::PartitionedFile> {
            self.$inner.reorder_files(files)
        }
    };
    ($inner:tt apply_expressions) => {
        fn apply_expressions(
            &self,
            f: &mut dyn FnMut(&::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            self.$inner.apply_expressions(f)
        }
    };
    ($inner:tt get_ext) => {
        fn get_ext(&self) -> String {
            self.$inner.get_ext()
        }
    };
    ($inner:tt get_ext_with_compression) => {
        fn get_ext_with_compression(&self, compression: &::datafusion::datasource::file_format::file_compression_type::FileCompressionType) -> ::datafusion::common::Result<String> {
            self.$inner.get_ext_with_compression(compression)
        }
    };
    ($inner:tt compression_type) => {
        fn compression_type(&self) -> Option<::datafusion::datasource::file_format::file_compression_type::FileCompressionType> {
            self.$inner.compression_type()
        }
    };
}

pub(crate) use as_wrapped;
pub(crate) use wrapped_method;
