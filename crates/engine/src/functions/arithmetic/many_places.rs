//! `round(x, n)` and `trunc(x, n)` of floats to more places than a power of ten counts.
//!
//! In: DataFusion's functions. Out: the same, but x itself where x has no digits there, and 0 where all of x is behind them.
//! Invariant: what DataFusion gets right stays. It multiplies by 10^n, which is infinite or 0, or makes x so.
//! Not here: decimals, which DataFusion rounds as integers.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::functions::math::{round, trunc};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::wrapped::as_wrapped;

/// Both functions.
pub(in crate::functions) fn functions() -> [ScalarUDF; 2] {
    [round(), trunc()].map(|datafusion| ScalarUDF::new_from_impl(ManyPlaces(datafusion)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ManyPlaces(Arc<ScalarUDF>);

impl ScalarUDFImpl for ManyPlaces {
    as_wrapped!(
        0: name, signature, is_strict, coerce_types, return_type, return_field_from_args,
        output_ordering
    );

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (given, rows) = (args.args.clone(), args.number_rows);
        let results = self.0.invoke_with_args(args)?;
        let [x, places] = given.as_slice() else {
            return Ok(results);
        };
        if !results.data_type().is_floating() {
            return Ok(results);
        }
        let array = results.to_array(rows)?;
        let is_wrong = match array.data_type() {
            DataType::Float64 => {
                let mut results = array.as_primitive::<Float64Type>().iter().flatten();
                results.any(|result| !result.is_finite())
            }
            DataType::Float32 => {
                let mut results = array.as_primitive::<Float32Type>().iter().flatten();
                results.any(|result| !result.is_finite())
            }
            _ => false,
        };
        match is_wrong {
            true => Ok(ColumnarValue::Array(corrected(
                &array,
                &x.to_array(rows)?,
                &places.to_array(rows)?,
            )?)),
            false => Ok(results),
        }
    }
}

/// The results, but of finite x only finite ones.
fn corrected(results: &ArrayRef, x: &ArrayRef, places: &ArrayRef) -> Result<ArrayRef> {
    let places = cast(places, &DataType::Int64)?;
    let places = places.as_primitive::<Int64Type>();
    macro_rules! each {
        ($of:ty, $array:ty) => {{
            let x = cast(x, results.data_type())?;
            let pairs = results
                .as_primitive::<$of>()
                .iter()
                .zip(x.as_primitive::<$of>());
            let all = pairs
                .enumerate()
                .map(|(row, (result, x))| match (result, x) {
                    (Some(result), Some(x)) if x.is_finite() && !result.is_finite() => {
                        Some(if places.value(row) > 0 { x } else { 0.0 })
                    }
                    (result, _) => result,
                });
            Ok(Arc::new(all.collect::<$array>()))
        }};
    }
    match results.data_type() {
        DataType::Float32 => each!(Float32Type, Float32Array),
        _ => each!(Float64Type, Float64Array),
    }
}
