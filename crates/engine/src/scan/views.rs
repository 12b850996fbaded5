//! Views over files: each statement sees the files as they are now.
//!
//! In: a view that the session keeps, and the tables that file names stand for at present.
//! Out: the view over those tables.
//! Invariant: a view whose files have got other columns is an error that names them, never a column of NULLs.
//! Not here: finding files (files.rs), names of tables (schema.rs).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::table::FilesTable;
use crate::error::Error;

/// Names in FROM under which a view reads files, each with the table that it was made over.
pub(crate) fn files_of(view: &ViewTable) -> Result<HashMap<String, Arc<dyn TableProvider>>> {
    let mut files = HashMap::new();
    view.logical_plan().apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let table = source_as_provider(&scan.source)?;
            if table.is::<FilesTable>() {
                files.insert(scan.table_name.table().to_string(), table);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(files)
}

/// The view over other tables of the same names.
pub(crate) fn over(
    view: &ViewTable,
    tables: &HashMap<String, Arc<dyn TableProvider>>,
) -> Result<ViewTable> {
    let plan = view
        .logical_plan()
        .clone()
        .transform_up_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => match tables.get(scan.table_name.table()) {
                Some(table) => {
                    let (name, source) = (
                        scan.table_name.clone(),
                        provider_as_source(Arc::clone(table)),
                    );
                    let now = TableScanBuilder::new(name, source)
                        .with_projection(scan.projection)
                        .with_filters(scan.filters)
                        .with_fetch(scan.fetch);
                    Ok(Transformed::yes(LogicalPlan::TableScan(now.build()?)))
                }
                None => Ok(Transformed::no(LogicalPlan::TableScan(scan))),
            },
            node => Ok(Transformed::no(node)),
        })?;
    Ok(ViewTable::new(plan.data, view.definition().cloned()))
}

/// An error unless a plan over columns as they were also fits the columns as they are.
pub(crate) fn check_columns(view: &str, file: &str, were: &Schema, are: &Schema) -> Result<()> {
    let fits = were.fields().len() == are.fields().len()
        && were.fields().iter().zip(are.fields()).all(|(was, is)| {
            was.name() == is.name()
                && was.data_type() == is.data_type()
                && (was.is_nullable() || !is.is_nullable())
        });
    if fits {
        return Ok(());
    }
    let list = |schema: &Schema| {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| format!("{} {}", field.name(), field.data_type()));
        columns.collect::<Vec<_>>().join(", ")
    };
    Err(Error::Planning {
        message: format!(
            "view '{view}' was made when '{file}' had the columns ({}); it has ({}) now: create the view again",
            list(were),
            list(are)
        ),
        position: None,
    }
    .into())
}

/// A view that cannot be read any more; it is still there to be listed, dropped and replaced.
#[derive(Debug)]
pub(crate) struct BrokenView {
    pub(crate) schema: SchemaRef,
    pub(crate) definition: Option<String>,
    pub(crate) error: Error,
}

#[async_trait]
impl TableProvider for BrokenView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.error.clone().into())
    }
}
