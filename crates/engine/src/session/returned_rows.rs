//! What statements that change rows share: rows as one batch, columns of the table's types, RETURNING.
//!
//! In: queries over the rows that a statement is about. Out: the rows of the table afterwards; the statement's result.
//! Invariant: all that can fail is done before the table has its new rows.
//! Not here: which rows change (inserted_rows.rs, merged_rows.rs, row_changes.rs).

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{concat_batches, interleave_record_batch, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use futures::TryStreamExt;

use super::{Planning, Session};
use crate::error::{Error, Result};
use crate::scan::replaced_rows::NewRows;
use crate::scan::schema::{Tables, with_further_tables};
use crate::session::query::Query;
use crate::sql::changes::returning::{MERGE_ACTION, RETURNED, Returning};
use crate::sql::params::Params;

/// Rows that a statement gives, with their columns.
pub(super) struct GivenRows {
    schema: SchemaRef,
    rows: Vec<RecordBatch>,
}

impl GivenRows {
    /// The number of changed rows.
    pub(super) fn count(rows: usize) -> Result<GivenRows> {
        let fields = vec![Field::new("count", DataType::UInt64, false)];
        let schema = Arc::new(Schema::new(fields));
        let count = UInt64Array::from(vec![rows as u64]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(count)])?;
        Ok(GivenRows {
            schema,
            rows: vec![batch],
        })
    }
}

/// Rows of a batch that further rows are put into.
const BATCH_ROWS: usize = 8192;

/// Rows of a table before a statement, and what has become of them.
pub(super) struct TableChange {
    pub old: RecordBatch,
    /// Rows with new values.
    pub updated: RecordBatch,
    /// Where each of them is among the old ones.
    pub places: Vec<usize>,
    pub deleted: Vec<usize>,
    pub inserted: RecordBatch,
}

impl TableChange {
    /// What becomes of a table that had these rows: those that stay keep their places, new ones come last. Batches without a
    /// changed row stay as they are.
    pub(super) fn applied(&self, there: &[Vec<RecordBatch>]) -> Result<NewRows<'_>> {
        let updated = self.places.iter().copied().zip((0..).map(Some));
        let deleted = self.deleted.iter().map(|&place| (place, None));
        let changes: BTreeMap<usize, Option<usize>> = updated.chain(deleted).collect();
        let (mut all, mut start) = (Vec::new(), 0);
        for batch in there.iter().flatten() {
            let end = start + batch.num_rows();
            let mut here = changes.range(start..end).peekable();
            if here.peek().is_none() {
                all.push(batch.clone());
            } else {
                let here = here.map(|(place, new)| (place - start, *new));
                all.push(self.changed(batch, &here.collect())?);
            }
            start = end;
        }
        self.put_behind(&mut all)?;
        Ok(NewRows {
            all,
            before: std::slice::from_ref(&self.old),
            gone: changes.into_keys().collect(),
            new: vec![self.updated.clone(), self.inserted.clone()],
        })
    }

    /// A batch of the table in which rows are deleted, or have the values of those updated rows.
    fn changed(
        &self,
        batch: &RecordBatch,
        changes: &BTreeMap<usize, Option<usize>>,
    ) -> Result<RecordBatch> {
        let from = (0..batch.num_rows()).filter_map(|row| match changes.get(&row) {
            None => Some((0, row)),
            Some(new) => new.map(|new| (1, new)),
        });
        let from: Vec<(usize, usize)> = from.collect();
        let batch = RecordBatch::try_new(self.updated.schema(), batch.columns().to_vec())?;
        Ok(interleave_record_batch(&[&batch, &self.updated], &from)?)
    }

    /// Puts the inserted rows last, into the last batch if it is small.
    fn put_behind(&self, all: &mut Vec<RecordBatch>) -> Result<()> {
        let rows = self.inserted.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let behind = match all.pop_if(|last| last.num_rows() + rows <= BATCH_ROWS) {
            None => self.inserted.clone(),
            Some(last) => one_batch(&self.inserted.schema(), &[last, self.inserted.clone()])?,
        };
        all.push(behind);
        Ok(())
    }

    /// The number of changed rows.
    pub(super) fn count(&self) -> usize {
        self.places.len() + self.deleted.len() + self.inserted.num_rows()
    }
}

/// All rows as one batch with these columns.
pub(super) fn one_batch(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let with_schema =
        |batch: &RecordBatch| RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec());
    let batches: std::result::Result<Vec<_>, _> = batches.iter().map(with_schema).collect();
    Ok(concat_batches(schema, &batches?)?)
}

/// The rows at these places.
pub(super) fn rows_at(batch: &RecordBatch, places: &[usize]) -> Result<RecordBatch> {
    let places = places.iter().map(|&place| u32::try_from(place));
    let places: std::result::Result<Vec<u32>, _> = places.collect();
    let places = places.map_err(|_| Error::unsupported("a change of more than 4294967295 rows"))?;
    Ok(take_record_batch(batch, &UInt32Array::from(places))?)
}

/// A table of one batch, for a query that sees it under this name.
pub(super) fn table_of(name: &str, rows: RecordBatch) -> Result<Tables> {
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    Ok(Tables::from([(name.to_string(), Arc::new(table) as _)]))
}

/// Columns of a plan, the first of them as columns of `schema`.
pub(super) fn as_columns_of(plan: LogicalPlan, schema: &Schema) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().enumerate();
    let columns = columns.map(|(place, column)| {
        let name = column.name.clone();
        let value = Expr::Column(column);
        match schema.fields().get(place) {
            Some(field) => cast(value, field.data_type().clone()).alias(name),
            None => value.alias(name),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

impl Session {
    /// What RETURNING gives of these rows.
    pub(super) async fn returned(
        &self,
        planning: &Planning<'_>,
        returning: &Returning,
        rows: RecordBatch,
        params: &Params,
    ) -> Result<GivenRows> {
        let has_action = rows.schema().fields().last().is_some_and(|last| {
            last.name() == MERGE_ACTION && last.metadata().contains_key(MERGE_ACTION)
        });
        let query = match has_action {
            true => returning.query_without(Some(MERGE_ACTION))?,
            false => returning.query()?,
        };
        let given = async {
            let plan = self.planned(planning, query, params).await?;
            check_values(&plan)?;
            let (plan, context) = self.plan_execution(planning.state.clone(), &plan).await?;
            let schema = plan.schema();
            let query = Query::new(plan, context, self.workers());
            let rows: Vec<RecordBatch> = query.execute()?.try_collect().await?;
            Ok::<_, Error>(GivenRows { schema, rows })
        };
        with_further_tables(table_of(RETURNED, rows)?, given).await
    }

    /// The result of a statement that has changed rows.
    pub(super) async fn given(&self, given: GivenRows) -> Result<Query> {
        let context = self.context();
        // What the plan says of NULL need not be what its batches say.
        let fields = given.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let rows = one_batch(&schema, &given.rows)?;
        let table = MemTable::try_new(schema, vec![vec![rows]])?;
        let plan = context.read_table(Arc::new(table))?;
        let plan = plan.create_physical_plan().await?;
        Ok(Query::new(plan, context.task_ctx(), self.workers()).changing_rows())
    }
}

/// An error if items of RETURNING are not one value a row.
fn check_values(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    plan.apply(|part| {
        found = match part {
            LogicalPlan::Aggregate(_) => Some("aggregates"),
            LogicalPlan::Window(_) => Some("window functions"),
            LogicalPlan::Unnest(_) => Some("unnest"),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    match found {
        None => Ok(()),
        Some(what) => Err(Error::unsupported_clause(format!(
            "{what} in RETURNING, which gives one row for each that is changed; read the table afterwards"
        ))),
    }
}
