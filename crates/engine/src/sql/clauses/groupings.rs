//! GROUP BY with modifiers: WITH ROLLUP, WITH CUBE, WITH TOTALS, `()`, `(a, b)`, DISTINCT, ordinals within grouping sets.
//!
//! In: a SELECT. Out: its GROUP BY as keys, ROLLUP, CUBE or GROUPING SETS; totals come last.
//! Invariant: `GROUP BY ()`, or HAVING alone, is one group, also of no rows; DISTINCT leaves each set once, `()` among keys adds nothing.
//! Not here: CUBE and ROLLUP of elements with several columns (composite_groups.rs).

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, OrderBy, OrderByKind, Query, Select, SelectItem,
};

use super::{ascending, call, meant, ordinal, refused, select_of};
use crate::error::{Error, Result};
use crate::sql::fixes::composite_groups::{columns_of, sets_of};
use crate::sql::tokens::token_forms::GROUP_DISTINCT;

/// Orders a query WITH TOTALS so that the total comes last.
pub(super) fn totals_last(query: &mut Query) -> Result<()> {
    let Some(select) = select_of(query) else {
        return Ok(());
    };
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
        return Ok(());
    };
    if !modifiers.contains(&GroupByWithModifier::Totals) || select.distinct.is_some() {
        return Ok(());
    }
    let first = keys.first().and_then(|key| meant(key, &select.projection));
    let Some(first) = first else {
        return Err(unknown_key(select));
    };
    let total = ascending(call("grouping", vec![first]));
    match &mut query.order_by {
        Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }) => keys.insert(0, total),
        _ => {
            query.order_by = Some(OrderBy {
                kind: OrderByKind::Expressions(vec![total]),
                interpolate: None,
            });
        }
    }
    Ok(())
}

/// Writes the GROUP BY of a SELECT without modifiers.
pub(super) fn sets(select: &mut Select) -> Result<()> {
    let near = select.select_token.0.span;
    let (mut keys, modifiers) = match &mut select.group_by {
        GroupByExpr::All(modifiers) if modifiers.is_empty() => return Ok(()),
        GroupByExpr::All(_) => {
            let message =
                "GROUP BY ALL WITH ROLLUP, CUBE or TOTALS; write the columns in place of ALL";
            return Err(refused(message, near));
        }
        GroupByExpr::Expressions(keys, modifiers) => {
            (std::mem::take(keys), std::mem::take(modifiers))
        }
    };
    let is_distinct = take_distinct(&mut keys);
    if modifiers.is_empty() {
        keys = keys.into_iter().flat_map(keys_of).collect();
    }
    if keys.is_empty() && modifiers.is_empty() && select.having.is_some() {
        keys.push(Expr::Tuple(Vec::new()));
    }
    let projection = &select.projection;
    if !modifiers.is_empty() || is_distinct {
        keys = resolved(&keys, projection).ok_or_else(|| unknown_key(select))?;
    }
    for key in &mut keys {
        resolve_within(key, projection).ok_or_else(|| unknown_key(select))?;
    }
    keys = match modifiers.as_slice() {
        [] => keys,
        [modifier] if !keys.iter().any(is_grouping) => vec![modified(keys, modifier)],
        _ => {
            let message = "more than one of WITH ROLLUP, WITH CUBE, WITH TOTALS and grouping sets; \
                           write GROUPING SETS (…) with the sets that are meant";
            return Err(refused(message, near));
        }
    };
    if is_distinct && keys.iter().any(is_grouping) {
        keys = vec![distinct_sets(&keys)?];
    }
    select.group_by = GroupByExpr::Expressions(without_empty(keys), Vec::new());
    Ok(())
}

fn unknown_key(select: &Select) -> Error {
    let message = "a number in GROUP BY with ROLLUP, CUBE, TOTALS or grouping sets that stands for a column of `*`, \
                   or for none; write the column's name";
    refused(message, select.select_token.0.span)
}

/// `(a, b)` is two keys; `()` stays.
fn keys_of(key: Expr) -> Vec<Expr> {
    match key {
        key if is_empty(&key) => vec![key],
        key => columns_of(key),
    }
}

fn take_distinct(keys: &mut Vec<Expr>) -> bool {
    let marked = match keys.first() {
        Some(Expr::Identifier(name)) => {
            name.value == GROUP_DISTINCT && name.quote_style == Some('"')
        }
        _ => false,
    };
    if marked {
        keys.remove(0);
    }
    marked
}

/// The keys with what ordinals stand for.
fn resolved(keys: &[Expr], projection: &[SelectItem]) -> Option<Vec<Expr>> {
    keys.iter()
        .map(|key| match ordinal(key) {
            Some(_) => meant(key, projection),
            None => Some(key.clone()),
        })
        .collect()
}

/// DataFusion takes a number within ROLLUP for a constant.
fn resolve_within(key: &mut Expr, projection: &[SelectItem]) -> Option<()> {
    if let Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) = key {
        for set in sets {
            *set = resolved(set, projection)?;
            for inner in set {
                resolve_within(inner, projection)?;
            }
        }
    }
    Some(())
}

fn is_grouping(key: &Expr) -> bool {
    matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_))
}

fn is_empty(key: &Expr) -> bool {
    matches!(key, Expr::Tuple(columns) if columns.is_empty())
}

/// What `GROUP BY a, b WITH ROLLUP` groups by.
fn modified(keys: Vec<Expr>, modifier: &GroupByWithModifier) -> Expr {
    let keys: Vec<Expr> = keys.into_iter().filter(|key| !is_empty(key)).collect();
    let elements = |keys: Vec<Expr>| keys.into_iter().map(columns_of).collect();
    match modifier {
        GroupByWithModifier::Rollup => Expr::Rollup(elements(keys)),
        GroupByWithModifier::Cube => Expr::Cube(elements(keys)),
        GroupByWithModifier::Totals => {
            let all = keys.into_iter().flat_map(columns_of).collect();
            Expr::GroupingSets(vec![all, Vec::new()])
        }
        GroupByWithModifier::GroupingSets(sets) => sets.clone(),
    }
}

/// All combinations of the keys' sets, each once.
fn distinct_sets(keys: &[Expr]) -> Result<Expr> {
    let mut all: Vec<Vec<Expr>> = vec![Vec::new()];
    for key in keys {
        let sets = match key {
            key if is_grouping(key) => sets_of(key)?,
            key if is_empty(key) => vec![Vec::new()],
            key => vec![vec![key.clone()]],
        };
        let pairs = all.iter().flat_map(|left| {
            sets.iter().map(|right| {
                let mut both = left.clone();
                both.extend(right.iter().filter(|&key| !left.contains(key)).cloned());
                both
            })
        });
        all = pairs.collect();
    }
    let mut once: Vec<Vec<Expr>> = Vec::new();
    for set in all {
        let has = |other: &Vec<Expr>| {
            other.len() == set.len() && other.iter().all(|key| set.contains(key))
        };
        if !once.iter().any(has) {
            once.push(set);
        }
    }
    Ok(Expr::GroupingSets(once))
}

/// `a, ()` groups by `a`; `()` alone is the one set without keys.
fn without_empty(keys: Vec<Expr>) -> Vec<Expr> {
    if !keys.is_empty() && keys.iter().all(is_empty) {
        return vec![Expr::GroupingSets(vec![Vec::new()])];
    }
    keys.into_iter().filter(|key| !is_empty(key)).collect()
}
