//! The optimizer rule that gives groupings stages within one process, as a cluster has them over many.
//!
//! In: a plan whose groupings are ours, exchanges and filters in their places. Out: the same plan, where the test option asks for
//! it with stages. Each grouping that can have them is a partial grouping, an exchange by the keys and a final grouping.
//! Invariant: answers stay; readers below choose their forms afterwards, as they would on the machine that runs the partial
//! stage.
//! Not here: the stages (exec/node/stages.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::GroupByExec;
use crate::runtime::options::SessionOptions;

/// Puts stages in the place of whole groupings.
pub(super) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    match SessionOptions::of(config).group_by_tasks {
        0 => Ok(plan),
        tasks => GroupByExec::exchanged_in(plan, |group_by, _| group_by.in_stages(tasks)),
    }
}
