//! Doubles that are within what becomes of them: the seconds of a timestamp, a FLOAT.
//!
//! In: doubles. Out: the same.
//! Invariant: seconds beyond the years 1677 to 2262, infinities and NaN are errors; DataFusion makes the first or the last
//! timestamp of them. So are finite doubles beyond FLOAT, of which it makes infinity.
//! Not here: integers, which DataFusion checks.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::functions::null_as_args;
use crate::wire::{Portable, WireReader, WireValue};

/// Name of the function that checks seconds.
pub(crate) const NEAR_SECONDS: &str = "near seconds";

/// The nanoseconds of fewer seconds fit 64 bits.
const SECONDS_MAX: f64 = 9_223_372_036.0;

static NEAR: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Near::function(Near::Seconds));
static FLOAT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Near::function(Near::Float));
static TRY_FLOAT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Near::function(Near::TryFloat));

/// The seconds, checked.
pub(crate) fn near_seconds(seconds: Expr) -> Expr {
    NEAR.call(vec![seconds])
}

/// A double that a FLOAT is made of; `is_try`: NULL for one that is beyond.
pub(crate) fn within_float(double: Expr, is_try: bool) -> Expr {
    let function = if is_try { &TRY_FLOAT } else { &FLOAT };
    function.call(vec![double])
}

/// What a double has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Near {
    Seconds,
    Float,
    TryFloat,
}

impl Near {
    fn function(self) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        let function = CheckedDouble {
            near: self,
            signature,
        };
        Arc::new(ScalarUDF::new_from_impl(function))
    }

    fn is_far(self, double: f64) -> bool {
        match self {
            Near::Seconds => !double.is_finite() || double.abs() > SECONDS_MAX,
            Near::Float | Near::TryFloat => double.is_finite() && (double as f32).is_infinite(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct CheckedDouble {
    near: Near,
    signature: Signature,
}

impl ScalarUDFImpl for CheckedDouble {
    function_methods!();

    fn name(&self) -> &str {
        match self.near {
            Near::Seconds => NEAR_SECONDS,
            Near::Float => "within FLOAT",
            Near::TryFloat => "within FLOAT or NULL",
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match self.near {
            Near::TryFloat => Ok(Arc::new(Field::new(self.name(), DataType::Float64, true))),
            _ => Ok(null_as_args(self.name(), DataType::Float64, &args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let doubles = args.args[0].to_array(args.number_rows)?;
        let doubles = cast(&doubles, &DataType::Float64)?;
        let all = doubles.as_primitive::<Float64Type>();
        let mut values = all.iter().flatten();
        match (values.find(|value| self.near.is_far(*value)), self.near) {
            (None, _) => Ok(ColumnarValue::Array(doubles)),
            (Some(far), Near::Seconds) => {
                exec_err!("{far} seconds since 1970 are out of range: timestamps end in 2262")
            }
            (Some(far), Near::Float) => {
                exec_err!("{far:e} does not fit FLOAT; TRY_CAST gives NULL for it")
            }
            (Some(_), Near::TryFloat) => {
                let near = all
                    .iter()
                    .map(|value| value.filter(|value| !self.near.is_far(*value)));
                let near: Float64Array = near.collect();
                Ok(ColumnarValue::Array(Arc::new(near)))
            }
        }
    }
}

impl Portable for CheckedDouble {
    const KIND: &'static str = "checked_double";

    fn apart(&self) -> Vec<WireValue> {
        vec![self.name().into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let all = [Near::Seconds, Near::Float, Near::TryFloat].map(|near| CheckedDouble {
            near,
            signature: Signature::any(1, Volatility::Immutable),
        });
        let name = values.text()?;
        match all.into_iter().find(|one| one.name() == name) {
            Some(found) => Ok(found),
            None => internal_err!("no double is checked for {name}"),
        }
    }
}
