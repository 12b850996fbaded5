//! The last rule of a client's session: it puts in a plan's place the node that says where the plan runs.
//!
//! In: a plan without choices that belong to one machine. Out: the same under `ClusterExec` or `HereExec`. What writes files
//! stays above it, in the client.
//! Not here: what is distributed (distribute.rs).

use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use grouse::Error;

use crate::distribute::{ClusterShape, Distribution, distribute};
use crate::exec::{ClusterExec, Figures, HereExec};
use crate::scheduler::Scheduler;
use crate::settings;

/// Places plans on a cluster.
#[derive(Debug)]
pub struct PlacementRule {
    scheduler: Scheduler,
    shape: ClusterShape,
    figures: Figures,
    /// Whether plans are shown and not run.
    explains: bool,
}

impl PlacementRule {
    /// That of `statement` in a session that has this connection.
    pub fn new(
        scheduler: Scheduler,
        shape: ClusterShape,
        statement: &LogicalPlan,
    ) -> PlacementRule {
        PlacementRule {
            scheduler,
            shape,
            figures: Figures::of(statement),
            explains: matches!(statement, LogicalPlan::Explain(_)),
        }
    }

    fn placed(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if plan.is::<DataSinkExec>() {
            let [input] = plan.children()[..] else {
                return internal_err!("{} has one input", plan.name());
            };
            let input = self.placed(Arc::clone(input), config)?;
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            return plan.replace_children(vec![input], options);
        }
        let decided = match distribute(Arc::clone(&plan), config, self.shape) {
            // EXPLAIN would leave the plan out, and the error with it.
            Err(error) if self.explains => {
                let why = Error::from(error).to_string();
                return Ok(Arc::new(HereExec::refused(plan, &why)));
            }
            decided => decided?,
        };
        Ok(match decided {
            Distribution::Cluster(plan) => Arc::new(ClusterExec::new(
                plan,
                self.scheduler.clone(),
                self.shape.vcores,
                settings::sent(config).into(),
                self.figures,
            )),
            Distribution::Here { reason } => Arc::new(HereExec::new(plan, &reason)),
        })
    }
}

impl PhysicalOptimizerRule for PlacementRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.placed(plan, config)
    }

    fn name(&self) -> &str {
        "PlacementRule"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
