//! Holds predicates above a plan where pushing them below changes the answer, or makes an error of a row that is no part of it.
//!
//! In: a plan on its way through DataFusion's `push_down_filter`. Out: what that rule makes of it, with the predicates
//! that have to stay put back on top.
//! Invariant: a predicate goes below an aggregation only if it gives every row of a group the same answer as the group. A
//! volatile one does not (`random() < 0.5` would drop rows, not groups), nor one of a volatile key. One without columns does,
//! but not for the groups that exist without rows. DISTINCT ON chooses among all rows, so only its keys may be filtered below.
//! A predicate that can fail comes after those that cannot, and stays above a join.
//! Not here: the physical filter pushdown (short_circuit.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::logical_plan::Distinct;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, GroupingSet, Join, JoinType, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::optimizer::fixes::failing::fallible::can_fail;

/// DataFusion's rule with the exceptions above.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let filter = match &plan {
        LogicalPlan::Filter(filter) => filter,
        LogicalPlan::Join(join) => match without_fallible(join)? {
            Some((join, fallible)) => {
                return rewrite_join(datafusion, plan, (join, fallible), config);
            }
            None => return datafusion.rewrite(plan, config),
        },
        _ => return datafusion.rewrite(plan, config),
    };
    let (predicates, input) = stacked_filters(filter);
    let (fallible, sure): (Vec<_>, Vec<_>) = predicates
        .into_iter()
        .partition(|predicate| can_fail(predicate, input.schema()));
    let (held, mut free): (Vec<_>, Vec<_>) = sure
        .into_iter()
        .partition(|predicate| has_to_stay(predicate, &input));
    // Where it is alone, a predicate that can fail is the first anyway.
    let holds_fallible = !held.is_empty() || !free.is_empty() || leaves_rows_out(&input);
    let mut above = held;
    match holds_fallible {
        true => above.extend(fallible),
        false => free.extend(fallible),
    }
    if above.is_empty() {
        return datafusion.rewrite(plan, config);
    }
    let Some(free) = conjunction(free) else {
        return Ok(Transformed::no(plan));
    };
    let free = Filter::try_new(free, input)?;
    let below = datafusion.rewrite(LogicalPlan::Filter(free), config)?;
    if !below.transformed {
        // The plan as it came is the same filters, in one or apart.
        return Ok(Transformed::no(plan));
    }
    let mut plan = below.data;
    if let Some(above) = conjunction(above) {
        plan = LogicalPlan::Filter(Filter::try_new(above, Arc::new(plan))?);
    }
    Ok(Transformed::yes(plan))
}

/// A join's conditions that can fail stay where both sides' rows have met.
fn rewrite_join(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    (join, fallible): (Join, Expr),
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let is_inner = join.join_type == JoinType::Inner;
    let rewritten = datafusion.rewrite(LogicalPlan::Join(join), config)?;
    if is_inner {
        let above = Filter::try_new(fallible, Arc::new(rewritten.data))?;
        return Ok(Transformed::yes(LogicalPlan::Filter(above)));
    }
    match rewritten.data {
        LogicalPlan::Join(mut join) if rewritten.transformed => {
            join.filter = conjunction(join.filter.into_iter().chain([fallible]));
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        _ => Ok(Transformed::no(plan)),
    }
}

/// The join without the conditions that can fail, and these; `None` if there are none.
fn without_fallible(join: &Join) -> Result<Option<(Join, Expr)>> {
    let Some(filter) = &join.filter else {
        return Ok(None);
    };
    let schema = join.left.schema().join(join.right.schema())?;
    let (fallible, sure): (Vec<_>, Vec<_>) = split_conjunction_owned(filter.clone())
        .into_iter()
        .partition(|predicate| can_fail(predicate, &schema));
    let Some(fallible) = conjunction(fallible) else {
        return Ok(None);
    };
    let join = Join {
        filter: conjunction(sure),
        ..join.clone()
    };
    Ok(Some((join, fallible)))
}

/// The predicates of a stack of filters, the lowest first, and what lies below it: DataFusion merges such a stack
/// before it pushes it.
fn stacked_filters(filter: &Filter) -> (Vec<Expr>, Arc<LogicalPlan>) {
    let (mut predicates, input) = match filter.input.as_ref() {
        LogicalPlan::Filter(below) => stacked_filters(below),
        _ => (Vec::new(), Arc::clone(&filter.input)),
    };
    predicates.extend(split_conjunction_owned(filter.predicate.clone()));
    (predicates, input)
}

/// Whether rows of the inputs of a plan may be none of its rows.
fn leaves_rows_out(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Join(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::Distinct(Distinct::On(_))
    )
}

fn has_to_stay(predicate: &Expr, input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Aggregate(aggregate) => {
            predicate.is_volatile()
                || reads_volatile_key(predicate, aggregate)
                || (predicate.column_refs().is_empty() && answers_without_rows(aggregate))
        }
        LogicalPlan::Window(_) | LogicalPlan::Distinct(Distinct::All(_)) => predicate.is_volatile(),
        LogicalPlan::Extension(_) => true,
        LogicalPlan::Distinct(Distinct::On(distinct)) => {
            let keys = distinct.on_expr.iter();
            let keys = keys.filter_map(|key| match key {
                Expr::Column(column) => Some(column.name.as_str()),
                _ => None,
            });
            let keys: Vec<_> = keys.collect();
            let is_key = |name: &str| keys.contains(&name);
            predicate.is_volatile()
                || !predicate
                    .column_refs()
                    .iter()
                    .all(|column| is_key(&column.name))
        }
        _ => false,
    }
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
