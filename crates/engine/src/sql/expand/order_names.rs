//! Names in ORDER BY: alone a name is the column of the result, within an expression it is the column of FROM, as SQL has it.
//! `SELECT k, sum(x) AS x FROM t GROUP BY k ORDER BY sum(x)`, `SELECT -x AS x FROM t ORDER BY x + 0`.
//!
//! In: a query, the columns of its FROM. Out: where an alias hides a column that ORDER BY means, the query
//! with other aliases, inside one that gives the names back.
//! Invariant: names and order of the columns stay.
//! Not here: aliases elsewhere (aliases.rs); names in GROUP BY and HAVING, in which DataFusion finds columns first.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, LimitClause, OrderByKind, Query, SelectItem, SetExpr, TableWithJoins,
};

use crate::error::{Error, Result};
use crate::sql::ast::{derived, item_name, parse_query, quoted, select_of};
use crate::sql::expand::Scope;
use crate::sql::expand::aliases::is_itself;
use crate::sql::expand::hidden;
use crate::sql::naming::headers::text_of;
use crate::sql::walk::{Walk, each};

/// Keys of a query with DISTINCT that are items, as the names of these: DataFusion looks for what is in them below the items.
pub(super) fn name_distinct(query: &mut Query) {
    let (Some(order_by), SetExpr::Select(select)) = (&mut query.order_by, query.body.as_ref())
    else {
        return;
    };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else {
        return;
    };
    if !matches!(select.distinct, Some(Distinct::Distinct)) {
        return;
    }
    for key in keys {
        let item = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if *expr == key.expr => Some(alias),
            _ => None,
        });
        if let Some(name) = item {
            key.expr = Expr::Identifier(name.clone());
        }
    }
}

/// Gives such aliases of the query other names; the names of all its columns, and what they are called meanwhile.
pub(super) fn hide_aliases(
    query: &mut Query,
    scope: &Scope<'_>,
) -> Result<Option<Vec<(Ident, Ident)>>> {
    let hiding = hiding(query, scope);
    if hiding.is_empty() {
        return Ok(None);
    }
    let names = names(query)?;
    let Some(select) = select_of(query) else {
        return Ok(None);
    };
    let mut items = Vec::with_capacity(names.len());
    for (place, (item, name)) in select.projection.iter_mut().zip(names).enumerate() {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), Some(&*alias)),
            SelectItem::UnnamedExpr(expr) => (expr.clone(), None),
            _ => continue,
        };
        // Other aliases may stand within keys.
        let stays = alias.is_some_and(|alias| {
            !hiding.iter().any(|other| same(other, alias))
                && !items.iter().any(|(other, _)| same(other, alias))
        });
        let alias = match stays {
            true => name.clone(),
            false => quoted(&hidden::name_of("item", place)),
        };
        items.push((alias.clone(), name));
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
    for key in keys_of(query) {
        if let Some(name) = alone(key)
            && let Some((item, _)) = items.iter().find(|(_, known)| same(known, name))
        {
            *name = item.clone();
        }
    }
    Ok(Some(items))
}

fn same(one: &Ident, other: &Ident) -> bool {
    one.value.eq_ignore_ascii_case(&other.value)
}

/// The query inside one that gives its columns their names back.
pub(super) fn show_aliases(query: &mut Query, names: Vec<(Ident, Ident)>) -> Result<()> {
    let mut outer = parse_query("SELECT 1")?;
    std::mem::swap(outer.as_mut(), query);
    if let Some(select) = select_of(query) {
        let item = |(hidden, alias)| SelectItem::ExprWithAlias {
            expr: Expr::Identifier(hidden),
            alias,
        };
        select.projection = names.into_iter().map(item).collect();
        select.from = vec![TableWithJoins {
            relation: derived(outer, None),
            joins: Vec::new(),
        }];
    }
    Ok(())
}

/// The keys of ORDER BY and of DISTINCT ON.
fn keys_of(query: &mut Query) -> Vec<&mut Expr> {
    let mut keys = Vec::new();
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(Distinct::On(exprs)) = &mut select.distinct
    {
        keys.extend(exprs);
    }
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(order) = &mut order_by.kind
    {
        keys.extend(order.iter_mut().map(|key| &mut key.expr));
    }
    keys
}

/// The name that a key is, also with a collation.
fn alone(key: &mut Expr) -> Option<&mut Ident> {
    match key {
        Expr::Identifier(name) => Some(name),
        Expr::Nested(expr) | Expr::Collate { expr, .. } => alone(expr),
        _ => None,
    }
}

/// Aliases that hide columns of FROM which ORDER BY means.
fn hiding(query: &mut Query, scope: &Scope<'_>) -> Vec<Ident> {
    let limits_by_order = limits_by_order(query);
    let mut used: Vec<Ident> = Vec::new();
    let mut collect = each(|expr| match expr {
        Expr::Identifier(name) => used.push(name.clone()),
        // `t.x` beside an alias x is a name twice to DataFusion.
        Expr::CompoundIdentifier(parts) => used.extend(parts.iter().cloned()),
        _ => {}
    });
    for key in keys_of(query) {
        if limits_by_order || !matches!(key, Expr::Identifier(_)) {
            let ControlFlow::Continue(()) = key.walk(&mut collect);
        }
    }
    let Some(select) = select_of(query) else {
        return Vec::new();
    };
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if !is_itself(expr, alias) => Some(alias),
        _ => None,
    });
    let is_used = |alias: &&Ident| used.iter().any(|name| same(name, alias));
    let mut aliases: Vec<Ident> = aliases.filter(is_used).cloned().collect();
    if aliases.is_empty() {
        return aliases;
    }
    // What is wrong with FROM is DataFusion's to tell.
    let columns = scope.columns_from(&select.from).unwrap_or_default();
    aliases.retain(|alias| columns.iter().any(|column| column.has_name(&alias.value)));
    aliases
}

/// Whether a limit becomes a window in the order of the query, where names alone are columns of FROM (limits.rs).
fn limits_by_order(query: &Query) -> bool {
    let fetches = query.fetch.as_ref();
    let limits = query.limit_clause.as_ref();
    fetches.is_some_and(|fetch| fetch.with_ties || fetch.percent)
        || limits.is_some_and(|limit| match limit {
            LimitClause::LimitOffset {
                limit, limit_by, ..
            } => !limit_by.is_empty() || matches!(limit, Some(Expr::Function(_))),
            LimitClause::OffsetCommaLimit { .. } => false,
        })
}

/// The names of the columns of a query.
fn names(query: &mut Query) -> Result<Vec<Ident>> {
    let Some(select) = select_of(query) else {
        return Ok(Vec::new());
    };
    let names = select.projection.iter().map(|item| match (item_name(item), item) {
        (Some(name), _) => Ok(name.clone()),
        (None, SelectItem::UnnamedExpr(expr)) => Ok(quoted(&text_of(expr))),
        _ => Err(Error::unsupported("ORDER BY with a column in an expression whose name is that of an alias, beside '*'; give the alias another name")),
    });
    names.collect()
}
