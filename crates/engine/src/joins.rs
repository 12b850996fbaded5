//! Joins under a memory limit: hashed where memory has room for their tables, else merged, with sorts that go to disk.
//!
//! In: a planned query and the limit. Out: whether the tables of its hash joins fit, as far as statistics say.
//! Invariant: an estimate steers which of the host's joins runs, never an answer; what has no statistics is taken to fit.
//! Not here: the joins. The host writes no hash table to disk: one that does not fit ends its query.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// What the host keeps per row beside its columns: a hash, a place in the table, a link.
const TABLE_ROW_BYTES: u64 = 24;
/// Bytes of a string or a list, of which statistics seldom tell.
const LONG_BYTES: u64 = 32;
/// Tables take one part in so many of the limit at most: the host copies all their rows together once they are there,
/// and groupings and sorts want memory too. Query 18 of TPC-H at scale 1: 190 MB as counted here, 320 MB held.
const SHARE: u64 = 2;

/// False if the tables of the hash joins of `plan` would take more than their share of `limit_bytes`.
pub(crate) fn fit(plan: &Arc<dyn ExecutionPlan>, limit_bytes: u64) -> Result<bool> {
    let statistics = StatisticsContext::new();
    let mut bytes = 0u64;
    plan.apply(|node| {
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            let table = statistics.compute(join.left().as_ref(), &StatisticsArgs::new())?;
            let rows = table.num_rows.get_value().map_or(0, |rows| *rows as u64);
            let row_bytes = row_bytes(&join.left().schema()) + TABLE_ROW_BYTES;
            bytes = bytes.saturating_add(rows.saturating_mul(row_bytes));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(bytes <= limit_bytes / SHARE)
}

fn row_bytes(schema: &Schema) -> u64 {
    let width = |data_type: &DataType| match data_type {
        DataType::Boolean => 1,
        other => other
            .primitive_width()
            .map_or(LONG_BYTES, |bytes| bytes as u64),
    };
    let fields = schema.fields().iter();
    fields.map(|field| width(field.data_type())).sum()
}
