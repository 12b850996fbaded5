//! A LIMIT above a sort goes with the pass in which the sort takes its number of rows.
//!
//! In: a plan on its way through DataFusion's `push_down_limit`. Out: what that rule makes of it, twice where it has to look twice.
//! Invariant: the plan that DataFusion's passes end with.
//! Not here: what is pushed where.
//!
//! DataFusion lets the sort have the number in one pass over the plan and drops the LIMIT in the next. So each ORDER BY … LIMIT took
//! three passes, the last of which finds that nothing changes; each was a fifteenth of the time of a query without rows.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule, and the same once more of a LIMIT whose sort has just taken it.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let pushed = datafusion.rewrite(plan, config)?;
    if !pushed.transformed || !is_above_sort(&pushed.data) {
        return Ok(pushed);
    }
    let mut again = datafusion.rewrite(pushed.data, config)?;
    again.transformed = true;
    Ok(again)
}

fn is_above_sort(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(limit) => matches!(limit.input.as_ref(), LogicalPlan::Sort(_)),
        _ => false,
    }
}
