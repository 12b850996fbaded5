//! `<<`, `>>`, `~`, and `&`, `|`, `#` of DECIMALs without places: bits of whole numbers.
//!
//! In: two whole numbers. Out: a whole number of the type that the operator has for them; of a DECIMAL it is DECIMAL(38,0).
//! Invariant: a value that does not fit the type is an error, as is a count below 0. `>>` leaves 0 or -1 of a number whose bits
//! are all gone. DataFusion takes the count modulo the width and loses the bits that do not fit.
//! Not here: `&`, `|` and `#` of integers, which are DataFusion's.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use grouse_groupby::keys::decoded;

use crate::error::Error;
use crate::error::types::type_name;
use crate::expr::function_methods::function_methods;
use crate::functions::null_as_args;
use crate::wire::{Portable, WireReader, WireValue};

/// All whole numbers that SQL has.
const WHOLE: DataType = DataType::Decimal128(38, 0);

/// The greatest number of `WHOLE`.
const WHOLE_MAX: i128 = 10_i128.pow(38) - 1;

/// What `~` calls.
pub(crate) const BIT_NOT: &str = "bit_not";

/// `~`, the number with all its bits turned over.
pub(in crate::functions) fn bit_not() -> ScalarUDF {
    ScalarUDF::new_from_impl(BitNot {
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BitNot {
    signature: Signature,
}

impl ScalarUDFImpl for BitNot {
    function_methods!(BIT_NOT);

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [of] if decoded(of).is_integer() => Ok(vec![decoded(of).clone()]),
            [of] if decoded(of).is_null() => Ok(vec![DataType::Int64]),
            [of] if is_whole(decoded(of)) => Ok(vec![WHOLE]),
            [of] => {
                let of = type_name(of);
                plan_err!("~ takes a whole number, not {of}; cast it, e.g. CAST(x AS BIGINT)")
            }
            _ => plan_err!("{BIT_NOT} takes one whole number"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let numbers = args.args[0].to_array(args.number_rows)?;
        let of = numbers.data_type();
        let all_ones = match of.is_unsigned_integer() {
            true => (1_i128 << (8 * of.primitive_width().unwrap_or_default())) - 1,
            false => -1,
        };
        let turned: Decimal128Array = whole_numbers(&numbers)?.unary(|number| all_ones - number);
        let turned = exactly(&turned.with_data_type(WHOLE), of)?;
        Ok(ColumnarValue::Array(turned))
    }
}

/// What one of these operators of DataFusion's is replaced by, for operands of these types; `None` where it is right.
pub(crate) fn operation_on_bits(
    left: &Expr,
    op: Operator,
    right: &Expr,
    types: [&DataType; 2],
) -> Result<Option<Expr>> {
    use Operator::{BitwiseShiftLeft, BitwiseShiftRight};
    let is_shift = matches!(op, BitwiseShiftLeft | BitwiseShiftRight);
    let types = types.map(decoded);
    if let Some(other) = types.iter().find(|of| of.is_numeric() && !is_whole(of)) {
        let message = format!(
            "{op} takes whole numbers, not {}; cast it, e.g. CAST(x AS BIGINT)",
            type_name(other)
        );
        let position = None;
        return Err(Error::Type { message, position }.into());
    }
    let [of, by] = types;
    let is_ours = is_shift && of.is_numeric() && by.is_numeric();
    let has_decimal = types.iter().any(|of| of.is_decimal());
    let is_ours = is_ours || has_decimal && types.iter().all(|of| of.is_numeric());
    if !is_ours {
        return Ok(None);
    }
    let returns = match (is_shift, of, by) {
        (_, of, _) if of.is_decimal() => WHOLE,
        (true, DataType::UInt64, _) => DataType::UInt64,
        (true, of, by) if by.is_decimal() => of.clone(),
        _ if has_decimal => WHOLE,
        (_, of, by) => BinaryTypeCoercer::new(of, &op, by).get_result_type()?,
    };
    let function = OnBits {
        op,
        returns,
        signature: Signature::any(2, Volatility::Immutable),
    };
    let function = ScalarUDF::new_from_impl(function);
    Ok(Some(function.call(vec![left.clone(), right.clone()])))
}

fn is_whole(of: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128};
    of.is_integer() || matches!(of, Decimal32(_, 0) | Decimal64(_, 0) | Decimal128(_, 0))
}

/// All operations on bits.
const BIT_OPERATIONS: [Operator; 5] = [
    Operator::BitwiseAnd,
    Operator::BitwiseOr,
    Operator::BitwiseXor,
    Operator::BitwiseShiftLeft,
    Operator::BitwiseShiftRight,
];

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct OnBits {
    op: Operator,
    returns: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for OnBits {
    function_methods!();

    fn name(&self) -> &str {
        match self.op {
            Operator::BitwiseShiftLeft => "shift_left",
            Operator::BitwiseShiftRight => "shift_right",
            Operator::BitwiseAnd => "bits_and",
            Operator::BitwiseOr => "bits_or",
            _ => "bits_xor",
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), self.returns.clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let is_constant = args.args.iter().all(is_scalar);
        let rows = if is_constant { 1 } else { args.number_rows };
        let [left, right] = [0, 1].map(|at| whole_numbers(&args.args[at].to_array(rows)?));
        let (left, right) = (left?, right?);
        let numbers = left.iter().zip(right.iter()).map(|pair| match pair {
            (Some(left), Some(right)) => self.of(left, right).map(Some),
            _ => Ok(None),
        });
        let numbers: Decimal128Array = numbers.collect::<Result<_>>()?;
        let numbers = exactly(&numbers.with_data_type(WHOLE), &self.returns)?;
        match is_constant {
            true => ScalarValue::try_from_array(&numbers, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(numbers)),
        }
    }
}

impl Portable for OnBits {
    const KIND: &'static str = "on_bits";

    fn apart(&self) -> Vec<WireValue> {
        vec![self.op.to_string().as_str().into(), (&self.returns).into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let op = values.text()?;
        let mut ops = BIT_OPERATIONS.iter();
        let Some(op) = ops.find(|known| known.to_string() == op) else {
            return internal_err!("{op} is no operation on bits");
        };
        Ok(OnBits {
            op: *op,
            returns: values.data_type()?,
            signature: Signature::any(2, Volatility::Immutable),
        })
    }
}

fn exactly(numbers: &dyn Array, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(numbers, to, &options)?)
}

fn whole_numbers(column: &ArrayRef) -> Result<Decimal128Array> {
    let numbers = exactly(column, &WHOLE)?;
    Ok(numbers.as_primitive::<Decimal128Type>().clone())
}

impl OnBits {
    fn of(&self, left: i128, right: i128) -> Result<i128> {
        let number = match self.op {
            Operator::BitwiseAnd => Some(left & right),
            Operator::BitwiseOr => Some(left | right),
            Operator::BitwiseXor => Some(left ^ right),
            _ if right < 0 => return Err(self.wrong(left, right, "a count is not negative")),
            Operator::BitwiseShiftRight => Some(left >> right.min(127)),
            _ => shifted_left(left, right),
        };
        let fits = |number: &i128| match &self.returns {
            DataType::Int8 => i8::try_from(*number).is_ok(),
            DataType::Int16 => i16::try_from(*number).is_ok(),
            DataType::Int32 => i32::try_from(*number).is_ok(),
            DataType::Int64 => i64::try_from(*number).is_ok(),
            DataType::UInt8 => u8::try_from(*number).is_ok(),
            DataType::UInt16 => u16::try_from(*number).is_ok(),
            DataType::UInt32 => u32::try_from(*number).is_ok(),
            DataType::UInt64 => u64::try_from(*number).is_ok(),
            _ => number.unsigned_abs() <= WHOLE_MAX.unsigned_abs(),
        };
        number.filter(fits).ok_or_else(|| {
            let reason = format!("does not fit {}", type_name(&self.returns));
            self.wrong(left, right, &reason)
        })
    }

    fn wrong(&self, left: i128, right: i128, reason: &str) -> DataFusionError {
        Error::Execution(format!("{left} {} {right}: {reason}", self.op)).into()
    }
}

/// `None` where bits are lost.
fn shifted_left(number: i128, by: i128) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let by = u32::try_from(by).ok().filter(|by| *by < i128::BITS)?;
    let shifted = number << by;
    (shifted >> by == number).then_some(shifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bit_is_lost() {
        assert_eq!(shifted_left(1, 126), Some(1 << 126));
        assert_eq!(shifted_left(1, 127), None);
        assert_eq!(shifted_left(-1, 127), Some(i128::MIN));
        assert_eq!(shifted_left(3, 1_000), None);
        assert_eq!(shifted_left(0, 1_000), Some(0));
    }
}
