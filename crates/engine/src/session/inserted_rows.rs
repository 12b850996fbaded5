//! INSERT with ON CONFLICT or RETURNING.
//!
//! In: what sql/changes/inserted_rows.rs makes of a statement. Out: the table changed; the rows that RETURNING asks for, or how
//! many were inserted and updated.
//! Invariant: the rows are held against the constraints as they are in the end, and all of them are there, or none. A row is
//! changed once at most: two new rows of one key are an error but for DO NOTHING, which takes the first.
//! Not here: INSERT without these clauses, which DataFusion does.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, when};

use super::returned_rows::{GivenRows, TableChange, one_batch, rows_at, table_of};
use super::row_changes::{is_volatile, reference};
use super::{Planning, Session};
use crate::error::{Error, Result};
use crate::scan::conflicts::{Met, met};
use crate::scan::constraints::KeyKind;
use crate::scan::replaced_rows::Replaceable;
use crate::scan::schema::with_further_tables;
use crate::session::query::Query;
use crate::sql::changes::changed_rows::{HIT, place_of};
use crate::sql::changes::free_names::FreeNames;
use crate::sql::changes::inserted_rows::{
    CONFLICTS, Conflict, ConflictAction, InsertedRows, PLACE,
};
use crate::sql::params::Params;

/// Rows of a table, and those that are to be inserted.
struct Rows {
    schema: SchemaRef,
    old: RecordBatch,
    new: RecordBatch,
}

impl Session {
    /// Runs such an INSERT; `None` if another statement has changed the rows that it looked at.
    pub(super) async fn insert_rows(
        &self,
        planning: &Planning<'_>,
        insert: InsertedRows,
        params: Params,
    ) -> Result<Option<Query>> {
        let table = self.context();
        let table = table.table_provider(reference(&insert.table)).await?;
        let Some(table) = Replaceable::of(&table) else {
            return Err(Error::unsupported(format!(
                "ON CONFLICT and RETURNING of '{}', which is no table in memory",
                insert.table
            )));
        };
        let there = table.rows().await;
        let plain = self
            .planned(planning, insert.plain.clone(), &params)
            .await?;
        let LogicalPlan::Dml(plain) = plain else {
            return Err(Error::Internal("an INSERT that is none".to_string()));
        };
        let new = self.all_rows(planning, &plain.input).await?;
        let schema = table.schema();
        let new = one_batch(&schema, &new)?;
        let change = match &insert.conflict {
            None => all_inserted(new),
            Some(conflict) => {
                let rows = Rows {
                    old: one_batch(&schema, &there.concat())?,
                    new,
                    schema,
                };
                let keys = keys_of(conflict, &table, &rows.schema)?;
                let met = met(&keys, &rows.old, &rows.new)?;
                let update = RowUpdate {
                    insert: &insert,
                    conflict,
                    rows,
                };
                self.resolve_conflicts(planning, update, &met, &params)
                    .await?
            }
        };
        let given = match &insert.returning {
            None => GivenRows::count(change.count())?,
            Some(returning) => {
                let changed = [change.updated.clone(), change.inserted.clone()];
                let changed = one_batch(&table.schema(), &changed)?;
                self.returned(planning, returning, changed, &params).await?
            }
        };
        let given = self.given(given).await?;
        if insert.conflict.is_none() {
            let is_done = table.append(change.inserted).await?;
            return Ok(is_done.then_some(given));
        }
        let is_done = table.replace(&there, change.applied(&there)?).await?;
        Ok(is_done.then_some(given))
    }

    /// What becomes of the rows, of which each new one has met what `met` says.
    async fn resolve_conflicts(
        &self,
        planning: &Planning<'_>,
        update: RowUpdate<'_>,
        met: &[Met],
        params: &Params,
    ) -> Result<TableChange> {
        let action = &update.conflict.action;
        let is_ignored = matches!(action, ConflictAction::Nothing);
        let (mut inserted, mut pairs) = (Vec::new(), Vec::new());
        let mut changed = HashSet::new();
        for (row, met) in met.iter().enumerate() {
            match *met {
                Met::Nothing => inserted.push(row),
                Met::Row(_) | Met::NewRow if is_ignored => {}
                Met::Row(place) if changed.insert(place) => pairs.push((place, row)),
                Met::Row(_) | Met::NewRow => return Err(changed_twice(action)),
            }
        }
        let (updated, places) = match pairs.is_empty() {
            true => (rows_at(&update.rows.old, &[])?, Vec::new()),
            false => self.updated_rows(planning, &update, &pairs, params).await?,
        };
        let Rows { old, new, .. } = update.rows;
        Ok(TableChange {
            inserted: rows_at(&new, &inserted)?,
            old,
            updated,
            places,
            deleted: Vec::new(),
        })
    }

    /// The rows that are there with their new values, and their places.
    async fn updated_rows(
        &self,
        planning: &Planning<'_>,
        update: &RowUpdate<'_>,
        pairs: &[(usize, usize)],
        params: &Params,
    ) -> Result<(RecordBatch, Vec<usize>)> {
        let schema = &update.rows.schema;
        let columns = schema.fields().iter().map(|field| field.name().clone());
        let columns: Vec<String> = columns.collect();
        let names = FreeNames::beside(&columns);
        let (query, assigned) = (update.insert).updates(update.conflict, &columns, &names)?;
        let conflicts = table_of(CONFLICTS, update.rows.beside(pairs, &names)?)?;
        let updated = async {
            let plan = self.planned(planning, query, params).await?;
            if is_volatile(&plan)? && has_condition(update.conflict) {
                return Err(volatile_update());
            }
            let plan = with_new_values(plan, schema, &assigned, &names)?;
            self.all_rows(planning, &plan).await
        };
        let updated = with_further_tables(conflicts, updated).await?;
        let mut places = Vec::new();
        for batch in &updated {
            let place = batch.column(columns.len()).as_primitive::<Int64Type>();
            places.extend(place.values().iter().map(|&place| place as usize));
        }
        let rows = updated.iter().map(|batch| {
            let own: Vec<usize> = (0..columns.len()).collect();
            Ok(batch.project(&own)?)
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        Ok((one_batch(schema, &rows)?, places))
    }
}

/// Rows that are there and get new values.
struct RowUpdate<'a> {
    insert: &'a InsertedRows,
    conflict: &'a Conflict,
    rows: Rows,
}

/// The change that inserts all new rows.
fn all_inserted(new: RecordBatch) -> TableChange {
    let none = RecordBatch::new_empty(new.schema());
    TableChange {
        old: none.clone(),
        updated: none,
        places: Vec::new(),
        deleted: Vec::new(),
        inserted: new,
    }
}

impl Rows {
    /// Rows that are there, each beside the new one that has met it, with its place.
    fn beside(&self, pairs: &[(usize, usize)], names: &FreeNames) -> Result<RecordBatch> {
        let (old, new): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
        let places = Int64Array::from_iter_values(old.iter().map(|&place| place as i64));
        let (old, new) = (rows_at(&self.old, &old)?, rows_at(&self.new, &new)?);
        let mut fields: Vec<Field> = Vec::new();
        fields.extend(
            self.schema
                .fields()
                .iter()
                .map(|field| field.as_ref().clone()),
        );
        fields.extend(self.schema.fields().iter().map(|field| {
            let name = names.excluded(field.name());
            field.as_ref().clone().with_name(name)
        }));
        fields.push(Field::new(names.of(PLACE), DataType::Int64, false));
        let mut columns = [old.columns(), new.columns()].concat();
        columns.push(Arc::new(places));
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns,
        )?)
    }
}

/// The keys that a row may meet.
fn keys_of(
    conflict: &Conflict,
    table: &Replaceable<'_>,
    schema: &SchemaRef,
) -> Result<Vec<(Vec<usize>, KeyKind)>> {
    let all = table.keys();
    let columns = schema.fields().iter().map(|field| field.name().clone());
    let columns: Vec<String> = columns.collect();
    let wrong = |message: &str| Error::planning(message.to_string());
    let places = conflict.columns.iter().map(|name| place_of(name, &columns));
    let places = places.collect::<Result<HashSet<usize>>>()?;
    let is_ignored = matches!(conflict.action, ConflictAction::Nothing);
    if !places.is_empty() {
        let is_it = |(columns, _): &&(Vec<usize>, KeyKind)| {
            columns.iter().copied().collect::<HashSet<usize>>() == places
        };
        return match all.iter().find(is_it) {
            Some(key) => Ok(vec![key.clone()]),
            None => Err(wrong(
                "the columns of ON CONFLICT are no PRIMARY KEY or UNIQUE of the table",
            )),
        };
    }
    match all.len() {
        0 => Err(wrong(
            "a row has a conflict by PRIMARY KEY or UNIQUE, and the table has neither",
        )),
        1 => Ok(all.to_vec()),
        _ if is_ignored => Ok(all.to_vec()),
        _ => Err(wrong(
            "the table has several keys; write the columns of one, ON CONFLICT (id) DO UPDATE",
        )),
    }
}

fn has_condition(conflict: &Conflict) -> bool {
    matches!(conflict.action, ConflictAction::Update(_, Some(_)))
}

/// The columns of the table as they are after the change, and the place of each row, of those rows that are changed.
fn with_new_values(
    plan: LogicalPlan,
    schema: &SchemaRef,
    assigned: &[Option<usize>],
    names: &FreeNames,
) -> Result<LogicalPlan> {
    let column = |name: &str| {
        let found = plan.schema().columns();
        let found = found.into_iter().find(|column| column.name == name);
        let missing = || Error::Internal(format!("no column {name}"));
        found.map(Expr::Column).ok_or_else(missing)
    };
    let own = plan.schema().columns();
    let mut items = Vec::new();
    for ((field, own), assigned) in schema.fields().iter().zip(own).zip(assigned) {
        let value = match assigned {
            None => Expr::Column(own),
            Some(index) => {
                let new = cast(column(&names.new_value(*index))?, field.data_type().clone());
                when(column(&names.of(HIT))?, new).otherwise(Expr::Column(own))?
            }
        };
        items.push(value.alias(field.name()));
    }
    items.push(column(&names.of(PLACE))?.alias(names.of(PLACE)));
    let hit = column(&names.of(HIT))?;
    let plan = LogicalPlanBuilder::from(plan).filter(hit)?;
    Ok(plan.project(items)?.build()?)
}

fn changed_twice(action: &ConflictAction) -> Error {
    Error::Execution(match action {
        ConflictAction::Replace(_) => "INSERT OR REPLACE would change a row twice: two of the rows have the same key; insert one row for each key, as by SELECT DISTINCT ON".to_string(),
        _ => "ON CONFLICT would change a row twice: two of the rows have the same key; insert one row for each key".to_string(),
    })
}

fn volatile_update() -> Error {
    Error::unsupported(
        "random values beside the condition of ON CONFLICT DO UPDATE; compute them in the rows that are inserted",
    )
}
