//! Functions whose values are as long as a number says: `lpad`, `rpad`, `repeat`, `array_repeat`, `array_resize`.
//!
//! In: DataFusion's functions. Out: the same functions, or an error before memory is gone that their values would take.
//! Invariant: names, aliases and values are DataFusion's.
//! Not here: `range` and `generate_series` (ranges.rs); functions whose values are as long as their arguments together.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion::functions::string::repeat;
use datafusion::functions::unicode::{lpad, rpad};
use datafusion::functions_nested::repeat::array_repeat_udf;
use datafusion::functions_nested::resize::array_resize_udf;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::error::Error;
use crate::functions::wrapped::as_wrapped;
use crate::runtime::options::SessionOptions;

/// Values of one batch may take this part of the memory limit: what reads them copies them.
const MEMORY_PART: u64 = 4;

/// The functions.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let of_datafusion = [
        (lpad(), Measure::Padded),
        (rpad(), Measure::Padded),
        (repeat(), Measure::Repeated),
        (array_repeat_udf(), Measure::Listed(0)),
        (array_resize_udf(), Measure::Listed(1)),
    ];
    of_datafusion.into_iter().map(|(datafusion, measure)| {
        ScalarUDF::new_from_impl(LongValues {
            datafusion,
            measure,
        })
    })
}

/// What tells how long a value is; the number is the second argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Measure {
    /// So many characters, if there is something to pad with.
    Padded,
    /// So often the first argument's bytes.
    Repeated,
    /// So many elements, of the first argument's type or of that of its elements, so many lists inside.
    Listed(usize),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LongValues {
    datafusion: Arc<ScalarUDF>,
    measure: Measure,
}

impl ScalarUDFImpl for LongValues {
    as_wrapped!(
        datafusion: name, aliases, signature, coerce_types, return_type,
        return_field_from_args
    );

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let limit = SessionOptions::of(&args.config_options).memory_limit_bytes();
        let most = u128::from(limit / MEMORY_PART);
        let bytes = self.measure.bytes(&args.args)?;
        if bytes > most {
            let message = format!(
                "'{}' makes values of {bytes} bytes at once, more than a quarter of memory_limit; make shorter ones, or raise it",
                self.name()
            );
            return Err(Error::Execution(message).into());
        }
        self.datafusion.invoke_with_args(args)
    }
}

impl Measure {
    /// The least that the values of a call take together.
    fn bytes(self, args: &[ColumnarValue]) -> Result<u128> {
        let arrays = ColumnarValue::values_to_arrays(args)?;
        let [first, count, ..] = arrays.as_slice() else {
            return Ok(0);
        };
        let counts = cast(count, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>().iter();
        let counts = counts.map(|count| u128::try_from(count.unwrap_or(0)).unwrap_or(0));
        Ok(match self {
            Measure::Padded => {
                let fills = match arrays.get(2) {
                    Some(fills) => lengths(fills)?,
                    None => vec![1; first.len()],
                };
                let rows = counts.zip(fills);
                rows.map(|(count, fill)| count * fill.min(1)).sum()
            }
            Measure::Repeated => {
                let rows = counts.zip(lengths(first)?);
                rows.map(|(count, bytes)| count * bytes).sum()
            }
            Measure::Listed(levels) => {
                let width = width(first.data_type(), levels);
                counts.map(|count| count * width).sum()
            }
        })
    }
}

/// Bytes of each string, none of NULL.
fn lengths(strings: &ArrayRef) -> Result<Vec<u128>> {
    let lengths = match strings.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => length(strings)?,
        _ => length(&cast(strings, &DataType::LargeUtf8)?)?,
    };
    let lengths = match lengths.as_primitive_opt::<Int32Type>() {
        Some(_) => cast(&lengths, &DataType::Int64)?,
        None => lengths,
    };
    let lengths = lengths.as_primitive::<Int64Type>().iter();
    let bytes = lengths.map(|bytes| u128::try_from(bytes.unwrap_or(0)).unwrap_or(0));
    Ok(bytes.collect())
}

/// The least bytes of an element.
fn width(data_type: &DataType, levels: usize) -> u128 {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) if levels > 0 => {
            width(item.data_type(), levels - 1)
        }
        other => other.primitive_width().unwrap_or(1) as u128,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn values_are_measured_before_they_are_made() {
        fn check(measure: Measure, args: &[ScalarValue], expected: u128) {
            let args: Vec<_> = args.iter().cloned().map(ColumnarValue::Scalar).collect();
            assert_eq!(measure.bytes(&args).unwrap(), expected, "{measure:?}");
        }
        let (ab, many) = (ScalarValue::from("ab"), ScalarValue::from(1_i64 << 40));
        let none = ScalarValue::from("");
        check(Measure::Padded, &[ab.clone(), many.clone()], 1 << 40);
        check(
            Measure::Padded,
            &[ab.clone(), many.clone(), none.clone()],
            0,
        );
        check(Measure::Repeated, &[ab.clone(), many.clone()], 1 << 41);
        check(Measure::Repeated, &[none, many.clone()], 0);
        check(Measure::Repeated, &[ab, ScalarValue::from(-1_i64)], 0);
        check(
            Measure::Listed(0),
            &[ScalarValue::from(1_i64), many],
            1 << 43,
        );
    }
}
