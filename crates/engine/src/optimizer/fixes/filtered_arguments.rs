//! Arguments and orders of an aggregate with FILTER, computed for the rows that it takes.
//!
//! In: a logical plan. Out: the same plan, in which one that can fail is a CASE of the filter: `sum(10 / x) FILTER
//! (WHERE x <> 0)` divides by no zero.
//! Invariant: the aggregate sees the same values, since it sees no others.
//! Not here: conditions of WHERE and HAVING (held_filters.rs).

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::fallible::can_fail;

/// The rule.
#[derive(Debug)]
pub(super) struct GuardArguments;

impl OptimizerRule for GuardArguments {
    fn name(&self) -> &str {
        "guard_arguments_by_their_filter"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let schema = aggregate.input.schema();
        let mut aggr_expr = aggregate.aggr_expr.clone();
        let mut changed = false;
        for expr in &mut aggr_expr {
            if let Some(guarded) = guarded(expr, schema) {
                *expr = guarded;
                changed = true;
            }
        }
        if !changed {
            return Ok(Transformed::no(plan));
        }
        let guarded = Aggregate::try_new_with_schema(
            aggregate.input.clone(),
            aggregate.group_expr.clone(),
            aggr_expr,
            aggregate.schema.clone(),
        )?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(guarded)))
    }
}

/// The aggregate under its name with guarded arguments; `None` if none has need of it.
fn guarded(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::AggregateFunction(mut function) = expr.clone().unalias() else {
        return None;
    };
    let filter = function.params.filter.clone()?;
    let mut changed = false;
    let params = &mut function.params;
    let orders = params.order_by.iter_mut().map(|order| &mut order.expr);
    for argument in params.args.iter_mut().chain(orders) {
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
    changed.then(|| Expr::AggregateFunction(function).alias_qualified(relation, name))
}
