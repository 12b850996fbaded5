//! Names that fit two tables or two columns of FROM, where DataFusion takes the first. Such are `tbl.i` of `s1.tbl, s2.tbl`,
//! and `x` in `SELECT a.x, count(*) FROM a, b GROUP BY x`.
//!
//! In: a SELECT or a query, the columns of its FROM. Out: an error where a name is of two.
//! Invariant: an alias of the select list may be named; alone in ORDER BY, so may the only column of the result that is called so.
//! What USING merges is one column. What names no table twice and no column of another is not asked about.
//! Not here: joins under one name (joined_aliases.rs); names in WHERE and in the select list, which DataFusion refuses.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{factors, position_of};
use crate::sql::expand::aliases::parameters;
use crate::sql::expand::{Column, Scope};
use crate::sql::walk::{Walk, done};

/// An error if the SELECT names a table of FROM by a name that two have.
pub(super) fn refuse_tables(select: &mut Select) -> Result<()> {
    let Some(mut names) = AmbiguousTables::of(select) else {
        return Ok(());
    };
    for item in &select.projection {
        if let SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(ObjectName(parts)),
            _,
        ) = item
            && let [part] = parts.as_slice()
            && let Some(name) = part.as_ident()
            && names.is_twice(name)
        {
            return Err(ambiguous_table(name));
        }
    }
    done(select.walk(&mut names))
}

/// The same in ORDER BY of a query.
pub(super) fn refuse_tables_in_order(query: &mut Query) -> Result<()> {
    let (Some(order), SetExpr::Select(select)) = (&mut query.order_by, query.body.as_ref()) else {
        return Ok(());
    };
    match AmbiguousTables::of(select) {
        Some(mut names) => done(order.walk(&mut names)),
        None => Ok(()),
    }
}

/// The name of a table of FROM without its schema.
fn called(factor: &TableFactor) -> Option<&Ident> {
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(&alias.name),
        TableFactor::Table {
            name, args: None, ..
        } => name.0.last()?.as_ident(),
        _ => None,
    }
}

/// A name as it is looked up: in lower case, unless it is in quotes.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

fn ambiguous_table(name: &Ident) -> Error {
    Error::Planning {
        message: format!(
            "table '{}' is ambiguous: two tables of FROM have the name; write the schema before it, or give one another name with AS",
            name.value
        ),
        position: position_of(name.span.start),
    }
}

/// Stops at a name before a dot that two tables of FROM have, but in a query that has one of its own.
struct AmbiguousTables {
    /// As they are looked up.
    twice: Vec<String>,
    /// Of each query around the place of the walk, whether it has such a table.
    hides: Vec<bool>,
}

impl AmbiguousTables {
    /// `None` if no two tables have one name.
    fn of(select: &Select) -> Option<AmbiguousTables> {
        let names = factors(&select.from).filter_map(called);
        let names: Vec<String> = names.map(folded).collect();
        let is_twice = |name: &&String| names.iter().filter(|one| one == name).count() > 1;
        let twice: Vec<String> = names.iter().filter(is_twice).cloned().collect();
        (!twice.is_empty()).then_some(AmbiguousTables {
            twice,
            hides: Vec::new(),
        })
    }

    fn is_twice(&self, name: &Ident) -> bool {
        self.twice.contains(&folded(name))
    }
}

impl VisitorMut for AmbiguousTables {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let hides = match query.body.as_ref() {
            SetExpr::Select(select) => factors(&select.from)
                .filter_map(called)
                .any(|name| self.is_twice(name)),
            _ => true,
        };
        self.hides.push(hides);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.hides.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::CompoundIdentifier(parts) = &*expr
            && let [table, _] = parts.as_slice()
            && self.is_twice(table)
            && !self.hides.contains(&true)
        {
            return ControlFlow::Break(ambiguous_table(table));
        }
        ControlFlow::Continue(())
    }
}

/// An error if a name in GROUP BY or HAVING is of two columns of FROM.
pub(super) fn refuse_columns(select: &Select, scope: &Scope<'_>) -> Result<()> {
    let items = ResultNames::of(select);
    if !items.may_mislead() {
        return Ok(());
    }
    let mut names = PlainNames::default();
    let ControlFlow::Continue(()) = select.group_by.clone().walk_outside_queries(&mut names);
    let ControlFlow::Continue(()) = select.having.clone().walk_outside_queries(&mut names);
    refuse(names, &items, select, scope)
}

/// An error if a name in ORDER BY is of two columns of FROM.
pub(super) fn refuse_columns_in_order(query: &mut Query, scope: &Scope<'_>) -> Result<()> {
    let (Some(order), SetExpr::Select(select)) = (&mut query.order_by, query.body.as_ref()) else {
        return Ok(());
    };
    let items = ResultNames::of(select);
    let OrderByKind::Expressions(keys) = &mut order.kind else {
        return Ok(());
    };
    if !items.may_mislead() {
        return Ok(());
    }
    let mut names = PlainNames::default();
    for key in keys {
        match alone(&key.expr) {
            Some(name) => names.alone.push(name.clone()),
            None => {
                let ControlFlow::Continue(()) = key.expr.walk_outside_queries(&mut names);
            }
        }
    }
    refuse(names, &items, select, scope)
}

/// The name that a key is, also with a collation.
fn alone(key: &Expr) -> Option<&Ident> {
    match key {
        Expr::Identifier(name) => Some(name),
        Expr::Nested(expr) | Expr::Collate { expr, .. } => alone(expr),
        _ => None,
    }
}

/// An error at the first of these names that is of two columns of FROM and of no alias.
fn refuse(
    mut names: PlainNames,
    items: &ResultNames<'_>,
    select: &Select,
    scope: &Scope<'_>,
) -> Result<()> {
    names.found.retain(|name| items.misleads(name));
    names.alone.retain(|name| items.misleads(name));
    if items.wildcards.is_empty() {
        names.alone.retain(|name| !items.has_one(name, &[]));
    }
    if names.found.is_empty() && names.alone.is_empty() {
        return Ok(());
    }
    // What is wrong with FROM is DataFusion's to tell.
    let columns = scope.columns_from(&select.from).unwrap_or_default();
    names.alone.retain(|name| !items.has_one(name, &columns));
    for name in names.found.into_iter().chain(names.alone) {
        let written = folded(&name);
        let mut meant: Vec<_> = columns.iter().collect();
        match columns.iter().any(|column| column.name() == written) {
            true => meant.retain(|column| column.name() == written),
            false => meant.retain(|column| column.has_name(&name.value)),
        }
        if meant.len() > 1 {
            let candidates = meant.iter().map(|column| column.expr().to_string());
            return Err(Error::AmbiguousColumn {
                name: name.value.clone(),
                candidates: candidates.collect(),
                position: position_of(name.span.start),
            });
        }
    }
    Ok(())
}

/// What the columns of a SELECT over several tables are called.
#[derive(Default)]
struct ResultNames<'a> {
    aliases: Vec<&'a Ident>,
    /// Columns of one table, under their own names.
    columns: Vec<&'a [Ident]>,
    /// `*`, and of which table `t.*` is.
    wildcards: Vec<Option<&'a Ident>>,
}

impl<'a> ResultNames<'a> {
    fn of(select: &'a Select) -> ResultNames<'a> {
        let mut names = ResultNames::default();
        let is_joined = match select.from.as_slice() {
            [] => false,
            [only] => {
                !only.joins.is_empty() || matches!(only.relation, TableFactor::NestedJoin { .. })
            }
            _ => true,
        };
        if !is_joined {
            return names;
        }
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => names.aliases.push(alias),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                    names.columns.push(parts);
                }
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)
                    if options.opt_exclude.is_some() || options.opt_except.is_some() =>
                {
                    return ResultNames::default();
                }
                SelectItem::Wildcard(_) => names.wildcards.push(None),
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let table = name.0.last().and_then(|part| part.as_ident());
                    names.wildcards.extend(table.map(Some));
                }
                _ => {}
            }
        }
        names
    }

    /// Whether DataFusion may take a name for a column of the result that is one of two in FROM.
    fn may_mislead(&self) -> bool {
        !self.wildcards.is_empty() || !self.columns.is_empty()
    }

    fn misleads(&self, name: &Ident) -> bool {
        let mut columns = self.columns.iter().filter_map(|parts| parts.last());
        let is_named = columns.any(|column| same(column, name));
        let is_alias = self.aliases.iter().any(|alias| same(alias, name));
        (is_named || !self.wildcards.is_empty()) && !is_alias
    }

    /// Whether all columns of the result that are called so are one; `from` are those of FROM.
    fn has_one(&self, name: &Ident, from: &[Column]) -> bool {
        let mut tables = Vec::new();
        for parts in &self.columns {
            if let [.., table, column] = parts
                && same(column, name)
            {
                tables.push(table.value.to_lowercase());
            }
        }
        for wildcard in &self.wildcards {
            let columns = from.iter().filter(|column| column.has_name(&name.value));
            let names = columns.map(|column| column.table.last().map_or("", String::as_str));
            let of = names
                .filter(|table| wildcard.is_none_or(|only| only.value.eq_ignore_ascii_case(table)));
            tables.extend(of.map(str::to_lowercase));
        }
        tables.dedup();
        tables.len() == 1
    }
}

fn same(one: &Ident, other: &Ident) -> bool {
    one.value.eq_ignore_ascii_case(&other.value)
}

/// Names that stand alone, but for those of parameters of lambdas.
#[derive(Default)]
struct PlainNames {
    found: Vec<Ident>,
    /// Names that are keys of ORDER BY by themselves.
    alone: Vec<Ident>,
    parameters: Vec<String>,
}

impl VisitorMut for PlainNames {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Lambda(lambda) => self.parameters.extend(parameters(&lambda.params)),
            Expr::Identifier(name) if !self.parameters.contains(&name.value.to_lowercase()) => {
                self.found.push(name.clone());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Lambda(lambda) = expr {
            let left = self
                .parameters
                .len()
                .saturating_sub(parameters(&lambda.params).len());
            self.parameters.truncate(left);
        }
        ControlFlow::Continue(())
    }
}
