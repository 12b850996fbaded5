//! `ln`, `log`, `log2`, `log10`, `asin` and `acos`, which are errors outside of their domains, as `sqrt` is.
//!
//! In: numbers. Out: DataFusion's results; an error where DataFusion has infinity or NaN of a number that has no logarithm.
//! Invariant: NULL and NaN are passed on.
//! Not here: `geomean`, whose logarithm of 0 is minus infinity (standing.rs).

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, exec_err};
use datafusion::functions::math::{acos, asin, ln, log, log2, log10};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::wrapped::as_wrapped;

/// Where a function has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ArgumentDomain {
    Positive,
    /// From -1 to 1.
    Unit,
}

/// The functions.
pub(in crate::functions) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let logarithms =
        [ln(), log(), log2(), log10()].map(|datafusion| (datafusion, ArgumentDomain::Positive));
    let angles = [asin(), acos()].map(|datafusion| (datafusion, ArgumentDomain::Unit));
    let all = logarithms.into_iter().chain(angles);
    all.map(|(datafusion, domain)| ScalarUDF::new_from_impl(Within { datafusion, domain }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Within {
    datafusion: Arc<ScalarUDF>,
    domain: ArgumentDomain,
}

impl Within {
    fn check(&self, number: f64) -> Result<()> {
        match self.domain {
            ArgumentDomain::Positive if number <= 0.0 => {
                exec_err!("'{}' takes a number above 0, not {number}", self.name())
            }
            ArgumentDomain::Unit if number.abs() > 1.0 => {
                exec_err!(
                    "'{}' takes a number from -1 to 1, not {number}",
                    self.name()
                )
            }
            _ => Ok(()),
        }
    }
}

impl ScalarUDFImpl for Within {
    as_wrapped!(
        datafusion: name, aliases, signature, is_strict, coerce_types, return_type,
        return_field_from_args, output_ordering
    );

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        for arg in &args.args {
            let rows = match arg {
                ColumnarValue::Array(_) => args.number_rows,
                ColumnarValue::Scalar(_) => 1,
            };
            let numbers = cast(&arg.to_array(rows)?, &DataType::Float64)?;
            let mut numbers = numbers.as_primitive::<Float64Type>().iter().flatten();
            numbers.try_for_each(|number| self.check(number))?;
        }
        self.datafusion.invoke_with_args(args)
    }
}
