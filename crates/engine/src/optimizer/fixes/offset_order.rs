//! Keeps the ORDER BY below an OFFSET.
//!
//! In: a physical plan before DataFusion removes sorts that nothing needs. Out: the same plan, in which a limit over sorted
//! rows says that it needs their order.
//! Invariant: which rows an OFFSET leaves out is decided by the order that the query gives them. DataFusion keeps a sort with a
//! number of rows to fetch, and drops one without below a limit that only skips.
//! Not here: LIMIT, which becomes a part of the sort.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// The rule.
#[derive(Debug)]
pub(super) struct KeepOrderBelowOffset;

impl PhysicalOptimizerRule for KeepOrderBelowOffset {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() else {
                return Ok(Transformed::no(plan));
            };
            let order = limit.input().output_ordering().cloned();
            if order.is_none() || limit.required_ordering().is_some() {
                return Ok(Transformed::no(plan));
            }
            let mut ordered =
                GlobalLimitExec::new(Arc::clone(limit.input()), limit.skip(), limit.fetch());
            ordered.set_required_ordering(order);
            Ok(Transformed::yes(Arc::new(ordered) as _))
        })
        .data()
    }

    fn name(&self) -> &str {
        "keep_order_below_offset"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
