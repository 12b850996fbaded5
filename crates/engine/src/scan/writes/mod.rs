//! Writing: files of COPY and INSERT appear whole or not at all.
//!
//! In: a plan that ends in one of DataFusion's sinks of files. Out: the same plan with a sink that gives files their names
//! when the last row is written.
//! Invariant: no sink of files is left in a plan that gives a file its name earlier. DataFusion's own end a file properly
//! when the query fails, which leaves a good file with a part of the rows.
//! Not here: formats, which are DataFusion's; the text of COPY (sql/copy.rs).
//!
//! ```text
//! COPY -> request (what is asked for) -> sink (rows to files) -> upload (bytes) -> stage (temporary names) -> commit
//! ```

pub(crate) mod arrow;
pub mod new_file;
pub(crate) mod request;
mod sink;
mod split;
mod stage;
mod target;
mod json_values;
mod text;
mod upload;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::physical_plan::ExecutionPlan;

pub use target::{READER_GONE, open_in_place};

use sink::WholeFiles;

/// Puts our sink in the place of DataFusion's.
pub(crate) fn whole_files(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_down(|node| {
        let datafusion = node.downcast_ref::<DataSinkExec>();
        let Some((datafusion, ours)) =
            datafusion.and_then(|datafusion| Some((datafusion, WholeFiles::around(datafusion)?)))
        else {
            return Ok(Transformed::no(node));
        };
        let (input, order) = (
            Arc::clone(datafusion.input()),
            datafusion.sort_order().clone(),
        );
        let node = DataSinkExec::new(input, Arc::new(ours), order);
        Ok(Transformed::yes(Arc::new(node) as _))
    })
    .data()
}
