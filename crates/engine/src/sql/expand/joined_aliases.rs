//! `(a JOIN b USING (k)) AS x`, joined tables under one name, is `(SELECT * FROM (a JOIN b USING (k))) AS x`.
//!
//! In: a table of FROM; a SELECT over such tables. Out: the query in its place; an error where a name is of two columns of the join.
//! Invariant: a column that USING merges is there once, as in `*`; the join's own parentheses tell it from a query that was written.
//! DataFusion's alias of a join has both columns, and takes the first for `x.k`.
//! Not here: what USING merges (using.rs).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{factors, parse_query, position_of};
use crate::sql::expand::Scope;
use crate::sql::walk::{Walk, done};

/// Puts the query in the place of a join that has an alias.
pub(in crate::sql) fn as_query(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::NestedJoin { alias, .. } = factor else {
        return Ok(());
    };
    let Some(alias) = alias.take() else {
        return Ok(());
    };
    let mut subquery = parse_query("SELECT * FROM x")?;
    if let SetExpr::Select(select) = subquery.body.as_mut()
        && let Some(from) = select.from.first_mut()
    {
        std::mem::swap(&mut from.relation, factor);
    }
    *factor = TableFactor::Derived {
        lateral: false,
        subquery,
        alias: Some(alias),
        sample: None,
    };
    Ok(())
}

/// The alias and the query of a join that has one, and no names for its columns.
fn joined(factor: &TableFactor) -> Option<(&TableAlias, &Query)> {
    let TableFactor::Derived {
        subquery,
        alias: Some(alias),
        ..
    } = factor
    else {
        return None;
    };
    let SetExpr::Select(select) = subquery.body.as_ref() else {
        return None;
    };
    let is_join = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)])
        && matches!(select.from.as_slice(), [from]
            if matches!(from.relation, TableFactor::NestedJoin { alias: None, .. }));
    (is_join && alias.columns.is_empty()).then_some((alias, subquery))
}

/// An error if the SELECT names a column that a join under an alias has twice.
pub(in crate::sql) fn refuse_ambiguous(select: &mut Select, scope: &Scope<'_>) -> Result<()> {
    let Some(mut names) = AmbiguousNames::of(select, scope, Bare::Column) else {
        return Ok(());
    };
    done(select.projection.walk_outside_queries(&mut names))?;
    done(select.from.walk_outside_queries(&mut names))?;
    done(select.selection.walk_outside_queries(&mut names))?;
    done(select.having.walk_outside_queries(&mut names))?;
    done(select.group_by.walk_outside_queries(&mut names))?;
    done(select.qualify.walk_outside_queries(&mut names))
}

/// The same for ORDER BY of a query, in which a name alone may be one of the result.
pub(in crate::sql) fn refuse_ordered(query: &mut Query, scope: &Scope<'_>) -> Result<()> {
    let (Some(order), SetExpr::Select(select)) = (&mut query.order_by, query.body.as_ref()) else {
        return Ok(());
    };
    match AmbiguousNames::of(select, scope, Bare::Result) {
        Some(mut names) => done(order.walk_outside_queries(&mut names)),
        None => Ok(()),
    }
}

/// What a name without a table may be.
#[derive(PartialEq)]
enum Bare {
    /// A column of FROM.
    Column,
    /// One of the result.
    Result,
}

/// Stops at a name of two columns.
struct AmbiguousNames {
    joins: Vec<(Ident, Vec<String>)>,
    bare: Bare,
}

impl AmbiguousNames {
    /// The joins under an alias that have columns of one name; `None` if there is none.
    fn of(select: &Select, scope: &Scope<'_>, bare: Bare) -> Option<AmbiguousNames> {
        let mut joins = Vec::new();
        for (alias, query) in factors(&select.from).filter_map(joined) {
            // What is wrong with the join is told where it is planned.
            let columns = scope.columns(query.clone()).unwrap_or_default();
            let names = columns.iter().map(|column| column.name().to_lowercase());
            let names: Vec<String> = names.collect();
            let is_twice = |name: &&String| names.iter().filter(|one| one == name).count() > 1;
            let twice: Vec<String> = names.iter().filter(is_twice).cloned().collect();
            if !twice.is_empty() {
                joins.push((alias.name.clone(), twice));
            }
        }
        (!joins.is_empty()).then_some(AmbiguousNames { joins, bare })
    }
}

impl VisitorMut for AmbiguousNames {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let (table, name): (Option<&Ident>, &Ident) = match &*expr {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] => (Some(table), name),
                _ => return ControlFlow::Continue(()),
            },
            Expr::Identifier(name) if self.bare == Bare::Column => (None, name),
            _ => return ControlFlow::Continue(()),
        };
        let is_of = |alias: &Ident| {
            table.is_none_or(|table| table.value.eq_ignore_ascii_case(&alias.value))
        };
        let mut joins = self.joins.iter();
        let found = joins.find(|(alias, twice)| {
            is_of(alias)
                && twice
                    .iter()
                    .any(|one| one.eq_ignore_ascii_case(&name.value))
        });
        match found {
            Some((alias, _)) => ControlFlow::Break(ambiguous(expr, alias, table.unwrap_or(name))),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn ambiguous(name: &Expr, alias: &Ident, first: &Ident) -> Error {
    Error::Planning {
        message: format!(
            "column '{name}' is ambiguous: two tables of the join have it; write USING, or names for all columns, AS {alias}(a, b, …)"
        ),
        position: position_of(first.span.start),
    }
}
