//! The optimizer rule that puts our operator in the place of DataFusion's.
//!
//! In: a physical plan directly before DataFusion's `EnsureRequirements`. Out: the same plan in which every `AggregateExec` (a
//! pair of partial and final, or a single one) is a `GroupByExec`, a HAVING above it included. So is a window of row numbers that
//! is cut.
//! Invariant: an `AggregateExec` that is left is the stated fallback, visible as such in EXPLAIN. The input's order lets
//! DataFusion stream and is right, the input never ends, or the operator cannot take it, as where a key type has no encoding.
//! Not here: the node (exec/node.rs), projections below (fold_projection.rs), windows (top_n_per_group.rs), LIMIT
//! (limited_groups.rs), aggregates that share states (shared_states.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::EmbeddedProjection;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use crate::aggregate::native::is_extreme;
use crate::exec::{GroupByExec, Replaced, Tuning};
use crate::optimizer::fold_projection::folded;
use crate::optimizer::limited_groups;
use crate::optimizer::shared_states;
use crate::optimizer::top_n_per_group;
use crate::runtime::options::{GroupByOperator, SessionOptions};

/// Replaces DataFusion's aggregation by ours.
pub(super) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = SessionOptions::of(config);
    let tuning = tuning(&options, config);
    match options.group_by_operator {
        GroupByOperator::DataFusion => plan.transform_up(|node| correct(node, tuning)).data(),
        _ => plan.transform_up(|node| replace(node, tuning)).data(),
    }
}

fn tuning(options: &SessionOptions, config: &ConfigOptions) -> Tuning {
    let workers = config.execution.target_partitions.max(1);
    Tuning {
        workers,
        table: options.group_by_table,
        sizes: options.group_by_sizes.sizes(workers),
    }
}

fn replace(
    node: Arc<dyn ExecutionPlan>,
    tuning: Tuning,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(first_rows) = top_n_per_group::replacing(&node, tuning)? {
        return Ok(Transformed::yes(first_rows));
    }
    if let Some(having) = having(&node)? {
        return Ok(Transformed::yes(having));
    }
    if let Some(limited) = limited_groups::limited(&node)? {
        return Ok(Transformed::yes(limited));
    }
    let Some(replaced) =
        aggregation(&node).filter(|replaced| !better_in_datafusion(replaced.first))
    else {
        return Ok(Transformed::no(node));
    };
    // Whatever cannot be made anew stays where it is.
    let folded = folded(replaced.first).ok().flatten();
    let replaced = Replaced {
        first: folded.as_ref().unwrap_or(replaced.first),
        last: replaced.last,
    };
    if let Some(shared) = shared_states::replacing(&replaced, tuning)? {
        return Ok(Transformed::yes(shared));
    }
    match GroupByExec::replacing(&replaced, tuning) {
        Ok(ours) => Ok(Transformed::yes(Arc::new(ours))),
        // DataFusion's node stays and shows in EXPLAIN; if the query itself is wrong, it says so when it runs.
        Err(_) => Ok(Transformed::no(node)),
    }
}

/// Replaces what DataFusion gets wrong, where it is to group itself.
fn correct(
    node: Arc<dyn ExecutionPlan>,
    tuning: Tuning,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    match aggregation(&node) {
        Some(replaced) if is_wrong_in_datafusion(replaced.first) => replace(node, tuning),
        _ => Ok(Transformed::no(node)),
    }
}

/// True of an aggregation that gives another answer in DataFusion, or none: of floats that it forgets or, as keys, tells apart,
/// and of DISTINCT that it does not know.
fn is_wrong_in_datafusion(first: &AggregateExec) -> bool {
    let schema = first.input_schema();
    let keys = first.group_expr().expr().iter();
    let mut keys = keys.filter_map(|(key, _)| key.data_type(&schema).ok());
    let is_lost = |aggregate: &AggregateFunctionExpr| {
        aggregate.is_distinct() && DISTINCT_LOST.contains(&aggregate.fun().name())
    };
    keys.any(|key| key.is_nested() || key.is_floating())
        || first
            .aggr_expr()
            .iter()
            .any(|aggregate| forgets(aggregate) || is_lost(aggregate))
}

/// Aggregates whose DISTINCT DataFusion gets wrong or refuses.
const DISTINCT_LOST: [&str; 7] = [
    "bit_xor",
    "var",
    "var_pop",
    "var_samp",
    "stddev",
    "stddev_pop",
    "stddev_samp",
];

/// The group-by that a HAVING filters, with the filter in it.
fn having(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let filter = node.downcast_ref::<FilterExec>();
    let Some(filter) = filter.filter(|filter| filter.fetch().is_none()) else {
        return Ok(None);
    };
    let Some(group_by) = filter.input().downcast_ref::<GroupByExec>() else {
        return Ok(None);
    };
    if is_volatile(filter.predicate()) {
        return Ok(None);
    }
    let having = group_by.having(filter.predicate())?;
    let projection = filter.projection().as_ref().map(|places| places.to_vec());
    Ok(Some(Arc::new(having.with_projection(projection)?)))
}

/// The whole aggregation whose last node `node` is.
fn aggregation(node: &Arc<dyn ExecutionPlan>) -> Option<Replaced<'_>> {
    let last = node.downcast_ref::<AggregateExec>()?;
    match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => {
            Some(Replaced { first: last, last })
        }
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let first = last.input().downcast_ref::<AggregateExec>()?;
            let pair = *first.mode() == AggregateMode::Partial
                && first.aggr_expr().len() == last.aggr_expr().len();
            pair.then_some(Replaced { first, last })
        }
        AggregateMode::Partial | AggregateMode::PartialReduce => None,
    }
}

/// True where DataFusion's streaming aggregation needs neither a table nor the end of the input.
fn better_in_datafusion(first: &AggregateExec) -> bool {
    let input = first.input();
    // Without an order of the input, "sorted" only means that every key is a constant.
    let streams =
        *first.input_order_mode() == InputOrderMode::Sorted && input.output_ordering().is_some();
    let is_right = !first.aggr_expr().iter().any(|aggregate| forgets(aggregate));
    streams && is_right || input.boundedness().is_unbounded()
}

/// True where DataFusion's states are wrong: its `min` and `max` of floats begin anew after a NaN.
fn forgets(aggregate: &AggregateFunctionExpr) -> bool {
    is_extreme(aggregate.fun()) && aggregate.field().data_type().is_floating()
}
