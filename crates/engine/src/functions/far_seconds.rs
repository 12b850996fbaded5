//! Seconds that a timestamp has: what `to_timestamp` of floats is given.
//!
//! In: seconds since 1970 as doubles. Out: the same.
//! Invariant: seconds beyond the years 1677 to 2262, infinities and NaN are errors; DataFusion makes the first or the last
//! timestamp of them.
//! Not here: integers, which DataFusion checks.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::null_as_args;

/// The nanoseconds of fewer seconds fit 64 bits.
const SECONDS_MAX: f64 = 9_223_372_036.0;

static NEAR: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Near {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// The seconds, checked.
pub(crate) fn near_seconds(seconds: Expr) -> Expr {
    NEAR.call(vec![seconds])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Near {
    signature: Signature,
}

impl ScalarUDFImpl for Near {
    fn name(&self) -> &str {
        "near seconds"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), DataType::Float64, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let seconds = cast(
            &args.args[0].to_array(args.number_rows)?,
            &DataType::Float64,
        )?;
        let mut all = seconds.as_primitive::<Float64Type>().iter().flatten();
        match all.find(|seconds| !seconds.is_finite() || seconds.abs() > SECONDS_MAX) {
            Some(far) => {
                exec_err!("{far} seconds since 1970 are out of range: timestamps end in 2262")
            }
            None => Ok(ColumnarValue::Array(seconds)),
        }
    }
}
