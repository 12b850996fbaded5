//! Joins under a memory limit: hashed where memory has room for their tables, else merged, with sorts that go to disk.
//!
//! In: a planned query and the limit. Out: whether its joins had better be merged, as far as statistics say.
//! Invariant: an estimate steers which of DataFusion's joins runs, never an answer: none is merged where DataFusion's merge
//! join is known to answer otherwise than its hash join. What has no statistics is taken to fit.
//! Not here: the joins. DataFusion writes no hash table to disk: one that does not fit ends its query. It has merge joins
//! only with two threads or more.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// What DataFusion keeps per row beside its columns: a hash, a place in the table, a link.
const TABLE_ROW_BYTES: u64 = 24;
/// Bytes of a string or a list, of which statistics seldom tell.
const LONG_BYTES: u64 = 32;
/// Tables take one part in so many of the limit at most: DataFusion copies all their rows together once they are there,
/// and groupings and sorts want memory too. Query 18 of TPC-H at scale 1: 190 MB as counted here, 320 MB held.
const SHARE: u64 = 2;

/// True if the tables of the hash joins of `plan` would take more than their share of `limit_bytes` and each of these
/// joins may be merged.
pub(crate) fn had_better_merge(plan: &Arc<dyn ExecutionPlan>, limit_bytes: u64) -> Result<bool> {
    let statistics = StatisticsContext::new();
    let (mut bytes, mut may_merge) = (0u64, true);
    plan.apply(|node| {
        // DataFusion hashes NOT IN in any case.
        let join = node.downcast_ref::<HashJoinExec>();
        if let Some(join) = join.filter(|join| !join.null_aware) {
            let table = statistics.compute(join.left().as_ref(), &StatisticsArgs::new())?;
            let rows = table.num_rows.get_value().map_or(0, |rows| *rows as u64);
            let row_bytes = row_bytes(&join.left().schema()) + TABLE_ROW_BYTES;
            bytes = bytes.saturating_add(rows.saturating_mul(row_bytes));
            may_merge &= can_merge(join)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(may_merge && bytes > limit_bytes / SHARE)
}

/// True if a join of `plan` has keys of which DataFusion takes a least and a greatest one without having such a comparison.
/// It filters the other side by them while it runs. Of a struct or a list with NULL inside the result is NULL, which leaves
/// rows out; of a map it is an error.
pub(crate) fn has_unordered_keys(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        let Some(join) = node.downcast_ref::<HashJoinExec>() else {
            return Ok(false);
        };
        let schema = join.left().schema();
        for (key, _) in join.on() {
            if key.data_type(&schema)?.is_nested() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// False for what DataFusion's merge join does not do as its hash join. These are conditions beside the keys (in outer
/// joins NULLs in columns that have none; no place for our checks of overflow). So are floats (-0.0 sorts before 0.0 but
/// equals it; NaN), and types that it has no comparison of.
fn can_merge(join: &HashJoinExec) -> Result<bool> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal128, Int8, Int16, Int32, Int64,
        LargeBinary, LargeUtf8, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    let schema = join.left().schema();
    for (key, _) in join.on() {
        let is_known = matches!(
            key.data_type(&schema)?,
            Boolean
                | Int8
                | Int16
                | Int32
                | Int64
                | UInt8
                | UInt16
                | UInt32
                | UInt64
                | Utf8
                | LargeUtf8
                | Utf8View
                | Binary
                | LargeBinary
                | BinaryView
                | Date32
                | Date64
                | Timestamp(_, None)
                | Decimal128(..)
        );
        if !is_known {
            return Ok(false);
        }
    }
    Ok(join.filter().is_none())
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
