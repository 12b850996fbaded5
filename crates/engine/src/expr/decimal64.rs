//! Decimals that a Parquet scan hands out in 64 bits, as files mostly hold them, instead of 128.
//!
//! In: expressions over columns of up to 18 digits. Out: the same over those columns in 64 bits.
//! Invariant: SQL types do not change: nothing sees these but sums, averages and arithmetic in 64 bits; for whatever else
//! reads them a cast makes them what they are.
//! Not here: which columns come so (optimizer/scans/codes.rs), sums of them (crate `grouse-groupby`, `states`), arithmetic (arithmetic.rs).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DECIMAL64_MAX_PRECISION, DataType, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};

/// The type in 64 bits of a column that may come so.
pub(crate) fn as_decimal64(data_type: &DataType) -> Option<DataType> {
    match *data_type {
        DataType::Decimal128(precision, scale) if precision <= DECIMAL64_MAX_PRECISION => {
            Some(DataType::Decimal64(precision, scale))
        }
        _ => None,
    }
}

/// `expr` over columns of which those in `narrow` come in 64 bits. One that is nothing but such a column stays: its reader
/// takes it as it comes.
pub(crate) fn widened(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
    words: &[usize],
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    if expr.is::<Column>() {
        return Ok(Transformed::no(expr));
    }
    expr.transform_down(|part| {
        let column = part.downcast_ref::<Column>().map(Column::index);
        let Some(column) = column.filter(|column| words.contains(column)) else {
            return Ok(Transformed::no(part));
        };
        let data_type = schema.field(column).data_type().clone();
        let cast: Arc<dyn PhysicalExpr> = Arc::new(CastExpr::new(part, data_type, None));
        Ok(Transformed::new(cast, true, TreeNodeRecursion::Jump))
    })
}

/// The values of a column in 64 bits, of an expression that makes it what it is.
pub(crate) fn decimal64_of(
    expr: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
) -> Result<Option<ArrayRef>> {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else {
        return Ok(None);
    };
    let (Some(column), Some(words)) = (
        cast.expr().downcast_ref::<Column>(),
        as_decimal64(cast.cast_type()),
    ) else {
        return Ok(None);
    };
    match column.evaluate(batch)? {
        ColumnarValue::Array(column) if column.data_type() == &words => Ok(Some(column)),
        _ => Ok(None),
    }
}
