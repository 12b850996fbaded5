//! DEFAULT in INSERT and UPDATE as what the column has by default, and `row(1, 'x')` for a column of structs.
//!
//! In: INSERT of VALUES or of DEFAULT VALUES, UPDATE, MERGE, DO UPDATE. Out: the same without the word, and with the names of fields.
//! Invariant: a column without a default has NULL.
//! Not here: what the default of a column is, which the table knows; [`written`] says it in SQL.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column as PlanColumn;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, Insert, Merge, MergeAction, ObjectName, OnConflict,
    OnConflictAction, OnInsert, SetExpr, Statement as SqlStatement, TableFactor, TableObject,
    Update,
};

use crate::error::Result;
use crate::sql::ast::{call, parse_expr, parse_query, text, written_row};
use crate::sql::expand::{Column, Scope, TableFacts};

pub(in crate::sql) fn expand(statement: &mut SqlStatement, scope: &Scope<'_>) -> Result<()> {
    match statement {
        SqlStatement::Insert(insert) => in_insert(insert, scope),
        SqlStatement::Update(update) => in_update(update, scope),
        _ => Ok(()),
    }
}

/// The columns of a table, each with what it has by default.
fn columns(table: &ObjectName, scope: &Scope<'_>) -> Result<Vec<(Column, Expr)>> {
    let query = *parse_query(&format!("SELECT * FROM {table}"))?;
    let (columns, TableFacts { mut defaults, .. }) = scope.described(query)?;
    defaults.resize(columns.len(), None);
    let defaults = defaults
        .iter()
        .map(|default| parse_expr(default.as_deref().unwrap_or("NULL")));
    let defaults = defaults.collect::<Result<Vec<_>>>()?;
    Ok(columns.into_iter().zip(defaults).collect())
}

fn named<'a>(name: &Ident, columns: &'a [(Column, Expr)]) -> Option<&'a (Column, Expr)> {
    columns
        .iter()
        .find(|(column, _)| column.has_name(&name.value))
}

fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT"))
}

fn in_update(update: &mut Update, scope: &Scope<'_>) -> Result<()> {
    match &update.table.relation {
        TableFactor::Table { name, .. } => assign(&mut update.assignments, name, scope),
        _ => Ok(()),
    }
}

/// DEFAULT in SET of statements that are not planned as they stand: INSERT with DO UPDATE, MERGE, UPDATE that reads other rows.
pub(in crate::sql) fn expand_assigned(
    statement: &mut SqlStatement,
    scope: &Scope<'_>,
) -> Result<()> {
    match statement {
        SqlStatement::Update(update) => in_update(update, scope),
        SqlStatement::Insert(Insert {
            table: TableObject::TableName(table),
            on:
                Some(OnInsert::OnConflict(OnConflict {
                    action: OnConflictAction::DoUpdate(update),
                    ..
                })),
            ..
        }) => assign(&mut update.assignments, table, scope),
        SqlStatement::Merge(Merge {
            table: TableFactor::Table { name, .. },
            clauses,
            ..
        }) => clauses
            .iter_mut()
            .try_for_each(|clause| match &mut clause.action {
                MergeAction::Update(update) => assign(&mut update.assignments, name, scope),
                _ => Ok(()),
            }),
        _ => Ok(()),
    }
}

/// Sets columns of a table to what they have by default, where that is written.
fn assign(assignments: &mut [Assignment], table: &ObjectName, scope: &Scope<'_>) -> Result<()> {
    if !assignments.iter().any(|one| is_default(&one.value)) {
        return Ok(());
    }
    let columns = columns(table, scope)?;
    for Assignment { target, value } in assignments {
        if let AssignmentTarget::ColumnName(name) = target
            && let Some(name) = name.0.last().and_then(|part| part.as_ident())
            && let Some((_, default)) = named(name, &columns)
            && is_default(value)
        {
            *value = default.clone();
        }
    }
    Ok(())
}

fn in_insert(insert: &mut Insert, scope: &Scope<'_>) -> Result<()> {
    let TableObject::TableName(name) = &insert.table else {
        return Ok(());
    };
    let Some(source) = &mut insert.source else {
        if insert.assignments.is_empty() {
            let columns = columns(name, scope)?;
            let defaults = columns.iter().map(|(_, default)| default.to_string());
            let defaults = defaults.collect::<Vec<_>>().join(", ");
            insert.source = Some(parse_query(&format!("VALUES ({defaults})"))?);
        }
        return Ok(());
    };
    let SetExpr::Values(values) = source.body.as_mut() else {
        return Ok(());
    };
    let mut cells = values.rows.iter().flat_map(|row| &row.content);
    if !cells.any(|cell| is_default(cell) || written_row(cell).is_some()) {
        return Ok(());
    }
    let mut columns = columns(name, scope)?;
    if !insert.columns.is_empty() {
        let named = insert.columns.iter().filter_map(|name| {
            let name = name.0.last()?.as_ident()?;
            named(name, &columns).cloned()
        });
        columns = named.collect();
    }
    for row in &mut values.rows {
        for (cell, (column, default)) in row.content.iter_mut().zip(&columns) {
            if is_default(cell) {
                *cell = default.clone();
            }
            name_fields(cell, column);
        }
    }
    Ok(())
}

/// A row for a column of structs has the column's fields in their order.
fn name_fields(cell: &mut Expr, column: &Column) {
    if let DataType::Struct(fields) = column.data_type()
        && let Some(values) = written_row(cell)
        && values.len() == fields.len()
    {
        let named = fields.iter().zip(values);
        let named = named.flat_map(|(field, value)| [text(field.name()), value.clone()]);
        *cell = call("named_struct", named.collect());
    }
}

/// What a column has by default, as SQL.
pub(crate) fn written(default: &PlanExpr) -> datafusion::error::Result<String> {
    // DataFusion writes strings without their quotes, and names as they are.
    let quoted = default.clone().transform_up(|part| {
        let string = match &part {
            PlanExpr::Literal(value, _) => value.try_as_str().flatten().map(text),
            _ => None,
        };
        Ok(match string {
            Some(string) => {
                Transformed::yes(PlanExpr::Column(PlanColumn::from_name(string.to_string())))
            }
            None => Transformed::no(part),
        })
    })?;
    Ok(quoted.data.human_display().to_string())
}
