//! Columns of a batch as Python objects, and rows as tuples of them.
//!
//! In: a record batch. Out: one tuple per row.
//! Invariant: conversion goes column by column, the type is looked at once per column and batch. Equal strings, bytes, decimals,
//! dates and times of a column become one object as far as the object cache has them. Nothing wraps: what Python cannot hold is
//! an error.
//! Not here: fetching batches; pandas, which takes numbers without objects (frame.rs).

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::*;
use grouse::Error;
use grouse::type_name;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDelta, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType, PyTzInfo,
};

use crate::error::raise;
use crate::object_cache::ObjectCache;

/// The values of one column.
pub type Objects<'py> = Vec<Bound<'py, PyAny>>;

const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// Days that a month of an interval counts for, as DuckDB has it: Python's timedelta has no months.
const MONTH_DAYS: i64 = 30;

/// The rows of a batch; `cache` goes from batch to batch of a result.
pub fn tuples<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    cache: &mut ObjectCache,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let columns = batch.columns().iter().enumerate();
    let columns =
        columns.map(|(at, array)| objects(py, array, cache.child(at)).map(Vec::into_iter));
    let mut columns = columns.collect::<PyResult<Vec<_>>>()?;
    let rows = (0..batch.num_rows()).map(|_| {
        // Every column has as many values as the batch has rows.
        PyTuple::new(
            py,
            columns
                .iter_mut()
                .map(|column| column.next().expect("a value per row")),
        )
    });
    rows.collect()
}

/// The values of one column.
pub fn objects<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    use DataType::*;
    match array.data_type() {
        Null => Ok(vec![none(py); array.len()]),
        Boolean => each(py, array.as_boolean(), |a, row| {
            Ok(PyBool::new(py, a.value(row)).to_owned().into_any())
        }),
        Int8 => integers::<Int8Type>(py, array),
        Int16 => integers::<Int16Type>(py, array),
        Int32 => integers::<Int32Type>(py, array),
        Int64 => integers::<Int64Type>(py, array),
        UInt8 => integers::<UInt8Type>(py, array),
        UInt16 => integers::<UInt16Type>(py, array),
        UInt32 => integers::<UInt32Type>(py, array),
        UInt64 => integers::<UInt64Type>(py, array),
        Float16 => each(py, array.as_primitive::<Float16Type>(), |a, row| {
            Ok(float(py, a.value(row).to_f64()))
        }),
        Float32 => each(py, array.as_primitive::<Float32Type>(), |a, row| {
            Ok(float(py, a.value(row).into()))
        }),
        Float64 => each(py, array.as_primitive::<Float64Type>(), |a, row| {
            Ok(float(py, a.value(row)))
        }),
        Utf8 => strings(py, array.as_string::<i32>(), cache),
        LargeUtf8 => strings(py, array.as_string::<i64>(), cache),
        Utf8View => strings(py, array.as_string_view(), cache),
        Binary => blobs(py, array.as_binary::<i32>(), cache),
        LargeBinary => blobs(py, array.as_binary::<i64>(), cache),
        BinaryView => blobs(py, array.as_binary_view(), cache),
        FixedSizeBinary(_) => blobs(py, array.as_fixed_size_binary(), cache),
        Decimal32(..) => decimals::<Decimal32Type>(py, array, cache),
        Decimal64(..) => decimals::<Decimal64Type>(py, array, cache),
        Decimal128(..) => decimals::<Decimal128Type>(py, array, cache),
        Decimal256(..) => decimals::<Decimal256Type>(py, array, cache),
        other if other.is_temporal() => temporal(py, array, cache),
        _ => nested(py, array, cache),
    }
}

fn none(py: Python<'_>) -> Bound<'_, PyAny> {
    py.None().into_bound(py)
}

fn float(py: Python<'_>, value: f64) -> Bound<'_, PyAny> {
    PyFloat::new(py, value).into_any()
}

/// One object per row; None for NULL.
fn each<'py, A: Array>(
    py: Python<'py>,
    array: &A,
    object: impl Fn(&A, usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Objects<'py>> {
    with_nulls(py, array.len(), array.nulls(), |row| object(array, row))
}

fn with_nulls<'py>(
    py: Python<'py>,
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut object: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Objects<'py>> {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => (0..rows).map(&mut object).collect(),
        Some(nulls) => (0..rows)
            .map(|row| {
                if nulls.is_null(row) {
                    Ok(none(py))
                } else {
                    object(row)
                }
            })
            .collect(),
    }
}

fn strings<'py, 'a, A: StringArrayType<'a>>(
    py: Python<'py>,
    array: A,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    with_nulls(py, array.len(), array.nulls(), |row| {
        let text = array.value(row);
        cache.object(py, text.as_bytes(), || {
            Ok(PyString::new(py, text).into_any())
        })
    })
}

fn blobs<'py, 'a, A: BinaryArrayType<'a>>(
    py: Python<'py>,
    array: A,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    with_nulls(py, array.len(), array.nulls(), |row| {
        let blob = array.value(row);
        cache.object(py, blob, || Ok(PyBytes::new(py, blob).into_any()))
    })
}

/// One object per value of a column of fixed width.
fn fixed<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
    object: impl Fn(&PrimitiveArray<T>, usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Objects<'py>> {
    let array = array.as_primitive::<T>();
    with_nulls(py, array.len(), array.nulls(), |row| {
        let value = &array.values()[row..=row];
        cache.object(py, value.to_byte_slice(), || object(array, row))
    })
}

fn integers<'py, T: ArrowPrimitiveType>(py: Python<'py>, array: &ArrayRef) -> PyResult<Objects<'py>>
where
    T::Native: IntoPyObject<
            'py,
            Target = PyInt,
            Output = Bound<'py, PyInt>,
            Error = std::convert::Infallible,
        >,
{
    each(py, array.as_primitive::<T>(), |a, row| {
        match a.value(row).into_pyobject(py) {
            Ok(integer) => Ok(integer.into_any()),
        }
    })
}

fn decimals<'py, T: DecimalType>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = DECIMAL.import(py, "decimal", "Decimal")?;
    fixed::<T>(py, array, cache, |a, row| {
        class.call1((a.value_as_string(row),))
    })
}

fn temporal<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    use DataType::*;
    match array.data_type() {
        Date32 => dates::<Date32Type>(py, array, cache),
        Date64 => dates::<Date64Type>(py, array, cache),
        Time32(TimeUnit::Second) => times::<Time32SecondType>(py, array, cache),
        Time32(_) => times::<Time32MillisecondType>(py, array, cache),
        Time64(TimeUnit::Microsecond) => times::<Time64MicrosecondType>(py, array, cache),
        Time64(_) => times::<Time64NanosecondType>(py, array, cache),
        Timestamp(TimeUnit::Second, zone) => {
            timestamps::<TimestampSecondType>(py, array, zone.as_deref(), cache)
        }
        Timestamp(TimeUnit::Millisecond, zone) => {
            timestamps::<TimestampMillisecondType>(py, array, zone.as_deref(), cache)
        }
        Timestamp(TimeUnit::Microsecond, zone) => {
            timestamps::<TimestampMicrosecondType>(py, array, zone.as_deref(), cache)
        }
        Timestamp(TimeUnit::Nanosecond, zone) => {
            timestamps::<TimestampNanosecondType>(py, array, zone.as_deref(), cache)
        }
        Duration(unit) => durations(py, array, *unit),
        Interval(unit) => intervals(py, array, *unit),
        other => Err(unknown(other)),
    }
}

fn dates<'py, T>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>>
where
    T: ArrowTemporalType,
    i64: From<T::Native>,
{
    fixed::<T>(py, array, cache, |a, row| match a.value_as_date(row) {
        Some(date) => Ok(date
            .into_pyobject(py)
            .map_err(|_| out_of_range(a, row))?
            .into_any()),
        None => Err(out_of_range(a, row)),
    })
}

fn times<'py, T>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>>
where
    T: ArrowTemporalType,
    i64: From<T::Native>,
{
    fixed::<T>(py, array, cache, |a, row| match a.value_as_time(row) {
        Some(time) => Ok(time.into_pyobject(py)?.into_any()),
        None => Err(out_of_range(a, row)),
    })
}

fn timestamps<'py, T: ArrowTimestampType>(
    py: Python<'py>,
    array: &ArrayRef,
    zone: Option<&str>,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    let utc = PyTzInfo::utc(py)?;
    let zone = zone.map(|zone| time_zone(py, zone)).transpose()?;
    let in_utc = PyDict::new(py);
    in_utc.set_item("tzinfo", utc)?;
    fixed::<T>(py, array, cache, |a, row| {
        let naive = a
            .value_as_datetime(row)
            .ok_or_else(|| out_of_range(a, row))?;
        let naive = naive
            .into_pyobject(py)
            .map_err(|_| out_of_range(a, row))?
            .into_any();
        match &zone {
            None => Ok(naive),
            Some(zone) => {
                let instant = naive.call_method("replace", (), Some(&in_utc))?;
                if zone.is(utc) {
                    Ok(instant)
                } else {
                    instant.call_method1("astimezone", (zone,))
                }
            }
        }
    })
}

/// A zone by its name (`Europe/Berlin`) or offset (`+02:00`).
fn time_zone<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if matches!(name, "UTC" | "Z" | "utc" | "+00:00") {
        return Ok(PyTzInfo::utc(py)?.to_owned().into_any());
    }
    if name.starts_with(['+', '-']) {
        let parsed = py
            .import("datetime")?
            .getattr("datetime")?
            .call_method1("strptime", (name, "%z"))?;
        return parsed.getattr("tzinfo");
    }
    Ok(PyTzInfo::timezone(py, name)?.into_any())
}

fn durations<'py>(py: Python<'py>, array: &ArrayRef, unit: TimeUnit) -> PyResult<Objects<'py>> {
    let counts = cast(array, &DataType::Int64).map_err(|failure| raise(failure.into()))?;
    each(py, counts.as_primitive::<Int64Type>(), |a, row| {
        let count = i128::from(a.value(row));
        delta(
            py,
            match unit {
                TimeUnit::Second => count * 1_000_000,
                TimeUnit::Millisecond => count * 1_000,
                TimeUnit::Microsecond => count,
                TimeUnit::Nanosecond => count.div_euclid(1_000),
            },
        )
    })
}

fn intervals<'py>(py: Python<'py>, array: &ArrayRef, unit: IntervalUnit) -> PyResult<Objects<'py>> {
    let days = |days: i64| i128::from(days) * i128::from(DAY_MICROSECONDS);
    match unit {
        IntervalUnit::YearMonth => each(
            py,
            array.as_primitive::<IntervalYearMonthType>(),
            |a, row| delta(py, days(i64::from(a.value(row)) * MONTH_DAYS)),
        ),
        IntervalUnit::DayTime => each(py, array.as_primitive::<IntervalDayTimeType>(), |a, row| {
            let value = a.value(row);
            delta(
                py,
                days(value.days.into()) + i128::from(value.milliseconds) * 1_000,
            )
        }),
        IntervalUnit::MonthDayNano => each(
            py,
            array.as_primitive::<IntervalMonthDayNanoType>(),
            |a, row| {
                let value = a.value(row);
                let whole = i64::from(value.months) * MONTH_DAYS + i64::from(value.days);
                delta(
                    py,
                    days(whole) + i128::from(value.nanoseconds.div_euclid(1_000)),
                )
            },
        ),
    }
}

fn delta(py: Python<'_>, microseconds: i128) -> PyResult<Bound<'_, PyAny>> {
    let day = i128::from(DAY_MICROSECONDS);
    let (days, rest) = (microseconds.div_euclid(day), microseconds.rem_euclid(day));
    let too_long = || overflow("a duration", "datetime.timedelta (999999999 days)");
    let days = i32::try_from(days).map_err(|_| too_long())?;
    let (seconds, rest) = (rest / 1_000_000, rest % 1_000_000);
    // Both are remainders: less than a day of seconds, less than a second of microseconds.
    let made = PyDelta::new(py, days, seconds as i32, rest as i32, false);
    made.map(Bound::into_any).map_err(|_| too_long())
}

fn nested<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    use DataType::*;
    match array.data_type() {
        List(_) => lists(py, array.as_list::<i32>(), cache),
        LargeList(_) => lists(py, array.as_list::<i64>(), cache),
        FixedSizeList(_, length) => fixed_lists(py, array.as_fixed_size_list(), *length, cache),
        Struct(_) => structs(py, array.as_struct(), cache),
        Map(..) => maps(py, array.as_map(), cache),
        Dictionary(..) => dictionary(py, array, cache),
        ListView(item) => objects(py, &laid_out(array, &List(item.clone()))?, cache),
        LargeListView(item) => objects(py, &laid_out(array, &LargeList(item.clone()))?, cache),
        RunEndEncoded(_, values) => objects(py, &laid_out(array, values.data_type())?, cache),
        Union(..) => unions(py, array.as_union()),
        other => Err(unknown(other)),
    }
}

fn laid_out(array: &ArrayRef, data_type: &DataType) -> PyResult<ArrayRef> {
    cast(array, data_type).map_err(|failure| raise(failure.into()))
}

fn lists<'py, O: OffsetSizeTrait>(
    py: Python<'py>,
    array: &GenericListArray<O>,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    let offsets = array.value_offsets();
    let first = offsets[0].as_usize();
    let items = objects(
        py,
        &array
            .values()
            .slice(first, offsets[array.len()].as_usize() - first),
        cache.child(0),
    )?;
    each(py, array, |_, row| {
        let range = offsets[row].as_usize() - first..offsets[row + 1].as_usize() - first;
        Ok(PyList::new(py, &items[range])?.into_any())
    })
}

fn fixed_lists<'py>(
    py: Python<'py>,
    array: &FixedSizeListArray,
    length: i32,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    let length = usize::try_from(length).unwrap_or(0);
    let first = array.value_offset(0) as usize;
    let items = objects(
        py,
        &array.values().slice(first, array.len() * length),
        cache.child(0),
    )?;
    each(py, array, |_, row| {
        Ok(PyList::new(py, &items[row * length..(row + 1) * length])?.into_any())
    })
}

fn structs<'py>(
    py: Python<'py>,
    array: &StructArray,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    let names: Vec<Bound<'py, PyString>> = array
        .fields()
        .iter()
        .map(|field| PyString::new(py, field.name()))
        .collect();
    let columns = array.columns().iter().enumerate();
    let columns = columns
        .map(|(at, column)| objects(py, column, cache.child(at)))
        .collect::<PyResult<Vec<_>>>()?;
    each(py, array, |_, row| {
        let dict = PyDict::new(py);
        for (name, column) in names.iter().zip(&columns) {
            dict.set_item(name, &column[row])?;
        }
        Ok(dict.into_any())
    })
}

fn maps<'py>(py: Python<'py>, array: &MapArray, cache: &mut ObjectCache) -> PyResult<Objects<'py>> {
    let offsets = array.value_offsets();
    let first = offsets[0].as_usize();
    let entries = offsets[array.len()].as_usize() - first;
    let keys = objects(py, &array.keys().slice(first, entries), cache.child(0))?;
    let values = objects(py, &array.values().slice(first, entries), cache.child(1))?;
    each(py, array, |_, row| {
        let dict = PyDict::new(py);
        for entry in offsets[row].as_usize() - first..offsets[row + 1].as_usize() - first {
            dict.set_item(hashable(py, &keys[entry])?, &values[entry])?;
        }
        Ok(dict.into_any())
    })
}

/// A key of a dict: lists become tuples, structs tuples of their values.
fn hashable<'py>(py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let parts = match (key.cast::<PyList>(), key.cast::<PyDict>()) {
        (Ok(list), _) => list.iter().collect::<Vec<_>>(),
        (_, Ok(dict)) => dict.values().iter().collect(),
        _ => return Ok(key.clone()),
    };
    let parts = parts
        .iter()
        .map(|part| hashable(py, part))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, parts)?.into_any())
}

/// One object per value of the dictionary, shared by all rows that refer to it.
fn dictionary<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    cache: &mut ObjectCache,
) -> PyResult<Objects<'py>> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return Ok(vec![none(py); array.len()]);
    }
    if values.data_type().is_nested() {
        // Lists and dicts can be changed: each row has its own.
        return objects(py, &laid_out(array, values.data_type())?, cache);
    }
    let (codes, nulls) = (dictionary.normalized_keys(), dictionary.keys().nulls());
    let valid = |row| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let codes = codes.iter().enumerate();
    let codes = codes.map(|(row, &code)| valid(row).then_some(code));
    cache.decoded(py, values, codes, |values, cache| {
        objects(py, values, cache)
    })
}

fn unions<'py>(py: Python<'py>, array: &UnionArray) -> PyResult<Objects<'py>> {
    let value = |row| {
        // Rows differ in type: equal bytes are not equal values.
        let one = objects(py, &array.value(row), &mut ObjectCache::default());
        one.map(|mut one| one.pop().unwrap_or_else(|| none(py)))
    };
    (0..array.len()).map(value).collect()
}

fn unknown(data_type: &DataType) -> PyErr {
    raise(Error::Unsupported {
        message: format!(
            "a column of type {} has no form in Python; cast it in SQL",
            type_name(data_type)
        ),
    })
}

fn out_of_range<T: ArrowTemporalType>(array: &PrimitiveArray<T>, row: usize) -> PyErr {
    let value = array.slice(row, 1);
    let text = arrow::util::display::array_value_to_string(&value, 0);
    // Beyond what chrono knows the text is an error in Arrow's words.
    let text = text.ok().filter(|text| !text.starts_with("ERROR"));
    let kind = || type_name(array.data_type());
    let text = text.unwrap_or_else(|| format!("the {} {:?}", kind(), array.value(row)));
    overflow(&text, "the datetime module (years 1 to 9999)")
}

fn overflow(what: &str, holder: &str) -> PyErr {
    raise(Error::Overflow {
        aggregate: "conversion".to_string(),
        message: format!("{what} does not fit {holder}; cast the column to varchar or use arrow()"),
    })
}
