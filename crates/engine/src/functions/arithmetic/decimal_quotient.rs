//! `x / y` of decimals, rounded where DataFusion cuts.
//!
//! In: two decimals. Out: the nearest value with the digits that DataFusion's result has, halves away from zero, as PostgreSQL has it.
//! Invariant: the type is DataFusion's; a quotient that fits it is no overflow; a division by zero is an error.
//! Not here: averages (avg.rs), which are rounded alike; remainders.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::{cast, try_binary};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DecimalType, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use grouse_groupby::states::Nearest;

/// `x / y`.
pub(crate) fn decimal_quotient(x: Expr, y: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::new_from_impl(Quotient { signature }).call(vec![x, y])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        "quotient"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [x, y] => Ok(format!("{} / {}", x.schema_name(), y.schema_name())),
            _ => Ok(self.name().to_owned()),
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        BinaryTypeCoercer::new(&types[0], &Operator::Divide, &types[1]).get_result_type()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (x, y) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        let of = args.return_field.data_type();
        Ok(ColumnarValue::Array(match of {
            DataType::Decimal256(..) => quotients::<Decimal256Type>(&x, &y, of)?,
            DataType::Decimal128(..) => quotients::<Decimal128Type>(&x, &y, of)?,
            _ => {
                let [x, y] = [x, y].map(|side| wide(&side));
                let (digits, places) = size(of);
                let wide = DataType::Decimal128(digits, places);
                cast(&quotients::<Decimal128Type>(&x?, &y?, &wide)?, of)?
            }
        }))
    }
}

/// Narrow decimals as those of 128 bits.
fn wide(side: &ArrayRef) -> Result<ArrayRef> {
    let (_, places) = size(side.data_type());
    Ok(cast(
        side,
        &DataType::Decimal128(DECIMAL128_MAX_PRECISION, places),
    )?)
}

/// Digits in all, and those behind the point.
fn size(of: &DataType) -> (u8, i8) {
    match of {
        DataType::Decimal32(digits, places)
        | DataType::Decimal64(digits, places)
        | DataType::Decimal128(digits, places)
        | DataType::Decimal256(digits, places) => (*digits, *places),
        _ => (DECIMAL128_MAX_PRECISION, 0),
    }
}

fn quotients<T: DecimalType<Native: Dividend>>(
    x: &ArrayRef,
    y: &ArrayRef,
    of: &DataType,
) -> Result<ArrayRef> {
    let shift =
        i16::from(size(of).1) - i16::from(size(x.data_type()).1) + i16::from(size(y.data_type()).1);
    let power = |exponent: i16| T::Native::ten_to(u32::try_from(exponent.max(0)).unwrap_or(0));
    let (up, down) = (power(shift), power(-shift));
    let overflow = || ArrowError::ArithmeticOverflow(format!("a quotient does not fit {of}"));
    let (Some(up), Some(down)) = (up, down) else {
        return Err(overflow().into());
    };
    let (x, y) = (x.as_primitive::<T>(), y.as_primitive::<T>());
    let (digits, places) = size(of);
    let values: PrimitiveArray<T> = try_binary(x, y, |x, y| {
        if y == T::Native::default() {
            return Err(ArrowError::DivideByZero);
        }
        let quotient = T::Native::quotient(x, up, y, down).ok_or_else(overflow)?;
        T::validate_decimal_precision(quotient, digits, places).map_err(|_| overflow())?;
        Ok(quotient)
    })?;
    Ok(Arc::new(values.with_data_type(of.clone())))
}

/// Numbers that are divided.
trait Dividend: Sized + Copy {
    fn ten_to(exponent: u32) -> Option<Self>;

    /// `x * up / (y * down)`, rounded; none where it needs more bits.
    fn quotient(x: Self, up: Self, y: Self, down: Self) -> Option<Self>;
}

impl Dividend for i128 {
    fn ten_to(exponent: u32) -> Option<Self> {
        10_i128.checked_pow(exponent)
    }

    fn quotient(x: Self, up: Self, y: Self, down: Self) -> Option<Self> {
        let (Some(x), Some(y)) = (x.checked_mul(up), y.checked_mul(down)) else {
            let [x, up, y, down] = [x, up, y, down].map(i256::from_i128);
            return i256::quotient(x, up, y, down)?.to_i128();
        };
        x.nearest(y)
    }
}

impl Dividend for i256 {
    fn ten_to(exponent: u32) -> Option<Self> {
        i256::from_i128(10).checked_pow(exponent)
    }

    fn quotient(x: Self, up: Self, y: Self, down: Self) -> Option<Self> {
        x.checked_mul(up)?.nearest(y.checked_mul(down)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded() {
        let cases = [
            (1, 3, 0),
            (2, 3, 1),
            (-2, 3, -1),
            (1, -2, -1),
            (-5, -2, 3),
            (0, -7, 0),
        ];
        for (x, y, expected) in cases {
            assert_eq!(i128::quotient(x, 1, y, 1), Some(expected), "{x} / {y}");
            let [x, y] = [x, y].map(i256::from_i128);
            let wide = i256::quotient(x, i256::ONE, y, i256::ONE);
            assert_eq!(wide, Some(i256::from_i128(expected)), "{x} / {y}");
        }
        assert_eq!(
            i128::quotient(i128::MAX, 100, 1000, 1),
            Some(i128::MAX / 10 + 1)
        );
        assert_eq!(i128::quotient(i128::MIN, 1, -1, 1), None);
    }
}
