//! `SELECT k, round(avg(x), 2) FROM t GROUP BY k ORDER BY 2`: numbers of items in ORDER BY of a query with aggregates.
//!
//! In: a query. Out: the query ordered by what its items say: DataFusion looks for the column of the item below the items,
//! where there is none unless the item is an aggregate alone.
//! Invariant: names of columns stay, but of an item with a subquery, which gets its text as an alias.
//! Not here: ORDER BY ALL, which is numbers by then (clauses/row_limits.rs, limits.rs).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};

use crate::sql::ast::{function_name, quoted};
use crate::sql::expand::Catalog;
use crate::sql::walk::Walk;

/// Writes items in the place of their numbers.
pub(super) fn write_items(query: &mut Query, catalog: &dyn Catalog) {
    let (
        SetExpr::Select(select),
        Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }),
    ) = (query.body.as_mut(), &mut query.order_by)
    else {
        return;
    };
    let is_plain = keys.iter().all(|key| ordinal(&key.expr).is_none());
    if is_plain || !is_aggregated(select, catalog) {
        return;
    }
    // A constant orders nothing.
    keys.retain(|key| {
        let item = ordinal(&key.expr).and_then(|place| item_at(select, place));
        !matches!(item, Some(SelectItem::UnnamedExpr(Expr::Value(_))))
    });
    for key in keys {
        let item = ordinal(&key.expr).and_then(|place| item_at(select, place));
        let Some(item) = item else {
            continue;
        };
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => {}
            expr if finds(expr, Sought::Query) => {
                let alias = quoted(&expr.to_string());
                let expr = expr.clone();
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            expr => key.expr = expr.clone(),
        }
    }
}

fn ordinal(key: &Expr) -> Option<usize> {
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The item that a number stands for; it is not known behind `*`.
fn item_at(select: &mut Select, place: usize) -> Option<&mut SelectItem> {
    let is_one = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    let (items, at) = (&mut select.projection, place.checked_sub(1)?);
    items.iter().take(place).all(is_one).then_some(())?;
    items.get_mut(at)
}

fn is_aggregated(select: &Select, catalog: &dyn Catalog) -> bool {
    let has_keys = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    };
    let mut items = select.projection.iter();
    has_keys
        || select.having.is_some()
        || items.any(|item| match item {
            SelectItem::UnnamedExpr(expr) => finds(expr, Sought::Aggregate(catalog)),
            _ => false,
        })
}

/// What is looked for in an expression.
enum Sought<'a> {
    Query,
    Aggregate(&'a dyn Catalog),
}

fn finds(expr: &Expr, mut sought: Sought<'_>) -> bool {
    expr.clone().walk(&mut sought).is_break()
}

impl VisitorMut for Sought<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        match self {
            Sought::Query => ControlFlow::Break(()),
            Sought::Aggregate(_) => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match (self, expr) {
            (Sought::Aggregate(catalog), Expr::Function(function))
                if function.over.is_none()
                    && function_name(function).is_some_and(|name| catalog.is_aggregate(&name)) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
