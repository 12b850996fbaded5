//! Holds the host's two-step plan for one DISTINCT argument back where it would sum sums.
//!
//! In: a plan on its way through the host's `single_distinct_aggregation_to_group_by`. Out: what that rule makes of
//! it, or the plan unchanged.
//! Invariant: an integer, decimal or duration sum is finished once. The two-step plan of
//! `sum(x), count(DISTINCT y)` sums x per y first: a sum per y may not fit its type where the whole sum does.
//! Not here: the same plan without such a sum, which is the host's.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The host's rule with the exception above.
#[derive(Debug)]
pub(super) struct KeepExactSums {
    host: Arc<dyn OptimizerRule + Send + Sync>,
}

impl KeepExactSums {
    pub(super) fn new(host: Arc<dyn OptimizerRule + Send + Sync>) -> Self {
        Self { host }
    }
}

impl OptimizerRule for KeepExactSums {
    fn name(&self) -> &str {
        self.host.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.host.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        self.host.supports_rewrite()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if has_exact_sum(aggregate)? => {
                Ok(Transformed::no(plan))
            }
            _ => self.host.rewrite(plan, config),
        }
    }
}

fn has_exact_sum(aggregate: &Aggregate) -> Result<bool> {
    for expr in &aggregate.aggr_expr {
        if let Expr::AggregateFunction(function) = expr
            && function.func.name() == "sum"
            && !function.params.distinct
            && !expr.get_type(aggregate.input.schema())?.is_floating()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
