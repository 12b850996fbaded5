//! MERGE.
//!
//! In: what sql/changes/merged_rows.rs makes of a statement. Out: the table changed; the rows that RETURNING asks for, or how many
//! were changed.
//! Invariant: a row that two others would change is an error. The rows are held against the constraints as they are in the end,
//! and all changes are there, or none.
//! Not here: the queries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

use super::returned_rows::{GivenRows, TableChange, one_batch, rows_at, table_of};
use super::row_changes::{is_volatile, reference};
use super::{Planning, Session};
use crate::error::{Error, Result};
use crate::scan::replaced_rows::Replaceable;
use crate::scan::schema::with_further_tables;
use crate::session::query::Query;
use crate::sql::changes::free_names::FreeNames;
use crate::sql::changes::inserted_rows::PLACE;
use crate::sql::changes::merged_rows::{
    ACTION, MergedColumns, MergedKind, MergedRows, SOURCE, SOURCE_PLACE, TARGET,
};
use crate::sql::changes::returning::MERGE_ACTION;
use crate::sql::params::Params;

impl Session {
    /// Runs MERGE; `None` if another statement has changed the rows that it looked at.
    pub(super) async fn merge_rows(
        &self,
        planning: &Planning<'_>,
        merge: MergedRows,
        params: Params,
    ) -> Result<Option<Query>> {
        let table = self.context();
        let table = table.table_provider(reference(&merge.table)).await?;
        let Some(rows) = Replaceable::of(&table) else {
            return Err(Error::unsupported(format!(
                "MERGE INTO '{}', which is no table in memory",
                merge.table
            )));
        };
        let there = rows.rows().await;
        let old = one_batch(&rows.schema(), &there.concat())?;
        let merged = Merging {
            schema: rows.schema(),
            defaults: rows.defaults().into_iter().collect(),
            old,
        };
        let made = self.made_by(planning, &merge, &merged, &params).await?;
        let change = made.change(&merged)?;
        let given = match &merge.returning {
            None => GivenRows::count(change.count())?,
            Some(returning) => {
                self.returned(planning, returning, made.shown()?, &params)
                    .await?
            }
        };
        let given = self.given(given).await?;
        let is_done = rows.replace(&there, change.applied(&there)?).await?;
        Ok(is_done.then_some(given))
    }

    /// The rows that the clauses make.
    async fn made_by(
        &self,
        planning: &Planning<'_>,
        merge: &MergedRows,
        merging: &Merging,
        params: &Params,
    ) -> Result<MadeRows> {
        let source = self.planned(planning, merge.source()?, params).await?;
        let others = source.schema().fields().iter();
        let others: Vec<String> = others.map(|field| field.name().clone()).collect();
        let source_schema = Arc::new(source.schema().as_arrow().clone());
        let source = self.all_rows(planning, &source).await?;
        let source = match source.first().map(|batch| batch.schema()) {
            Some(schema) => one_batch(&schema, &source)?,
            None => RecordBatch::new_empty(source_schema),
        };
        let columns = merging.schema.fields().iter();
        let columns: Vec<String> = columns.map(|field| field.name().clone()).collect();
        let names = FreeNames::beside(columns.iter().chain(&others));
        let (query, clauses) = merge.actions(&columns, &others, &names)?;
        let mut tables = table_of(TARGET, numbered(&merging.old, &names.of(PLACE))?)?;
        tables.extend(table_of(
            SOURCE,
            numbered(&source, &names.of(SOURCE_PLACE))?,
        )?);
        let made = async {
            let plan = self.planned(planning, query, params).await?;
            if is_volatile(&plan)? {
                return Err(volatile_merge());
            }
            let plan = merging.with_values(plan, &clauses, &names)?;
            self.all_rows(planning, &plan).await
        };
        let made = with_further_tables(tables, made).await?;
        MadeRows::new(&merging.schema, &made, &clauses)
    }
}

/// The table that is merged into.
struct Merging {
    schema: SchemaRef,
    defaults: HashMap<String, Expr>,
    old: RecordBatch,
}

impl Merging {
    /// Of the pairs about which a clause decides, the table's columns as they become, the place of the row and the clause.
    fn with_values(
        &self,
        plan: LogicalPlan,
        clauses: &[MergedColumns],
        names: &FreeNames,
    ) -> Result<LogicalPlan> {
        let all = plan.schema().columns();
        let column = |name: &str| {
            let found = all.iter().find(|column| column.name == name);
            let missing = || Error::Internal(format!("no column {name}"));
            found.cloned().map(Expr::Column).ok_or_else(missing)
        };
        let action = column(&names.of(ACTION))?;
        let mut items = Vec::new();
        for (place, (field, own)) in self.schema.fields().iter().zip(&all).enumerate() {
            let mut value = Expr::Column(own.clone());
            for (number, clause) in (1_i64..).zip(clauses) {
                let new = match (clause.values[place], clause.kind) {
                    (Some(index), _) => column(&names.new_value(index))?,
                    (None, MergedKind::Inserted) => self.default(field.name()),
                    (None, _) => continue,
                };
                let is_it = action.clone().eq(lit(number));
                let new = cast(new, field.data_type().clone());
                value = when(is_it, new).otherwise(value)?;
            }
            items.push(value.alias(field.name()));
        }
        items.push(column(&names.of(PLACE))?.alias(names.of(PLACE)));
        items.push(cast(action.clone(), DataType::Int64).alias(names.of(ACTION)));
        let decided = action.not_eq(lit(0_i64));
        let plan = LogicalPlanBuilder::from(plan).filter(decided)?;
        Ok(plan.project(items)?.build()?)
    }

    fn default(&self, column: &str) -> Expr {
        let default = self.defaults.get(column).cloned();
        default.unwrap_or_else(|| lit(ScalarValue::Null))
    }
}

/// Rows that clauses have made.
struct MadeRows {
    rows: RecordBatch,
    /// What each of them is.
    kinds: Vec<MergedKind>,
    /// Where it is in the table; nowhere if it is inserted.
    places: Vec<Option<usize>>,
}

impl MadeRows {
    fn new(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        clauses: &[MergedColumns],
    ) -> Result<MadeRows> {
        let own: Vec<usize> = (0..schema.fields().len()).collect();
        let (mut rows, mut kinds, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for batch in batches {
            rows.push(batch.project(&own)?);
            let place = batch.column(own.len()).as_primitive::<Int64Type>();
            places.extend(place.iter().map(|place| place.map(|place| place as usize)));
            let actions = batch.column(own.len() + 1).as_primitive::<Int64Type>();
            for &action in actions.values() {
                let clause = usize::try_from(action - 1).ok();
                let clause = clause.and_then(|clause| clauses.get(clause));
                let missing = || Error::Internal(format!("no clause {action}"));
                kinds.push(clause.ok_or_else(missing)?.kind);
            }
        }
        Ok(MadeRows {
            rows: one_batch(schema, &rows)?,
            kinds,
            places,
        })
    }

    fn of_kind(&self, kind: MergedKind) -> Vec<usize> {
        let kinds = self.kinds.iter().enumerate();
        let kinds = kinds.filter(|(_, one)| **one == kind);
        kinds.map(|(row, _)| row).collect()
    }

    /// What becomes of the table.
    fn change(&self, merging: &Merging) -> Result<TableChange> {
        let mut changed = HashSet::new();
        let mut places = self.places.iter().flatten();
        if !places.all(|place| changed.insert(*place)) {
            return Err(Error::Execution(
                "MERGE would change a row twice: it matches several rows of USING; leave one of them there"
                    .to_string(),
            ));
        }
        let updated = self.of_kind(MergedKind::Updated);
        let placed = |rows: &[usize]| -> Vec<usize> {
            rows.iter().filter_map(|&row| self.places[row]).collect()
        };
        Ok(TableChange {
            old: merging.old.clone(),
            places: placed(&updated),
            updated: rows_at(&self.rows, &updated)?,
            deleted: placed(&self.of_kind(MergedKind::Deleted)),
            inserted: rows_at(&self.rows, &self.of_kind(MergedKind::Inserted))?,
        })
    }

    /// The rows as RETURNING sees them, with what was done behind; a column of the table that has this name hides it.
    fn shown(&self) -> Result<RecordBatch> {
        let schema = self.rows.schema();
        let is_action = |field: &Arc<Field>| field.name().eq_ignore_ascii_case(MERGE_ACTION);
        if schema.fields().iter().any(is_action) {
            return Ok(self.rows.clone());
        }
        let mark = HashMap::from([(MERGE_ACTION.to_string(), String::new())]);
        let action = Field::new(MERGE_ACTION, DataType::Utf8, false).with_metadata(mark);
        let fields = schema.fields().iter().map(|field| field.as_ref().clone());
        let fields: Vec<Field> = fields.chain([action]).collect();
        let names = self.kinds.iter().map(|kind| kind.name());
        let mut columns = self.rows.columns().to_vec();
        columns.push(Arc::new(StringArray::from_iter_values(names)));
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns,
        )?)
    }
}

/// Rows with their places behind.
fn numbered(rows: &RecordBatch, name: &str) -> Result<RecordBatch> {
    let schema = rows.schema();
    let fields = schema.fields().iter().map(|field| field.as_ref().clone());
    let place = Field::new(name, DataType::Int64, true);
    let fields: Vec<Field> = fields.chain([place]).collect();
    let places = (0..rows.num_rows()).map(|place| place as i64);
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(Int64Array::from_iter_values(places)));
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

fn volatile_merge() -> Error {
    Error::unsupported(
        "values that differ each time, as of random() and nextval(), in MERGE; compute them in USING",
    )
}
