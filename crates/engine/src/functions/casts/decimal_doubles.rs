//! The double nearest to a decimal.
//!
//! In: decimals of more digits than a double holds. Out: doubles.
//! Invariant: the double is the one that the decimal's text stands for. DataFusion rounds the digits first, and what it divides
//! them by as well: 0.41000000000000003 becomes 0.41.
//! Not here: decimals of up to 15 digits, of which both are exact.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, DecimalType};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Expr;

use crate::functions::casts::own_cast::{OwnCast, own_cast};
use crate::wire::portable;

/// Digits that a double holds.
const DOUBLE_DIGITS: u8 = 15;

/// Integers below are doubles.
pub(in crate::functions) const EXACT_MAX: u128 = 1 << 53;

/// Powers of ten up to this one are doubles.
const POWER_MAX: i8 = 22;

/// True of decimals whose casts to DOUBLE DataFusion rounds twice.
pub(crate) fn is_long_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(digits, _) if *digits > DOUBLE_DIGITS)
}

/// The double nearest to a decimal.
pub(crate) fn nearest_double(decimal: Expr) -> Expr {
    own_cast(NearestDouble, decimal)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct NearestDouble;

impl OwnCast for NearestDouble {
    fn name(&self) -> &'static str {
        "nearest double"
    }

    fn to(&self) -> &DataType {
        &DataType::Float64
    }

    fn compute(&self, decimals: &ArrayRef) -> Result<ArrayRef> {
        let DataType::Decimal128(_, scale) = *decimals.data_type() else {
            return internal_err!("{} of {}", self.name(), decimals.data_type());
        };
        let decimals = decimals.as_primitive::<Decimal128Type>().iter();
        let doubles = decimals.map(|units| units.map(|units| double(units, scale)));
        Ok(Arc::new(doubles.collect::<Float64Array>()))
    }
}

portable!(NearestDouble, "nearest_double");

/// The double nearest to so many units of the last digit.
pub(in crate::functions) fn double(units: i128, scale: i8) -> f64 {
    match units.unsigned_abs() <= EXACT_MAX && (0..=POWER_MAX).contains(&scale) {
        true => units as f64 / 10_f64.powi(scale.into()),
        false => {
            let text = Decimal128Type::format_decimal(units, u8::MAX, scale);
            text.parse().unwrap_or(f64::NAN)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_doubles() {
        assert_eq!(double(41_000_000_000_000_003, 17), 0.410_000_000_000_000_03);
        assert_eq!(double(1_000_000_000_000, 36), 1e-24);
        assert_eq!(double(-15, 1), -1.5);
    }
}
