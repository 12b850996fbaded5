//! `/` and `%` of 64-bit integers by a literal.
//!
//! In: the literal, then columns. Out: their quotients or remainders.
//! Invariant: results are the host's; 0 and -1, by which divisions can fail, stay with it.
//! Not here: the loops (`grouse_kernels::divide`); integers of fewer bits, which the host makes wider beside a literal.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use grouse_kernels::divide::{Divisor, Word};

/// A divisor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Divided {
    Signed(Divisor<i64>),
    Unsigned(Divisor<u64>),
}

impl Divided {
    /// By the literal on the right of an operation.
    pub fn of(right: &Arc<dyn PhysicalExpr>) -> Option<Divided> {
        match right.downcast_ref::<Literal>()?.value() {
            ScalarValue::Int64(Some(divisor)) => Divisor::new(*divisor).map(Divided::Signed),
            ScalarValue::UInt64(Some(divisor)) => Divisor::new(*divisor).map(Divided::Unsigned),
            _ => None,
        }
    }

    /// The results of `/` or `%`; `None` for what is no column.
    pub fn computed(&self, op: Operator, left: &ColumnarValue) -> Option<ArrayRef> {
        let ColumnarValue::Array(column) = left else {
            return None;
        };
        match self {
            Divided::Signed(by) => results::<Int64Type>(by, op, column),
            Divided::Unsigned(by) => results::<UInt64Type>(by, op, column),
        }
    }
}

fn results<T: ArrowPrimitiveType<Native: Word>>(
    by: &Divisor<T::Native>,
    op: Operator,
    column: &ArrayRef,
) -> Option<ArrayRef> {
    let column = column.as_primitive_opt::<T>()?;
    let values = match op {
        Operator::Divide => by.quotients(column.values()),
        Operator::Modulo => by.remainders(column.values()),
        _ => return None,
    };
    let nulls = column.nulls().cloned();
    Some(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}
