//! DESCRIBE and SHOW TABLES: the columns of a table or query with SQL's names of types; the user's tables.
//!
//! In: the calls that query_forms.rs puts for them. Out: rows written out in a query.
//! Invariant: columns and tables are those that a query at the same place sees.
//! Not here: EXPLAIN.

use datafusion::sql::sqlparser::ast::{Query, SelectItem, SetExpr, TableFactor};

use crate::error::Result;
use crate::error::types::type_name;
use crate::sql::ast::{derived, parse_query, text};
use crate::sql::expand::{Column, Scope, arguments_of};
use crate::sql::query_forms::{DESCRIBE, TABLES};

pub(super) fn expand(factor: &TableFactor, scope: &Scope<'_>) -> Result<Option<TableFactor>> {
    if let Some(queries) = arguments_of(factor, DESCRIBE)
        && let [query] = queries.as_slice()
    {
        let columns = scope.columns((*query).clone())?;
        let described = is_table(query);
        let defaults = match described {
            Described::Table => scope.defaults((*query).clone())?,
            Described::Query => Vec::new(),
        };
        return rows_of_columns(&columns, described, &defaults).map(Some);
    }
    if arguments_of(factor, TABLES).is_some() {
        return rows_of_tables(&scope.catalog.tables()).map(Some);
    }
    Ok(None)
}

/// What is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Described {
    Table,
    Query,
}

/// Whether a query is all of one table, whose columns may be NOT NULL.
fn is_table(query: &Query) -> Described {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Described::Query;
    };
    let is_all = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
    match select.from.as_slice() {
        [table] if is_all && table.joins.is_empty() && select.selection.is_none() => {
            match &table.relation {
                TableFactor::Table { args: None, .. } => Described::Table,
                _ => Described::Query,
            }
        }
        _ => Described::Query,
    }
}

fn rows_of_columns(
    columns: &[Column],
    described: Described,
    defaults: &[Option<String>],
) -> Result<TableFactor> {
    let mut rows: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let null = match column.field.is_nullable() || described == Described::Query {
                true => "YES",
                false => "NO",
            };
            let none = "CAST(NULL AS VARCHAR)";
            let name = text(column.name());
            let data_type = text(&type_name(column.data_type()));
            let default = defaults.get(place).cloned().flatten();
            let default =
                default.map_or_else(|| none.to_string(), |default| text(&default).to_string());
            format!("({name}, {data_type}, '{null}', {none}, {default}, {none})")
        })
        .collect();
    let condition = if rows.is_empty() { " WHERE false" } else { "" };
    if rows.is_empty() {
        rows.push("('', '', '', '', '', '')".to_string());
    }
    let query = format!(
        "SELECT * FROM (VALUES {}) AS \"described\"(\"column_name\", \"column_type\", \"null\", \"key\", \"default\", \"extra\"){condition}",
        rows.join(", ")
    );
    Ok(derived(parse_query(&query)?, None))
}

fn rows_of_tables(names: &[String]) -> Result<TableFactor> {
    let rows: Vec<String> = names
        .iter()
        .map(|name| format!("({})", text(name)))
        .collect();
    let query = match rows.is_empty() {
        true => "SELECT CAST(NULL AS VARCHAR) AS \"name\" WHERE false".to_string(),
        false => format!(
            "SELECT * FROM (VALUES {}) AS \"tables\"(\"name\")",
            rows.join(", ")
        ),
    };
    Ok(derived(parse_query(&query)?, None))
}
