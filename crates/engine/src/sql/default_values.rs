//! `INSERT INTO t VALUES (1, DEFAULT)`: the column is left out of the list, as it is where it has its default; `row(1, 'x')` for
//! a column of structs.
//!
//! In: INSERT of VALUES. Out: the same without the columns that are DEFAULT in each row, and with the names of fields.
//! Invariant: DEFAULT in some rows alone is an error that says how it is written.
//! Not here: what the default of a column is, which the table knows; [`written`] says it in SQL.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::sql::sqlparser::ast::{
    Expr, Insert, SetExpr, Statement as SqlStatement, TableObject,
};

use crate::error::{Error, Result};
use crate::sql::ast::{call, object, parse_query, quoted, text, written_row};
use crate::sql::expand::Scope;

pub(super) fn expand(statement: &mut SqlStatement, scope: &Scope<'_>) -> Result<()> {
    let SqlStatement::Insert(insert) = statement else {
        return Ok(());
    };
    if insert.source.is_none() && insert.assignments.is_empty() {
        return all_defaults(insert, scope);
    }
    name_fields(insert, scope)?;
    let Some(places) = defaults(insert)? else {
        return Ok(());
    };
    if insert.columns.is_empty()
        && let TableObject::TableName(name) = &insert.table
    {
        let columns = scope.columns(*parse_query(&format!("SELECT * FROM {name}"))?)?;
        let columns = columns.iter().map(|column| object(quoted(column.name())));
        insert.columns = columns.collect();
    }
    if let Some(source) = &mut insert.source
        && let SetExpr::Values(values) = source.body.as_mut()
    {
        for row in &mut values.rows {
            keep(&mut row.content, &places);
        }
    }
    keep(&mut insert.columns, &places);
    Ok(())
}

/// A row for a column of structs has the column's fields in their order.
fn name_fields(insert: &mut Insert, scope: &Scope<'_>) -> Result<()> {
    let TableObject::TableName(name) = &insert.table else {
        return Ok(());
    };
    let Some(source) = &mut insert.source else {
        return Ok(());
    };
    let SetExpr::Values(values) = source.body.as_mut() else {
        return Ok(());
    };
    let cells = || values.rows.iter().flat_map(|row| &row.content);
    if !cells().any(|cell| written_row(cell).is_some()) {
        return Ok(());
    }
    let mut columns = scope.columns(*parse_query(&format!("SELECT * FROM {name}"))?)?;
    if !insert.columns.is_empty() {
        let named = insert.columns.iter().filter_map(|name| {
            let name = name.0.last()?.as_ident()?;
            let column = columns.iter().find(|column| column.has_name(&name.value));
            column.cloned()
        });
        columns = named.collect();
    }
    for row in &mut values.rows {
        for (cell, column) in row.content.iter_mut().zip(&columns) {
            if let DataType::Struct(fields) = column.data_type()
                && let Some(values) = written_row(cell)
                && values.len() == fields.len()
            {
                let named = fields.iter().zip(values);
                let named = named.flat_map(|(field, value)| [text(field.name()), value.clone()]);
                *cell = call("named_struct", named.collect());
            }
        }
    }
    Ok(())
}

/// `INSERT INTO t DEFAULT VALUES` names a column without a default, which is NULL.
fn all_defaults(insert: &mut Insert, scope: &Scope<'_>) -> Result<()> {
    let TableObject::TableName(name) = &insert.table else {
        return Ok(());
    };
    let table = *parse_query(&format!("SELECT * FROM {name}"))?;
    let columns = scope.columns(table.clone())?;
    let defaults = scope.defaults(table)?;
    let has_none = |place: &usize| defaults.get(*place).is_none_or(Option::is_none);
    let Some(place) = (0..columns.len()).find(has_none) else {
        return Err(Error::Unsupported {
            message: "DEFAULT VALUES for a table whose columns all have defaults; write VALUES with one of them"
                .to_string(),
        });
    };
    insert.columns = vec![object(quoted(columns[place].name()))];
    insert.source = Some(parse_query("VALUES (NULL)")?);
    Ok(())
}

/// Leaves out what stands at these places.
fn keep<T>(items: &mut Vec<T>, left_out: &[usize]) {
    let mut place = 0;
    items.retain(|_| {
        place += 1;
        !left_out.contains(&(place - 1))
    });
}

/// The places at which each row says DEFAULT, if any does.
fn defaults(insert: &Insert) -> Result<Option<Vec<usize>>> {
    let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|source| source.body.as_ref())
    else {
        return Ok(None);
    };
    let is_default = |expr: &Expr| match expr {
        Expr::Identifier(name) => {
            name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT")
        }
        _ => false,
    };
    let mut rows = values.rows.iter().map(|row| {
        let places = row.content.iter().enumerate();
        let defaults = places.filter(|(_, expr)| is_default(expr));
        defaults.map(|(place, _)| place).collect::<Vec<_>>()
    });
    let first = rows.next().unwrap_or_default();
    if rows.any(|places| places != first) {
        return Err(Error::Unsupported {
            message: "DEFAULT in some rows of VALUES and not in others; write an INSERT for each"
                .to_string(),
        });
    }
    Ok((!first.is_empty()).then_some(first))
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
                Transformed::yes(PlanExpr::Column(Column::from_name(string.to_string())))
            }
            None => Transformed::no(part),
        })
    })?;
    Ok(quoted.data.human_display().to_string())
}
