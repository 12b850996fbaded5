//! The length of an interval in seconds, as `extract(epoch FROM …)` has it.
//!
//! In: an interval. Out: seconds: twelve months are a year of 365.25 days, other months have 30.
//! Invariant: fractions of a second are kept.
//! Not here: how intervals compare, for which a year has twelve months of 30 days.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const DAY_S: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.25;
const MONTH_DAYS: f64 = 30.0;
const SECOND_NS: f64 = 1e9;

static EPOCH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Epoch {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// The seconds of an interval.
pub(crate) fn epoch_of_interval(interval: Expr) -> Expr {
    EPOCH.call(vec![interval])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Epoch {
    signature: Signature,
}

impl ScalarUDFImpl for Epoch {
    fn name(&self) -> &str {
        "epoch_of_interval"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let column = cast(&column, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let column = column.as_primitive::<IntervalMonthDayNanoType>();
        let seconds = column.unary::<_, Float64Type>(|interval| {
            let (years, months) = (interval.months / 12, interval.months % 12);
            let days = f64::from(years) * YEAR_DAYS
                + f64::from(months) * MONTH_DAYS
                + f64::from(interval.days);
            days * DAY_S + interval.nanoseconds as f64 / SECOND_NS
        });
        Ok(ColumnarValue::Array(Arc::new(seconds)))
    }
}
