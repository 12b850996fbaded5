//! Timestamps that are cast to fewer digits behind the second, rounded to the nearest as in PostgreSQL.
//!
//! In: timestamps, and the unit of the type that they are cast to. Out: timestamps of the same type that are multiples of it.
//! Invariant: halves go away from 1970; a timestamp that rounds beyond its type is an error.
//! DataFusion cuts: 33.846 seconds are 33 to it, and not 34.
//! Not here: casts to a day, which cut.

use std::sync::Arc;

use datafusion::arrow::array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{ArrowTimestampType, DataType, FieldRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::expr::units::per_second;
use crate::functions::null_as_args;
use crate::wire::portable;

/// True of casts of timestamps to fewer digits.
pub(crate) fn is_coarser(of: &DataType, to: &DataType) -> bool {
    match (of, to) {
        (DataType::Timestamp(of, _), DataType::Timestamp(to, _)) => {
            per_second(*of) > per_second(*to)
        }
        _ => false,
    }
}

/// The timestamps that are nearest and that `to` has digits for.
pub(crate) fn nearest_times(timestamp: Expr, to: &DataType) -> Expr {
    let function = NearestTimes {
        to: to.clone(),
        signature: Signature::any(1, Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(function).call(vec![timestamp])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct NearestTimes {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for NearestTimes {
    function_methods!("nearest timestamp");

    fn is_strict(&self) -> bool {
        true
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = args.arg_fields[0].data_type().clone();
        Ok(null_as_args(self.name(), of, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(nearest(&times, &self.to)?))
    }
}

portable!(NearestTimes, "nearest_times", to: data_type;
    signature: Signature::any(1, Volatility::Immutable));

/// The nearest of timestamps that have more digits than `to`.
pub(in crate::functions) fn nearest(times: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (DataType::Timestamp(unit, zone), DataType::Timestamp(coarse, _)) = (times.data_type(), to)
    else {
        return internal_err!("{} has no digits of a timestamp", times.data_type());
    };
    let step = (per_second(*unit) / per_second(*coarse)).max(1);
    let zone = zone.clone();
    match unit {
        TimeUnit::Second => Ok(Arc::clone(times)),
        TimeUnit::Millisecond => multiples::<TimestampMillisecondType>(times, step, zone),
        TimeUnit::Microsecond => multiples::<TimestampMicrosecondType>(times, step, zone),
        TimeUnit::Nanosecond => multiples::<TimestampNanosecondType>(times, step, zone),
    }
}

fn multiples<T: ArrowTimestampType>(
    times: &ArrayRef,
    step: i64,
    zone: Option<Arc<str>>,
) -> Result<ArrayRef> {
    let overflow = || ArrowError::ArithmeticOverflow("a timestamp is out of range".to_owned());
    let times = times.as_primitive::<T>();
    let rounded: PrimitiveArray<T> =
        times.try_unary(|time| nearest_multiple(time, step).ok_or_else(overflow))?;
    Ok(Arc::new(rounded.with_timezone_opt(zone)))
}

fn nearest_multiple(time: i64, step: i64) -> Option<i64> {
    let rest = time % step;
    let cut = time - rest;
    match rest.abs() >= step - rest.abs() {
        true => cut.checked_add(step * rest.signum()),
        false => Some(cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        for (time, step, expected) in [
            (33_846, 1_000, 34_000),
            (32_500, 1_000, 33_000),
            (32_499, 1_000, 32_000),
            (-1_500, 1_000, -2_000),
            (-1_499, 1_000, -1_000),
            (7, 1, 7),
            (0, 1_000, 0),
        ] {
            assert_eq!(nearest_multiple(time, step), Some(expected), "{time}");
        }
        assert_eq!(nearest_multiple(i64::MAX, 1_000), None);
    }
}
