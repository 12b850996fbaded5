//! Sessions whose plans go there and back before they run, in one process: for tests.
//!
//! In: the size of a cluster. Out: a session, and what became of its plans.
//! Invariant: what runs has been a message.
//! Not here: scheduler, executors, slices of stages.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use grouse::{Session, SessionOptions, distribution};
use parking_lot::Mutex;
use prost::Message;

use crate::codec::codec;
use crate::distribute::{ClusterShape, Distribution, distribute, encoded, staged};
use crate::lowering::lower;

/// What became of plans.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// Those that went there and back.
    pub distributed: usize,
    /// Those that stayed, by their reasons.
    pub here: BTreeMap<String, usize>,
    /// Those that were refused, by what was said.
    pub refused: BTreeMap<String, usize>,
    /// The last plan that went.
    pub last: String,
}

/// The last rule of a session: the plan goes there and back.
struct ThereAndBack {
    machine: Session,
    shape: ClusterShape,
    /// Whether plans that read no files go, too.
    all: bool,
    outcomes: Arc<Mutex<Outcomes>>,
}

impl fmt::Debug for ThereAndBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThereAndBack")
    }
}

/// The plan of its message's bytes.
pub fn there_and_back(
    plan: &Arc<dyn ExecutionPlan>,
    context: &TaskContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let codec = codec();
    let bytes = encoded(plan, codec.as_ref())?.encode_to_vec();
    let message = PhysicalPlanNode::try_decode(&bytes)?;
    message.try_into_physical_plan(context, codec.as_ref())
}

impl ThereAndBack {
    fn decided(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Distribution> {
        match distribute(Arc::clone(&plan), config, self.shape)? {
            Distribution::Here { reason } if self.all && reason == crate::distribute::NO_FILES => {
                staged(plan, config, self.shape).map(Distribution::Cluster)
            }
            decided => Ok(decided),
        }
    }
}

impl PhysicalOptimizerRule for ThereAndBack {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let there = match self.decided(Arc::clone(&plan), config) {
            Ok(Distribution::Cluster(there)) => there,
            Ok(Distribution::Here { reason }) => {
                *self.outcomes.lock().here.entry(reason).or_default() += 1;
                return Ok(plan);
            }
            Err(error) => {
                let said = error.strip_backtrace();
                *self.outcomes.lock().refused.entry(said).or_default() += 1;
                return Ok(plan);
            }
        };
        let context = self.machine.context().task_ctx();
        let back = there_and_back(&there, &context)?;
        let text = displayable(there.as_ref()).indent(false).to_string();
        let mut outcomes = self.outcomes.lock();
        outcomes.distributed += 1;
        outcomes.last = text;
        drop(outcomes);
        lower(back, &self.machine, config)
    }

    fn name(&self) -> &str {
        "there_and_back"
    }

    fn schema_check(&self) -> bool {
        false
    }
}

/// A session whose plans go there and back, `all` of them or those that read files.
pub fn rehearsing(
    options: SessionOptions,
    shape: ClusterShape,
    all: bool,
) -> Result<(Session, Arc<Mutex<Outcomes>>)> {
    let session = Session::new(options).map_err(DataFusionError::from)?;
    let outcomes = Arc::new(Mutex::new(Outcomes::default()));
    let rule = ThereAndBack {
        // Files and memory are those of the one process that there is.
        machine: session.clone(),
        shape,
        all,
        outcomes: Arc::clone(&outcomes),
    };
    let state = session.context().state();
    let planning = distribution::planning_state(state, shape.partitions);
    let planning = planning.map_err(DataFusionError::from)?;
    let mut rules = planning.physical_optimizers().to_vec();
    rules.push(Arc::new(rule));
    let planning = SessionStateBuilder::new_from_existing(planning)
        .with_physical_optimizer_rules(rules)
        .build();
    *session.context().state_ref().write() = planning;
    Ok((session, outcomes))
}
