//! Aggregates, window functions and subqueries that stand twice in a SELECT and have another value each time.
//!
//! In: a SELECT such as `sum(random()), sum(random())`, of which DataFusion evaluates equal expressions once.
//! Out: the SELECT in which the later one says the same in other words.
//! Invariant: what HAVING, QUALIFY and ORDER BY repeat of the select list is its first such expression; keys of GROUP BY stay.
//! Not here: functions alone, which DataFusion calls each time; common tables (shared_tables.rs).

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, Select, SelectItem, Value, VisitMut, VisitorMut,
};

use crate::sql::ast::{call, function_name, quoted};
use crate::sql::expand::Catalog;
use crate::sql::walk::{Walk, each_up};

/// Tells the repeated expressions of a SELECT apart.
pub(super) fn tell_apart(select: &mut Select, catalog: &dyn Catalog) {
    let mut repeats = Repeats {
        catalog,
        calls: true,
        changed: false,
        uses: HashMap::new(),
    };
    for item in &mut select.projection {
        repeats.item(item);
    }
    repeats.calls = false;
    let conditions = [
        &mut select.selection,
        &mut select.having,
        &mut select.qualify,
    ];
    for condition in conditions.into_iter().flatten() {
        let ControlFlow::Continue(()) = condition.walk(&mut repeats);
    }
}

struct Repeats<'a> {
    catalog: &'a dyn Catalog,
    /// Whether calls are told apart, or subqueries alone.
    calls: bool,
    changed: bool,
    /// How often each expression has been met.
    uses: HashMap<String, usize>,
}

impl Repeats<'_> {
    fn item(&mut self, item: &mut SelectItem) {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return;
        };
        let before = expr.clone();
        self.changed = false;
        let ControlFlow::Continue(()) = expr.walk(self);
        if self.changed
            && let SelectItem::UnnamedExpr(expr) = item
        {
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: quoted(&before.to_string()),
            };
        }
    }

    /// Whether an expression is evaluated once, however often it stands there.
    fn is_merged(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
            Expr::Function(function) => self.calls && self.is_merged_call(function),
            _ => false,
        }
    }

    fn is_merged_call(&self, function: &Function) -> bool {
        function.over.is_some()
            || function_name(function).is_some_and(|name| self.catalog.is_aggregate(&name))
    }
}

impl VisitorMut for Repeats<'_> {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if !self.is_merged(expr) || !says_volatile(expr, self.catalog, 0) {
            return ControlFlow::Continue(());
        }
        let uses = self.uses.entry(expr.to_string()).or_default();
        *uses += 1;
        let repeats = *uses - 1;
        if repeats > 0 {
            says_volatile(expr, self.catalog, repeats);
            self.changed = true;
        }
        ControlFlow::Continue(())
    }
}

/// Whether a volatile function is called; each call becomes `coalesce(call, NULL, …)` with as many NULL as `repeats`.
fn says_volatile<T: VisitMut>(part: &mut T, catalog: &dyn Catalog, repeats: usize) -> bool {
    let mut found = false;
    let ControlFlow::Continue(()) = part.walk(&mut each_up(|expr| {
        let Expr::Function(function) = &*expr else {
            return;
        };
        if function_name(function).is_some_and(|name| catalog.is_volatile(&name)) {
            found = true;
            if repeats > 0 {
                let null = || Expr::Value(Value::Null.into());
                let nulls = std::iter::repeat_with(null).take(repeats);
                *expr = call(
                    "coalesce",
                    std::iter::once(expr.clone()).chain(nulls).collect(),
                );
            }
        }
    }));
    found
}
