//! `ln`, `log`, `log2`, `log10`, `asin` and `acos`, which are errors outside of their domains, as `sqrt` is.
//!
//! In: numbers. Out: DataFusion's results; an error where DataFusion has infinity or NaN of a number that has no logarithm.
//! Invariant: NULL and NaN are passed on.
//! Not here: `geomean`, whose logarithm of 0 is minus infinity (standing.rs).

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err};
use datafusion::functions::math::{acos, asin, ln, log, log2, log10};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Where a function has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Domain {
    Positive,
    /// From -1 to 1.
    Unit,
}

/// The functions.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let logarithms = [ln(), log(), log2(), log10()].map(|host| (host, Domain::Positive));
    let angles = [asin(), acos()].map(|host| (host, Domain::Unit));
    let all = logarithms.into_iter().chain(angles);
    all.map(|(host, domain)| ScalarUDF::new_from_impl(Within { host, domain }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Within {
    host: Arc<ScalarUDF>,
    domain: Domain,
}

impl Within {
    fn check(&self, number: f64) -> Result<()> {
        match self.domain {
            Domain::Positive if number == 0.0 => exec_err!("cannot take logarithm of zero"),
            Domain::Positive if number < 0.0 => {
                exec_err!("cannot take logarithm of a negative number")
            }
            Domain::Unit if number.abs() > 1.0 => {
                exec_err!("{} takes numbers from -1 to 1, not {number}", self.name())
            }
            _ => Ok(()),
        }
    }
}

impl ScalarUDFImpl for Within {
    fn name(&self) -> &str {
        self.host.name()
    }

    fn aliases(&self) -> &[String] {
        self.host.aliases()
    }

    fn signature(&self) -> &Signature {
        self.host.signature()
    }

    fn is_strict(&self) -> bool {
        self.host.is_strict()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.host.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.host.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.host.return_field_from_args(args)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.host.output_ordering(inputs)
    }

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
        self.host.invoke_with_args(args)
    }
}
