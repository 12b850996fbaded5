//! Arguments and orders of an aggregate with FILTER, computed for the rows that it takes.
//!
//! In: a logical plan. Out: the same plan, in which one that can fail is a CASE of the filter: `sum(10 / x) FILTER
//! (WHERE x <> 0)` divides by no zero.
//! Invariant: the aggregate sees the same values, since it sees no others.
//! Not here: conditions of WHERE and HAVING (held_filters.rs).

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Window};

use crate::optimizer::fixes::failing::fallible::can_fail;

/// The rule.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let guarded: Option<Result<LogicalPlan>> = match &plan {
        LogicalPlan::Aggregate(aggregate) => {
            let schema = aggregate.input.schema();
            all_guarded(&aggregate.aggr_expr, schema).map(|aggr_expr| {
                let (input, schema) = (aggregate.input.clone(), aggregate.schema.clone());
                let keys = aggregate.group_expr.clone();
                let guarded = Aggregate::try_new_with_schema(input, keys, aggr_expr, schema)?;
                Ok(LogicalPlan::Aggregate(guarded))
            })
        }
        LogicalPlan::Window(window) => {
            let schema = window.input.schema();
            all_guarded(&window.window_expr, schema).map(|window_expr| {
                let (input, schema) = (window.input.clone(), window.schema.clone());
                let guarded = Window::try_new_with_schema(window_expr, input, schema)?;
                Ok(LogicalPlan::Window(guarded))
            })
        }
        _ => None,
    };
    match guarded {
        Some(guarded) => Ok(Transformed::yes(guarded?)),
        None => Ok(Transformed::no(plan)),
    }
}

/// The aggregates, some of them guarded; `None` if none has need of it.
fn all_guarded(exprs: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let guarded: Vec<_> = exprs.iter().map(|expr| guarded(expr, schema)).collect();
    let any = guarded.iter().any(Option::is_some);
    let pairs = guarded.into_iter().zip(exprs);
    any.then(|| {
        let all = pairs.map(|(guarded, expr)| guarded.unwrap_or_else(|| expr.clone()));
        all.collect()
    })
}

/// The aggregate under its name with guarded arguments; `None` if none has need of it.
fn guarded(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let mut function = expr.clone().unalias();
    // What orders the rows of a window orders all of them.
    let (filter, args, orders) = match &mut function {
        Expr::AggregateFunction(function) => {
            let params = &mut function.params;
            (
                params.filter.clone()?,
                &mut params.args,
                params.order_by.as_mut_slice(),
            )
        }
        Expr::WindowFunction(function) => {
            let params = &mut function.params;
            (params.filter.clone()?, &mut params.args, [].as_mut_slice())
        }
        _ => return None,
    };
    let mut changed = false;
    let orders = orders.iter_mut().map(|order| &mut order.expr);
    for argument in args.iter_mut().chain(orders) {
        let is_guarded = matches!(argument, Expr::Case(case) if case.when_then_expr.iter().any(|(when, _)| *when == filter));
        if is_guarded || !can_fail(argument, schema) {
            continue;
        }
        let value = std::mem::take(argument);
        *argument = Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(filter.clone(), Box::new(value))],
            else_expr: None,
        });
        changed = true;
    }
    let (relation, name) = expr.qualified_name();
    changed.then(|| function.alias_qualified(relation, name))
}
