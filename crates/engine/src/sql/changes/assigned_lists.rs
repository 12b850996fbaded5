//! `UPDATE t SET (a, b) = (1, 2)` as assignments of one column each.
//!
//! In: a parsed UPDATE. Out: the same, in which each column has a value of its own; of a query it is the column of that place.
//! Invariant: a list has as many values as columns.
//! Not here: queries within UPDATE (changed_rows.rs).

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, ObjectName, Query, SelectItem, SetExpr,
    Statement as SqlStatement, Value, visit_expressions,
};

use crate::error::{Error, Result};
use crate::sql::ast::{function_name, parse_expr, plain_arguments};

/// Sets the columns of lists one by one.
pub(crate) fn set_one_by_one(statement: &mut DataFusionStatement) -> Result<()> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(());
    };
    let SqlStatement::Update(update) = statement.as_mut() else {
        return Ok(());
    };
    let mut assignments = Vec::new();
    for assignment in std::mem::take(&mut update.assignments) {
        let Assignment { target, value } = assignment;
        match target {
            AssignmentTarget::Tuple(columns) => {
                let values = values_of(&value, columns.len())?;
                assignments.extend(columns.into_iter().zip(values).map(one));
            }
            target => assignments.push(Assignment { target, value }),
        }
    }
    update.assignments = assignments;
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
        Expr::Subquery(query) => return columns_of(query, columns),
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

/// Each column of a query, which gives one row.
fn columns_of(query: &Query, columns: usize) -> Result<Vec<Expr>> {
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
    if has_question_mark(query) {
        return Err(Error::UnsupportedClause {
            message: "? in the query of a list of columns; write $1, $2 and so on".to_string(),
            position: None,
        });
    }
    let names: Vec<String> = (1..=columns)
        .map(|place| format!("value_{place}"))
        .collect();
    let values = names.iter().map(|name| {
        let list = names.join(", ");
        parse_expr(&format!(
            "(SELECT {name} FROM ({query}) AS assigned({list}))"
        ))
    });
    values.collect()
}

/// Whether a query has a parameter without a number: each copy of the query would count it anew.
fn has_question_mark(query: &Query) -> bool {
    let flow = visit_expressions(query, |expr: &Expr| match expr {
        Expr::Value(value) if matches!(&value.value, Value::Placeholder(mark) if mark == "?") => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    flow.is_break()
}

fn other_number(columns: usize, values: usize) -> Error {
    Error::Planning {
        message: format!("SET gives {values} values to {columns} columns; write one for each"),
        position: None,
    }
}
