//! `date_trunc`: DataFusion's, also of timestamps that nanoseconds do not reach.
//!
//! In: timestamps of any unit, without a time zone or in UTC. Out: the beginnings of their hour, week, month and so on.
//! Invariant: the calendar repeats itself after 400 years, which are whole weeks. A timestamp before 1677 or after 2262, where
//! DataFusion's fails, has the result of one in its place within the 400 years around 1970, as far before it.
//! Not here: other time zones, which DataFusion refuses there; centuries and millennia (functions/scalar/eras.rs).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions::datetime::date_trunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};

use crate::expr::columns::has_offset;
use crate::expr::units::per_second;

/// Seconds of 400 years.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

/// The function, in the place of DataFusion's.
pub(crate) fn truncated_times() -> ScalarUDF {
    ScalarUDF::from(TruncatedTimes)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TruncatedTimes;

static DATAFUSION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(date_trunc);

impl ScalarUDFImpl for TruncatedTimes {
    fn name(&self) -> &str {
        DATAFUSION.name()
    }

    fn aliases(&self) -> &[String] {
        DATAFUSION.aliases()
    }

    fn signature(&self) -> &Signature {
        DATAFUSION.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        DATAFUSION.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        DATAFUSION.return_field_from_args(args)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        DATAFUSION.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        DATAFUSION.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(cycle) = args.args.get(1).and_then(cycle_of) else {
            return DATAFUSION.invoke_with_args(args);
        };
        let (rows, times) = (args.number_rows, args.args[1].clone());
        match DATAFUSION.invoke_with_args(args.clone()) {
            Err(_) => {}
            done => return done,
        }
        match times {
            ColumnarValue::Array(times) => Ok(ColumnarValue::Array(within_cycle(
                &times, cycle, rows, args,
            )?)),
            ColumnarValue::Scalar(time) => {
                let truncated = within_cycle(&time.to_array()?, cycle, 1, args)?;
                let truncated = ScalarValue::try_from_array(&truncated, 0)?;
                Ok(ColumnarValue::Scalar(truncated))
            }
        }
    }
}

/// How many units 400 years are; `None` of what is no timestamp, and of time zones, whose clocks do not repeat themselves.
fn cycle_of(times: &ColumnarValue) -> Option<i64> {
    match times.data_type() {
        DataType::Timestamp(unit, zone) if !zone.as_deref().is_some_and(has_offset) => {
            CYCLE_SECONDS.checked_mul(per_second(unit))
        }
        _ => None,
    }
}

/// As far before each timestamp as in the 400 years around 1970.
fn within_cycle(
    times: &ArrayRef,
    cycle: i64,
    rows: usize,
    mut args: ScalarFunctionArgs,
) -> Result<ArrayRef> {
    let values = cast(times, &DataType::Int64)?;
    let values = values.as_primitive::<Int64Type>();
    let near: Int64Array = values.unary(|value| near(value, cycle));
    let near_times = cast(&near, times.data_type())?;
    args.args[1] = ColumnarValue::Array(near_times);
    args.number_rows = rows;
    let truncated = DATAFUSION.invoke_with_args(args)?.into_array(rows)?;
    let truncated = cast(&truncated, &DataType::Int64)?;
    let truncated = truncated.as_primitive::<Int64Type>().values().iter();
    let places = truncated.zip(near.values()).zip(values.values());
    let places = places.enumerate().map(|(row, ((truncated, near), value))| {
        match value.checked_sub(near - truncated) {
            Some(value) => Ok(value),
            None if values.is_null(row) => Ok(0),
            None => exec_err!("date_trunc of a timestamp that begins before all timestamps"),
        }
    });
    let places = places.collect::<Result<Vec<i64>>>()?;
    let places = PrimitiveArray::<Int64Type>::new(places.into(), values.nulls().cloned());
    Ok(cast(&places, times.data_type())?)
}

/// The same time of the calendar within half a cycle of 1970.
fn near(value: i64, cycle: i64) -> i64 {
    match value.rem_euclid(cycle) {
        later if later >= cycle / 2 => later - cycle,
        soon => soon,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_400_years_of_whole_weeks() {
        assert_eq!(CYCLE_SECONDS % (7 * 86_400), 0);
        for (value, expected) in [
            (0, 0),
            (-1, -1),
            (CYCLE_SECONDS, 0),
            (-CYCLE_SECONDS - 5, -5),
            (CYCLE_SECONDS / 2, -CYCLE_SECONDS / 2),
        ] {
            assert_eq!(near(value, CYCLE_SECONDS), expected, "{value}");
        }
    }
}
