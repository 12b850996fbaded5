//! Unbounded tables: files that DataFusion's streams open by their path, without a store.
//!
//! In: a table of `CREATE UNBOUNDED EXTERNAL TABLE`, or with the option of that name. Out: the same table.
//! Invariant: its file is opened only where the session may reach it, also if that was changed since the table was made.
//! Not here: all other external tables (external.rs).

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;

use super::access::Access;
use super::wrapped::as_wrapped;

/// The table, and the paths that it opens.
#[derive(Debug)]
pub(super) struct UnboundedTable {
    table: Arc<dyn TableProvider>,
    paths: Vec<String>,
}

impl UnboundedTable {
    pub(super) fn new(
        table: Arc<dyn TableProvider>,
        paths: &[String],
        state: &dyn Session,
    ) -> Result<UnboundedTable> {
        let paths = paths.to_vec();
        let table = UnboundedTable { table, paths };
        table.check(state)?;
        Ok(table)
    }

    fn check(&self, state: &dyn Session) -> Result<()> {
        let access = Access::of(state.config())?;
        for path in &self.paths {
            access.check_path(Path::new(path), path)?;
        }
        Ok(())
    }
}

#[async_trait]
impl TableProvider for UnboundedTable {
    as_wrapped!(
        table: schema, constraints, table_type, get_table_definition, get_column_default,
        supports_filters_pushdown
    );

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.check(state)?;
        self.table.scan(state, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        how: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.check(state)?;
        self.table.insert_into(state, input, how).await
    }
}
