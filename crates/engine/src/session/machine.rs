//! A session as one of the machines that run a plan.
//!
//! In: a part of a plan, its options, its error. Out: the part with this machine's choices; the error with its file.
//! Invariant: threads, memory and folders are the session's, whatever the options of the plan say.
//! Not here: the choices (distribution/lowering.rs).

use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;

use super::Session;
use crate::distribution::lowered;
use crate::error::{Error, Result};
use crate::optimizer::passes::Scans;
use crate::scan::error_location::locate_error;

impl Session {
    /// Stores, memory and disks that the session's queries use.
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        self.context().runtime_env()
    }

    /// A part of a plan with this machine's choices: readers, pieces, codes and filters. Its scans have to read here.
    pub fn lower(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scans = Scans {
            footers: self.runtime().cache_manager.get_file_metadata_cache(),
            stores: Arc::clone(&self.shared.stores),
            pool: Arc::clone(&self.shared.pool),
        };
        let threads = self.options().threads_effective();
        Ok(lowered(plan, scans, threads, config)?)
    }

    /// An error of such a part with the file that it is about, which its reader may not say.
    pub async fn located(
        error: Error,
        plan: &Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Error {
        locate_error(error, plan, context).await
    }
}
