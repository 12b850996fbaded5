//! The last rule of a client's session: it puts in a plan's place the node that says where the plan runs.
//!
//! In: a plan without choices that belong to one machine. Out: the same under `ClusterExec` or `HereExec`. What writes files
//! stays above it, in the client.
//! Not here: what is distributed (distribute.rs).

use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

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
}

impl PlacementRule {
    /// That of a statement in a session that has this connection.
    pub fn new(scheduler: Scheduler, shape: ClusterShape, figures: Figures) -> PlacementRule {
        PlacementRule {
            scheduler,
            shape,
            figures,
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
        Ok(match distribute(Arc::clone(&plan), config, self.shape)? {
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
