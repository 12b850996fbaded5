//! `x AT TIME ZONE 'zone'`: the local time of a timestamp with a zone, the timestamp with that zone of all else.
//!
//! In: timestamps, days and strings, and the zone as a literal. Out: timestamps in nanoseconds.
//! Invariant: its type follows from that of x alone. A cast to a zone, which DataFusion would plan, is no different from the casts
//! that it adds itself where rows of several zones meet.
//! Not here: TIMESTAMP WITH TIME ZONE '…' and casts to it.

use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::functions::casts::zones::{self, cast_to_zone, zone_cast};
use crate::functions::read_strings;

/// Name of the function.
pub(crate) const AT_TIME_ZONE: &str = "at time zone";

/// The function, to be registered.
pub(in crate::functions) fn at_time_zone() -> ScalarUDF {
    ScalarUDF::from(AtTimeZone {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtTimeZone {
    signature: Signature,
}

/// A type in that zone.
fn in_zone(zone: &str) -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(zone.into()))
}

fn has_zone(of: &DataType) -> bool {
    matches!(of, DataType::Timestamp(_, Some(_)))
}

fn zone_of(zone: Option<&datafusion::common::ScalarValue>) -> Result<&str> {
    match zone.and_then(|zone| zone.try_as_str().flatten()) {
        Some(zone) => Ok(zone),
        None => plan_err!("AT TIME ZONE takes a zone as a literal, e.g. 'Europe/Berlin'"),
    }
}

impl ScalarUDFImpl for AtTimeZone {
    function_methods!(AT_TIME_ZONE);

    /// As a cast, it does not show in names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(
            || AT_TIME_ZONE.to_string(),
            |value| value.schema_name().to_string(),
        ))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Nanosecond, None))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let zone = zone_of(args.scalar_arguments.get(1).copied().flatten())?;
        let value = &args.arg_fields[0];
        let result = match has_zone(value.data_type()) {
            true => DataType::Timestamp(TimeUnit::Nanosecond, None),
            false => in_zone(zone),
        };
        Ok(Arc::new(Field::new(self.name(), result, true)))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [value, Expr::Literal(zone, _)] = args.as_slice() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let to = in_zone(zone_of(Some(zone))?);
        let of = info.get_data_type(value)?;
        let moved = cast_to_zone(value.clone(), &of, to);
        let local = DataType::Timestamp(TimeUnit::Nanosecond, None);
        Ok(ExprSimplifyResult::Simplified(match has_zone(&of) {
            true => zone_cast(moved, local, false),
            false => moved,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(zone)] = args.args.as_slice() else {
            return plan_err!("AT TIME ZONE takes a zone as a literal, e.g. 'Europe/Berlin'");
        };
        let to = in_zone(zone_of(Some(zone))?);
        let values = value.to_array(args.number_rows)?;
        let values = match values.data_type() {
            of if of.is_string() => read_strings(&values, &to, false)?,
            of if has_zone(of) => cast(&values, &to)?,
            _ => zones::in_zone(&values, &to, false)?,
        };
        let local = DataType::Timestamp(TimeUnit::Nanosecond, None);
        Ok(ColumnarValue::Array(match has_zone(&value.data_type()) {
            true => zones::in_zone(&values, &local, false)?,
            false => values,
        }))
    }
}
