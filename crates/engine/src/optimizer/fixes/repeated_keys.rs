//! Keys that DataFusion's `eliminate_group_by_constant` leaves out, held back where two columns would have one name.
//!
//! In: a plan on its way through that rule. Out: what the rule makes of it, or the plan unchanged.
//! Invariant: `GROUP BY x, CAST(x AS BIGINT)` groups by both: the rule puts the cast into a projection beside `x`, where names
//! leave casts out, and fails.
//! Not here: names that a SELECT gives twice (sql/repeated_names.rs).

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule with the exception above.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Aggregate(aggregate) = &plan {
        let columns = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
        let mut known = HashSet::new();
        let mut names = columns.map(|column| column.schema_name().to_string());
        if !names.all(|name| known.insert(name)) {
            return Ok(Transformed::no(plan));
        }
    }
    datafusion.rewrite(plan, config)
}
