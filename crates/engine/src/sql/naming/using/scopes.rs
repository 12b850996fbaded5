//! Where in a statement joins with USING are, and which names mean their columns.
//!
//! In: a parsed statement. Out: queries whose columns have to be known, as text. With their columns, the statement with its
//! joins written with ON and the names of merged columns in the place of `k`.
//! Invariant: a name in a subquery means the subquery's own column where it has one. A common table expression sees those
//! before it.
//! Not here: what a merged column is (using.rs).

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, OrderByKind, Query, Select,
    SelectItem, SetExpr, TableFactor, VisitorMut,
};

use crate::sql::ast::item_name;
use crate::sql::naming::using::{FromColumns, is_name, rewrite_select};
use crate::sql::walk::{Walk, visit};

/// Columns of queries, by their text; `None` for one that cannot be planned.
pub type ColumnsByQuery = HashMap<String, Option<Vec<String>>>;

/// The queries whose columns have to be known, but for those of `known`; none for a statement without such joins.
pub fn wanted(statement: &mut Statement, known: &ColumnsByQuery) -> Vec<String> {
    // Most statements have none: they cost one walk.
    if visit(statement, &mut Finding).is_continue() {
        return Vec::new();
    }
    let mut scopes = Scopes::new(known);
    let ControlFlow::Continue(()) = visit(statement, &mut scopes);
    scopes.wanted
}

/// Stops at a join with USING.
struct Finding;

impl VisitorMut for Finding {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        match has_using(select) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn has_using(select: &Select) -> bool {
    select.from.iter().any(|table| {
        let mut joins = table.joins.iter().map(|join| &join.join_operator);
        joins.any(is_using) || has_nested(&table.relation)
    })
}

/// Writes joins with ON whose sides have known columns; true if there were some.
pub fn rewrite(statement: &mut Statement, known: &ColumnsByQuery) -> bool {
    let mut scopes = Scopes::new(known);
    scopes.rewrites = true;
    let ControlFlow::Continue(()) = visit(statement, &mut scopes);
    scopes.has_changed
}

/// A query that is being visited.
#[derive(Default)]
struct VisitedQuery {
    ctes: Vec<Cte>,
    is_recursive: bool,
    /// How many of `ctes` are behind; they are visited first.
    seen: usize,
    /// The merged columns of its SELECT.
    merged: FromColumns,
}

impl VisitedQuery {
    fn visible(&self) -> &[Cte] {
        match self.is_recursive {
            true => &self.ctes,
            false => &self.ctes[..self.seen],
        }
    }
}

struct Scopes<'a> {
    known: &'a ColumnsByQuery,
    frames: Vec<VisitedQuery>,
    wanted: Vec<String>,
    rewrites: bool,
    has_changed: bool,
}

impl<'a> Scopes<'a> {
    fn new(known: &'a ColumnsByQuery) -> Scopes<'a> {
        Scopes {
            known,
            frames: Vec::new(),
            wanted: Vec::new(),
            rewrites: false,
            has_changed: false,
        }
    }

    /// `SELECT * FROM factor`, as it would be at this place.
    fn query_of(&self, factor: &TableFactor, more: &[Cte]) -> String {
        let mut ctes: Vec<&Cte> = Vec::new();
        let visible = self.frames.iter().flat_map(|frame| frame.visible());
        for cte in visible.chain(more) {
            ctes.retain(|known| known.alias.name.value != cte.alias.name.value);
            ctes.push(cte);
        }
        let is_recursive = self.frames.iter().any(|frame| frame.is_recursive);
        let ctes: Vec<String> = ctes.into_iter().map(Cte::to_string).collect();
        let with = match (ctes.is_empty(), is_recursive) {
            (true, _) => String::new(),
            (false, true) => format!("WITH RECURSIVE {} ", ctes.join(", ")),
            (false, false) => format!("WITH {} ", ctes.join(", ")),
        };
        format!("{with}SELECT * FROM {factor}")
    }

    fn columns_of(&self, factor: &TableFactor, more: &[Cte]) -> Option<Vec<String>> {
        self.known
            .get(&self.query_of(factor, more))
            .cloned()
            .flatten()
    }
}

impl VisitorMut for Scopes<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let with = query.with.as_ref();
        self.frames.push(VisitedQuery {
            ctes: with.map(|with| with.cte_tables.clone()).unwrap_or_default(),
            is_recursive: with.is_some_and(|with| with.recursive),
            ..VisitedQuery::default()
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Some(frame) = self.frames.pop() else {
            return ControlFlow::Continue(());
        };
        if !frame.merged.is_empty() {
            order_by_merged(query, &frame.merged, self);
        }
        if let Some(parent) = self.frames.last_mut()
            && parent.seen < parent.ctes.len()
        {
            // What has been visited may have been rewritten.
            *parent.ctes[parent.seen].query = query.clone();
            parent.seen += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if !self.rewrites {
            let mut factors = Vec::new();
            for table in &select.from {
                factors_of(table, &mut factors);
            }
            for factor in factors {
                let query = self.query_of(factor, &[]);
                if !self.known.contains_key(&query) && !self.wanted.contains(&query) {
                    self.wanted.push(query);
                }
            }
        } else if has_using(select) {
            let merged = rewrite_select(select, &|factor| self.columns_of(factor, &[]));
            if let Some(merged) = merged {
                self.has_changed = true;
                rename(select, &merged, self);
                if let Some(frame) = self.frames.last_mut() {
                    frame.merged = merged;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn has_nested(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => {
            let joins = table_with_joins.joins.iter();
            has_nested(&table_with_joins.relation)
                || joins.map(|join| &join.join_operator).any(is_using)
        }
        _ => false,
    }
}

fn is_using(operator: &JoinOperator) -> bool {
    use JoinOperator as J;
    let (J::Join(of)
    | J::Inner(of)
    | J::Left(of)
    | J::LeftOuter(of)
    | J::Right(of)
    | J::RightOuter(of)
    | J::FullOuter(of)
    | J::Semi(of)
    | J::LeftSemi(of)
    | J::RightSemi(of)
    | J::Anti(of)
    | J::LeftAnti(of)
    | J::RightAnti(of)) = operator
    else {
        return false;
    };
    matches!(of, JoinConstraint::Using(_) | JoinConstraint::Natural)
}

/// The tables and subqueries of a FROM clause.
fn factors_of<'a>(
    table: &'a datafusion::sql::sqlparser::ast::TableWithJoins,
    factors: &mut Vec<&'a TableFactor>,
) {
    let joined = table.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&table.relation).chain(joined) {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => factors_of(table_with_joins, factors),
            other => factors.push(other),
        }
    }
}

/// Names of merged columns in a SELECT.
fn rename(select: &mut Select, merged: &FromColumns, scopes: &Scopes<'_>) {
    for item in &mut select.projection {
        let text = item.to_string();
        let SelectItem::UnnamedExpr(expr) = item else {
            rename_in(item, merged, scopes);
            continue;
        };
        let name = match expr {
            Expr::Identifier(ident) => ident.value.clone(),
            _ => text,
        };
        let was_name = matches!(expr, Expr::Identifier(_));
        if rename_in(expr, merged, scopes)
            && !(was_name && matches!(expr, Expr::CompoundIdentifier(_)))
        {
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::with_quote('"', name),
            };
        }
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        rename_in(keys, merged, scopes);
    }
    rename_in(&mut select.distinct, merged, scopes);
    rename_in(&mut select.prewhere, merged, scopes);
    rename_in(&mut select.selection, merged, scopes);
    rename_in(&mut select.having, merged, scopes);
    rename_in(&mut select.named_window, merged, scopes);
    rename_in(&mut select.qualify, merged, scopes);
}

/// Names of merged columns in ORDER BY, where they are not those of the SELECT's own columns.
fn order_by_merged(query: &mut Query, merged: &FromColumns, scopes: &Scopes<'_>) {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return;
    };
    let names: Vec<Ident> = select
        .projection
        .iter()
        .filter_map(item_name)
        .cloned()
        .collect();
    let Some(order_by) = &mut query.order_by else {
        return;
    };
    if let OrderByKind::Expressions(keys) = &mut order_by.kind {
        for key in keys {
            let is_output = match &key.expr {
                Expr::Identifier(ident) => names.iter().any(|name| is_name(ident, &name.value)),
                _ => false,
            };
            if !is_output {
                rename_in(&mut key.expr, merged, scopes);
            }
        }
    }
}

/// Puts merged columns in the place of their names; true if there was one.
fn rename_in<T: Walk>(part: &mut T, merged: &FromColumns, scopes: &Scopes<'_>) -> bool {
    let mut renaming = MergedRenaming {
        merged,
        scopes,
        hidden: Vec::new(),
        has_renamed: false,
    };
    let ControlFlow::Continue(()) = part.walk(&mut renaming);
    renaming.has_renamed
}

struct MergedRenaming<'a> {
    merged: &'a FromColumns,
    scopes: &'a Scopes<'a>,
    /// The columns of the subqueries that are being visited; `None` hides all.
    hidden: Vec<Option<Vec<String>>>,
    has_renamed: bool,
}

impl MergedRenaming<'_> {
    fn is_hidden(&self, ident: &Ident) -> bool {
        self.hidden.iter().any(|hidden| match hidden {
            Some(names) => names.iter().any(|name| is_name(ident, name)),
            None => true,
        })
    }
}

impl VisitorMut for MergedRenaming<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let ctes = query.with.as_ref().map(|with| with.cte_tables.clone());
        let ctes = ctes.unwrap_or_default();
        let hidden = match query.body.as_ref() {
            SetExpr::Select(select) => {
                let mut factors = Vec::new();
                for table in &select.from {
                    factors_of(table, &mut factors);
                }
                let names = factors
                    .into_iter()
                    .map(|factor| self.scopes.columns_of(factor, &ctes));
                names
                    .collect::<Option<Vec<_>>>()
                    .map(|names| names.concat())
            }
            _ => None,
        };
        self.hidden.push(hidden);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Infallible> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Identifier(ident) = expr
            && !self.is_hidden(ident)
            && let Some(made) = self.merged.iter().find(|made| is_name(ident, &made.name))
        {
            *expr = made.expr.clone();
            self.has_renamed = true;
        }
        ControlFlow::Continue(())
    }
}
