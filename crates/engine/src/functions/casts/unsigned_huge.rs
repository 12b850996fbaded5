//! Whole numbers without a sign of up to 38 digits: what `CAST(x AS UHUGEINT)` and `TRY_CAST(x AS UHUGEINT)` call.
//!
//! In: numbers as DECIMAL(38, 0). Out: the same.
//! Invariant: a number below 0 is an error that shows it, or NULL with TRY_CAST.
//! Not here: numbers of more digits, which the cast to DECIMAL(38, 0) refuses; columns of the type, which have a constraint
//! (sql/short_forms.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;

/// Names of the functions.
pub(crate) const UNSIGNED_HUGE: &str = "uhugeint of";
pub(crate) const TRY_UNSIGNED_HUGE: &str = "uhugeint of or null";

/// What a number below 0 gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Negative {
    Error,
    Null,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UnsignedHuge {
    negative: Negative,
    signature: Signature,
}

/// Both functions, to be registered.
pub(in crate::functions) fn functions() -> [ScalarUDF; 2] {
    [Negative::Error, Negative::Null].map(|negative| {
        ScalarUDF::from(UnsignedHuge {
            negative,
            signature: Signature::any(1, Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for UnsignedHuge {
    function_methods!();

    fn name(&self) -> &str {
        match self.negative {
            Negative::Error => UNSIGNED_HUGE,
            Negative::Null => TRY_UNSIGNED_HUGE,
        }
    }

    /// As with any cast, what is cast.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [whole @ DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)] => Ok(whole.clone()),
            _ => plan_err!("a UHUGEINT is made of one DECIMAL(38, 0)"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let numbers = column.as_primitive::<Decimal128Type>();
        let negative = numbers.iter().flatten().find(|number| *number < 0);
        let checked = match (negative, self.negative) {
            (None, _) => numbers.clone(),
            (Some(number), Negative::Error) => {
                return exec_err!(
                    "{number} is no UHUGEINT, of which 0 is the least; TRY_CAST gives NULL for it"
                );
            }
            (Some(_), Negative::Null) => {
                let numbers = numbers.iter();
                let numbers = numbers.map(|number| number.filter(|number| *number >= 0));
                numbers
                    .collect::<Decimal128Array>()
                    .with_data_type(column.data_type().clone())
            }
        };
        Ok(ColumnarValue::Array(Arc::new(checked)))
    }
}
