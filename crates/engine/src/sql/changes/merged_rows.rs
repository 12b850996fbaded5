//! MERGE: rows of a table are updated, deleted and inserted as those of another say.
//!
//! In: a parsed statement. Out: the query of the other rows, and that of what is done over both, each as a table that only the
//! statement sees.
//! Invariant: of the clauses of its kind the first whose condition is true decides about a pair, and values of others are not
//! computed for it.
//! Not here: that a row is changed once at most, the table itself (session/merged_rows.rs).

use std::collections::HashSet;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, Merge, MergeAction, MergeClause, MergeClauseKind,
    MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, ObjectName, OutputClause,
    Statement as SqlStatement, TableFactor,
};

use crate::error::{Error, Result};
use crate::sql::ast::{column_name, function_name, parse_statement, plain_arguments, quoted};
use crate::sql::changes::changed_rows::place_of;
use crate::sql::changes::free_names::FreeNames;
use crate::sql::changes::inserted_rows::PLACE;
use crate::sql::changes::returning::Returning;
use crate::sql::tokens::change_forms::{
    BY_NAME, BY_POSITION, DEFAULT_VALUES, NOTHING, USING_COLUMNS, WHOLE_ROW,
};

/// The rows of the table, with their places.
pub(crate) const TARGET: &str = "hidden: target";
/// The rows that are merged into it, with theirs.
pub(crate) const SOURCE: &str = "hidden: source";
pub(crate) const SOURCE_PLACE: &str = "hidden: source place";
/// The column with the number of the clause that decides, from 1; 0 where none does.
pub(crate) const ACTION: &str = "hidden: action";

/// Such a statement.
pub(crate) struct MergedRows {
    pub table: ObjectName,
    alias: Ident,
    source: TableFactor,
    source_alias: Ident,
    on: MergeCondition,
    clauses: Vec<Clause>,
    pub returning: Option<Returning>,
}

/// Which rows belong together.
enum MergeCondition {
    On(Expr),
    /// Those that are equal in these columns.
    Using(Vec<Ident>),
}

struct Clause {
    kind: MergeClauseKind,
    predicate: Option<Expr>,
    action: Action,
}

enum Action {
    Nothing,
    Update(Vec<Assignment>),
    /// All columns become those of the source.
    UpdateRow(RowMatch),
    /// Columns, all where none is named, and their values.
    Insert(Vec<Ident>, Vec<Expr>),
    /// The columns of the source, by their places.
    InsertRow(Vec<Ident>),
    /// The columns of the source, by their names.
    InsertNamed,
    InsertDefaults,
    Delete,
}

/// Which column of the table has the value of a column of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowMatch {
    ByPosition,
    ByName,
}

/// What a clause does with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergedKind {
    Updated,
    Inserted,
    Deleted,
}

impl MergedKind {
    /// As RETURNING has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MergedKind::Updated => "UPDATE",
            MergedKind::Inserted => "INSERT",
            MergedKind::Deleted => "DELETE",
        }
    }
}

/// What a clause makes of a row: for each column of the table the number of its new value, if it has one.
pub(crate) struct MergedColumns {
    pub kind: MergedKind,
    pub values: Vec<Option<usize>>,
}

/// The statement, if it is one.
pub(crate) fn of(statement: &DataFusionStatement) -> Result<Option<MergedRows>> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(None);
    };
    let SqlStatement::Merge(merge) = statement.as_ref() else {
        return Ok(None);
    };
    let Merge {
        merge_token: _,
        optimizer_hints: _,
        into: _,
        table,
        source,
        on,
        clauses,
        output,
    } = merge;
    let (name, alias) = target(table)?;
    let returning = match output {
        None => None,
        Some(OutputClause::Returning { select_items, .. }) => {
            Some(Returning::new(&alias, select_items))
        }
        Some(OutputClause::Output { .. }) => {
            return Err(Error::unsupported_clause("OUTPUT; write RETURNING"));
        }
    };
    Ok(Some(MergedRows {
        table: name,
        alias,
        source_alias: name_of(source)?,
        source: source.clone(),
        on: condition(on),
        clauses: clauses.iter().map(clause).collect::<Result<_>>()?,
        returning,
    }))
}

/// The table and its name in the statement.
fn target(table: &TableFactor) -> Result<(ObjectName, Ident)> {
    let TableFactor::Table {
        name, args: None, ..
    } = table
    else {
        return Err(Error::unsupported_clause("MERGE INTO what is no table"));
    };
    Ok((name.clone(), name_of(table)?))
}

/// The name that columns of a table are qualified with.
fn name_of(table: &TableFactor) -> Result<Ident> {
    let named = match table {
        TableFactor::Table { name, alias, .. } => {
            let own = name.0.last().and_then(|part| part.as_ident());
            alias.as_ref().map(|alias| &alias.name).or(own)
        }
        TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref().map(|alias| &alias.name),
        _ => None,
    };
    named
        .cloned()
        .ok_or_else(|| Error::unsupported_clause("USING without a name; write USING (…) AS s"))
}

fn condition(on: &Expr) -> MergeCondition {
    if let Expr::Function(call) = on
        && function_name(call).as_deref() == Some(USING_COLUMNS)
        && let Some(columns) = plain_arguments(call)
    {
        let columns = columns.into_iter().filter_map(column_name);
        return MergeCondition::Using(columns.cloned().collect());
    }
    MergeCondition::On(on.clone())
}

fn clause(clause: &MergeClause) -> Result<Clause> {
    use MergeClauseKind::{Matched, NotMatched, NotMatchedBySource, NotMatchedByTarget};
    let MergeClause {
        when_token: _,
        clause_kind,
        predicate,
        action,
    } = clause;
    let action = match (action, clause_kind) {
        (MergeAction::Insert(insert), NotMatched | NotMatchedByTarget) => inserted(insert)?,
        (MergeAction::Update(update), Matched | NotMatchedBySource) => updated(update)?,
        (MergeAction::Delete { .. }, Matched | NotMatchedBySource) => Action::Delete,
        (action, kind) => {
            let action = action.to_string();
            let word = action.split(' ').next().unwrap_or_default();
            return Err(Error::unsupported_clause(format!("{word} of WHEN {kind}")));
        }
    };
    Ok(Clause {
        kind: *clause_kind,
        predicate: predicate.clone(),
        action,
    })
}

fn inserted(insert: &MergeInsertExpr) -> Result<Action> {
    let MergeInsertExpr {
        insert_token: _,
        columns,
        kind_token: _,
        kind,
        insert_predicate,
    } = insert;
    if insert_predicate.is_some() {
        return Err(Error::unsupported_clause(
            "WHERE of INSERT in MERGE; write WHEN NOT MATCHED AND …",
        ));
    }
    let columns = columns.iter();
    let columns = columns.filter_map(|name| name.0.last()?.as_ident().cloned());
    let columns: Vec<Ident> = columns.collect();
    let form = match columns.as_slice() {
        [only] if *kind == MergeInsertKind::Row => only.value.as_str(),
        _ => "",
    };
    match kind {
        MergeInsertKind::Row if form == NOTHING => Ok(Action::Nothing),
        MergeInsertKind::Row if form == BY_NAME => Ok(Action::InsertNamed),
        MergeInsertKind::Row if form == DEFAULT_VALUES => Ok(Action::InsertDefaults),
        MergeInsertKind::Row => Ok(Action::InsertRow(columns)),
        MergeInsertKind::Values(values) => match values.rows.as_slice() {
            [row] => Ok(Action::Insert(columns, row.content.clone())),
            _ => Err(Error::unsupported_clause("several rows of VALUES in MERGE")),
        },
    }
}

fn updated(update: &MergeUpdateExpr) -> Result<Action> {
    let MergeUpdateExpr {
        update_token: _,
        assignments,
        update_predicate,
        delete_predicate,
    } = update;
    if update_predicate.is_some() || delete_predicate.is_some() {
        return Err(Error::unsupported_clause(
            "WHERE of UPDATE in MERGE; write WHEN MATCHED AND …",
        ));
    }
    let [only] = assignments.as_slice() else {
        return Ok(Action::Update(assignments.clone()));
    };
    let form = match &only.target {
        AssignmentTarget::ColumnName(name) => name.0.last().and_then(|part| part.as_ident()),
        AssignmentTarget::Tuple(_) => None,
    };
    let value = column_name(&only.value).map(|value| value.value.as_str());
    Ok(match form.map(|form| form.value.as_str()) {
        Some(NOTHING) => Action::Nothing,
        Some(WHOLE_ROW) if value == Some(BY_NAME) => Action::UpdateRow(RowMatch::ByName),
        Some(WHOLE_ROW) if value == Some(BY_POSITION) => Action::UpdateRow(RowMatch::ByPosition),
        _ => Action::Update(assignments.clone()),
    })
}

impl MergedRows {
    /// The query of the rows that are merged.
    pub(crate) fn source(&self) -> Result<DataFusionStatement> {
        parse_statement(&format!("SELECT * FROM {}", self.source))
    }

    /// The query over [`TARGET`] and [`SOURCE`]: the table's columns, the place, the action and new values. And what each clause
    /// makes of them.
    pub(crate) fn actions(
        &self,
        columns: &[String],
        source: &[String],
        names: &FreeNames,
    ) -> Result<(DataFusionStatement, Vec<MergedColumns>)> {
        let MergedRows {
            alias,
            source_alias,
            ..
        } = self;
        let conditions: Vec<String> = (self.clauses.iter())
            .map(|clause| self.condition(clause, names))
            .collect();
        let mut items: Vec<String> = columns
            .iter()
            .map(|column| format!("{alias}.{}", quoted(column)))
            .collect();
        items.push(format!("{alias}.{}", names.quoted(PLACE)));
        // A row of DO NOTHING is one about which no clause decides.
        let numbers = (1..)
            .zip(&self.clauses)
            .map(|(number, clause)| match clause.action {
                Action::Nothing => "0".to_string(),
                _ => number.to_string(),
            });
        let numbers: Vec<String> = numbers.collect();
        items.push(format!(
            "{} AS {}",
            first_true(&conditions, &numbers, "0"),
            names.quoted(ACTION)
        ));
        let (mut made, mut count) = (Vec::new(), 0);
        for (index, clause) in self.clauses.iter().enumerate() {
            let (kind, values) = self.values(clause, columns, source)?;
            let mut of_columns = vec![None; columns.len()];
            for (column, value) in values {
                let mut results = vec!["NULL".to_string(); index];
                results.push(value);
                let value = first_true(&conditions[..=index], &results, "NULL");
                items.push(format!("{value} AS {}", quoted(&names.new_value(count))));
                of_columns[column] = Some(count);
                count += 1;
            }
            made.push(MergedColumns {
                kind,
                values: of_columns,
            });
        }
        let text = format!(
            "SELECT {} FROM {} AS {alias} FULL JOIN {} AS {source_alias} {}",
            items.join(", "),
            quoted(TARGET),
            quoted(SOURCE),
            self.on.text()
        );
        Ok((parse_statement(&text)?, made))
    }

    /// When a clause is one that decides.
    fn condition(&self, clause: &Clause, names: &FreeNames) -> String {
        use MergeClauseKind::{Matched, NotMatched, NotMatchedBySource, NotMatchedByTarget};
        let place = format!("{}.{}", self.alias, names.quoted(PLACE));
        let other = format!("{}.{}", self.source_alias, names.quoted(SOURCE_PLACE));
        let kind = match clause.kind {
            Matched => format!("{place} IS NOT NULL AND {other} IS NOT NULL"),
            NotMatched | NotMatchedByTarget => format!("{place} IS NULL"),
            NotMatchedBySource => format!("{other} IS NULL"),
        };
        match &clause.predicate {
            None => kind,
            Some(predicate) => format!("{kind} AND ({predicate})"),
        }
    }

    /// Columns that a clause gives new values, by their places.
    fn values(
        &self,
        clause: &Clause,
        columns: &[String],
        source: &[String],
    ) -> Result<(MergedKind, Vec<(usize, String)>)> {
        let (kind, values) = match &clause.action {
            Action::Delete => (MergedKind::Deleted, Vec::new()),
            Action::Nothing => (MergedKind::Updated, Vec::new()),
            Action::Update(assignments) => {
                let values = assignments.iter().map(|one| assigned(one, columns));
                (MergedKind::Updated, values.collect::<Result<_>>()?)
            }
            Action::UpdateRow(RowMatch::ByName) => {
                (MergedKind::Updated, self.by_name(columns, source)?)
            }
            Action::UpdateRow(RowMatch::ByPosition) => {
                let values = self.of_source(source);
                (
                    MergedKind::Updated,
                    by_position("UPDATE", &[], values, columns)?,
                )
            }
            Action::Insert(named, values) => {
                let values = values.iter().map(ToString::to_string).collect();
                (
                    MergedKind::Inserted,
                    by_position("INSERT", named, values, columns)?,
                )
            }
            Action::InsertRow(named) => {
                let values = self.of_source(source);
                (
                    MergedKind::Inserted,
                    by_position("INSERT", named, values, columns)?,
                )
            }
            Action::InsertNamed => (MergedKind::Inserted, self.by_name(columns, source)?),
            Action::InsertDefaults => (MergedKind::Inserted, Vec::new()),
        };
        check_once(values.iter().map(|(place, _)| *place), columns)?;
        // A column of which DEFAULT is written is one that is left out.
        let is_given =
            |value: &str| kind != MergedKind::Inserted || !value.eq_ignore_ascii_case("DEFAULT");
        let values = values.into_iter().filter(|(_, value)| is_given(value));
        Ok((kind, values.collect()))
    }

    /// The columns of the source.
    fn of_source(&self, source: &[String]) -> Vec<String> {
        let own = source.iter();
        own.map(|column| format!("{}.{}", self.source_alias, quoted(column)))
            .collect()
    }

    /// The columns of the source, each for the one of its name.
    fn by_name(&self, columns: &[String], source: &[String]) -> Result<Vec<(usize, String)>> {
        let places = source
            .iter()
            .map(|column| place_of(&Ident::new(column), columns));
        let values = places.zip(self.of_source(source));
        values.map(|(place, value)| Ok((place?, value))).collect()
    }
}

impl MergeCondition {
    fn text(&self) -> String {
        match self {
            MergeCondition::On(on) => format!("ON {on}"),
            MergeCondition::Using(columns) => {
                let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
                format!("USING ({})", columns.join(", "))
            }
        }
    }
}

/// Values for these columns, for all where none is named.
fn by_position(
    action: &str,
    named: &[Ident],
    values: Vec<String>,
    columns: &[String],
) -> Result<Vec<(usize, String)>> {
    let places: Vec<usize> = match named {
        [] => (0..columns.len()).collect(),
        named => {
            let places = named.iter().map(|name| place_of(name, columns));
            places.collect::<Result<_>>()?
        }
    };
    if places.len() != values.len() {
        return Err(Error::Planning {
            message: format!(
                "{action} in MERGE gives {} values to {} columns; write one for each",
                values.len(),
                places.len()
            ),
            position: None,
        });
    }
    Ok(places.into_iter().zip(values).collect())
}

fn assigned(assignment: &Assignment, columns: &[String]) -> Result<(usize, String)> {
    let Assignment { target, value } = assignment;
    let name = match target {
        AssignmentTarget::ColumnName(name) => name.0.last().and_then(|part| part.as_ident()),
        AssignmentTarget::Tuple(_) => None,
    };
    let message = "a list of columns in SET of MERGE; set one column after the other";
    let name = name.ok_or_else(|| Error::unsupported_clause(message))?;
    Ok((place_of(name, columns)?, value.to_string()))
}

/// An error of a column that one clause sets twice.
fn check_once(places: impl Iterator<Item = usize>, columns: &[String]) -> Result<()> {
    let mut known = HashSet::new();
    for place in places {
        if !known.insert(place) {
            return Err(Error::planning(format!(
                "column '{}' is set twice",
                columns[place]
            )));
        }
    }
    Ok(())
}

/// The result of the first condition that is true.
fn first_true(conditions: &[String], results: &[String], otherwise: &str) -> String {
    let cases = conditions.iter().zip(results);
    let cases = cases.map(|(condition, result)| format!(" WHEN {condition} THEN ({result})"));
    let cases: String = cases.collect();
    match cases.is_empty() {
        true => otherwise.to_string(),
        false => format!("CASE{cases} ELSE {otherwise} END"),
    }
}
