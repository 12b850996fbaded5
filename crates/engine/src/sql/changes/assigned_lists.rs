//! `UPDATE t SET (a, b) = (1, 2)` as assignments of one column each.
//!
//! In: a parsed UPDATE, MERGE, or INSERT with DO UPDATE. Out: the same, in which each column has a value of its own; a list that is one row of a query stays.
//! Invariant: a list has as many values as columns, and no column is set twice.
//! Not here: queries within UPDATE, which are read once for all columns of a list (changed_rows.rs).

use std::collections::HashSet;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Insert, MergeAction, ObjectName, OnConflict,
    OnConflictAction, OnInsert, Query, SelectItem, SetExpr, Statement as SqlStatement,
};

use crate::error::{Error, Result};
use crate::sql::ast::{function_name, plain_arguments};

/// Sets the columns of lists one by one.
pub(crate) fn set_one_by_one(statement: &mut DataFusionStatement) -> Result<()> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(());
    };
    match statement.as_mut() {
        SqlStatement::Update(update) => one_by_one(&mut update.assignments),
        SqlStatement::Insert(Insert {
            on:
                Some(OnInsert::OnConflict(OnConflict {
                    action: OnConflictAction::DoUpdate(update),
                    ..
                })),
            ..
        }) => one_by_one(&mut update.assignments),
        SqlStatement::Merge(merge) => {
            let actions = merge.clauses.iter_mut().map(|clause| &mut clause.action);
            for action in actions {
                if let MergeAction::Update(update) = action {
                    one_by_one(&mut update.assignments)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn one_by_one(assigned: &mut Vec<Assignment>) -> Result<()> {
    let mut assignments = Vec::new();
    for assignment in std::mem::take(assigned) {
        let Assignment { target, value } = assignment;
        match target {
            AssignmentTarget::Tuple(columns) if let Expr::Subquery(query) = &value => {
                check_columns(query, columns.len())?;
                let target = AssignmentTarget::Tuple(columns);
                assignments.push(Assignment { target, value });
            }
            AssignmentTarget::Tuple(columns) => {
                let values = values_of(&value, columns.len())?;
                assignments.extend(columns.into_iter().zip(values).map(one));
            }
            target => assignments.push(Assignment { target, value }),
        }
    }
    check_once(&assignments)?;
    *assigned = assignments;
    Ok(())
}

/// An error of a column that is set twice.
fn check_once(assignments: &[Assignment]) -> Result<()> {
    let mut known = HashSet::new();
    let names = assignments
        .iter()
        .flat_map(|assignment| match &assignment.target {
            AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
            AssignmentTarget::Tuple(names) => names.as_slice(),
        });
    for name in names.filter_map(|name| name.0.last()?.as_ident()) {
        let folded = match name.quote_style {
            Some(_) => name.value.clone(),
            None => name.value.to_lowercase(),
        };
        if !known.insert(folded) {
            return Err(Error::planning(format!(
                "column '{}' is set twice",
                name.value
            )));
        }
    }
    Ok(())
}

fn one((column, value): (ObjectName, Expr)) -> Assignment {
    let target = AssignmentTarget::ColumnName(column);
    Assignment { target, value }
}

/// The values of so many columns.
fn values_of(value: &Expr, columns: usize) -> Result<Vec<Expr>> {
    let values = match value {
        Expr::Tuple(values) => values.clone(),
        Expr::Nested(value) => vec![value.as_ref().clone()],
        Expr::Function(call) if function_name(call).as_deref() == Some("row") => {
            let values = plain_arguments(call).unwrap_or_default();
            values.into_iter().cloned().collect()
        }
        value => vec![value.clone()],
    };
    match values.len() == columns {
        true => Ok(values),
        false => Err(other_number(columns, values.len())),
    }
}

/// Whether a query has so many columns, as far as its text says.
fn check_columns(query: &Query, columns: usize) -> Result<()> {
    if let SetExpr::Select(select) = query.body.as_ref() {
        let is_star = |item: &SelectItem| {
            matches!(
                item,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
            )
        };
        let items = &select.projection;
        if items.len() != columns && !items.iter().any(is_star) {
            return Err(other_number(columns, items.len()));
        }
    }
    Ok(())
}

fn other_number(columns: usize, values: usize) -> Error {
    Error::planning(format!(
        "SET gives {values} values to {columns} columns; write one for each"
    ))
}
