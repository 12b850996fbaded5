//! Passes: which rules see a plan, and in which order.
//!
//! In: DataFusion's lists of rules. Out: the same lists with ours in place.
//! Invariant: our operators stand before any exchange is planned: without DataFusion's rule for these a session does not begin.
//! Not here: what a rule does.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use super::fixes;
use crate::error::{Error, Result};
use crate::expr::arithmetic::WordArithmetic;
use crate::functions;
use crate::optimizer::averages::SharedAverages;
use crate::optimizer::filters::OwnFilters;
use crate::optimizer::group_by::GroupByRule;
use crate::optimizer::scans::codes::CodesRule;
use crate::optimizer::scans::morsels::MorselsRule;
use crate::optimizer::shifted_sums::ShiftedSums;
use crate::runtime::memory::SessionPool;
use crate::scan::stores::Stores;
use crate::scan::writes::WholeFilesRule;

/// Planners that see an expression before DataFusion's do.
pub(crate) fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
    let mut planners = fixes::expr_planners();
    planners.push(Arc::new(functions::StandingFunctions));
    planners
}

/// The logical rules, of which ours for sums and averages see arguments as they were written, and that for averages once more
/// only aggregates that are needed.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = fixes::optimizer_rules();
    rules.insert(0, Arc::new(ShiftedSums));
    rules.insert(1, Arc::new(SharedAverages::AsWritten));
    rules.push(Arc::new(SharedAverages::AsNeeded));
    rules
}

/// Our physical optimizer rules; they run directly before DataFusion's `EnsureRequirements`, so that no exchange is
/// planned below an operator of ours.
fn operator_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    vec![Arc::new(GroupByRule)]
}

/// DataFusion's rule that plans exchanges and sorts.
const ENSURE_REQUIREMENTS: &str = "EnsureRequirements";

/// DataFusion's rule that checks the finished plan.
const SANITY_CHECK: &str = "SanityCheckPlan";

/// DataFusion's physical rules with ours in place.
pub(crate) fn physical_optimizer_rules(
    runtime: &RuntimeEnv,
    stores: &Arc<Stores>,
    pool: &Arc<SessionPool>,
) -> Result<Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let at = rules
        .iter()
        .position(|rule| rule.name() == ENSURE_REQUIREMENTS);
    let at =
        at.ok_or_else(|| Error::Internal(format!("the host has no rule {ENSURE_REQUIREMENTS}")))?;
    rules.splice(at..at, operator_rules());
    // Last but for DataFusion's check of the whole plan: no rule may see the types of codes.
    let footers = runtime.cache_manager.get_file_metadata_cache();
    let at = rules.iter().position(|rule| rule.name() == SANITY_CHECK);
    let at = at.unwrap_or(rules.len());
    let scans: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 3] = [
        Arc::new(MorselsRule::new(
            Arc::clone(&footers),
            Arc::clone(stores),
            Arc::clone(pool),
        )),
        Arc::new(CodesRule::new(footers)),
        Arc::new(OwnFilters),
    ];
    rules.splice(at..at, scans);
    let mut rules = fixes::physical_rules(rules);
    // After the first, which finds in remainders what cannot overflow; before all that compare, move and merge expressions.
    rules.insert(1, Arc::new(WordArithmetic));
    rules.push(Arc::new(WholeFilesRule));
    Ok(rules)
}
