//! Keys that DataFusion adds to those of a GROUP BY.
//!
//! In: a plan as it was planned. Out: the same plan, whose groupings have the keys that were written, and columns that these determine.
//! Invariant: a key that was written stays: its column has a place in the text, an added one has none.
//! DataFusion adds columns that keys determine, also by dependencies that do not hold: `GROUP BY a` then has more groups.
//! Not here: which dependencies hold (true_dependencies.rs).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, get_target_functional_dependencies};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

use crate::optimizer::fixes::each_plan;
use crate::optimizer::fixes::grouping::true_dependencies::with_true_ones;

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        let keys = match &plan {
            LogicalPlan::Aggregate(aggregate) => without_false_ones(aggregate)?,
            _ => None,
        };
        match (plan, keys) {
            (
                LogicalPlan::Aggregate(Aggregate {
                    input, aggr_expr, ..
                }),
                Some(keys),
            ) => {
                let groups = Aggregate::try_new(input, keys, aggr_expr)?;
                Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
            }
            (plan, _) => Ok(Transformed::no(plan)),
        }
    })
}

/// The keys without those that a false dependency has added; `None` if there is none.
fn without_false_ones(aggregate: &Aggregate) -> Result<Option<Vec<Expr>>> {
    let last = aggregate.group_expr.iter().rposition(is_written);
    let (written, added) = aggregate
        .group_expr
        .split_at(last.map_or(0, |last| last + 1));
    if written.is_empty() || added.is_empty() {
        return Ok(None);
    }
    let names: Vec<_> = written
        .iter()
        .map(|key| key.schema_name().to_string())
        .collect();
    let determined =
        |schema: &DFSchema| get_target_functional_dependencies(schema, &names).unwrap_or_default();
    let as_planned = aggregate.input.schema();
    let input = with_true_ones(aggregate.input.as_ref().clone())?.data;
    let (planned, holding) = (determined(as_planned), determined(input.schema()));
    let is_false = |key: &&Expr| {
        let column = key.try_as_col();
        let place = column.and_then(|column| as_planned.maybe_index_of_column(column));
        place.is_some_and(|place| planned.contains(&place) && !holding.contains(&place))
    };
    if !added.iter().any(|key| is_false(&key)) {
        return Ok(None);
    }
    let kept = added.iter().filter(|key| !is_false(key));
    Ok(Some(written.iter().chain(kept).cloned().collect()))
}

fn is_written(key: &Expr) -> bool {
    match key {
        Expr::Column(column) => column.spans.first().is_some(),
        _ => true,
    }
}
