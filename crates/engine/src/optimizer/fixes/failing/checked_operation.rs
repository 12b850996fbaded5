//! Checked arithmetic in a plan that travels.
//!
//! In: `+`, `-` or `*` that fails on overflow. Out: the same as an expression of its own.
//! Invariant: values are the operation's. DataFusion's message of an operation does not say that it is checked, and joins
//! long sums: only what is not its own keeps the check.
//! Not here: which operations are checked (checked.rs).

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

use crate::optimizer::fixes::failing::around_operation::{methods_of_operation, same_as_operation};
use crate::wire::{PortableExpression, WireReader, WireValue};

/// The operation.
#[derive(Debug)]
pub(in crate::optimizer) struct CheckedOperation {
    operation: Arc<dyn PhysicalExpr>,
}

impl CheckedOperation {
    /// An operation that fails on overflow.
    pub(super) fn new(operation: BinaryExpr) -> CheckedOperation {
        CheckedOperation {
            operation: Arc::new(operation.with_fail_on_overflow(true)),
        }
    }

    fn over(children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let operation = match children.as_slice() {
            [only] => only.downcast_ref::<BinaryExpr>(),
            _ => None,
        };
        match operation {
            Some(operation) => Ok(Arc::new(CheckedOperation::new(operation.clone()))),
            None => internal_err!("checked arithmetic is of two operands"),
        }
    }
}

same_as_operation!(CheckedOperation);

impl PhysicalExpr for CheckedOperation {
    methods_of_operation!();

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.operation.evaluate(batch)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.as_slice() {
            // A part of it may have become something else, which is as it should be.
            [only] if !only.is::<BinaryExpr>() => Ok(Arc::clone(only)),
            _ => CheckedOperation::over(children),
        }
    }
}

impl PortableExpression for CheckedOperation {
    const KIND: &'static str = "checked_operation";

    fn apart(&self) -> Vec<WireValue> {
        Vec::new()
    }

    fn whole(
        children: Vec<Arc<dyn PhysicalExpr>>,
        _: &mut WireReader,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        CheckedOperation::over(children)
    }
}
