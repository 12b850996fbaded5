//! What the order of the input's streams means for aggregates with ORDER BY.
//!
//! In: aggregates as planned, the order that the input has by now. Out: aggregates that make use of it, and whether any
//! relies on it.
//! Invariant: computed anew whenever the input changes, so that no aggregate relies on an order that a later rule took.
//! Not here: what order an aggregate of DataFusion asks for (DataFusion's description of the aggregation).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::plan_datafusion_err;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr_common::sort_expr::OrderingRequirements;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::aggregate::native::sorts_itself;

/// The name of the node with the rows of a recursion's turn, where several places read them.
pub(crate) const TURN_ROWS: &str = "TurnRowsExec";

/// Nodes of a recursion: its result, and the rows of the turn before.
const RECURSION: [&str; 3] = ["RecursiveQueryExec", "WorkTableExec", TURN_ROWS];

/// How rows have to reach the builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputOrder {
    /// In any way: workers help each other out.
    Any,
    /// Each stream to a build of its own, in its order.
    Preserved,
}

/// The aggregates of one plan, fitted to the order of its input.
pub(super) struct Fitted {
    /// In output order.
    pub aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// How rows have to reach them.
    pub input_order: InputOrder,
}

/// Fits the aggregates of `described` to the order that its input has.
pub(super) fn fit(described: &AggregateExec) -> Result<Fitted> {
    let mut input_order = InputOrder::Any;
    let mut aggregates = Vec::with_capacity(described.aggr_expr().len());
    for aggregate in described.aggr_expr() {
        let (aggregate, relies) = fit_one(aggregate, described)?;
        if relies {
            input_order = InputOrder::Preserved;
        }
        aggregates.push(aggregate);
    }
    // `array_agg(x)` over a sorted subquery or a recursion: no order is promised, yet people expect it.
    let input = described.input();
    let sorted = input.output_ordering().is_some() || is_recursion(input);
    if sorted && aggregates.iter().any(|aggregate| collects(aggregate)) {
        input_order = InputOrder::Preserved;
    }
    Ok(Fitted {
        aggregates,
        input_order,
    })
}

/// The aggregate as it runs on this input, and whether it relies on the input's order.
fn fit_one(
    aggregate: &Arc<AggregateFunctionExpr>,
    described: &AggregateExec,
) -> Result<(Arc<AggregateFunctionExpr>, bool)> {
    let wanted = aggregate.order_bys();
    let as_is = Arc::clone(aggregate);
    if sorts_itself(aggregate, &described.input().schema())? {
        return Ok((as_is, false));
    }
    match aggregate.order_sensitivity() {
        AggregateOrderSensitivity::Insensitive => return Ok((as_is, false)),
        AggregateOrderSensitivity::HardRequirement => return Ok((as_is, true)),
        AggregateOrderSensitivity::SoftRequirement | AggregateOrderSensitivity::Beneficial => {}
    }
    let input = described.input().equivalence_properties();
    let given = input.ordering_satisfy(wanted.iter().cloned())?;
    let reverse = wanted.iter().map(|key| key.reverse());
    let (fitted, satisfied) = if given {
        (as_is, true)
    } else if input.ordering_satisfy(reverse)? {
        (aggregate.reverse_expr().map_or(as_is, Arc::new), true)
    } else {
        (as_is, false)
    };
    let name = fitted.name().to_string();
    let fitted = fitted.with_beneficial_ordering(satisfied)?;
    let missing =
        || plan_datafusion_err!("{name} does not say how it makes use of its input's order");
    Ok((Arc::new(fitted.ok_or_else(missing)?), satisfied))
}

/// The order that the input has to have: what DataFusion says, unless it is for aggregates alone that sort their rows themselves.
pub(super) fn required(described: &AggregateExec) -> Vec<Option<OrderingRequirements>> {
    use AggregateOrderSensitivity::{HardRequirement, SoftRequirement};
    let schema = described.input().schema();
    let asks = |aggregate: &&Arc<AggregateFunctionExpr>| {
        let sensitivity = aggregate.order_sensitivity();
        matches!(sensitivity, HardRequirement | SoftRequirement)
    };
    let asking: Vec<_> = described.aggr_expr().iter().filter(asks).collect();
    let sorts = |aggregate: &&Arc<_>| sorts_itself(aggregate, &schema).unwrap_or(false);
    match !asking.is_empty() && asking.iter().all(sorts) {
        true => vec![None],
        false => described.required_input_ordering(),
    }
}

/// True for aggregates whose result shows the order in which rows came.
fn collects(aggregate: &AggregateFunctionExpr) -> bool {
    const COLLECTING: [&str; 6] = [
        "array_agg",
        "string_agg",
        "first_value",
        "last_value",
        "nth_value",
        "any_value",
    ];
    COLLECTING.contains(&aggregate.fun().name())
}

/// True for aggregates whose result shows that order, and that are not given one.
pub(super) fn shows_order(aggregate: &AggregateFunctionExpr) -> bool {
    collects(aggregate) && aggregate.order_bys().is_empty()
}

/// Whether the rows are those of a recursion, in its order.
pub(crate) fn is_recursion(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_one = plan.output_partitioning().partition_count() == 1;
    let children = plan.children();
    let is_below = match (children.as_slice(), plan.maintains_input_order().as_slice()) {
        ([child], [true]) => is_recursion(child),
        _ => false,
    };
    is_one && (RECURSION.contains(&plan.name()) || is_below)
}
