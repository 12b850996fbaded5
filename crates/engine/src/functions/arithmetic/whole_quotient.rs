//! `x // y`: a quotient of whole numbers, cut towards zero.
//!
//! In: two numbers. Out: of whole numbers that are decimals, such as HUGEINT, a whole number; of all others what `x / y` is.
//! Invariant: the operator takes the function's place wherever no operand is such a decimal.
//! Not here: the operator, which cuts quotients of integers itself.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::numeric::div;
use datafusion::arrow::compute::{cast, try_binary};
use datafusion::arrow::datatypes::{
    ArrowNativeTypeOp, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType,
    Decimal128Type, Decimal256Type, DecimalType, FieldRef,
};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, binary_expr,
};

use crate::expr::function_methods::function_methods;
use crate::functions::arithmetic::decimal_quotient::{decimal_quotient, is_of_decimals};
use crate::functions::null_as_args;

/// Name of the function.
pub(crate) const WHOLE_QUOTIENT: &str = "whole quotient";

/// The function.
pub(in crate::functions) fn whole_quotient() -> ScalarUDF {
    ScalarUDF::new_from_impl(WholeQuotient {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

/// The operator in the function's place; `None` where the function stays.
pub(crate) fn plain_quotient(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [x, y] = call.args.as_slice() else {
        return None;
    };
    let (of_x, of_y) = (x.get_type(schema).ok()?, y.get_type(schema).ok()?);
    let stays = matches!(whole_type(&of_x, &of_y), Ok(Some(_)));
    (!stays).then(|| match is_of_decimals(&of_x, &of_y) {
        true => decimal_quotient(x.clone(), y.clone()),
        false => binary_expr(x.clone(), Operator::Divide, y.clone()),
    })
}

/// The type of a quotient of whole numbers; `None` where it is the operator's.
fn whole_type(x: &DataType, y: &DataType) -> Result<Option<DataType>> {
    let (wide_x, wide_y) = BinaryTypeCoercer::new(x, &Operator::Divide, y).get_input_types()?;
    let are_decimals = wide_x.is_decimal() && wide_y.is_decimal();
    if !are_decimals || !is_whole(x) || !is_whole(y) {
        return Ok(None);
    }
    let is_long = |of: &DataType| matches!(of, DataType::Decimal256(..));
    Ok(Some(match is_long(&wide_x) || is_long(&wide_y) {
        true => DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0),
        false => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
    }))
}

fn is_whole(of: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    match of {
        Decimal32(_, places)
        | Decimal64(_, places)
        | Decimal128(_, places)
        | Decimal256(_, places) => *places <= 0,
        other => other.is_integer(),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeQuotient {
    signature: Signature,
}

impl ScalarUDFImpl for WholeQuotient {
    function_methods!(WHOLE_QUOTIENT);

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [x, y] => Ok(format!("{} // {}", x.schema_name(), y.schema_name())),
            _ => Ok(self.name().to_owned()),
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match whole_type(&types[0], &types[1])? {
            Some(whole) => Ok(whole),
            None if is_of_decimals(&types[0], &types[1]) => Ok(DataType::Float64),
            None => {
                BinaryTypeCoercer::new(&types[0], &Operator::Divide, &types[1]).get_result_type()
            }
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone());
        let of = self.return_type(&types.collect::<Vec<_>>())?;
        Ok(null_as_args(self.name(), of, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (x, y) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        let quotients = match whole_type(x.data_type(), y.data_type())? {
            Some(of @ DataType::Decimal256(..)) => cut::<Decimal256Type>(&x, &y, &of)?,
            Some(of) => cut::<Decimal128Type>(&x, &y, &of)?,
            None => {
                let operands =
                    BinaryTypeCoercer::new(x.data_type(), &Operator::Divide, y.data_type());
                let (of_x, of_y) = operands.get_input_types()?;
                div(&cast(&x, &of_x)?, &cast(&y, &of_y)?)?
            }
        };
        Ok(ColumnarValue::Array(quotients))
    }
}

fn cut<T: DecimalType>(x: &ArrayRef, y: &ArrayRef, of: &DataType) -> Result<ArrayRef> {
    let (x, y) = (cast(x, of)?, cast(y, of)?);
    let (x, y) = (x.as_primitive::<T>(), y.as_primitive::<T>());
    let quotients: PrimitiveArray<T> = try_binary(x, y, |x, y| x.div_checked(y))?;
    Ok(Arc::new(quotients.with_data_type(of.clone())))
}
