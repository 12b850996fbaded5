//! Views: each statement sees the files, tables and views under a view as they are now.
//!
//! In: a view that the session keeps, and what the names in it stand for at present.
//! Out: the view over those tables.
//! Invariant: a view whose files have got other columns, or whose tables have lost a column that it reads, is an error that names
//! both, never a column of NULLs. A view that has been replaced by one over itself reads what it was before.
//! Not here: finding files (files.rs), names of tables (schema.rs).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::{
    Cast, DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, TableScan,
    TableScanBuilder, TableType,
};
use datafusion::physical_plan::ExecutionPlan;

use super::table::FilesTable;
use crate::error::Error;
use crate::error::types::type_name;

/// The catalog and schema in the name of a mark: no session has them.
const MARK: &str = "view";

/// What a view reads, by name: as it was made, or as it is now.
#[derive(Debug, Default)]
pub(crate) struct ViewSources {
    pub(crate) files: HashMap<String, Arc<dyn TableProvider>>,
    pub(crate) tables: HashMap<String, PresentTable>,
    pub(crate) views: HashMap<String, Arc<dyn TableProvider>>,
}

/// A registered table that a view reads. Another table of that name, of another schema or a recursion's, is not this one.
#[derive(Debug)]
pub(crate) struct PresentTable {
    was: Arc<dyn TableProvider>,
    pub(crate) now: Arc<dyn TableProvider>,
}

impl PresentTable {
    /// What a scan of the view reads now; `None` if it reads something else.
    fn of(&self, scan: &TableScan) -> Result<Option<&Arc<dyn TableProvider>>> {
        let table = source_as_provider(&scan.source)?;
        Ok(Arc::ptr_eq(&table, &self.was).then_some(&self.now))
    }
}

/// The view with its name as a mark in its plan, by which views over it find it again.
pub(crate) fn marked(name: &str, view: &ViewTable) -> Result<ViewTable> {
    let plan = LogicalPlanBuilder::from(view.logical_plan().clone());
    let plan = plan.alias(mark(name))?.build()?;
    Ok(ViewTable::new(plan, view.definition().cloned()))
}

fn mark(name: &str) -> TableReference {
    TableReference::full(MARK, MARK, name)
}

/// The view whose mark a node is.
fn marked_view(node: &LogicalPlan) -> Option<&str> {
    match node {
        LogicalPlan::SubqueryAlias(SubqueryAlias { alias, .. }) => {
            let is_mark = alias.catalog() == Some(MARK) && alias.schema() == Some(MARK);
            is_mark.then(|| alias.table())
        }
        _ => None,
    }
}

/// A plan without marks; only a view that is made needs them.
pub(crate) fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    if matches!(plan, LogicalPlan::Ddl(DdlStatement::CreateView(_))) {
        return Ok(plan);
    }
    let mut has_marks = false;
    plan.apply_with_subqueries(|node| {
        has_marks = has_marks || marked_view(node).is_some();
        Ok(match has_marks {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !has_marks {
        return Ok(plan);
    }
    let plan = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::SubqueryAlias(mut around) => {
            let mut is_marked = false;
            while let LogicalPlan::SubqueryAlias(within) = around.input.as_ref()
                && marked_view(&around.input).is_some()
            {
                around.input = Arc::clone(&within.input);
                is_marked = true;
            }
            let around = LogicalPlan::SubqueryAlias(around);
            Ok(match is_marked {
                true => Transformed::yes(around),
                false => Transformed::no(around),
            })
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

/// Names of the tables that a plan reads, each with its table.
pub(crate) fn tables_of(plan: &LogicalPlan) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
    let mut tables = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(table) = source_as_provider(&scan.source)
        {
            tables.push((scan.table_name.table().to_string(), table));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// What the view of this name reads; `tables` are those of the session among its tables.
pub(crate) fn sources_of(
    name: &str,
    view: &ViewTable,
    tables: &[Arc<dyn TableProvider>],
) -> Result<(ViewSources, HashSet<String>)> {
    let (mut sources, mut views) = (ViewSources::default(), HashSet::new());
    view.logical_plan().apply_with_subqueries(|node| {
        if let Some(inner) = marked_view(node)
            && inner != name
        {
            views.insert(inner.to_string());
            return Ok(TreeNodeRecursion::Jump);
        }
        if let LogicalPlan::TableScan(scan) = node {
            let table = source_as_provider(&scan.source)?;
            let name = scan.table_name.table().to_string();
            if table.is::<FilesTable>() {
                sources.files.insert(name, table);
            } else if tables.iter().any(|read| Arc::ptr_eq(read, &table)) {
                let (was, now) = (Arc::clone(&table), table);
                sources.tables.insert(name, PresentTable { was, now });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((sources, views))
}

/// The view over other tables of the same names.
pub(crate) fn over(name: &str, view: &ViewTable, now: &ViewSources) -> Result<ViewTable> {
    let mut fit = Fit::default();
    let plan = view
        .logical_plan()
        .clone()
        .transform_down_with_subqueries(|node| {
            let present = match &node {
                LogicalPlan::TableScan(scan) => match now.files.get(scan.table_name.table()) {
                    Some(table) => Some(rescanned(scan, table)?),
                    None => {
                        let read = now.tables.get(scan.table_name.table());
                        let present = read.map(|read| read.of(scan)).transpose()?.flatten();
                        present.map(|table| fit.table(scan, table)).transpose()?
                    }
                },
                node => match marked_view(node) {
                    Some(inner) => match now.views.get(inner) {
                        Some(table) => Some(fit.view(inner, node, table)?),
                        None => None,
                    },
                    None => None,
                },
            };
            Ok(match present {
                Some(plan) => Transformed::new(plan, true, TreeNodeRecursion::Jump),
                None => Transformed::no(node),
            })
        })?
        .data;
    let plan = match fit.is_loose {
        true => fit.settle(name, plan)?,
        false => plan,
    };
    Ok(ViewTable::new(plan, view.definition().cloned()))
}

/// The scan of another table of the same columns.
fn rescanned(scan: &TableScan, table: &Arc<dyn TableProvider>) -> Result<LogicalPlan> {
    let source = provider_as_source(Arc::clone(table));
    let now = TableScanBuilder::new(scan.table_name.clone(), source)
        .with_projection(scan.projection.clone())
        .with_filters(scan.filters.clone())
        .with_fetch(scan.fetch);
    Ok(LogicalPlan::TableScan(now.build()?))
}

/// How the columns of present tables fit the plan of a view.
#[derive(Debug, Default)]
struct Fit {
    /// Columns that are not there any more, each with its table and what that one has now.
    lost: HashMap<String, (String, String)>,
    /// Whether some table has other columns than it had.
    is_loose: bool,
}

impl Fit {
    fn table(&mut self, scan: &TableScan, table: &Arc<dyn TableProvider>) -> Result<LogicalPlan> {
        let source = provider_as_source(Arc::clone(table));
        let now = LogicalPlanBuilder::scan(scan.table_name.clone(), source, None)?;
        let name = scan.table_name.table();
        self.columns(name, &scan.projected_schema, now)?.build()
    }

    fn view(
        &mut self,
        name: &str,
        was: &LogicalPlan,
        table: &Arc<dyn TableProvider>,
    ) -> Result<LogicalPlan> {
        let now = match table.downcast_ref::<ViewTable>() {
            Some(view) => LogicalPlanBuilder::from(view.logical_plan().clone()),
            None => {
                let source = provider_as_source(Arc::clone(table));
                LogicalPlanBuilder::scan(TableReference::bare(name), source, None)?
            }
        };
        let now = self.columns(name, was.schema(), now)?;
        now.alias(mark(name))?.build()
    }

    /// The columns that were, in their order, as far as they are there.
    fn columns(
        &mut self,
        name: &str,
        were: &DFSchema,
        now: LogicalPlanBuilder,
    ) -> Result<LogicalPlanBuilder> {
        let are = Arc::clone(now.schema());
        if were.fields() == are.fields() {
            return Ok(now);
        }
        self.is_loose = true;
        let mut kept = Vec::new();
        for was in were.fields() {
            let mut all = are.iter();
            let of_type = type_name(was.data_type());
            let found =
                all.find(|(_, is)| is.name() == was.name() && type_name(is.data_type()) == of_type);
            match found {
                Some((table, is)) => {
                    let column = Expr::Column(Column::new(table.cloned(), is.name()));
                    kept.push(match is.data_type() == was.data_type() {
                        true => column,
                        // A string may be kept in several ways.
                        false => Expr::Cast(Cast::new(Box::new(column), was.data_type().clone()))
                            .alias_qualified(table.cloned(), is.name()),
                    });
                }
                None => {
                    let place = (name.to_string(), listed(are.as_arrow(), type_name));
                    self.lost.insert(was.name().clone(), place);
                }
            }
        }
        now.project(kept)
    }

    /// The plan with schemas that follow from its tables; an error if it reads a column that is not there.
    fn settle(&self, view: &str, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let inputs = node.inputs();
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    let Expr::Column(column) = part else {
                        return Ok(TreeNodeRecursion::Continue);
                    };
                    let mut schemas = inputs.iter().map(|input| input.schema());
                    match self.lost.get(&column.name) {
                        Some((table, columns))
                            if !inputs.is_empty()
                                && !schemas.any(|schema| schema.has_column(column)) =>
                        {
                            Err(lost(view, &column.name, table, columns).into())
                        }
                        _ => Ok(TreeNodeRecursion::Continue),
                    }
                })
            })?;
            node.recompute_schema().map(Transformed::yes)
        })?;
        Ok(plan.data)
    }
}

fn lost(view: &str, column: &str, table: &str, columns: &str) -> Error {
    Error::planning(format!(
        "view '{view}' reads '{column}' of '{table}' as it was when the view was made; '{table}' has ({columns}) now: create the view again"
    ))
}

/// The error of a view under which something was dropped.
pub(crate) fn dropped(view: &str, table: &str) -> Error {
    Error::planning(format!(
        "view '{view}' reads '{table}', which has been dropped: create '{table}' or the view again"
    ))
}

/// The error of views that read each other.
pub(crate) fn circular(view: &str, other: &str) -> Error {
    Error::planning(format!(
        "views '{view}' and '{other}' read each other: create one of them again"
    ))
}

/// Columns with their types.
fn listed(schema: &Schema, said: impl Fn(&DataType) -> String) -> String {
    let fields = schema.fields().iter();
    let columns = fields.map(|field| format!("{} {}", field.name(), said(field.data_type())));
    columns.collect::<Vec<_>>().join(", ")
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
    let list = |schema: &Schema| listed(schema, ToString::to_string);
    Err(Error::planning(format!(
            "view '{view}' was made when '{file}' had the columns ({}); it has ({}) now: create the view again",
            list(were),
            list(are)
        ))
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
