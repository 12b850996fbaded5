//! Rules that are functions of a plan.
//!
//! In: a name and a function. Out: the rule as DataFusion wants it.
//! Not here: which rules there are, and where they stand (passes.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// A function under the name that EXPLAIN VERBOSE shows.
pub(super) struct RuleFunction<F> {
    name: &'static str,
    function: F,
}

/// A rule of the analyzer.
pub(super) fn analysis<F>(name: &'static str, function: F) -> RuleFunction<F>
where
    F: Fn(LogicalPlan, &ConfigOptions) -> Result<LogicalPlan>,
{
    RuleFunction { name, function }
}

/// A rule of the physical optimizer.
pub(super) fn physical<F>(name: &'static str, function: F) -> RuleFunction<F>
where
    F: Fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>,
{
    RuleFunction { name, function }
}

impl<F> fmt::Debug for RuleFunction<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F> AnalyzerRule for RuleFunction<F>
where
    F: Fn(LogicalPlan, &ConfigOptions) -> Result<LogicalPlan>,
{
    fn name(&self) -> &str {
        self.name
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        (self.function)(plan, config)
    }
}

impl<F> PhysicalOptimizerRule for RuleFunction<F>
where
    F: Fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>
        + Send
        + Sync
        + 'static,
{
    fn name(&self) -> &str {
        self.name
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        (self.function)(plan, config)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a rule of the logical optimizer does with a plan, or with a node of it.
type PlanRewrite = fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>;

/// A rule of the logical optimizer.
#[derive(Debug)]
pub(super) struct LogicalFunction {
    name: &'static str,
    order: Option<ApplyOrder>,
    rewrite: PlanRewrite,
}

/// A rule of the logical optimizer that sees each node, its inputs before it.
pub(super) fn bottom_up(name: &'static str, rewrite: PlanRewrite) -> LogicalFunction {
    let order = Some(ApplyOrder::BottomUp);
    LogicalFunction {
        name,
        order,
        rewrite,
    }
}

/// A rule of the logical optimizer that sees each node before its inputs.
pub(super) fn top_down(name: &'static str, rewrite: PlanRewrite) -> LogicalFunction {
    let order = Some(ApplyOrder::TopDown);
    LogicalFunction {
        name,
        order,
        rewrite,
    }
}

/// A rule of the logical optimizer that sees the whole plan.
pub(super) fn whole(name: &'static str, rewrite: PlanRewrite) -> LogicalFunction {
    LogicalFunction {
        name,
        order: None,
        rewrite,
    }
}

impl OptimizerRule for LogicalFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.order
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(plan)
    }
}
