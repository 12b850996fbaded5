//! What the shell and the Python package give their sessions, so that the option `cluster` works.
//!
//! In: an address and the state that plans a statement. Out: the state that plans it for the cluster there.
//! Invariant: one connection per address, made at the first statement; a cluster that grows or shrinks is seen by the next one.
//! Not here: what is asked of the scheduler (scheduler.rs), where a plan runs (placement.rs).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use grouse::{RemoteExecution, Result, distribution};
use parking_lot::Mutex;

use crate::address::Address;
use crate::distribute::ClusterShape;
use crate::placement::PlacementRule;
use crate::scheduler::Scheduler;
use crate::settings::{OF_PLANS, PARTITIONS};

/// Connections of one session to clusters.
#[derive(Debug, Default)]
pub struct Clusters(Mutex<HashMap<Address, Scheduler>>);

impl Clusters {
    /// The scheduler there, and its vcores. A connection that has broken is made anew.
    async fn reached(&self, address: &Address) -> Result<(Scheduler, usize)> {
        let known = self.0.lock().get(address).cloned();
        if let Some(scheduler) = known
            && let Ok(vcores) = scheduler.vcores().await
        {
            return Ok((scheduler, vcores));
        }
        let scheduler = Scheduler::connect(address).await?;
        let vcores = scheduler.vcores().await?;
        self.0.lock().insert(address.clone(), scheduler.clone());
        Ok((scheduler, vcores))
    }
}

#[async_trait]
impl RemoteExecution for Clusters {
    fn check(&self, address: &str) -> Result<()> {
        Address::parse(address).map(drop)
    }

    async fn state(
        &self,
        address: &str,
        state: SessionState,
        plan: &LogicalPlan,
    ) -> Result<SessionState> {
        let address = Address::parse(address)?;
        let (scheduler, vcores) = self.reached(&address).await?;
        let shape = ClusterShape {
            vcores,
            partitions: vcores,
        };
        let rule = PlacementRule::new(scheduler, shape, plan);
        let planning = distribution::planning_state(state, shape.partitions)?;
        let mut builder = SessionStateBuilder::new_from_existing(planning)
            .with_physical_optimizer_rule(Arc::new(rule));
        // The builder's own configuration: that of the state would make the default catalog anew.
        if let Some(config) = builder.config() {
            let options = config.options_mut();
            for (name, value, _) in OF_PLANS {
                options.set(name, value)?;
            }
            options.set(PARTITIONS, &shape.partitions.to_string())?;
        }
        Ok(builder.build())
    }
}
