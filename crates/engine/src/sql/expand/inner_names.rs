//! Names that need the types or the columns of tables: of `unnest(l)`, and of the columns that `t AS a(x)` does not name.
//!
//! In: a SELECT, a table with fewer names than columns. Out: lists under their text, a struct as its fields; all names.
//! Invariant: an item that has a name keeps it. The query of ARRAY has one column.
//! Not here: names of all other items (headers.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Select, SelectItem, SetExpr, Subscript, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins,
};

use crate::error::{Error, Result};
use crate::sql::ast::{function_name, parse_query, plain_arguments, quoted, text, written_struct};
use crate::sql::expand::{Column, Scope};
use crate::sql::naming::headers::text_of;
use crate::sql::short_forms::accessed;
use crate::sql::short_forms::array_subqueries::ITEMS;

/// Names the lists that a SELECT unnests without an alias; of a struct it takes the fields.
pub(super) fn name_unnested(select: &mut Select, scope: &Scope<'_>) {
    let items = std::mem::take(&mut select.projection).into_iter();
    let items = items.flat_map(|item| match unnested(&item) {
        Some(value) => {
            named_parts(&item, &value, &select.from, scope).unwrap_or_else(|| vec![item])
        }
        None => vec![item],
    });
    select.projection = items.collect();
}

/// What an item without a name unnests.
fn unnested(item: &SelectItem) -> Option<Expr> {
    let SelectItem::UnnamedExpr(Expr::Function(function)) = item else {
        return None;
    };
    match plain_arguments(function)?.as_slice() {
        [value] if function_name(function).as_deref() == Some("unnest") => Some((*value).clone()),
        _ => None,
    }
}

fn named_parts(
    item: &SelectItem,
    value: &Expr,
    from: &[TableWithJoins],
    scope: &Scope<'_>,
) -> Option<Vec<SelectItem>> {
    let SelectItem::UnnamedExpr(expr) = item else {
        return None;
    };
    let mut query = parse_query("SELECT 1").ok()?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(value.clone())];
        select.from = from.to_vec();
    }
    // What is wrong is told where it is planned, and a query that sees columns around it has none that can be asked for.
    let columns = scope.columns(*query).ok()?;
    let [column] = columns.as_slice() else {
        return None;
    };
    // Each field is asked for by itself: what is computed is computed once.
    let is_column = matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        || written_struct(value).is_some();
    match column.data_type() {
        DataType::Struct(fields) if is_column => {
            let fields = fields.iter().map(|field| SelectItem::ExprWithAlias {
                expr: accessed(
                    value.clone(),
                    vec![AccessExpr::Subscript(Subscript::Index {
                        index: text(field.name()),
                    })],
                ),
                alias: quoted(field.name()),
            });
            Some(fields.collect())
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            Some(vec![SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: quoted(&text_of(expr)),
            }])
        }
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
    let unnamed = columns.len().saturating_sub(alias.columns.len());
    if unnamed > 0 && alias.name.value == ITEMS {
        let count = unnamed + 1;
        return Err(Error::planning(format!(
            "the query of ARRAY has to have one column, not {count}"
        )));
    }
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
