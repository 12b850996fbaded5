//! INSERT that has ON CONFLICT or RETURNING: also OR REPLACE and OR IGNORE.
//!
//! In: a parsed statement. Out: for such a one, the INSERT without these clauses, and the query of what becomes of rows that are
//! there already.
//! Invariant: columns without a table's name are those of the row that is there; `excluded` is the row that is not inserted.
//! Not here: which rows these are (scan/conflicts.rs); the table itself (session/inserted_rows.rs).

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Expr, Ident, Insert, ObjectName, OnConflict,
    OnConflictAction, OnInsert, SqliteOnConflict, Statement as SqlStatement,
    TableAliasWithoutColumns, TableObject,
};

use crate::error::{Error, Result};
use crate::sql::ast::{parse_statement, quoted};
use crate::sql::changes::changed_rows::{HIT, place_of};
use crate::sql::changes::free_names::FreeNames;
use crate::sql::changes::returning::Returning;
use crate::sql::tokens::change_forms::ALIAS;
use crate::sql::walk::{Expressions, Walk, done, flow};

/// The table of rows that are there, beside those that are not inserted.
pub(crate) const CONFLICTS: &str = "hidden: conflicts";

/// The column with the place of a row in its table.
pub(crate) const PLACE: &str = "hidden: place";

/// Such an INSERT.
pub(crate) struct InsertedRows {
    /// The INSERT without the clauses.
    pub plain: DataFusionStatement,
    pub table: ObjectName,
    /// The name that the statement has for the table.
    alias: Ident,
    pub conflict: Option<Conflict>,
    pub returning: Option<Returning>,
}

/// What is done about a row whose key is there already.
pub(crate) struct Conflict {
    /// The columns of the key; none for any key.
    pub columns: Vec<Ident>,
    pub action: ConflictAction,
}

pub(crate) enum ConflictAction {
    Nothing,
    /// The row that is there gets new values, if a condition holds.
    Update(Vec<Assignment>, Option<Box<Expr>>),
    /// It gets the values of these columns, or of all.
    Replace(Vec<Ident>),
}

/// Gives the table of an INSERT the name that the statement has for it, where a clause may use it.
pub(in crate::sql) fn name_table(statement: &mut DataFusionStatement) {
    let statement = match statement {
        DataFusionStatement::Statement(statement) => statement,
        DataFusionStatement::Explain(explain) => return name_table(&mut explain.statement),
        _ => return,
    };
    if let SqlStatement::Insert(insert) = statement.as_mut()
        && let TableObject::TableName(table) = &mut insert.table
        && let [.., mark, alias] = table.0.as_slice()
        && mark.as_ident().is_some_and(|mark| mark.value == ALIAS)
        && let Some(alias) = alias.as_ident().cloned()
    {
        table.0.truncate(table.0.len() - 2);
        let is_used = insert.on.is_some() || insert.returning.is_some();
        insert.table_alias = is_used.then_some(TableAliasWithoutColumns {
            explicit: true,
            alias,
        });
    }
}

/// The INSERT that a statement is, if it has one of the clauses.
pub(crate) fn of(statement: &DataFusionStatement) -> Result<Option<InsertedRows>> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(None);
    };
    let SqlStatement::Insert(insert) = statement.as_ref() else {
        return Ok(None);
    };
    let TableObject::TableName(table) = &insert.table else {
        return Ok(None);
    };
    let own = table.0.last().and_then(|part| part.as_ident());
    let alias = insert.table_alias.as_ref().map(|alias| &alias.alias);
    let Some(alias) = alias.or(own).cloned() else {
        return Ok(None);
    };
    let conflict = conflict_of(insert)?;
    if conflict.is_none() && insert.returning.is_none() {
        return Ok(None);
    }
    let mut plain = insert.clone();
    (plain.on, plain.or, plain.returning) = (None, None, None);
    (plain.replace_into, plain.ignore, plain.table_alias) = (false, false, None);
    let plain = SqlStatement::Insert(plain);
    Ok(Some(InsertedRows {
        plain: DataFusionStatement::Statement(Box::new(plain)),
        table: table.clone(),
        returning: (insert.returning.as_deref()).map(|items| Returning::new(&alias, items)),
        alias,
        conflict,
    }))
}

fn conflict_of(insert: &Insert) -> Result<Option<Conflict>> {
    let of_any_key = |action| Conflict {
        columns: Vec::new(),
        action,
    };
    let listed = || {
        let names = insert.columns.iter();
        let names = names.filter_map(|name| name.0.last()?.as_ident().cloned());
        names.collect()
    };
    let is_replaced = insert.replace_into || insert.or == Some(SqliteOnConflict::Replace);
    let is_ignored = insert.ignore || insert.or == Some(SqliteOnConflict::Ignore);
    match (&insert.on, &insert.or) {
        (Some(_), Some(_)) => Err(Error::unsupported_clause(
            "OR and ON CONFLICT in one INSERT; leave one out",
        )),
        (Some(OnInsert::OnConflict(on)), None) => on_conflict(on).map(Some),
        (Some(_), None) => Err(Error::unsupported_clause(
            "ON DUPLICATE KEY; write ON CONFLICT DO UPDATE",
        )),
        (None, _) if is_replaced => Ok(Some(of_any_key(ConflictAction::Replace(listed())))),
        (None, _) if is_ignored => Ok(Some(of_any_key(ConflictAction::Nothing))),
        (None, None) => Ok(None),
        (None, Some(or)) => Err(Error::unsupported_clause(format!(
            "{or} in INSERT; a statement that fails changes nothing, and OR REPLACE and OR IGNORE are done"
        ))),
    }
}

fn on_conflict(on: &OnConflict) -> Result<Conflict> {
    let columns = match &on.conflict_target {
        None => Vec::new(),
        Some(ConflictTarget::Columns(columns)) => columns.clone(),
        Some(ConflictTarget::OnConstraint(_)) => {
            let message = "ON CONFLICT ON CONSTRAINT; write the columns of the key";
            return Err(Error::unsupported_clause(message));
        }
    };
    let action = match &on.action {
        OnConflictAction::DoNothing => ConflictAction::Nothing,
        OnConflictAction::DoUpdate(update) => ConflictAction::Update(
            update.assignments.clone(),
            update.selection.clone().map(Box::new),
        ),
    };
    Ok(Conflict { columns, action })
}

impl InsertedRows {
    /// The query of the new values over [`CONFLICTS`], with the place of each row and whether it is changed. Beside it the
    /// number of its new value for each column of the table, if it has one.
    pub(crate) fn updates(
        &self,
        conflict: &Conflict,
        columns: &[String],
        names: &FreeNames,
    ) -> Result<(DataFusionStatement, Vec<Option<usize>>)> {
        let (assigned, condition) = self.assigned(&conflict.action, columns, names)?;
        let is_hit = names.quoted(HIT);
        let mut places = vec![None; columns.len()];
        let mut items = vec![names.quoted(PLACE).to_string(), is_hit.to_string()];
        let alias = &self.alias;
        let own = columns.iter();
        let own: Vec<String> = own
            .map(|column| format!("{alias}.{}", quoted(column)))
            .collect();
        for (index, (column, value)) in assigned.into_iter().enumerate() {
            places[column] = Some(index);
            let name = quoted(&names.new_value(index));
            items.push(format!("CASE WHEN {is_hit} THEN ({value}) END AS {name}"));
        }
        let text = format!(
            "SELECT {}, {} FROM (SELECT *, ({condition}) IS TRUE AS {is_hit} FROM {} AS {alias}) AS {alias}",
            own.join(", "),
            items.join(", "),
            quoted(CONFLICTS)
        );
        Ok((parse_statement(&text)?, places))
    }

    /// The places of columns that get new values, with these, and the condition.
    fn assigned(
        &self,
        action: &ConflictAction,
        columns: &[String],
        names: &FreeNames,
    ) -> Result<(Vec<(usize, String)>, String)> {
        let name = |place: usize| quoted(&names.excluded(&columns[place])).to_string();
        let of_excluded = |place: usize| (place, name(place));
        let (assignments, condition) = match action {
            ConflictAction::Nothing => (&[][..], None),
            ConflictAction::Update(assignments, condition) => {
                (assignments.as_slice(), condition.as_deref())
            }
            ConflictAction::Replace(listed) => {
                let places: Vec<usize> = match listed.as_slice() {
                    [] => (0..columns.len()).collect(),
                    listed => listed
                        .iter()
                        .map(|name| place_of(name, columns))
                        .collect::<Result<_>>()?,
                };
                let values = places.into_iter().map(of_excluded).collect();
                return Ok((values, "true".to_string()));
            }
        };
        let mut values = Vec::new();
        for Assignment { target, value } in assignments {
            let AssignmentTarget::ColumnName(name) = target else {
                return Err(Error::unsupported_clause(
                    "a list of columns and a query in ON CONFLICT; set one column after the other",
                ));
            };
            let Some(name) = name.0.last().and_then(|part| part.as_ident()) else {
                continue;
            };
            let value = with_excluded(value, columns, names)?;
            values.push((place_of(name, columns)?, value));
        }
        let condition = condition.map(|condition| with_excluded(condition, columns, names));
        Ok((
            values,
            condition.transpose()?.unwrap_or_else(|| "true".to_string()),
        ))
    }
}

/// An expression in which columns of `excluded` are those of [`CONFLICTS`].
fn with_excluded(expr: &Expr, columns: &[String], names: &FreeNames) -> Result<String> {
    let mut expr = expr.clone();
    done(expr.walk(&mut Expressions(|expr: &mut Expr| {
        flow(name_excluded(expr, columns, names))
    })))?;
    Ok(expr.to_string())
}

fn name_excluded(expr: &mut Expr, columns: &[String], names: &FreeNames) -> Result<()> {
    if let Expr::CompoundIdentifier(parts) = expr
        && let [table, column, fields @ ..] = parts.as_slice()
        && table.value.eq_ignore_ascii_case("excluded")
    {
        let place = place_of(column, columns)?;
        let column = quoted(&names.excluded(&columns[place]));
        *expr = match fields {
            [] => Expr::Identifier(column),
            fields => {
                let names = std::iter::once(column).chain(fields.iter().cloned());
                Expr::CompoundIdentifier(names.collect())
            }
        };
    }
    Ok(())
}
