//! Days as timestamps of nanoseconds that they are compared with.
//!
//! In: days. Out: their midnights; of a day that nanoseconds do not reach, before 1677 and after 2262, the least or the greatest value.
//! Invariant: the order beside any timestamp is that of the days. 9999-12-31, the usual end of a period, is after all of them.
//! Not here: which comparisons need it (optimizer/fixes/types/timestamps.rs).

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, TimestampNanosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Date32Type, FieldRef, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::functions::casts::intervals::NANOS_PER_DAY;
use crate::functions::null_as_args;
use crate::wire::portable;

/// The function's name.
pub(crate) const MIDNIGHT: &str = "midnight of day";

/// The midnight of a day.
pub(crate) fn midnight(day: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(Midnight { signature }).call(vec![day])
}

/// The midnight of a day in nanoseconds, as far as they reach.
pub(crate) fn nanos_of_day(day: i32) -> i64 {
    i64::from(day).saturating_mul(NANOS_PER_DAY)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Midnight {
    signature: Signature,
}

impl ScalarUDFImpl for Midnight {
    function_methods!(MIDNIGHT);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Nanosecond, None))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let to = DataType::Timestamp(TimeUnit::Nanosecond, None);
        Ok(null_as_args(self.name(), to, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let days = args.args[0].to_array(args.number_rows)?;
        let days = cast(&days, &DataType::Date32)?;
        let days = days.as_primitive::<Date32Type>();
        let midnights: TimestampNanosecondArray = days.unary(nanos_of_day);
        Ok(ColumnarValue::Array(Arc::new(midnights)))
    }
}

portable!(Midnight, "midnight"; signature: Signature::any(1, Volatility::Immutable));
