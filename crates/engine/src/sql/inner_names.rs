//! Names of what an inner query yields, as its headers are outside: `SELECT "count(1)" FROM (SELECT count(1) FROM t)`, and the
//! columns that `t AS a(x)` does not name.
//!
//! In: a query in FROM or in WITH, a table with fewer names than columns. Out: items with the names that headers have; all names.
//! Invariant: an item that has a name keeps it, and so does one whose name another column would then have as well.
//! Not here: headers of the result (headers.rs).

use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins,
};

use crate::error::Result;
use crate::sql::ast::quoted;
use crate::sql::expand::{Column, Scope};
use crate::sql::headers::plain_literals;

/// Names items of the query whose names DataFusion writes with types of literals.
pub(super) fn name_items(query: &mut Query, scope: &Scope<'_>) {
    let has_literals = first_select(&mut query.body)
        .is_some_and(|select| select.projection.iter().any(|item| unnamed(item).is_some()));
    if !has_literals {
        return;
    }
    // A query that sees columns around it has none that can be asked for.
    let Ok(columns) = scope.columns(query.clone()) else {
        return;
    };
    let plain: Vec<String> = columns
        .iter()
        .map(|column| plain_literals(column.name()))
        .collect();
    let Some(select) = first_select(&mut query.body) else {
        return;
    };
    if select.projection.len() != columns.len() {
        return;
    }
    for (place, item) in select.projection.iter_mut().enumerate() {
        let name = &plain[place];
        let is_one = plain.iter().filter(|other| *other == name).count() == 1;
        if let Some(expr) = unnamed(item)
            && is_one
            && name != columns[place].name()
        {
            *item = SelectItem::ExprWithAlias {
                expr,
                alias: quoted(name),
            };
        }
    }
}

fn first_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&mut query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// An expression of its own name, which is no column.
fn unnamed(item: &SelectItem) -> Option<Expr> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => None,
        SelectItem::UnnamedExpr(expr) => Some(expr.clone()),
        _ => None,
    }
}

/// `t AS a(x)` names the first column; the others keep their names.
pub(super) fn name_rest(factor: &mut TableFactor, scope: &Scope<'_>) -> Result<()> {
    let unnamed = factor.clone();
    let Some(alias) = named(factor) else {
        return Ok(());
    };
    let mut unnamed = unnamed;
    if let Some(alias) = named(&mut unnamed) {
        alias.columns.clear();
    }
    let from = TableWithJoins {
        relation: unnamed,
        joins: Vec::new(),
    };
    // What is wrong with the table is told where it is planned.
    let Ok(columns) = scope.columns_from(&[from]) else {
        return Ok(());
    };
    let rest = columns.iter().skip(alias.columns.len()).map(Column::name);
    let rest = rest.map(|name| TableAliasColumnDef {
        name: quoted(name),
        data_type: None,
    });
    alias.columns.extend(rest.collect::<Vec<_>>());
    Ok(())
}

/// The alias of a table or query that names columns; rows of VALUES are all named, mostly.
fn named(factor: &mut TableFactor) -> Option<&mut TableAlias> {
    let alias = match factor {
        TableFactor::Table {
            args: None, alias, ..
        } => alias,
        TableFactor::Derived {
            subquery, alias, ..
        } if !matches!(subquery.body.as_ref(), SetExpr::Values(_)) => alias,
        _ => return None,
    };
    alias.as_mut().filter(|alias| !alias.columns.is_empty())
}
