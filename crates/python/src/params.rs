//! Parameters of a statement: Python values as values of the engine.
//!
//! In: a sequence for `?` and `$1`, a mapping for `$name`. Out: [`Params`].
//! Invariant: nothing is rounded or wrapped; a value that SQL cannot hold is an error that names its type.
//! Not here: matching them with the statement, which the engine does.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::common::scalar::ScalarStructBuilder;
use grouse::Params;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple,
};

use crate::error::wrong_type;

const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// Digits of the widest decimals: 128 and 256 bits.
const DIGITS_MAX: [usize; 2] = [38, 76];

/// Parameters from what the caller gave.
pub fn from_python(params: Option<&Bound<'_, PyAny>>) -> PyResult<Params> {
    let Some(params) = params else {
        return Ok(Params::None);
    };
    if let Ok(named) = params.cast::<PyDict>() {
        let values = named
            .iter()
            .map(|(name, value)| Ok((name.extract::<String>()?, scalar(&value)?)));
        return Ok(Params::Named(values.collect::<PyResult<HashMap<_, _>>>()?));
    }
    if params.is_instance_of::<PyList>() || params.is_instance_of::<PyTuple>() {
        let values = params.try_iter()?.map(|value| scalar(&value?));
        return Ok(Params::Positional(values.collect::<PyResult<Vec<_>>>()?));
    }
    let class = params.get_type().name()?;
    Err(wrong_type(format!(
        "params must be a list or tuple for ? and $1, or a dict for $name, not {class}"
    )))
}

/// The value, of the type that comes nearest to its class.
pub fn scalar(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    if let Ok(boolean) = value.cast::<PyBool>() {
        return Ok(ScalarValue::from(boolean.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value);
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ScalarValue::from(value.extract::<f64>()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(ScalarValue::from(value.extract::<String>()?));
    }
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return Ok(ScalarValue::Binary(Some(value.extract::<Vec<u8>>()?)));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return list(value);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return structure(dict);
    }
    of_library(value)
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if let Ok(small) = value.extract::<i64>() {
        return Ok(ScalarValue::from(small));
    }
    if let Ok(unsigned) = value.extract::<u64>() {
        return Ok(ScalarValue::from(unsigned));
    }
    decimal(&value.str()?.to_string())
}

/// Types of the standard library's modules, of numpy and of pandas.
fn of_library(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let py = value.py();
    // What pandas has for a missing value: the first is a datetime by its class.
    if matches!(value.get_type().name()?.to_str()?, "NaTType" | "NAType") {
        return Ok(ScalarValue::Null);
    }
    let datetime = py.import("datetime")?;
    let is = |name: &str| value.is_instance(&datetime.getattr(name)?);
    // A datetime is a date too.
    if is("datetime")? {
        return timestamp(&datetime, value);
    }
    if is("date")? {
        let epoch = datetime.getattr("date")?.call1((1970, 1, 1))?;
        return Ok(ScalarValue::Date32(Some(
            value.sub(epoch)?.getattr("days")?.extract()?,
        )));
    }
    if is("time")? {
        return time(value);
    }
    if is("timedelta")? {
        let days: i32 = value.getattr("days")?.extract()?;
        let rest: i64 = value.getattr("seconds")?.extract::<i64>()? * 1_000_000
            + value.getattr("microseconds")?.extract::<i64>()?;
        let nanos = rest * 1_000 + own_nanos(value, "nanoseconds")?;
        return Ok(ScalarValue::IntervalMonthDayNano(Some(
            IntervalMonthDayNano::new(0, days, nanos),
        )));
    }
    if value.is_instance(&py.import("decimal")?.getattr("Decimal")?)? {
        return decimal(
            &value
                .call_method1("__format__", ("f",))?
                .extract::<String>()?,
        );
    }
    if value.is_instance(&py.import("uuid")?.getattr("UUID")?)? {
        return Ok(ScalarValue::from(value.str()?.to_string()));
    }
    if value.hasattr("dtype")? && value.hasattr("tolist")? {
        let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
        if kind == "M" || kind == "m" {
            return numpy_time(value, &kind);
        }
        let plain = value.call_method0("tolist")?;
        if !plain.get_type().is(value.get_type()) {
            return scalar(&plain);
        }
    }
    Err(wrong_type(format!(
        "a parameter cannot be a {}",
        value.get_type().name()?
    )))
}

/// Nanoseconds that pandas has beside the microseconds of the standard library's class.
fn own_nanos(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    match value.getattr_opt(name)? {
        Some(nanos) => nanos.extract(),
        None => Ok(0),
    }
}

/// A datetime64 or timedelta64: as a value of the standard library, or as its number of units where that has none.
fn numpy_time(value: &Bound<'_, PyAny>, kind: &str) -> PyResult<ScalarValue> {
    if value
        .getattr_opt("ndim")?
        .is_some_and(|ndim| ndim.gt(0).unwrap_or(false))
    {
        return list(value);
    }
    let plain = value.call_method0("tolist")?;
    if !plain.is_instance_of::<PyInt>() {
        return scalar(&plain);
    }
    let units: i64 = plain.extract()?;
    let dtype: String = value.getattr("dtype")?.str()?.extract()?;
    let interval = |months, nanos| {
        let interval = IntervalMonthDayNano::new(months, 0, nanos);
        Ok(ScalarValue::IntervalMonthDayNano(Some(interval)))
    };
    let unit = dtype.rsplit('[').next().unwrap_or_default();
    match (kind, unit, i32::try_from(units)) {
        ("M", "ns]", _) => Ok(ScalarValue::TimestampNanosecond(Some(units), None)),
        ("m", "ns]", _) => interval(0, units),
        ("m", "M]", Ok(months)) => interval(months, 0),
        _ => Err(wrong_type(format!("a parameter cannot be a {dtype}"))),
    }
}

fn timestamp(datetime: &Bound<'_, PyModule>, value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let aware = !value.getattr("tzinfo")?.is_none();
    let zone = if aware {
        utc.clone()
    } else {
        value.py().None().into_bound(value.py())
    };
    let epoch = datetime
        .getattr("datetime")?
        .call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
    let microsecond = datetime.getattr("timedelta")?.call1((0, 0, 1))?;
    let count: i64 = value.sub(epoch)?.floor_div(microsecond)?.extract()?;
    let nanos = own_nanos(value, "nanosecond")?;
    if nanos != 0 {
        let count = count
            .checked_mul(1_000)
            .and_then(|count| count.checked_add(nanos));
        let count = count.ok_or_else(|| wrong_type(format!("{value} has too many nanoseconds")))?;
        return Ok(ScalarValue::TimestampNanosecond(
            Some(count),
            aware.then(|| "UTC".into()),
        ));
    }
    Ok(ScalarValue::TimestampMicrosecond(
        Some(count),
        aware.then(|| "UTC".into()),
    ))
}

fn time(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if !value.getattr("tzinfo")?.is_none() {
        return Err(wrong_type(
            "a parameter cannot be a time with a zone; SQL has none",
        ));
    }
    let part = |name: &str| value.getattr(name)?.extract::<i64>();
    let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
    let micros = (seconds * 1_000_000 + part("microsecond")?) % DAY_MICROSECONDS;
    Ok(ScalarValue::Time64Nanosecond(Some(micros * 1_000)))
}

/// A decimal from its digits without exponent, as wide as it needs to be.
fn decimal(text: &str) -> PyResult<ScalarValue> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = format!("{whole}{fraction}");
    let count = digits
        .trim_start_matches(['-', '+', '0'])
        .len()
        .max(fraction.len())
        .max(1);
    let refused = || {
        wrong_type(format!(
            "{text} cannot be a parameter: SQL's decimals have at most {} digits",
            DIGITS_MAX[1]
        ))
    };
    if !digits
        .trim_start_matches(['-', '+'])
        .chars()
        .all(|c| c.is_ascii_digit())
    {
        return Err(wrong_type(format!(
            "the decimal {text} cannot be a parameter; pass a float"
        )));
    }
    // Both fit: there are at most 76 digits.
    let (precision, scale) = match count <= DIGITS_MAX[1] {
        true => (count as u8, fraction.len() as i8),
        false => return Err(refused()),
    };
    if count <= DIGITS_MAX[0] {
        let value = digits.parse().map_err(|_| refused())?;
        return Ok(ScalarValue::Decimal128(Some(value), precision, scale));
    }
    let value = arrow::datatypes::i256::from_string(&digits).ok_or_else(refused)?;
    Ok(ScalarValue::Decimal256(Some(value), precision, scale))
}

fn list(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let items = value
        .try_iter()?
        .map(|item| scalar(&item?))
        .collect::<PyResult<Vec<_>>>()?;
    let types: Vec<DataType> = items
        .iter()
        .map(ScalarValue::data_type)
        .filter(|kind| !kind.is_null())
        .collect();
    let kind = types.first().cloned().unwrap_or(DataType::Null);
    let kind = if types.iter().any(DataType::is_floating) && types.iter().all(DataType::is_numeric)
    {
        DataType::Float64
    } else {
        kind
    };
    let items = items
        .iter()
        .map(|item| item.cast_to(&kind))
        .collect::<Result<Vec<_>, _>>();
    let same = types
        .iter()
        .all(|other| *other == kind || (kind == DataType::Float64 && other.is_numeric()));
    match items {
        Ok(items) if same => Ok(ScalarValue::List(ScalarValue::new_list_nullable(
            &items, &kind,
        ))),
        _ => Err(wrong_type(
            "the items of a list that is a parameter must have one type",
        )),
    }
}

fn structure(dict: &Bound<'_, PyDict>) -> PyResult<ScalarValue> {
    let mut builder = ScalarStructBuilder::new();
    for (name, value) in dict {
        let value = scalar(&value)?;
        let name: String = name.extract()?;
        builder = builder.with_scalar(Field::new(name, value.data_type(), true), value);
    }
    builder
        .build()
        .map_err(|failure| crate::error::raise(failure.into()))
}
