//! The door for clusters: statements that other machines run.
//!
//! In: an address, the state that plans a statement here. Out: the state that plans it for the machines at that address.
//! Invariant: without an address nothing changes; a program that reaches no clusters says so instead of running a statement here.
//! Not here: what is distributed, how it travels, who runs it (crate `grouse-cluster`).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::Session;
use crate::error::{Error, Result};
use crate::runtime::options::SessionOptions;
use crate::sql::expand::hidden;

/// Runs plans on other machines.
#[async_trait]
pub trait RemoteExecution: fmt::Debug + Send + Sync {
    /// An error unless `address` is one that the option `cluster` may have; nobody is asked there.
    fn check(&self, address: &str) -> Result<()>;

    /// The same state with the options and rules by which `plan` is planned for the machines at `address`. The last rule puts
    /// what runs a plan there in its place.
    async fn state(
        &self,
        address: &str,
        state: SessionState,
        plan: &LogicalPlan,
    ) -> Result<SessionState>;
}

impl Session {
    /// Lets the option `cluster` name clusters that `remote` reaches; what was given first stays. An error where the options
    /// name one already that is none.
    pub fn reach_clusters_by(&self, remote: Arc<dyn RemoteExecution>) -> Result<()> {
        let _ = self.shared.remote.set(remote);
        self.check_cluster(&self.options())
    }

    /// An error unless the cluster that the options name is one.
    pub(super) fn check_cluster(&self, options: &SessionOptions) -> Result<()> {
        match (&options.cluster, self.shared.remote.get()) {
            (Some(address), Some(remote)) => remote.check(address),
            _ => Ok(()),
        }
    }

    /// The state that plans a statement where the options say it runs.
    pub(super) async fn for_cluster(
        &self,
        state: SessionState,
        plan: &LogicalPlan,
    ) -> Result<SessionState> {
        let options = SessionOptions::of(state.config_options());
        let refused = |message: &str| Error::invalid("cluster", message.to_string());
        let Some(address) = options.cluster else {
            return Ok(state);
        };
        // What is done already, and what numbers the rows of a table in memory: it looks at all of them in their order.
        let is_done = matches!(plan, LogicalPlan::EmptyRelation(_));
        if is_done || hidden::counts_rows(plan) {
            return Ok(state);
        }
        if !options.allow_network {
            return Err(refused("allow_network is off"));
        }
        match self.shared.remote.get() {
            Some(remote) => remote.state(&address, state, plan).await,
            None => Err(refused("this program reaches no clusters")),
        }
    }
}
