//! `ceil` and `floor` of decimals, with room for the digit more that a result may have: `ceil(9.9::DECIMAL(2, 1))` is 10.
//!
//! In: DataFusion's functions. Out: the same; a decimal with digits behind its point has one digit more before it.
//! Invariant: a result is an error only where the decimal has 38 digits already, or 76. DataFusion's has the argument's type.
//! Not here: `round`, whose digits behind the point make room.

use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION,
    DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef,
};
use datafusion::common::Result;
use datafusion::functions::math::{ceil, floor};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};

use crate::functions::null_as_args;
use crate::functions::wrapped::as_wrapped;

/// Both functions.
pub(in crate::functions) fn functions() -> [ScalarUDF; 2] {
    [ceil(), floor()].map(|datafusion| ScalarUDF::new_from_impl(WholeNumber(datafusion)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeNumber(Arc<ScalarUDF>);

impl ScalarUDFImpl for WholeNumber {
    as_wrapped!(0: name, signature, is_strict, output_ordering, documentation);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let of = self.0.return_type(types)?;
        Ok(roomy(&of).unwrap_or(of))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args
            .arg_fields
            .iter()
            .map(|of| of.data_type().clone())
            .collect();
        Ok(null_as_args(self.name(), self.return_type(&types)?, &args))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [arg] = args.args.as_mut_slice()
            && let Some(to) = roomy(&arg.data_type())
        {
            *arg = arg.cast_to(&to, None)?;
            args.arg_fields = vec![Arc::new(Field::new("x", to, true))];
        }
        self.0.invoke_with_args(args)
    }

    /// Of decimals there is none: bounds would have the type of the result.
    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        match literal {
            Expr::Literal(value, _) if value.data_type().is_floating() => {
                self.0.preimage(args, literal, info)
            }
            _ => Ok(PreimageResult::None),
        }
    }
}

/// The type with one digit more before the point, if there are digits behind it and none too many.
fn roomy(of: &DataType) -> Option<DataType> {
    let wider =
        |precision: u8, scale: i8, max: u8| (scale > 0 && precision < max).then_some(precision + 1);
    match *of {
        DataType::Decimal32(precision, scale) => {
            let wider = wider(precision, scale, DECIMAL32_MAX_PRECISION)?;
            Some(DataType::Decimal32(wider, scale))
        }
        DataType::Decimal64(precision, scale) => {
            let wider = wider(precision, scale, DECIMAL64_MAX_PRECISION)?;
            Some(DataType::Decimal64(wider, scale))
        }
        DataType::Decimal128(precision, scale) => {
            let wider = wider(precision, scale, DECIMAL128_MAX_PRECISION)?;
            Some(DataType::Decimal128(wider, scale))
        }
        DataType::Decimal256(precision, scale) => {
            let wider = wider(precision, scale, DECIMAL256_MAX_PRECISION)?;
            Some(DataType::Decimal256(wider, scale))
        }
        _ => None,
    }
}
