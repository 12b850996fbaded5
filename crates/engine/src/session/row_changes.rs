//! Statements that make the rows of a table anew: DELETE and UPDATE that read other tables or have RETURNING, ALTER TABLE.
//!
//! In: what sql/changes/changed_rows.rs and sql/changes/alterations.rs make of a statement. Out: the table changed; for rows their number.
//! Invariant: a statement that fails leaves the table as it was.
//! Not here: UPDATE and DELETE by the table's own rows, which DataFusion does; INSERT (inserted_rows.rs), MERGE (merged_rows.rs).

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::{filter_record_batch, not};
use datafusion::arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use futures::TryStreamExt;

use super::returned_rows::{as_columns_of, one_batch};
use super::{Planning, Session};
use crate::error::{Error, Result, nearest_names};
use crate::scan::checked_table;
use crate::scan::replaced_rows::{NewRows, Replaceable};
use crate::scan::schema::replacing_now;
use crate::session::query::Query;
use crate::sql::changes;
use crate::sql::changes::alterations::{self, Alteration, AlterationKind};
use crate::sql::changes::changed_rows::{self, ChangedRows};
use crate::sql::expand;
use crate::sql::params::{self, Params};
use crate::sql::planned;

/// How often a statement begins again because others have changed its table meanwhile. Each time one of these has ended.
const ATTEMPTS_MAX: usize = 100;

/// What has come of running a statement.
enum Attempt {
    Done(Box<Query>),
    /// It is none that makes rows anew.
    NoChange,
    /// The rows are others now.
    Overtaken,
}

impl Session {
    /// Runs a statement that makes the rows of a table anew; `None` of one that DataFusion does. Where another statement has changed
    /// the rows in between, it begins again with those.
    pub(super) async fn change_table(
        &self,
        planning: &Planning<'_>,
        statement: &DataFusionStatement,
        params: &Params,
    ) -> Result<Option<Query>> {
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(planning, statement, params).await? {
                Attempt::Done(query) => return Ok(Some(*query)),
                Attempt::NoChange => return Ok(None),
                Attempt::Overtaken => {}
            }
        }
        Err(Error::Execution(
            "other statements change the table again and again; run this one when they have ended"
                .to_string(),
        ))
    }

    async fn attempt(
        &self,
        planning: &Planning<'_>,
        statement: &DataFusionStatement,
        params: &Params,
    ) -> Result<Attempt> {
        let params = params.clone();
        let query = if let Some(insert) = changes::inserted_rows::of(statement)? {
            self.insert_rows(planning, insert, params).await?
        } else if let Some(merge) = changes::merged_rows::of(statement)? {
            self.merge_rows(planning, merge, params).await?
        } else if let Some(change) = changed_rows::of(statement) {
            self.change_rows(planning, &change, params).await?
        } else if let Some(alteration) = alterations::of(statement) {
            self.alter_table(planning, &alteration).await?
        } else {
            return Ok(Attempt::NoChange);
        };
        Ok(query.map_or(Attempt::Overtaken, |query| Attempt::Done(Box::new(query))))
    }

    /// Runs DELETE or UPDATE; the result is the number of rows that it has changed. `None` if another statement has changed the rows
    /// that it looked at.
    async fn change_rows(
        &self,
        planning: &Planning<'_>,
        change: &ChangedRows,
        params: Params,
    ) -> Result<Option<Query>> {
        if let Some(others) = change.others()? {
            self.planned(planning, others, &params).await?;
        }
        let counting = self.planned(planning, change.counted()?, &params).await?;
        if is_volatile(&counting)? {
            return Err(volatile_condition());
        }
        let table = self
            .context()
            .table_provider(reference(&change.table))
            .await?;
        let Some(table_rows) = Replaceable::of(&table) else {
            return Err(Error::unsupported(format!(
                "DELETE and UPDATE of '{}', which is no table in memory",
                change.table
            )));
        };
        let schema = table.schema();
        let fields = schema.fields().iter();
        let columns: Vec<String> = fields.map(|field| field.name().clone()).collect();
        let old = table_rows.rows().await;
        if let Some(returning) = &change.returning {
            let marked = self
                .planned(planning, change.marked(&columns)?, &params)
                .await?;
            let marked = as_columns_of(marked, &schema)?;
            let marked = self.all_rows(planning, &marked).await?;
            let (all, hit) = divided(change, &table_rows.schema(), &marked)?;
            let given = self.returned(planning, returning, hit, &params).await?;
            let given = self.given(given).await?;
            let is_done = table_rows
                .replace(&old, NewRows::all_new(vec![all]))
                .await?;
            return Ok(is_done.then_some(given));
        }
        let insert = self
            .planned(planning, change.rows(&columns)?, &params)
            .await?;
        let LogicalPlan::Dml(insert) = insert else {
            return Err(Error::Internal("an INSERT that is none".to_string()));
        };
        changes::check(&LogicalPlan::Dml(insert.clone()), planning.state)?;
        let counted = self.all_rows(planning, &counting).await?;
        // The condition may have read the table twice, before and after another statement: then its count says nothing.
        let is_done = match counted.iter().all(counts_none) {
            true => table_rows.are_still(&old).await,
            false => {
                let new = self.all_rows(planning, &insert.input).await?;
                table_rows.replace(&old, NewRows::all_new(new)).await?
            }
        };
        if !is_done {
            return Ok(None);
        }
        let context = self.context();
        let result = context
            .read_batches(counted)?
            .create_physical_plan()
            .await?;
        let query = Query::new(result, context.task_ctx(), self.workers());
        Ok(Some(query.changing_rows()))
    }

    fn unknown_table(&self, name: &ObjectName) -> Error {
        let name = name.to_string();
        let tables = self.tables();
        let nearest = nearest_names(&name, tables.iter().map(String::as_str));
        Error::UnknownTable {
            name,
            nearest,
            position: None,
        }
    }

    /// Runs ALTER TABLE; `None` if another statement has changed the rows meanwhile.
    async fn alter_table(
        &self,
        planning: &Planning<'_>,
        alteration: &Alteration,
    ) -> Result<Option<Query>> {
        let name = &alteration.table;
        let context = self.context();
        if !context.table_exist(reference(name))? {
            return match alteration.if_exists {
                true => Ok(Some(self.nothing())),
                false => Err(self.unknown_table(name)),
            };
        }
        let table = context.table_provider(reference(name)).await?;
        let schema = table.schema();
        let Some(alteration) = alteration.left(|column| has_column(&schema, column)) else {
            return Ok(Some(self.nothing()));
        };
        let made_anew = alteration.made_anew()?;
        let Some(rows) = Replaceable::of(&table) else {
            return Err(Error::unsupported(format!(
                "ALTER TABLE of '{name}', which is no table in memory"
            )));
        };
        let old = rows.rows().await;
        if let AlterationKind::RenameTable(new) = &alteration.kind {
            if context.table_exist(reference(new))? {
                let message = format!("table '{new}' already exists");
                return Err(Error::Execution(message));
            }
            replacing_now(|| {
                context.deregister_table(reference(name))?;
                context.register_table(reference(new), Arc::clone(&table))
            })?;
        }
        let Some(statement) = made_anew else {
            return Ok(Some(self.nothing()));
        };
        check_new_column(&alteration, &schema)?;
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut made)) =
            self.planned(planning, statement, &Params::None).await?
        else {
            return Err(Error::Internal("a CREATE TABLE that is none".to_string()));
        };
        made.column_defaults = alteration.defaults(rows.defaults());
        let default = self.new_default(planning, &alteration, &made.input).await?;
        made.column_defaults.extend(default);
        let constraints = rows.constraints().unwrap_or_default();
        let constraints = alteration.constraints(constraints)?;
        let name = made.name.clone();
        let made = checked_table::of_query(context, made, Some(&constraints)).await?;
        let swap = || {
            replacing_now(|| {
                context.deregister_table(name.clone())?;
                context.register_table(name, made).map(|_| ())
            })
        };
        let is_done = rows.give_name(&old, swap).await?;
        Ok(is_done.then(|| self.nothing()))
    }

    /// What a column gets by default from now on, with its name; nothing where that does not change.
    async fn new_default(
        &self,
        planning: &Planning<'_>,
        alteration: &Alteration,
        rows: &LogicalPlan,
    ) -> Result<Vec<(String, Expr)>> {
        if let AlterationKind::AddColumn(column, _, Some(_), _) = &alteration.kind {
            return default_of_last(rows, column);
        }
        let Some((column, query)) = alteration.default()? else {
            return Ok(Vec::new());
        };
        let query = self.planned(planning, query, &Params::None).await?;
        let default = default_of_last(&query, column)?.into_iter();
        let schema = rows.schema().as_arrow();
        let named = default.map(|(_, value)| (name_in(schema, column), value));
        Ok(named.collect())
    }

    pub(super) async fn planned(
        &self,
        planning: &Planning<'_>,
        mut statement: DataFusionStatement,
        params: &Params,
    ) -> Result<LogicalPlan> {
        expand::expand(&mut statement, planning)?;
        planned::check(&statement, "", planning.state)?;
        let plan = self.resolve(planning.state, statement).await?;
        params::resolve(plan, params.clone())
    }

    pub(super) async fn all_rows(
        &self,
        planning: &Planning<'_>,
        plan: &LogicalPlan,
    ) -> Result<Vec<RecordBatch>> {
        let (plan, context) = self.plan_execution(planning.state.clone(), plan).await?;
        let query = Query::new(plan, context, self.workers());
        Ok(query.execute()?.try_collect().await?)
    }
}

/// Whether a count says that no row is meant.
fn counts_none(batch: &RecordBatch) -> bool {
    let count = batch.column(0).as_primitive_opt::<UInt64Type>();
    count.is_some_and(|count| count.values().iter().all(|&count| count == 0))
}

/// All rows of the table after the change, and those that are changed, from rows with a mark behind.
fn divided(
    change: &ChangedRows,
    schema: &SchemaRef,
    marked: &[RecordBatch],
) -> Result<(RecordBatch, RecordBatch)> {
    let own: Vec<usize> = (0..schema.fields().len()).collect();
    let (mut all, mut hit) = (Vec::new(), Vec::new());
    for batch in marked {
        let is_hit = batch.column(own.len()).as_boolean();
        let rows = batch.project(&own)?;
        hit.push(filter_record_batch(&rows, is_hit)?);
        all.push(match change.deletes() {
            true => filter_record_batch(&rows, &not(is_hit)?)?,
            false => rows,
        });
    }
    Ok((one_batch(schema, &all)?, one_batch(schema, &hit)?))
}

/// An error if the condition of a DELETE or UPDATE may differ each time: rows are counted by one query and changed by another.
pub(super) fn check_condition(rows: &LogicalPlan) -> Result<()> {
    let mut found = false;
    rows.apply_with_subqueries(|part| {
        if let LogicalPlan::Filter(filter) = part {
            found |= filter.predicate.is_volatile();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match found {
        true => Err(volatile_condition()),
        false => Ok(()),
    }
}

fn volatile_condition() -> Error {
    Error::unsupported(
        "a condition that differs each time, as with random() and nextval(), in DELETE and UPDATE; \
                  keep its outcome in a column first",
    )
}

/// Whether a query may have another result each time.
pub(super) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|part| {
        part.apply_expressions(|expr| {
            found |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// The default of the last column of a query, which reads no other column.
fn default_of_last(query: &LogicalPlan, column: &Ident) -> Result<Vec<(String, Expr)>> {
    let wrong = |why: &str| {
        Error::unsupported(format!(
            "DEFAULT of column '{}' that {why}; write a value",
            column.value
        ))
    };
    let LogicalPlan::Projection(query) = query else {
        return Err(wrong("is no plain value"));
    };
    let Some(last) = query.expr.last() else {
        return Err(wrong("is no plain value"));
    };
    let name = last.schema_name().to_string();
    let value = last.clone().unalias();
    let has_query = value.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_))))?;
    match value.any_column_refs() || has_query {
        true => Err(wrong("reads another column or a query")),
        false => Ok(vec![(name, value)]),
    }
}

/// An error where a column would get the name of another one.
fn check_new_column(alteration: &Alteration, schema: &Schema) -> Result<()> {
    if let AlterationKind::RenameColumn(_, new) | AlterationKind::AddColumn(new, ..) =
        &alteration.kind
        && has_column(schema, new)
    {
        let message = format!("column '{}' already exists", new.value);
        return Err(Error::Execution(message));
    }
    Ok(())
}

fn has_column(schema: &Schema, name: &Ident) -> bool {
    column_of(schema, name).is_some()
}

fn column_of<'a>(schema: &'a Schema, name: &Ident) -> Option<&'a String> {
    let mut names = schema.fields().iter().map(|field| field.name());
    names.find(|own| match name.quote_style {
        Some(_) => **own == name.value,
        None => own.eq_ignore_ascii_case(&name.value),
    })
}

/// The name of a column as the table has it.
fn name_in(schema: &Schema, name: &Ident) -> String {
    column_of(schema, name).unwrap_or(&name.value).clone()
}

/// DataFusion's name of a table.
pub(super) fn reference(name: &ObjectName) -> TableReference {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    let mut parts: Vec<String> = parts
        .map(|part| match part.quote_style {
            Some(_) => part.value.clone(),
            None => part.value.to_lowercase(),
        })
        .collect();
    let table = parts.pop().unwrap_or_default();
    match (parts.pop(), parts.pop()) {
        (Some(schema), Some(catalog)) => TableReference::full(catalog, schema, table),
        (Some(schema), None) => TableReference::partial(schema, table),
        (None, _) => TableReference::bare(table),
    }
}
