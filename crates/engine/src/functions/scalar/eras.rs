//! The beginnings of centuries and millennia, which `date_trunc` of DataFusion's does not know.
//!
//! In: dates and timestamps. Out: timestamps in microseconds, as nanoseconds do not reach 1001 and 1601; by the clock of their zone.
//! Invariant: a century begins with its year 1, as in PostgreSQL: that of 2000 with 1901.
//! Not here: decades (sql/short_forms.rs), the numbers of centuries (dates.rs).

use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDate, Offset, TimeZone};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{CallArguments, CallForm, rows};
use super::kinds::ParameterKind;
use super::timestamps::{
    MICROS_PER_DAY, MICROS_PER_SECOND, date_of, days_of, local_micros, out_of_range, split_day,
};

/// `date_trunc` to a century and to a millennium.
pub(crate) const CENTURY: &str = "trunc_century";
pub(crate) const MILLENNIUM: &str = "trunc_millennium";

const OF_TIME: &[CallForm] = &[&[ParameterKind::Timestamp]];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let definitions = [
        rows(CENTURY, OF_TIME, beginning_type, |call| {
            beginning(call, 100)
        }),
        rows(MILLENNIUM, OF_TIME, beginning_type, |call| {
            beginning(call, 1_000)
        }),
    ];
    definitions.into_iter().map(ScalarUDF::from).collect()
}

fn beginning_type(types: &[DataType]) -> Result<DataType> {
    let zone = match &types[0] {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    Ok(DataType::Timestamp(TimeUnit::Microsecond, zone))
}

/// The beginning of so many years; the first of them began with the year 1.
fn beginning(call: &CallArguments, years: i32) -> Result<ArrayRef> {
    let micros = local_micros(&call.args[0])?;
    let zone = match call.args[0].data_type() {
        DataType::Timestamp(_, Some(zone)) => Some(Tz::from_str(zone)?),
        _ => None,
    };
    let beginnings = call.each::<Int64Array, _>(|row| {
        let date = date_of(split_day(micros.value(row)).0)?;
        let year = (date.year() - 1).div_euclid(years) * years + 1;
        let first = NaiveDate::from_ymd_opt(year, 1, 1).ok_or_else(out_of_range)?;
        let local = days_of(first) * MICROS_PER_DAY;
        Ok(Some(match &zone {
            Some(zone) => local - east_of_utc(zone, local)? * MICROS_PER_SECOND,
            None => local,
        }))
    })?;
    Ok(cast(&beginnings, call.returns)?)
}

/// Seconds by which a zone's clock is before that of UTC where it shows `local`.
fn east_of_utc(zone: &Tz, local: i64) -> Result<i64> {
    let local = DateTime::from_timestamp_micros(local).ok_or_else(out_of_range)?;
    let local = local.naive_utc();
    let offset = match zone.offset_from_local_datetime(&local).earliest() {
        Some(offset) => offset,
        None => zone.offset_from_utc_datetime(&local),
    };
    Ok(i64::from(offset.fix().local_minus_utc()))
}
