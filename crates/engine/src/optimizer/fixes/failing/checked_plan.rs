//! The rule that checks integer arithmetic wherever a plan has it.
//!
//! In: a physical plan as DataFusion's planner made it, before all rules of DataFusion. Out: the same plan with checked expressions.
//! Invariant: the rule is before DataFusion's, because those compare, move and merge expressions: they have to meet the same
//! one everywhere, and what they make of it stays checked.
//! Not here: which expressions are reached (plan_expressions.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;

use crate::expr::plan_expressions::exchanged;
use crate::optimizer::fixes::failing::checked::{checked, checked_to_travel};

/// The rule.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| exchanged(node, &checked)).data()
}

/// The rule of a plan that other machines run.
pub(in crate::optimizer) fn optimize_to_travel(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| exchanged(node, &checked_to_travel))
        .data()
}
