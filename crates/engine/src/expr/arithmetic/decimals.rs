//! `+`, `-` and `*` of decimals whose values fit 64 bits, which is nearly all there are.
//!
//! In: the operands' values, of 128 bits or as a scan hands them out (expr/decimal64.rs). Out: the results, or nothing where
//! DataFusion has to compute them.
//! Invariant: results are DataFusion's.
//! A literal and a column in 64 bits, as in `price * (1 - discount)`, are added while the product is made: no column of sums.
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

/// Powers of ten that fit 64 bits.
const EXPONENT_MAX: i8 = 18;

/// One side of an operation.
pub(super) enum DecimalOperand {
    /// Its values.
    Values(ColumnarValue),
    /// A column in 64 bits and a literal, not added yet.
    Sum(DecimalSum),
}

/// The sum of a column in 64 bits, or of what it is with the other sign, and a number.
pub(super) struct DecimalSum {
    words: ArrayRef,
    is_negated: bool,
    by: i64,
    precision: u8,
    scale: i8,
}

impl DecimalSum {
    /// `left op right`; `None` where that is more than adding a literal to words.
    pub fn of(op: Operator, left: &ColumnarValue, right: &ColumnarValue) -> Option<DecimalSum> {
        let is_minus = match op {
            Operator::Plus => false,
            Operator::Minus => true,
            _ => return None,
        };
        let (a, b) = (Decimals::of_values(left)?, Decimals::of_values(right)?);
        let (precision, scale) = result_type(op, &a, &b)?;
        let number = |of: &Decimals<'_>| match of.values {
            Operand::Value(value) => value.checked_mul(power(scale, of).into()),
            _ => None,
        };
        let is_narrow =
            |of: &Decimals<'_>| of.scale == scale && matches!(of.values, Operand::Narrow(_));
        let (words, is_negated, by) = match (number(&a), number(&b)) {
            (Some(by), None) if is_narrow(&b) => (right, is_minus, by),
            (None, Some(by)) if is_narrow(&a) => match is_minus {
                true => (left, false, by.checked_neg()?),
                false => (left, false, by),
            },
            _ => return None,
        };
        let ColumnarValue::Array(words) = words else {
            return None;
        };
        Some(DecimalSum {
            words: Arc::clone(words),
            is_negated,
            by: i64::try_from(by).ok()?,
            precision,
            scale,
        })
    }
}

/// The results in 64 bits; `None` where a value or the result's type is too wide.
pub(super) fn computed(
    op: Operator,
    left: &DecimalOperand,
    right: &DecimalOperand,
) -> Result<Option<ArrayRef>> {
    let (Some(a), Some(b)) = (Decimals::of(left), Decimals::of(right)) else {
        return Ok(None);
    };
    let Some((precision, scale)) = result_type(op, &a, &b) else {
        return Ok(None);
    };
    let values = match op {
        Operator::Multiply => product(a.values, b.values),
        Operator::Plus => sum(a.values, power(scale, &a), b.values, power(scale, &b)),
        Operator::Minus => sum(a.values, power(scale, &a), b.values, -power(scale, &b)),
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

/// What makes a value one of that scale, where it is not less.
fn power(scale: i8, of: &Decimals<'_>) -> i64 {
    10i64.pow(u32::from((scale - of.scale).unsigned_abs()))
}

/// The numbers of one side.
struct Decimals<'a> {
    values: Operand<'a>,
    nulls: Option<&'a NullBuffer>,
    precision: u8,
    scale: i8,
}

impl<'a> Decimals<'a> {
    fn of(side: &'a DecimalOperand) -> Option<Self> {
        match side {
            DecimalOperand::Values(values) => Self::of_values(values),
            DecimalOperand::Sum(sum) => {
                let words = sum.words.as_primitive::<Decimal64Type>();
                Some(Self {
                    values: Operand::Moved {
                        narrow: words.values(),
                        is_negated: sum.is_negated,
                        by: sum.by,
                    },
                    nulls: words.nulls(),
                    precision: sum.precision,
                    scale: sum.scale,
                })
            }
        }
    }

    fn of_values(values: &'a ColumnarValue) -> Option<Self> {
        match values {
            ColumnarValue::Array(column) => {
                let values = match column.as_primitive_opt::<Decimal64Type>() {
                    Some(words) => Operand::Narrow(words.values()),
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

/// Precision and scale as DataFusion's kernels have them; `None` where they would fail, or scale by more than a word.
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
