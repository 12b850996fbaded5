//! Keys that DataFusion's `eliminate_group_by_constant` leaves out, held back where they count.
//!
//! In: a plan on its way through that rule. Out: what the rule makes of it, or the plan unchanged.
//! Invariant: `GROUP BY x, CAST(x AS BIGINT)` groups by both: the rule puts the cast into a projection beside `x`, where names
//! leave casts out, and fails. `GROUP BY x, 1 / x` has a group for each sign of zero: equal values of `x` do not decide the key.
//! Not here: names that a SELECT gives twice (sql/naming/repeated_names.rs).

use std::collections::HashSet;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::{Aggregate, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use grouse_groupby::keys::row::has_forms;

/// DataFusion's rule with the exceptions above.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Aggregate(aggregate) = &plan {
        let columns = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
        let mut known = HashSet::new();
        let mut names = columns.map(|column| column.schema_name().to_string());
        if !names.all(|name| known.insert(name)) || tells_apart(aggregate) {
            return Ok(Transformed::no(plan));
        }
    }
    datafusion.rewrite(plan, config)
}

/// Whether a key is computed from a column whose equal values may differ, as zeros do in their signs.
fn tells_apart(aggregate: &Aggregate) -> bool {
    let columns = aggregate.input.schema();
    let computed = (aggregate.group_expr.iter()).filter(|key| key.try_as_col().is_none());
    let mut read = computed.flat_map(|key| key.column_refs());
    read.any(|column| {
        let field = columns.field_from_column(column);
        field.is_ok_and(|field| has_forms(field.data_type()))
    })
}
