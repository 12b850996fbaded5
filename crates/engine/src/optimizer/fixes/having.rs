//! Holds HAVING above the aggregation where pushing it below changes the answer.
//!
//! In: a plan on its way through the host's `push_down_filter`. Out: what that rule makes of it, with the predicates
//! that have to stay put back on top.
//! Invariant: a predicate goes below an aggregation only if it gives every row of a group the same answer as the
//! group. A volatile one does not (`random() < 0.5` would drop rows, not groups). One without columns does, but not
//! for the groups that exist without rows: the empty grouping set and the aggregation without keys answer one row
//! for an empty input.
//! Not here: the physical filter pushdown, where the host already keeps to this.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, GroupingSet, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The host's rule with the exceptions above.
pub(super) fn rewrite(
    host: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else {
        return host.rewrite(plan, config);
    };
    let (predicates, input) = stacked_filters(filter);
    let LogicalPlan::Aggregate(aggregate) = input.as_ref() else {
        return host.rewrite(plan, config);
    };
    let (held, free): (Vec<_>, Vec<_>) = predicates
        .into_iter()
        .partition(|predicate| has_to_stay(predicate, aggregate));
    let Some(held) = conjunction(held) else {
        return host.rewrite(plan, config);
    };
    let Some(free) = conjunction(free) else {
        return Ok(Transformed::no(plan));
    };
    let free = Filter::try_new(free, input)?;
    let below = host.rewrite(LogicalPlan::Filter(free), config)?;
    let changed = below.transformed;
    let above = LogicalPlan::Filter(Filter::try_new(held, Arc::new(below.data))?);
    // Unchanged below, the plan as it came is the same filter in another order.
    Ok(if changed {
        Transformed::yes(above)
    } else {
        Transformed::no(plan)
    })
}

/// The predicates of a stack of filters, the lowest first, and what lies below it: the host merges such a stack
/// before it pushes it.
fn stacked_filters(filter: &Filter) -> (Vec<Expr>, Arc<LogicalPlan>) {
    let (mut predicates, input) = match filter.input.as_ref() {
        LogicalPlan::Filter(below) => stacked_filters(below),
        _ => (Vec::new(), Arc::clone(&filter.input)),
    };
    predicates.extend(split_conjunction_owned(filter.predicate.clone()));
    (predicates, input)
}

fn has_to_stay(predicate: &Expr, aggregate: &Aggregate) -> bool {
    predicate.is_volatile()
        || reads_volatile_key(predicate, aggregate)
        || (predicate.column_refs().is_empty() && answers_without_rows(aggregate))
}

/// Whether a predicate reads a key such as `floor(random() * 2)`: below the grouping it would be made once more.
fn reads_volatile_key(predicate: &Expr, aggregate: &Aggregate) -> bool {
    let keys = aggregate.group_expr.iter();
    let volatile: Vec<_> = keys.filter(|key| key.is_volatile()).collect();
    let columns = predicate.column_refs();
    volatile.iter().any(|key| match key {
        Expr::GroupingSet(_) => !columns.is_empty(),
        key => columns
            .iter()
            .any(|column| column.name == key.qualified_name().1),
    })
}

/// Whether the aggregation answers a row for an empty input.
fn answers_without_rows(aggregate: &Aggregate) -> bool {
    match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(GroupingSet::Cube(_) | GroupingSet::Rollup(_))] | [] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        _ => false,
    }
}
