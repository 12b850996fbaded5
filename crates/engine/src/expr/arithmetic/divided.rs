//! `/` and `%` of 64-bit integers by a literal, and remainders in fewer bits.
//!
//! In: the literal, then columns. Out: their quotients or remainders.
//! Invariant: results are DataFusion's; 0 and -1, by which divisions can fail, stay with it.
//! Not here: the loops (`grouse_kernels::divide`); integers of fewer bits, which DataFusion makes wider beside a literal.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, make_array,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use grouse_kernels::divide::{DividedWord, Divisor, LowBits};

/// A divisor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum LiteralDivisor {
    Signed(Divisor<i64>),
    Unsigned(Divisor<u64>),
}

impl LiteralDivisor {
    /// By the literal on the right of an operation.
    pub fn of(right: &Arc<dyn PhysicalExpr>) -> Option<LiteralDivisor> {
        match right.downcast_ref::<Literal>()?.value() {
            ScalarValue::Int64(Some(divisor)) => Divisor::new(*divisor).map(LiteralDivisor::Signed),
            ScalarValue::UInt64(Some(divisor)) => {
                Divisor::new(*divisor).map(LiteralDivisor::Unsigned)
            }
            _ => None,
        }
    }

    /// The results of `/` or `%`; `None` for what is no column.
    pub fn computed(&self, op: Operator, left: &ColumnarValue) -> Option<ArrayRef> {
        let ColumnarValue::Array(column) = left else {
            return None;
        };
        match self {
            LiteralDivisor::Signed(by) => results::<Int64Type>(by, op, column),
            LiteralDivisor::Unsigned(by) => results::<UInt64Type>(by, op, column),
        }
    }
}

/// True if every remainder by the literal has a place in integers of this type, so that nothing has to be looked at when it
/// gets there.
pub(super) fn remainders_fit(remainder: &BinaryExpr, to: &DataType) -> bool {
    let literal = remainder.right().downcast_ref::<Literal>();
    let (most, has_sign) = match literal.map(Literal::value) {
        Some(ScalarValue::Int64(Some(divisor))) => (divisor.unsigned_abs().saturating_sub(1), true),
        Some(ScalarValue::UInt64(Some(divisor))) => (divisor.saturating_sub(1), false),
        _ => return false,
    };
    let room = match to {
        DataType::Int8 => i8::MAX as u64,
        DataType::Int16 => i16::MAX as u64,
        DataType::Int32 => i32::MAX as u64,
        DataType::UInt8 if !has_sign => u8::MAX.into(),
        DataType::UInt16 if !has_sign => u16::MAX.into(),
        DataType::UInt32 if !has_sign => u32::MAX.into(),
        _ => return false,
    };
    *remainder.op() == Operator::Modulo && most <= room
}

/// The low bits of 64-bit integers, as integers of this type; `None` of other columns.
pub(super) fn low_bits(column: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if !matches!(column.data_type(), DataType::Int64 | DataType::UInt64) {
        return None;
    }
    let data = column.to_data();
    let words = &data.buffer::<u64>(0)[..data.len()];
    let bits = match to.primitive_width()? {
        1 => Buffer::from_vec(u8::of_words(words)),
        2 => Buffer::from_vec(u16::of_words(words)),
        4 => Buffer::from_vec(u32::of_words(words)),
        _ => return None,
    };
    let narrow = ArrayData::builder(to.clone())
        .len(data.len())
        .nulls(data.nulls().cloned())
        .add_buffer(bits);
    Some(make_array(narrow.build().ok()?))
}

fn results<T: ArrowPrimitiveType<Native: DividedWord>>(
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
