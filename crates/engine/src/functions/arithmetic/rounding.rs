//! Floats rounded to whole numbers as casts round them: to the nearest, of two to the even one.
//!
//! In: a float. Out: the whole number, as a float of the same type.
//! Invariant: NaN and infinities stay; the cast says that they do not fit.
//! Not here: `round`, which goes away from zero; decimals, whose casts go away from zero as well.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

static HALF_TO_EVEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(HalfToEven {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// The whole number next to a float.
pub(crate) fn half_to_even(expr: Expr) -> Expr {
    HALF_TO_EVEN.call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct HalfToEven {
    signature: Signature,
}

impl ScalarUDFImpl for HalfToEven {
    function_methods!("half_to_even");

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(match column.data_type() {
            DataType::Float64 => Arc::new(
                column
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(f64::round_ties_even),
            ),
            DataType::Float32 => Arc::new(
                column
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(f32::round_ties_even),
            ),
            other => return internal_err!("{} of {other}", self.name()),
        }))
    }
}

portable!(HalfToEven, "half_to_even"; signature: Signature::any(1, Volatility::Immutable));
