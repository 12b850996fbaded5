//! `ARRAY(SELECT x FROM t ORDER BY k)`: the rows of a query as a list.
//!
//! In: the call as it is parsed. Out: a subquery of one list: its rows are aggregated in the order of the query.
//! Invariant: NULLs are items, and the list of no rows is empty.
//! Not here: how many columns the query has (inner_names.rs).

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, OrderBy, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, Value,
};

use crate::error::Result;
use crate::sql::ast::{call, function_name, parse_expr, quoted};

/// The expression that a call stands for, if it is ARRAY of a query.
pub(in crate::sql) fn longer(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::Subquery(query) = &function.args else {
        return Ok(None);
    };
    if function_name(function).as_deref() != Some("array") {
        return Ok(None);
    }
    let mut query = query.as_ref().clone();
    let keys = keys_of(&query);
    let mut columns = vec![ITEM.to_string()];
    let mut order = Vec::new();
    for key in keys {
        let name = match beside_item(&mut query, &key.expr) {
            false => ITEM.to_string(),
            true => {
                let name = format!("key {}", columns.len());
                columns.push(name.clone());
                name
            }
        };
        let key = OrderByExpr {
            expr: Expr::Identifier(quoted(&name)),
            ..key
        };
        order.push(key.to_string());
    }
    let order = match order.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", order.join(", ")),
    };
    let columns: Vec<String> = columns
        .iter()
        .map(|name| quoted(name).to_string())
        .collect();
    let list = parse_expr(&format!(
        "(SELECT array_agg(\"{ITEM}\"{order}) FROM ({query}) AS \"{ITEMS}\"({}))",
        columns.join(", ")
    ))?;
    Ok(Some(call("coalesce", vec![list, parse_expr("[]")?])))
}

/// The name of the query, all of whose columns are named: the item, then keys that are no column of it.
pub(in crate::sql) const ITEMS: &str = "items of array";

/// The name of the query's column.
const ITEM: &str = "item";

/// The keys that a query is ordered by.
fn keys_of(query: &Query) -> Vec<OrderByExpr> {
    match &query.order_by {
        Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }) => keys.clone(),
        Some(OrderBy {
            kind: OrderByKind::All(options),
            ..
        }) => vec![OrderByExpr {
            expr: Expr::Identifier(quoted(ITEM)),
            options: *options,
            with_fill: None,
        }],
        None => Vec::new(),
    }
}

/// Puts a key beside the item; false where the key is the item itself.
fn beside_item(query: &mut Query, key: &Expr) -> bool {
    match select_of(query) {
        Some(select) if !is_item(key, &select.projection) => {
            select.projection.push(SelectItem::UnnamedExpr(key.clone()));
            true
        }
        _ => false,
    }
}

/// A SELECT whose keys may be other expressions than its columns.
fn select_of(query: &mut Query) -> Option<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) if select.distinct.is_none() => Some(select),
        _ => None,
    }
}

fn is_item(key: &Expr, projection: &[SelectItem]) -> bool {
    if let Expr::Value(value) = key
        && matches!(value.value, Value::Number(..))
    {
        return true;
    }
    match projection.first() {
        Some(SelectItem::UnnamedExpr(item)) => item == key,
        Some(SelectItem::ExprWithAlias { expr, alias }) => {
            let is_alias = |name: &str| name.eq_ignore_ascii_case(&alias.value);
            expr == key || matches!(key, Expr::Identifier(name) if is_alias(&name.value))
        }
        _ => false,
    }
}
