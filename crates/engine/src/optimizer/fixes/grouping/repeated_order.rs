//! Drops a sort key that an aggregate's ORDER BY repeats.
//!
//! In: a logical plan. Out: the same plan with each key of `first_value(x ORDER BY y DESC, y)` once.
//! Invariant: the first mention of a key decides, a later one never does. DataFusion's ordered aggregates count the keys
//! as written and meet them without repeats, which is a panic.
//! Not here: ORDER BY of a query, where DataFusion drops them itself.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, SortExpr};

/// The rule.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let mut aggr_expr = aggregate.aggr_expr.clone();
    let mut changed = false;
    for expr in &mut aggr_expr {
        if let Some(shorter) = without_repeats(expr) {
            *expr = shorter;
            changed = true;
        }
    }
    if !changed {
        return Ok(Transformed::no(plan));
    }
    let shorter = Aggregate::try_new_with_schema(
        aggregate.input.clone(),
        aggregate.group_expr.clone(),
        aggr_expr,
        aggregate.schema.clone(),
    )?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(shorter)))
}

/// The aggregate under its name with each sort key once; `None` if none repeats.
fn without_repeats(expr: &Expr) -> Option<Expr> {
    let Expr::AggregateFunction(mut function) = expr.clone().unalias() else {
        return None;
    };
    let keys = function.params.order_by.len();
    function.params.order_by = once(std::mem::take(&mut function.params.order_by));
    if function.params.order_by.len() == keys {
        return None;
    }
    let name = expr.schema_name().to_string();
    Some(Expr::AggregateFunction(function).alias(name))
}

fn once(keys: Vec<SortExpr>) -> Vec<SortExpr> {
    let mut kept: Vec<SortExpr> = Vec::with_capacity(keys.len());
    for key in keys {
        if !kept.iter().any(|earlier| earlier.expr == key.expr) {
            kept.push(key);
        }
    }
    kept
}
