//! `x / y` of decimals as a DOUBLE, as DuckDB has it.
//!
//! In: two decimals, or one and an integer. Out: their quotient with the 15 to 16 significant digits of a double, however small it is.
//! Invariant: of operands below 2^53 in units of their last digit it is the double nearest to the quotient. Of others it is off
//! by at most two units in the last place. A division by zero is an error.
//! Not here: which divisions these are (optimizer/fixes/types/decimal_quotients.rs).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::{cast, try_binary};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::functions::casts::decimal_doubles::{EXACT_MAX, double};
use crate::wire::portable;

const NAME: &str = "quotient";

/// `x / y`.
pub(crate) fn decimal_quotient(x: Expr, y: Expr) -> Expr {
    let signature = Signature::user_defined(Volatility::Immutable);
    ScalarUDF::new_from_impl(DecimalQuotient { signature }).call(vec![x, y])
}

/// Whether one operand is a decimal, the other one too, an integer or NULL.
pub(crate) fn is_of_decimals(x: &DataType, y: &DataType) -> bool {
    let is_exact = |of: &DataType| of.is_decimal() || of.is_integer() || of.is_null();
    (x.is_decimal() || y.is_decimal()) && is_exact(x) && is_exact(y)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct DecimalQuotient {
    signature: Signature,
}

impl ScalarUDFImpl for DecimalQuotient {
    function_methods!(NAME);

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [x, y] => Ok(format!("{} / {}", bracketed(x), bracketed(y))),
            _ => Ok(self.name().to_owned()),
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [x, y] = types else {
            return plan_err!("a quotient is of two numbers");
        };
        let (x, y) = BinaryTypeCoercer::new(x, &Operator::Divide, y).get_input_types()?;
        Ok(vec![of_128_bits(x), of_128_bits(y)])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (x, y) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        let quotients = match (x.data_type(), y.data_type()) {
            (DataType::Decimal128(_, of_x), DataType::Decimal128(_, of_y)) => {
                Division::of(*of_x, *of_y).all(&x, &y)?
            }
            _ => of_doubles(&x, &y)?,
        };
        Ok(ColumnarValue::Array(Arc::new(quotients)))
    }
}

portable!(DecimalQuotient, "quotient"; signature: Signature::user_defined(Volatility::Immutable));

/// An operand as its part of the name: what is an operation itself stands in brackets.
fn bracketed(operand: &Expr) -> String {
    let name = operand.schema_name().to_string();
    let is_operation = match operand {
        Expr::BinaryExpr(_) => true,
        Expr::ScalarFunction(call) => call.func.name() == NAME,
        _ => false,
    };
    match is_operation {
        true => format!("({name})"),
        false => name,
    }
}

/// The type of a narrow decimal's value in 128 bits.
fn of_128_bits(of: DataType) -> DataType {
    match of {
        DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale) => {
            DataType::Decimal128(digits, scale)
        }
        of => of,
    }
}

/// A division of decimals of these scales.
struct Division {
    scales: [i8; 2],
    /// What the units of each are multiplied by, so that those of both are the same; none if that is far too much.
    factors: Option<[i128; 2]>,
}

impl Division {
    fn of(of_x: i8, of_y: i8) -> Self {
        let more = i16::from(of_y) - i16::from(of_x);
        let power = |digits: i16| 10_i128.checked_pow(u32::try_from(digits.max(0)).ok()?);
        Self {
            scales: [of_x, of_y],
            factors: power(more).zip(power(-more)).map(|(x, y)| [x, y]),
        }
    }

    fn all(&self, x: &ArrayRef, y: &ArrayRef) -> Result<Float64Array> {
        let (x, y) = (
            x.as_primitive::<Decimal128Type>(),
            y.as_primitive::<Decimal128Type>(),
        );
        Ok(try_binary(x, y, |x, y| match y {
            0 => Err(ArrowError::DivideByZero),
            y => Ok(self.quotient(x, y)),
        })?)
    }

    fn quotient(&self, x: i128, y: i128) -> f64 {
        let whole = |units: i128, factor: i128| {
            let units = units.checked_mul(factor)?;
            (units.unsigned_abs() <= EXACT_MAX).then_some(units as f64)
        };
        let wholes = self
            .factors
            .and_then(|[by_x, by_y]| whole(x, by_x).zip(whole(y, by_y)));
        match wholes {
            Some((x, y)) => x / y,
            None => double(x, self.scales[0]) / double(y, self.scales[1]),
        }
    }
}

/// Quotients of decimals of more than 128 bits.
fn of_doubles(x: &ArrayRef, y: &ArrayRef) -> Result<Float64Array> {
    let [x, y] = [x, y].map(|side| cast(side, &DataType::Float64));
    let (x, y) = (x?, y?);
    let (x, y) = (
        x.as_primitive::<Float64Type>(),
        y.as_primitive::<Float64Type>(),
    );
    Ok(try_binary(x, y, |x, y| match y == 0.0 {
        true => Err(ArrowError::DivideByZero),
        false => Ok(x / y),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_nearest() {
        assert_eq!(Division::of(1, 1).quotient(3, 1), 3.0);
        assert_eq!(Division::of(2, 0).quotient(1, 1_000_000), 1e-8);
        assert_eq!(Division::of(0, 2).quotient(-7, 200), -3.5);
        assert_eq!(Division::of(2, 0).quotient(100, 3), 1.0 / 3.0);
        let whole = Division::of(0, 38).quotient(1, 10_i128.pow(38));
        assert_eq!(whole, 1.0);
        let far = Division::of(38, 0).quotient(1, 10_i128.pow(38) - 1);
        assert!((far / 1e-76 - 1.0).abs() < 1e-15, "{far}");
    }
}
