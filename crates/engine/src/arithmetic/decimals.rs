//! `+`, `-` and `*` of decimals whose values fit 64 bits, which is nearly all there are.
//!
//! In: the operands' values, of 128 bits or as a scan hands them out (scan/words.rs). Out: the results, or nothing where the
//! host has to compute them.
//! Invariant: results are the host's.
//! Not here: the loops (`grouse_kernels::narrow`); divisions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DataType, Decimal64Type, Decimal128Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Operator};
use grouse_kernels::narrow::{Operand, product, sum};

/// Powers of ten that fit a word.
const EXPONENT_MAX: i8 = 18;

/// The results in words; `None` where a value or the result's type is too wide.
pub(super) fn computed(
    op: Operator,
    left: &ColumnarValue,
    right: &ColumnarValue,
) -> Result<Option<ArrayRef>> {
    let (Some(a), Some(b)) = (Decimals::of(left), Decimals::of(right)) else {
        return Ok(None);
    };
    let Some((precision, scale)) = result_type(op, &a, &b) else {
        return Ok(None);
    };
    let power = |of: &Decimals<'_>| 10i64.pow(u32::from((scale - of.scale).unsigned_abs()));
    let values = match op {
        Operator::Multiply => product(a.values, b.values),
        Operator::Plus => sum(a.values, power(&a), b.values, power(&b)),
        Operator::Minus => sum(a.values, power(&a), b.values, -power(&b)),
        _ => None,
    };
    let Some(values) = values else {
        return Ok(None);
    };
    let nulls = NullBuffer::union(a.nulls, b.nulls);
    let column = Decimal128Array::new(values.into(), nulls);
    let column = column.with_precision_and_scale(precision, scale)?;
    Ok(Some(Arc::new(column)))
}

/// One side of an operation.
struct Decimals<'a> {
    values: Operand<'a>,
    nulls: Option<&'a NullBuffer>,
    precision: u8,
    scale: i8,
}

impl<'a> Decimals<'a> {
    fn of(side: &'a ColumnarValue) -> Option<Self> {
        match side {
            ColumnarValue::Array(column) => {
                let values = match column.as_primitive_opt::<Decimal64Type>() {
                    Some(words) => Operand::Words(words.values()),
                    None => Operand::Wide(column.as_primitive_opt::<Decimal128Type>()?.values()),
                };
                let (precision, scale) = digits(column.data_type())?;
                Some(Self {
                    values,
                    nulls: column.nulls(),
                    precision,
                    scale,
                })
            }
            ColumnarValue::Scalar(ScalarValue::Decimal128(Some(value), precision, scale)) => {
                Some(Self {
                    values: Operand::Value(*value),
                    nulls: None,
                    precision: *precision,
                    scale: *scale,
                })
            }
            ColumnarValue::Scalar(_) => None,
        }
    }
}

fn digits(data_type: &DataType) -> Option<(u8, i8)> {
    match *data_type {
        DataType::Decimal64(precision, scale) | DataType::Decimal128(precision, scale) => {
            Some((precision, scale))
        }
        _ => None,
    }
}

/// Precision and scale as the host's kernels have them; `None` where they would fail, or scale by more than a word.
fn result_type(op: Operator, a: &Decimals<'_>, b: &Decimals<'_>) -> Option<(u8, i8)> {
    let capped = |digits: i16| u8::try_from(digits.min(DECIMAL128_MAX_PRECISION.into())).ok();
    if op == Operator::Multiply {
        let scale = a.scale.checked_add(b.scale);
        let scale = scale.filter(|scale| *scale <= DECIMAL128_MAX_SCALE)?;
        let precision = capped(i16::from(a.precision) + i16::from(b.precision) + 1)?;
        return Some((precision, scale));
    }
    let scale = a.scale.max(b.scale);
    let fits = |of: &Decimals<'_>| of.scale >= 0 && scale - of.scale <= EXPONENT_MAX;
    let whole = |of: &Decimals<'_>| i16::from(of.precision) - i16::from(of.scale);
    let precision = capped(whole(a).max(whole(b)) + i16::from(scale) + 1)?;
    (fits(a) && fits(b)).then_some((precision, scale))
}
