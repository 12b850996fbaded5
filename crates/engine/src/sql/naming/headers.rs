//! Names of the columns that a SELECT gives none: the item as it is written, `sum(x)`, and not as a plan has it, `sum(t.x)`.
//!
//! In: a statement as it was parsed. Out: each item of a select list under its text, with names of functions in small letters. A
//! field of a struct under its own name, `s.x` as x. A subquery under the name of its column, as in PostgreSQL. What is there
//! already gets a number.
//! Invariant: columns and aliases keep their names. An item that may be several columns has no name here, and of a subquery
//! within an expression only one whose place is a key of ORDER BY.
//! Not here: lists in FROM and in PIVOT, which have names of their own; lists that are columns of a table, in unnest
//! (inner_names.rs).

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, OrderBy, OrderByKind,
    OutputClause, Query, Select, SelectItem, SetExpr, Statement as SqlStatement, TableFactor,
    VisitorMut,
};

use crate::sql::ast::{column_name, function_name, item_name, plain_arguments, quoted};
use crate::sql::clauses::is_wildcard;
use crate::sql::expand::is_list;
use crate::sql::fixes::dotted_fields::table_names;
use crate::sql::fixes::exclusions;
use crate::sql::walk::{Walk, visit};

/// Names the items of all select lists.
pub(in crate::sql) fn name_items(statement: &mut Statement) {
    let mut naming = HeaderNames {
        tables: table_names(statement),
        pending: 0,
        are_values: Vec::new(),
    };
    let ControlFlow::Continue(()) = visit(statement, &mut naming);
}

struct HeaderNames {
    tables: HashSet<String>,
    /// Subqueries that are values of the expressions which the walk is in, and still to come.
    pending: usize,
    /// Of each query around the place of the walk, whether it is such a value.
    are_values: Vec<bool>,
}

impl VisitorMut for HeaderNames {
    type Break = Infallible;

    /// RETURNING is a select list.
    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<Infallible> {
        let items = match statement {
            SqlStatement::Insert(insert) => insert.returning.as_mut(),
            SqlStatement::Update(update) => update.returning.as_mut(),
            SqlStatement::Delete(delete) => delete.returning.as_mut(),
            SqlStatement::Merge(merge) => match &mut merge.output {
                Some(OutputClause::Returning { select_items, .. }) => Some(select_items),
                _ => None,
            },
            _ => None,
        };
        if let Some(items) = items {
            self.name(items);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let is_value = matches!(
            expr,
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. }
        );
        self.pending += usize::from(is_value);
        ControlFlow::Continue(())
    }

    /// The queries that DESCRIBE and its kind are of are arguments of a call in FROM.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table {
            args: Some(arguments),
            ..
        } = factor
        {
            for argument in &mut arguments.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) = argument
                {
                    query.walk(self)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        if self.pending > 0 {
            name_places(query);
        }
        self.are_values.push(self.pending > 0);
        self.pending = self.pending.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.are_values.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if self.are_values.last() != Some(&true) && !is_list(select) {
            self.name(&mut select.projection);
        }
        ControlFlow::Continue(())
    }
}

impl HeaderNames {
    fn name(&self, items: &mut [SelectItem]) {
        let given = items.iter().filter_map(|item| self.given_name(item));
        let mut taken: HashSet<String> = given.map(|name| name.value.to_lowercase()).collect();
        for item in items {
            let SelectItem::UnnamedExpr(expr) = item else {
                continue;
            };
            if let Some(name) = self.name_of(expr) {
                let numbered = (1..).map(|number| format!("{name}_{number}"));
                let mut names = std::iter::once(name.clone()).chain(numbered);
                let free = names.find(|name| taken.insert(name.to_lowercase()));
                *item = SelectItem::ExprWithAlias {
                    expr: expr.clone(),
                    alias: quoted(&free.unwrap_or(name)),
                };
            }
        }
    }

    /// The name that an item has of its own.
    fn given_name<'a>(&self, item: &'a SelectItem) -> Option<&'a Ident> {
        match item {
            SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(_))
                if self.name_of(expr).is_some() =>
            {
                None
            }
            item => item_name(item),
        }
    }

    /// The name of an item, unless it has one anyway or may be several columns.
    fn name_of(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Identifier(_) => None,
            Expr::Nested(inner) => self.name_of(inner),
            Expr::Subquery(query) => self
                .name_of_subquery(&query.body)
                .or_else(|| Some(text_of(expr))),
            Expr::CompoundIdentifier(parts) => {
                let [first, .., last] = parts.as_slice() else {
                    return None;
                };
                let is_column = self.tables.contains(&first.value.to_lowercase());
                (!is_column || parts.len() > 2).then(|| last.value.clone())
            }
            expr if is_list_unnested(expr) || !may_be_several(expr) => Some(text_of(expr)),
            _ => None,
        }
    }

    /// The name of the one column of a subquery, if its query gives it one.
    fn name_of_subquery(&self, body: &SetExpr) -> Option<String> {
        match body {
            SetExpr::Select(select) => {
                let [item] = select.projection.as_slice() else {
                    return None;
                };
                self.given_name(item).map(|name| name.value.clone())
            }
            SetExpr::Query(query) => self.name_of_subquery(&query.body),
            SetExpr::SetOperation { left, .. } => self.name_of_subquery(left),
            _ => None,
        }
    }
}

fn may_be_several(expr: &Expr) -> bool {
    is_wildcard(&SelectItem::UnnamedExpr(expr.clone()))
}

/// Whether a list that is written is unnested, and not a struct.
fn is_list_unnested(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else {
        return false;
    };
    function_name(function).as_deref() == Some("unnest")
        && matches!(plain_arguments(function).as_deref(), Some([Expr::Array(_)]))
}

/// Names the items whose places are keys of ORDER BY: DataFusion takes an outer column without a name of its own for one that
/// is no key of GROUP BY.
fn name_places(query: &mut Query) {
    let (
        Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }),
        SetExpr::Select(select),
    ) = (&query.order_by, query.body.as_mut())
    else {
        return;
    };
    for key in keys {
        let place = match &key.expr {
            Expr::Value(value) => value.to_string().parse::<usize>().ok(),
            _ => None,
        };
        let item = place
            .and_then(|place| place.checked_sub(1))
            .and_then(|place| select.projection.get_mut(place));
        let Some(item) = item else {
            continue;
        };
        let SelectItem::UnnamedExpr(expr) = &*item else {
            continue;
        };
        let name = match column_name(expr) {
            Some(name) => Some(name.clone()),
            None if may_be_several(expr) => None,
            None => Some(quoted(&text_of(expr))),
        };
        if let Some(alias) = name {
            let expr = expr.clone();
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

/// An expression as it is written, with names of functions in small letters.
pub(in crate::sql) fn text_of(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let ControlFlow::Continue(()) = expr.walk(&mut SmallNames);
    expr.to_string()
}

struct SmallNames;

impl VisitorMut for SmallNames {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(function) = expr {
            for part in &mut function.name.0 {
                if let ObjectNamePart::Identifier(name) = part
                    && name.quote_style.is_none()
                {
                    name.value = name.value.to_lowercase();
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Behind all names within the window.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(Function {
            over: Some(over), ..
        }) = expr
        {
            exclusions::write_out(over);
        }
        ControlFlow::Continue(())
    }
}
