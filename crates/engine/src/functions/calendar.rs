//! The length of an interval in seconds, as `extract(epoch FROM …)` has it, and its milliseconds and microseconds.
//!
//! In: an interval. Out: seconds: twelve months are a year of 365.25 days, other months have 30; the thousandths and millionths
//! within a minute.
//! Invariant: fractions of a second are kept.
//! Not here: how intervals compare, for which a year has twelve months of 30 days.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, FieldRef, Float64Type, Int32Type, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::null_as_args;

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

const DAY_S: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.25;
const MONTH_DAYS: f64 = 30.0;
const SECOND_NS: f64 = 1e9;

const MINUTE_NS: i64 = 60_000_000_000;

static EPOCH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Epoch {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// What `extract(part FROM interval)` is where DataFusion's is wrong: its parts of a second are whole seconds.
pub(crate) fn part_of_interval(part: &str, interval: Expr) -> Option<Expr> {
    let unit_ns = match part.to_ascii_lowercase().as_str() {
        "epoch" => return Some(EPOCH.call(vec![interval])),
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => 1_000_000,
        "microsecond" | "microseconds" | "usec" | "usecs" | "us" => 1_000,
        _ => return None,
    };
    let signature = Signature::any(1, Volatility::Immutable);
    let function = WithinMinute { unit_ns, signature };
    Some(ScalarUDF::new_from_impl(function).call(vec![interval]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct WithinMinute {
    unit_ns: i64,
    signature: Signature,
}

impl ScalarUDFImpl for WithinMinute {
    function_methods!("within_minute");

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), DataType::Int32, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let column = cast(&column, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let column = column.as_primitive::<IntervalMonthDayNanoType>();
        let parts = column.unary::<_, Int32Type>(|interval| {
            let part = interval.nanoseconds % MINUTE_NS / self.unit_ns;
            i32::try_from(part).unwrap_or_default()
        });
        Ok(ColumnarValue::Array(Arc::new(parts)))
    }
}

portable!(WithinMinute, "within_minute", unit_ns: number;
    signature: Signature::any(1, Volatility::Immutable));

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Epoch {
    signature: Signature,
}

impl ScalarUDFImpl for Epoch {
    function_methods!("epoch_of_interval");

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

portable!(Epoch, "epoch_of_interval"; signature: Signature::any(1, Volatility::Immutable));
