//! `x AT TIME ZONE 'zone'`: the local time of a timestamp with a zone, the timestamp with that zone of all else.
//!
//! In: timestamps, days and strings, and the zone as a literal. Out: timestamps in nanoseconds.
//! Invariant: its type follows from that of x alone. A cast to a zone, which DataFusion would plan, is no different from the casts
//! that it adds itself where rows of several zones meet.
//! Not here: TIMESTAMP WITH TIME ZONE '…' and casts to it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// Name of the function.
pub(crate) const AT_TIME_ZONE: &str = "at time zone";

/// The function, to be registered.
pub(super) fn at_time_zone() -> ScalarUDF {
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
    fn name(&self) -> &str {
        AT_TIME_ZONE
    }

    /// As a cast, it does not show in names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(
            || AT_TIME_ZONE.to_string(),
            |value| value.schema_name().to_string(),
        ))
    }

    fn signature(&self) -> &Signature {
        &self.signature
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
        let is_moved = has_zone(&info.get_data_type(value)?);
        let to = in_zone(zone_of(Some(zone))?);
        let moved = Expr::Cast(Cast::new(Box::new(value.clone()), to));
        Ok(ExprSimplifyResult::Simplified(match is_moved {
            true => to_local_time().call(vec![moved]),
            false => moved,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(zone)] = args.args.as_slice() else {
            return plan_err!("AT TIME ZONE takes a zone as a literal, e.g. 'Europe/Berlin'");
        };
        let moved = value.cast_to(&in_zone(zone_of(Some(zone))?), None)?;
        if !has_zone(&value.data_type()) {
            return Ok(moved);
        }
        let field = Arc::new(Field::new("value", moved.data_type(), true));
        to_local_time().invoke_with_args(ScalarFunctionArgs {
            args: vec![moved],
            arg_fields: vec![field],
            ..args
        })
    }
}
