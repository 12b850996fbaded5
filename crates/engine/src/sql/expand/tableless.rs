//! `(SELECT x + 1)`, a subquery without FROM, is `(x + 1)`.
//!
//! In: an expression while a statement is expanded, outer ones first. Out: the value in the place of the subquery.
//! Invariant: the value is computed for the rows that CASE, COALESCE, AND and OR leave, as any other; DataFusion joins the
//! results of a subquery for all rows. Columns have their names before (headers.rs).
//! Not here: a literal, which would be a place in ORDER BY and GROUP BY. Aggregates, windows, rows of lists and what differs from
//! call to call are of the subquery.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, Query, SelectItem, SetExpr, VisitorMut,
};

use crate::sql::ast::function_name;
use crate::sql::expand::{Catalog, is_list};
use crate::sql::walk::Walk;

/// Functions that make several rows or columns of one.
const SEVERAL: [&str; 3] = ["columns", "unnest", "unlist"];

/// Puts the value in the place of such a subquery, also behind ANY and ALL, which have then one value.
pub(super) fn take_out(expr: &mut Expr, catalog: &dyn Catalog) {
    let plain = match expr {
        Expr::Subquery(query) => value_of(query, catalog),
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        }
        | Expr::AllOp {
            left,
            compare_op,
            right,
        } => match right.as_ref() {
            Expr::Subquery(query) => {
                value_of(query, catalog).map(|value| compared(left, compare_op, value))
            }
            _ => None,
        },
        _ => None,
    };
    if let Some(plain) = plain {
        *expr = Expr::Nested(Box::new(plain));
    }
}

fn compared(left: &Expr, op: &BinaryOperator, value: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left.clone()),
        op: op.clone(),
        right: Box::new(Expr::Nested(Box::new(value))),
    }
}

/// The value that a query is, if it is nothing but one.
fn value_of(query: &Query, catalog: &dyn Catalog) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let [item] = select.projection.as_slice() else {
        return None;
    };
    let value = match item {
        SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } => value,
        _ => return None,
    };
    let is_whole = select.from.is_empty()
        && !is_list(select)
        && query.to_string() == format!("SELECT {item}")
        && !matches!(value, Expr::Value(_) | Expr::Tuple(_));
    let mut value = value.clone();
    let mut own = Own {
        catalog,
        queries: 0,
    };
    let is_plain = is_whole && value.walk(&mut own).is_continue();
    is_plain.then_some(value)
}

/// Stops at what is of the subquery.
struct Own<'a> {
    catalog: &'a dyn Catalog,
    /// Queries around the place of the walk.
    queries: usize,
}

impl Own<'_> {
    fn is_own(&self, function: &Function) -> bool {
        let Some(name) = function_name(function) else {
            return true;
        };
        let of_rows = function.over.is_some()
            || function.filter.is_some()
            || self.catalog.is_aggregate(&name)
            || SEVERAL.contains(&name.as_str());
        self.catalog.is_volatile(&name) || self.queries == 0 && of_rows
    }
}

impl VisitorMut for Own<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if self.is_own(function) => ControlFlow::Break(()),
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
