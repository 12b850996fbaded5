//! Python values as a column of one type, each checked.
//!
//! In: objects, None for NULL, and the type that they have to have. Out: an array.
//! Invariant: a value is of the type, or there is an error: no number is rounded or cut, no text is read as another thing.
//! Not here: parameters, whose types come from the values (params.rs); arrays of other libraries (the engine's scan/door.rs).

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeListArray, GenericListArray,
    LargeBinaryArray, LargeStringArray, MapArray, OffsetSizeTrait, PrimitiveArray, StringArray,
    StringViewArray, StructArray, new_empty_array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, FieldRef, Fields, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::ScalarValue;
use grouse::type_name;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::params::scalar;

/// Characters of a value that an error shows.
const SHOWN_CHARACTERS: usize = 60;

/// The values as a column. Raises TypeError, whose text names the value, where one is not of the type.
pub fn column(values: &[Bound<'_, PyAny>], kind: &DataType) -> PyResult<ArrayRef> {
    use DataType::*;
    Ok(match kind {
        Boolean => Arc::new(BooleanArray::from(each(values, kind, boolean)?)),
        Int8 => integers::<Int8Type>(values, kind)?,
        Int16 => integers::<Int16Type>(values, kind)?,
        Int32 => integers::<Int32Type>(values, kind)?,
        Int64 => integers::<Int64Type>(values, kind)?,
        UInt8 => integers::<UInt8Type>(values, kind)?,
        UInt16 => integers::<UInt16Type>(values, kind)?,
        UInt32 => integers::<UInt32Type>(values, kind)?,
        UInt64 => integers::<UInt64Type>(values, kind)?,
        Float32 => {
            let numbers = each(values, kind, narrow_float)?;
            Arc::new(PrimitiveArray::<Float32Type>::from(numbers))
        }
        Float64 => Arc::new(PrimitiveArray::<Float64Type>::from(each(
            values, kind, float,
        )?)),
        Utf8 => Arc::new(StringArray::from_iter(each(values, kind, text)?)),
        LargeUtf8 => Arc::new(LargeStringArray::from_iter(each(values, kind, text)?)),
        Utf8View => Arc::new(StringViewArray::from_iter(each(values, kind, text)?)),
        Binary => Arc::new(BinaryArray::from_iter(each(values, kind, bytes)?)),
        LargeBinary => Arc::new(LargeBinaryArray::from_iter(each(values, kind, bytes)?)),
        BinaryView => Arc::new(BinaryViewArray::from_iter(each(values, kind, bytes)?)),
        List(item) => lists::<i32>(values, kind, item)?,
        LargeList(item) => lists::<i64>(values, kind, item)?,
        FixedSizeList(item, length) => fixed_lists(values, kind, item, *length)?,
        Struct(fields) => structs(values, kind, fields)?,
        Map(entries, is_sorted) => maps(values, kind, entries, *is_sorted)?,
        _ => others(values, kind)?,
    })
}

/// What each value is; None of NULL.
fn each<T>(
    values: &[Bound<'_, PyAny>],
    kind: &DataType,
    take: impl Fn(&Bound<'_, PyAny>) -> Option<T>,
) -> PyResult<Vec<Option<T>>> {
    let taken = values.iter().map(|value| {
        if value.is_none() {
            return Ok(None);
        }
        if let Some(taken) = take(value) {
            return Ok(Some(taken));
        }
        let plain = of_numpy(value);
        match plain.as_ref().and_then(&take) {
            Some(taken) => Ok(Some(taken)),
            None => Err(unfit(value, kind)),
        }
    });
    taken.collect()
}

/// A value of numpy's as one of Python's.
fn of_numpy<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let is_one = value.hasattr("dtype").ok()? && value.hasattr("tolist").ok()?;
    is_one.then(|| value.call_method0("tolist").ok()).flatten()
}

fn unfit(value: &Bound<'_, PyAny>, kind: &DataType) -> PyErr {
    let class = match value.get_type().name() {
        Ok(class) => class,
        Err(failure) => return failure,
    };
    let shown = match value.repr() {
        Ok(shown) => shown.to_string(),
        Err(failure) => return failure,
    };
    let cut = match shown.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    };
    PyTypeError::new_err(format!("{cut} ({class}) is no {}", type_name(kind)))
}

fn boolean(value: &Bound<'_, PyAny>) -> Option<bool> {
    Some(value.cast::<PyBool>().ok()?.is_true())
}

fn integers<T>(values: &[Bound<'_, PyAny>], kind: &DataType) -> PyResult<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let integer = |value: &Bound<'_, PyAny>| {
        let value = value.cast::<PyInt>().ok()?;
        if value.is_instance_of::<PyBool>() {
            return None;
        }
        let wide = match value.extract::<i64>() {
            Ok(number) => i128::from(number),
            Err(_) => i128::from(value.extract::<u64>().ok()?),
        };
        T::Native::try_from(wide).ok()
    };
    let numbers = each(values, kind, integer)?;
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(numbers)))
}

fn float(value: &Bound<'_, PyAny>) -> Option<f64> {
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    let is_number = is_number && !value.is_instance_of::<PyBool>();
    is_number.then(|| value.extract().ok()).flatten()
}

/// A number of 32 bits; one beyond them is none.
fn narrow_float(value: &Bound<'_, PyAny>) -> Option<f32> {
    let number = float(value)?;
    let narrow = number as f32;
    (narrow.is_finite() || !number.is_finite()).then_some(narrow)
}

/// Text; a UUID is some, too.
fn text(value: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return text.extract().ok();
    }
    let is_uuid = value.get_type().name().ok()? == "UUID";
    is_uuid.then(|| value.str().ok()?.extract().ok()).flatten()
}

fn bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    let is_some = value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>();
    is_some.then(|| value.extract().ok()).flatten()
}

/// Decimals, dates, times: what stays the same there and back.
fn others(values: &[Bound<'_, PyAny>], kind: &DataType) -> PyResult<ArrayRef> {
    if values.is_empty() {
        return Ok(new_empty_array(kind));
    }
    let exact = |value: &Bound<'_, PyAny>| {
        let given = scalar(value).ok()?;
        let from = given.data_type();
        if !is_of_family(&from, kind) {
            return None;
        }
        let cast = given.cast_to(kind).ok().filter(|cast| !cast.is_null())?;
        (cast.cast_to(&from).ok()? == given).then_some(cast)
    };
    let found = each(values, kind, exact)?;
    if found.iter().all(Option::is_none) {
        return Ok(new_null_array(kind, values.len()));
    }
    let null = ScalarValue::try_from(kind).map_err(broken)?;
    let found = found.into_iter();
    ScalarValue::iter_to_array(found.map(|one| one.unwrap_or_else(|| null.clone()))).map_err(broken)
}

/// Whether values of the one type may stand for those of the other.
fn is_of_family(from: &DataType, kind: &DataType) -> bool {
    use DataType::*;
    match (kind, from) {
        (Date32 | Date64, Date32 | Timestamp(_, None)) | (Timestamp(_, None), Date32) => true,
        (Timestamp(_, zone), Timestamp(_, given)) => zone.is_some() == given.is_some(),
        (Time32(_) | Time64(_), Time64(_)) => true,
        (Interval(_) | Duration(_), Interval(_)) => true,
        (
            Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..),
            Decimal128(..) | Decimal256(..),
        ) => true,
        (Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), other) => {
            other.is_integer()
        }
        _ => false,
    }
}

/// Lists end to end: all items, and how many each value has.
struct Flat<'py> {
    items: Vec<Bound<'py, PyAny>>,
    lengths: Vec<usize>,
    nulls: NullBuffer,
}

impl<'py> Flat<'py> {
    fn of(
        values: &[Bound<'py, PyAny>],
        kind: &DataType,
        length: Option<usize>,
    ) -> PyResult<Flat<'py>> {
        let (mut items, mut lengths) = (Vec::new(), Vec::with_capacity(values.len()));
        for value in values {
            let before = items.len();
            if value.is_none() {
                let missing = length.unwrap_or(0);
                items.extend((0..missing).map(|_| value.clone()));
            } else {
                let plain = of_numpy(value);
                let list = plain.as_ref().unwrap_or(value);
                let list: Vec<Bound<'py, PyAny>> = match list.is_instance_of::<PyString>() {
                    true => return Err(unfit(value, kind)),
                    false => list.extract().map_err(|_| unfit(value, kind))?,
                };
                items.extend(list);
            }
            let found = items.len() - before;
            if length.is_some_and(|length| length != found) {
                return Err(unfit(value, kind));
            }
            lengths.push(found);
        }
        let nulls = nulls_of(values);
        Ok(Flat {
            items,
            lengths,
            nulls,
        })
    }
}

fn nulls_of(values: &[Bound<'_, PyAny>]) -> NullBuffer {
    values.iter().map(|value| !value.is_none()).collect()
}

fn lists<O: OffsetSizeTrait>(
    values: &[Bound<'_, PyAny>],
    kind: &DataType,
    item: &FieldRef,
) -> PyResult<ArrayRef> {
    let flat = Flat::of(values, kind, None)?;
    let items = column(&flat.items, item.data_type())?;
    let offsets = OffsetBuffer::<O>::from_lengths(flat.lengths);
    let made = GenericListArray::try_new(Arc::clone(item), offsets, items, Some(flat.nulls));
    Ok(Arc::new(made.map_err(broken)?))
}

fn fixed_lists(
    values: &[Bound<'_, PyAny>],
    kind: &DataType,
    item: &FieldRef,
    length: i32,
) -> PyResult<ArrayRef> {
    let flat = Flat::of(values, kind, usize::try_from(length).ok())?;
    let items = column(&flat.items, item.data_type())?;
    let made = FixedSizeListArray::try_new(Arc::clone(item), length, items, Some(flat.nulls));
    Ok(Arc::new(made.map_err(broken)?))
}

/// Dicts that have exactly these fields.
fn structs(values: &[Bound<'_, PyAny>], kind: &DataType, fields: &Fields) -> PyResult<ArrayRef> {
    let mut columns: Vec<Vec<Bound<'_, PyAny>>> = vec![Vec::new(); fields.len()];
    for value in values {
        if value.is_none() {
            columns.iter_mut().for_each(|it| it.push(value.clone()));
            continue;
        }
        let dict = value.cast::<PyDict>().map_err(|_| unfit(value, kind))?;
        if dict.len() != fields.len() {
            return Err(unfit(value, kind));
        }
        for (parts, field) in columns.iter_mut().zip(fields) {
            let part = dict.get_item(field.name())?;
            parts.push(part.ok_or_else(|| unfit(value, kind))?);
        }
    }
    let columns = columns.iter().zip(fields);
    let columns = columns.map(|(parts, field)| column(parts, field.data_type()));
    let columns = columns.collect::<PyResult<Vec<ArrayRef>>>()?;
    let made = StructArray::try_new(fields.clone(), columns, Some(nulls_of(values)));
    Ok(Arc::new(made.map_err(broken)?))
}

fn maps(
    values: &[Bound<'_, PyAny>],
    kind: &DataType,
    entries: &FieldRef,
    is_sorted: bool,
) -> PyResult<ArrayRef> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(PyTypeError::new_err("a map without entries"));
    };
    let (mut keys, mut items, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let before = keys.len();
        if !value.is_none() {
            let dict = value.cast::<PyDict>().map_err(|_| unfit(value, kind))?;
            for (key, item) in dict {
                if key.is_none() {
                    return Err(unfit(value, kind));
                }
                keys.push(key);
                items.push(item);
            }
        }
        lengths.push(keys.len() - before);
    }
    let columns = vec![
        column(&keys, fields[0].data_type())?,
        column(&items, fields[1].data_type())?,
    ];
    let rows = StructArray::try_new(fields.clone(), columns, None).map_err(broken)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = Some(nulls_of(values));
    let made = MapArray::try_new(Arc::clone(entries), offsets, rows, nulls, is_sorted);
    Ok(Arc::new(made.map_err(broken)?))
}

/// Arrow's refusal, such as of NULL where the type has none.
fn broken(failure: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(failure.to_string())
}
