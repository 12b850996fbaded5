//! DELETE and UPDATE that read other rows: USING, FROM, a subquery. Also those with RETURNING.
//!
//! In: a parsed statement. Out: for such a one, the queries of the rows that it changes and of all rows as they are then.
//! Invariant: a row is changed where the condition is true, and at most once, whatever number of rows of FROM it fits.
//! Not here: statements that read their own rows alone, which DataFusion does (changes.rs); the table itself (session/).

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, ObjectName, Query,
    Statement as SqlStatement, TableAlias, TableFactor, TableWithJoins, Update,
    UpdateTableFromKind, VisitorMut,
};

use crate::error::{Error, Result, nearest_names};
use crate::functions::ROW_VALUE;
use crate::sql::ast::{parse_statement, quoted};
use crate::sql::changes::free_names::FreeNames;
use crate::sql::changes::returning::Returning;
use crate::sql::walk::Walk;

/// A change of rows.
pub(crate) struct ChangedRows {
    pub table: ObjectName,
    /// The name that the statement has for the table.
    alias: Ident,
    /// What else is read, as in FROM.
    others: Option<String>,
    condition: String,
    change: Change,
    pub returning: Option<Returning>,
}

enum Change {
    Delete,
    Update(Vec<NewValues>),
}

/// What UPDATE assigns.
struct NewValues {
    columns: Vec<Ident>,
    assigned: Assigned,
}

enum Assigned {
    /// A value of the one column.
    Value(String),
    /// A query whose row has a value for each column; it is read once for all of them.
    Row(String),
}

impl NewValues {
    fn of(Assignment { target, value }: &Assignment) -> Option<NewValues> {
        let last = |name: &ObjectName| Some(name.0.last()?.as_ident()?.clone());
        let (columns, assigned) = match (target, value) {
            (AssignmentTarget::ColumnName(name), value) => {
                (vec![last(name)?], Assigned::Value(value.to_string()))
            }
            (AssignmentTarget::Tuple(names), Expr::Subquery(query)) => {
                let columns = names.iter().map(last).collect::<Option<Vec<_>>>()?;
                (columns, Assigned::Row(query.to_string()))
            }
            (AssignmentTarget::Tuple(_), _) => return None,
        };
        Some(NewValues { columns, assigned })
    }

    /// What is assigned, as one value.
    fn value(&self) -> String {
        match &self.assigned {
            Assigned::Value(value) => value.clone(),
            Assigned::Row(query) => {
                let names = (1..=self.columns.len()).map(|place| format!("value_{place}"));
                let names: Vec<String> = names.collect();
                let row = names.iter().map(|name| format!("'{name}', {name}"));
                let row: Vec<String> = row.collect();
                let (names, row) = (names.join(", "), row.join(", "));
                format!("(SELECT named_struct({row}) FROM ({query}) AS assigned({names}))")
            }
        }
    }

    /// The value for the column at `place`, of a column of `all` that has what is assigned.
    fn for_column(&self, place: usize, all: &str) -> String {
        match &self.assigned {
            Assigned::Value(_) => all.to_string(),
            Assigned::Row(_) => format!("\"{ROW_VALUE}\"({all}, {})", place + 1),
        }
    }
}

/// The column that says whether a row is changed.
pub(crate) const HIT: &str = "hidden: hit";

/// The row of FROM that is found for a row of the table.
const FOUND: &str = "found";

/// The change that a statement is, if it reads more than its own rows and has no clause beyond.
pub(crate) fn of(statement: &DataFusionStatement) -> Option<ChangedRows> {
    let DataFusionStatement::Statement(statement) = statement else {
        return None;
    };
    match statement.as_ref() {
        SqlStatement::Delete(delete) => deleted(delete),
        SqlStatement::Update(update) => updated(update),
        _ => None,
    }
}

fn deleted(delete: &Delete) -> Option<ChangedRows> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [table] = from.as_slice() else {
        return None;
    };
    let is_plain = delete.tables.is_empty()
        && delete.output.is_none()
        && delete.order_by.is_empty()
        && delete.limit.is_none();
    // DataFusion knows no other name of the table.
    let is_named = matches!(&table.relation, TableFactor::Table { alias: Some(_), .. });
    let reads = is_named
        || delete.using.is_some()
        || delete.returning.is_some()
        || delete.selection.as_ref().is_some_and(has_query);
    let (table, alias) = target(table)?;
    (is_plain && reads).then(|| ChangedRows {
        table,
        returning: (delete.returning.as_deref()).map(|items| Returning::new(&alias, items)),
        alias,
        others: delete.using.as_deref().map(listed),
        condition: condition(delete.selection.as_ref()),
        change: Change::Delete,
    })
}

fn updated(update: &Update) -> Option<ChangedRows> {
    let is_plain = update.output.is_none()
        && update.or.is_none()
        && update.order_by.is_empty()
        && update.limit.is_none();
    let values = update
        .assignments
        .iter()
        .map(|assignment| &assignment.value);
    let mut read = values.chain(&update.selection);
    let reads = update.from.is_some() || update.returning.is_some() || read.any(has_query);
    let others = match &update.from {
        None => None,
        Some(UpdateTableFromKind::AfterSet(tables) | UpdateTableFromKind::BeforeSet(tables)) => {
            Some(listed(tables))
        }
    };
    let values = update.assignments.iter().map(NewValues::of);
    let values = values.collect::<Option<Vec<_>>>()?;
    let (table, alias) = target(&update.table)?;
    (is_plain && reads).then(|| ChangedRows {
        table,
        returning: (update.returning.as_deref()).map(|items| Returning::new(&alias, items)),
        alias,
        others,
        condition: condition(update.selection.as_ref()),
        change: Change::Update(values),
    })
}

/// The table that is written to, and its name in the statement.
fn target(table: &TableWithJoins) -> Option<(ObjectName, Ident)> {
    let TableFactor::Table { name, alias, .. } = &table.relation else {
        return None;
    };
    let written = table.relation.to_string();
    let plain = match alias {
        Some(alias) => format!("{name} {alias}"),
        None => name.to_string(),
    };
    let has_columns = |alias: &TableAlias| !alias.columns.is_empty();
    if written != plain || alias.as_ref().is_some_and(has_columns) {
        return None;
    }
    let own = match alias {
        Some(alias) => alias.name.clone(),
        None => name.0.last()?.as_ident()?.clone(),
    };
    table.joins.is_empty().then(|| (name.clone(), own))
}

fn listed(tables: &[TableWithJoins]) -> String {
    let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
    tables.join(", ")
}

fn condition(selection: Option<&Expr>) -> String {
    selection.map_or_else(|| "true".to_string(), ToString::to_string)
}

fn has_query(expr: &Expr) -> bool {
    struct Queries;
    impl VisitorMut for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    expr.clone().walk(&mut Queries).is_break()
}

impl ChangedRows {
    /// The query of what else is read. No part of it sees the table: it could be planned by itself.
    pub(crate) fn others(&self) -> Result<Option<DataFusionStatement>> {
        let query = self
            .others
            .as_ref()
            .map(|others| format!("SELECT 1 FROM {others}"));
        query.map(|query| parse_statement(&query)).transpose()
    }

    /// The query that counts the rows that are changed.
    pub(crate) fn counted(&self) -> Result<DataFusionStatement> {
        let ChangedRows { table, alias, .. } = self;
        let hit = self.hit();
        parse_statement(&format!(
            "SELECT CAST(count(*) AS BIGINT UNSIGNED) AS \"count\" FROM {table} AS {alias} WHERE {hit}"
        ))
    }

    /// The INSERT of all rows as they are after the change, of a table with these columns.
    pub(crate) fn rows(&self, columns: &[String]) -> Result<DataFusionStatement> {
        let table = &self.table;
        let rows = match &self.change {
            Change::Delete => {
                let (alias, hit) = (&self.alias, self.hit());
                format!("SELECT {alias}.* FROM {table} AS {alias} WHERE ({hit}) IS NOT TRUE")
            }
            Change::Update(values) => self.updated(values, columns)?,
        };
        parse_statement(&format!("INSERT INTO {table} {rows}"))
    }

    /// The query of all rows as they are after the change, those that are deleted as they were, with [`HIT`] behind.
    pub(crate) fn marked(&self, columns: &[String]) -> Result<DataFusionStatement> {
        let ChangedRows { table, alias, .. } = self;
        let names = self.names(columns);
        let is_hit = names.quoted(HIT);
        let rows = match &self.change {
            Change::Delete => {
                let hit = self.hit();
                format!("SELECT {alias}.*, ({hit}) IS TRUE AS {is_hit} FROM {table} AS {alias}")
            }
            Change::Update(values) => {
                let items = self.items(values, columns, &names)?;
                let from = self.with_new(values, &names);
                format!("SELECT {items}, coalesce({is_hit}, false) AS {is_hit} FROM {from}")
            }
        };
        parse_statement(&rows)
    }

    /// Whether rows that are changed are gone.
    pub(crate) fn deletes(&self) -> bool {
        matches!(self.change, Change::Delete)
    }

    /// Whether a row is changed.
    fn hit(&self) -> String {
        let condition = &self.condition;
        match &self.others {
            None => condition.clone(),
            Some(others) => format!("EXISTS (SELECT 1 FROM {others} WHERE {condition})"),
        }
    }

    fn updated(&self, values: &[NewValues], columns: &[String]) -> Result<String> {
        let names = self.names(columns);
        let items = self.items(values, columns, &names)?;
        let from = self.with_new(values, &names);
        Ok(format!("SELECT {items} FROM {from}"))
    }

    /// Names for what stands beside the table and its columns.
    fn names(&self, columns: &[String]) -> FreeNames {
        FreeNames::beside(columns.iter().chain([&self.alias.value]))
    }

    /// The columns of the table after the change.
    fn items(&self, values: &[NewValues], columns: &[String], names: &FreeNames) -> Result<String> {
        let ChangedRows { alias, others, .. } = self;
        let (found, is_hit) = (names.quoted(FOUND), names.quoted(HIT));
        let mut changed = vec![None; columns.len()];
        for (index, new) in values.iter().enumerate() {
            let name = quoted(&names.new_value(index));
            let all = match (&new.assigned, others) {
                (Assigned::Value(value), None) => format!("({value})"),
                (Assigned::Row(_), None) => format!("{alias}.{name}"),
                (_, Some(_)) => format!("{found}.{name}"),
            };
            for (place, column) in new.columns.iter().enumerate() {
                changed[place_of(column, columns)?] = Some(new.for_column(place, &all));
            }
        }
        let items = columns.iter().zip(changed).map(|(column, new)| {
            let column = quoted(column);
            match new {
                None => format!("{alias}.{column}"),
                Some(new) => {
                    format!("CASE WHEN {is_hit} THEN {new} ELSE {alias}.{column} END AS {column}")
                }
            }
        });
        Ok(items.collect::<Vec<_>>().join(", "))
    }

    /// The rows of the table, and beside each whether it is changed and what is assigned then.
    fn with_new(&self, values: &[NewValues], names: &FreeNames) -> String {
        let ChangedRows {
            table,
            alias,
            others,
            condition,
            ..
        } = self;
        let (found, is_hit) = (names.quoted(FOUND), names.quoted(HIT));
        let values =
            (values.iter().enumerate()).map(|(index, new)| (quoted(&names.new_value(index)), new));
        let Some(others) = others else {
            let hits = format!(
                "(SELECT *, ({condition}) IS TRUE AS {is_hit} FROM {table} AS {alias}) AS {alias}"
            );
            let rows = values.filter(|(_, new)| matches!(new.assigned, Assigned::Row(_)));
            let rows = rows.map(|(name, new)| {
                let value = new.value();
                format!(", CASE WHEN {is_hit} THEN {value} END AS {name}")
            });
            let rows: String = rows.collect();
            return match rows.is_empty() {
                true => hits,
                false => format!("(SELECT *{rows} FROM {hits}) AS {alias}"),
            };
        };
        let new = values.map(|(name, new)| format!("{} AS {name}, ", new.value()));
        let new: String = new.collect();
        format!(
            "{table} AS {alias} LEFT JOIN LATERAL (SELECT {new}true AS {is_hit} FROM {others} WHERE {condition} LIMIT 1) AS {found} ON true"
        )
    }
}

/// The place of a column that is assigned to.
pub(crate) fn place_of(name: &Ident, columns: &[String]) -> Result<usize> {
    let same = |column: &String| column.eq_ignore_ascii_case(&name.value);
    let exact = columns.iter().position(|column| *column == name.value);
    let place = exact.or_else(|| columns.iter().position(same));
    place.ok_or_else(|| Error::UnknownColumn {
        name: name.value.clone(),
        nearest: nearest_names(&name.value, columns.iter().map(String::as_str)),
        position: None,
    })
}
