//! Checked arithmetic in a plan that travels.
//!
//! In: `+`, `-` or `*` that fails on overflow. Out: the same as an expression of its own.
//! Invariant: values are the operation's. DataFusion's message of an operation does not say that it is checked, and joins
//! long sums: only what is not its own keeps the check.
//! Not here: which operations are checked (checked.rs).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

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

impl PartialEq for CheckedOperation {
    fn eq(&self, other: &Self) -> bool {
        self.operation.eq(&other.operation)
    }
}

impl Eq for CheckedOperation {}

impl Hash for CheckedOperation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.hash(state);
    }
}

impl fmt::Display for CheckedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({})", self.operation)
    }
}

impl PhysicalExpr for CheckedOperation {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.operation.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.operation.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.operation.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.operation.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.operation]
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

    fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties> {
        let first = children.first().cloned();
        Ok(first.unwrap_or_else(ExprProperties::new_unknown))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(")?;
        self.operation.fmt_sql(f)?;
        write!(f, ")")
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
