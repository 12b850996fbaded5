//! Scans whose decoders may panic at what a file says.
//!
//! In: a finished plan. Out: the same, whose scans of files end in an error about the file instead.
//! Invariant: each scan has one guard. It is the last rule that knows scans, since a guard hides what a source is.
//! Not here: what a guard does (scan/decoder_panics.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;

use crate::scan::decoder_panics::GuardedSource;

/// Guards the scans of a plan.
pub(crate) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let guarded = |node: Arc<dyn ExecutionPlan>| {
        let scan = node.downcast_ref::<DataSourceExec>();
        let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config.and_then(GuardedSource::replacing) else {
            return Ok(Transformed::no(node));
        };
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        Ok(Transformed::yes(scan))
    };
    plan.transform_up(guarded).data()
}
