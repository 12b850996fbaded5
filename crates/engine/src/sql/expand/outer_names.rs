//! Tables of the queries around a subquery that are called as a column of the subquery's own tables: `region.id` beside
//! `sales(region)`.
//!
//! In: the SELECTs of a statement, inner ones first. Out: the outer table under another name, wherever it is named.
//! Invariant: a name before a dot is a table of this query or of one around it, and only then a column that has fields.
//! Other names stay.
//! Not here: names of three parts (dotted_fields.rs). DataFusion looks for a column with fields before it looks further out.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableAlias, TableFactor, TableWithJoins, VisitorMut,
};

use crate::sql::ast::{factors, object, quoted};
use crate::sql::expand::Scope;
use crate::sql::walk::{Walk, each};

/// The SELECTs around the place of a walk, outermost first.
#[derive(Default)]
pub(super) struct Outer {
    levels: Vec<QueryLevel>,
    /// Of each query around the place of the walk, whether it is one SELECT: its ORDER BY sees the SELECT's tables.
    are_selects: Vec<bool>,
}

struct QueryLevel {
    tables: HashSet<String>,
    /// Tables of FROM around the place of the walk that do not see the tables beside them.
    apart: usize,
    renamed: Vec<Renamed>,
    /// How many of these the SELECT itself has already.
    written: usize,
}

struct Renamed {
    from: String,
    to: String,
}

impl Outer {
    pub fn enter(&mut self, select: &Select) {
        self.levels.push(QueryLevel {
            tables: tables(&select.from).collect(),
            apart: 0,
            renamed: Vec::new(),
            written: 0,
        });
    }

    pub fn enter_query(&mut self, query: &Query) {
        let is_select = matches!(query.body.as_ref(), SetExpr::Select(_));
        self.are_selects.push(is_select);
    }

    /// A table of FROM that is a query: whether it sees the others.
    pub fn enter_table(&mut self, factor: &TableFactor) {
        self.step(factor, |apart| apart + 1);
    }

    pub fn leave_table(&mut self, factor: &TableFactor) {
        self.step(factor, |apart| apart - 1);
    }

    fn step(&mut self, factor: &TableFactor, step: fn(usize) -> usize) {
        if let (TableFactor::Derived { lateral: false, .. }, Some(level)) =
            (factor, self.levels.last_mut())
        {
            level.apart = step(level.apart);
        }
    }

    /// Finds what this SELECT's columns would hide, and renames what was found in those within.
    pub fn leave(&mut self, select: &mut Select, scope: &Scope<'_>) {
        let Some(mut level) = self.levels.pop() else {
            return;
        };
        self.find(select, &level, scope);
        level.rename(select);
        if self.are_selects.last() == Some(&true) {
            self.levels.push(level);
        }
    }

    /// Renames in ORDER BY, and in the SELECT what subqueries of ORDER BY ask for.
    pub fn leave_query(&mut self, query: &mut Query) {
        let is_select = self.are_selects.pop() == Some(true);
        if let Some(mut level) = is_select.then(|| self.levels.pop()).flatten()
            && let SetExpr::Select(select) = query.body.as_mut()
        {
            level.rename(select);
            for renamed in &level.renamed {
                if let Some(order) = &mut query.order_by {
                    let _ = order.walk(&mut OuterRenaming::new(renamed));
                }
            }
        }
    }

    fn find(&mut self, select: &mut Select, own: &QueryLevel, scope: &Scope<'_>) {
        // The names that stand before a dot.
        let mut outer: HashSet<String> = HashSet::new();
        let ControlFlow::Continue(()) = select.walk(&mut each(|expr| {
            if let Expr::CompoundIdentifier(parts) = expr
                && let [table, _] = parts.as_slice()
            {
                outer.insert(table.value.to_lowercase());
            }
        }));
        outer.retain(|name| {
            !own.tables.contains(name) && self.levels.iter().any(|level| level.sees(name))
        });
        if outer.is_empty() {
            return;
        }
        // What is wrong with the tables is told where they are planned.
        let Ok(columns) = scope.columns_from(&select.from) else {
            return;
        };
        for name in outer {
            if columns.iter().any(|column| column.has_name(&name))
                && let Some(level) = self.levels.iter_mut().rfind(|level| level.sees(&name))
                && level.renamed.iter().all(|renamed| renamed.from != name)
            {
                let to = format!("{name}_outer");
                level.renamed.push(Renamed { from: name, to });
            }
        }
    }
}

impl QueryLevel {
    fn sees(&self, table: &str) -> bool {
        self.apart == 0 && self.tables.contains(table)
    }

    /// Writes the new names that the SELECT has not yet.
    fn rename(&mut self, select: &mut Select) {
        for renamed in &self.renamed[self.written..] {
            let _ = select.walk(&mut OuterRenaming::new(renamed));
            let factors = select.from.iter_mut().flat_map(|table| {
                let joined = table.joins.iter_mut().map(|join| &mut join.relation);
                std::iter::once(&mut table.relation).chain(joined)
            });
            for factor in factors.filter(|factor| is_called(factor, &renamed.from)) {
                call(factor, &renamed.to);
            }
            let items = select.projection.iter_mut();
            items.for_each(|item| rename_all(item, renamed));
        }
        self.written = self.renamed.len();
    }
}

/// What the tables of a FROM are called.
fn tables(from: &[TableWithJoins]) -> impl Iterator<Item = String> + '_ {
    factors(from).filter_map(name_of)
}

fn is_called(factor: &TableFactor, name: &str) -> bool {
    name_of(factor).is_some_and(|own| own == name)
}

/// What a table is called, in lower case; none of one with its schema, which others may name, too.
fn name_of(factor: &TableFactor) -> Option<String> {
    let (name, alias) = match factor {
        TableFactor::Table { name, alias, .. } => (Some(name), alias),
        TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => (None, alias),
        _ => return None,
    };
    let only = |name: &ObjectName| match name.0.as_slice() {
        [part] => part.as_ident().cloned(),
        _ => None,
    };
    let name = match alias {
        Some(alias) => alias.name.clone(),
        None => only(name?)?,
    };
    Some(name.value.to_lowercase())
}

/// Calls a table so.
fn call(factor: &mut TableFactor, name: &str) {
    if let TableFactor::Table { alias, .. }
    | TableFactor::Derived { alias, .. }
    | TableFactor::Function { alias, .. }
    | TableFactor::UNNEST { alias, .. } = factor
    {
        let alias = alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::new(name),
            columns: Vec::new(),
            at: None,
        });
        alias.name = quoted(name);
    }
}

/// `t.*`
fn rename_all(item: &mut SelectItem, renamed: &Renamed) {
    if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
        item
        && name.to_string().to_lowercase() == renamed.from
    {
        *name = object(quoted(&renamed.to));
    }
}

/// Writes the new name, but where a query within has a table of the old one.
struct OuterRenaming<'a> {
    renamed: &'a Renamed,
    /// Whether each query around the place of the walk has such a table.
    hides: Vec<bool>,
}

impl<'a> OuterRenaming<'a> {
    fn new(renamed: &'a Renamed) -> OuterRenaming<'a> {
        OuterRenaming {
            renamed,
            hides: Vec::new(),
        }
    }
}

/// Whether a query has a table of this name, in lower case, in its own FROM.
pub(super) fn has_table(body: &SetExpr, name: &str) -> bool {
    match body {
        SetExpr::Select(select) => tables(&select.from).any(|table| table == name),
        SetExpr::Query(query) => has_table(&query.body, name),
        SetExpr::SetOperation { left, right, .. } => {
            has_table(left, name) || has_table(right, name)
        }
        _ => false,
    }
}

impl VisitorMut for OuterRenaming<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.hides.push(has_table(&query.body, &self.renamed.from));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.hides.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _, ..] = parts.as_mut_slice()
            && table.value.to_lowercase() == self.renamed.from
            && !self.hides.contains(&true)
        {
            *table = quoted(&self.renamed.to);
        }
        ControlFlow::Continue(())
    }
}
