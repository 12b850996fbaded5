//! A part of a plan as an executor runs it.
//!
//! In: the part, cut to what the executor is to read. Out: the same with scans that read here and with the executor's choices.
//! Invariant: as many partitions come out as before.
//! Not here: the choices (the engine's `distribution`).

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use grouse::Session;

use crate::scan::reading;

/// The part as the machine of `session` runs it, with the options that the query has.
pub fn lower(
    plan: Arc<dyn ExecutionPlan>,
    session: &Session,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = reading(plan, &session.runtime(), config.execution.batch_size.get())?;
    let lowered = session.lower(plan, config);
    lowered.map_err(DataFusionError::from)
}
