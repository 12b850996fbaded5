//! Results as pandas DataFrames.
//!
//! In: all batches of a result. Out: a DataFrame, through pyarrow where it is installed, else through numpy.
//! Invariant: both ways give the same values and dtypes; without pyarrow numbers still cross as whole columns.
//! Not here: putting the frame together (grouse/_pandas.py).

use arrow::array::*;
use arrow::compute::concat;
use arrow::datatypes::*;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::error::raise;
use crate::export::to_pyarrow;
use crate::object_cache::ObjectCache;
use crate::rows::objects;

/// A module that a method cannot do without.
pub fn need<'py>(py: Python<'py>, module: &str, method: &str) -> PyResult<Bound<'py, PyAny>> {
    match py.import(module) {
        Ok(module) => Ok(module.into_any()),
        Err(failure) if failure.is_instance_of::<PyImportError>(py) => {
            let missing = PyImportError::new_err(format!(
                "{method} needs {module}: pip install {module}. Without it there are fetchall(), to_batches() and __arrow_c_stream__"
            ));
            missing.set_cause(py, Some(failure));
            Err(missing)
        }
        Err(failure) => Err(failure),
    }
}

/// A pandas DataFrame.
pub fn pandas<'py>(
    py: Python<'py>,
    batches: Vec<RecordBatch>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyAny>> {
    if py.import("pyarrow").is_ok() {
        return to_pyarrow(py, batches, schema)?.call_method0("to_pandas");
    }
    let columns = PyList::empty(py);
    for (index, field) in schema.fields().iter().enumerate() {
        let pieces: Vec<&dyn Array> = batches
            .iter()
            .map(|batch| batch.column(index).as_ref())
            .collect();
        let array = match pieces.is_empty() {
            true => new_empty_array(field.data_type()),
            false => py
                .detach(|| concat(&pieces))
                .map_err(|failure| raise(failure.into()))?,
        };
        columns.append(column(py, field.name(), &array)?)?;
    }
    py.import("grouse._pandas")?
        .call_method1("frame", (columns,))
}

/// Name, kind, data and validity of one column, as grouse/_pandas.py takes them.
type Column<'py> = (
    String,
    String,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyBytes>>,
);

fn column<'py>(py: Python<'py>, name: &str, array: &ArrayRef) -> PyResult<Column<'py>> {
    if let Some((kind, data)) = packed(array) {
        let valid = array
            .nulls()
            .filter(|nulls| nulls.null_count() > 0)
            .map(|nulls| {
                let bytes: Vec<u8> = nulls.iter().map(u8::from).collect();
                PyBytes::new(py, &bytes)
            });
        return Ok((
            name.to_string(),
            kind,
            PyBytes::new(py, &data).into_any(),
            valid,
        ));
    }
    let kind = if is_text(array.data_type()) {
        "strings"
    } else {
        "objects"
    };
    Ok((
        name.to_string(),
        kind.to_string(),
        PyList::new(py, objects(py, array, &mut ObjectCache::default())?)?.into_any(),
        None,
    ))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// numpy's dtype and the bytes of a column whose values lie side by side.
fn packed(array: &ArrayRef) -> Option<(String, Vec<u8>)> {
    use DataType::*;
    let (kind, bytes) = match array.data_type() {
        Boolean => (
            "bool".to_string(),
            array.as_boolean().values().iter().map(u8::from).collect(),
        ),
        Int8 => ("int8".to_string(), bytes::<Int8Type>(array)),
        Int16 => ("int16".to_string(), bytes::<Int16Type>(array)),
        Int32 => ("int32".to_string(), bytes::<Int32Type>(array)),
        Int64 => ("int64".to_string(), bytes::<Int64Type>(array)),
        UInt8 => ("uint8".to_string(), bytes::<UInt8Type>(array)),
        UInt16 => ("uint16".to_string(), bytes::<UInt16Type>(array)),
        UInt32 => ("uint32".to_string(), bytes::<UInt32Type>(array)),
        UInt64 => ("uint64".to_string(), bytes::<UInt64Type>(array)),
        Float16 => ("float16".to_string(), bytes::<Float16Type>(array)),
        Float32 => ("float32".to_string(), bytes::<Float32Type>(array)),
        Float64 => ("float64".to_string(), bytes::<Float64Type>(array)),
        Timestamp(unit, zone) => {
            let zone = zone
                .as_ref()
                .map_or(String::new(), |zone| format!(" {zone}"));
            (
                format!("datetime64[{}]{zone}", unit_name(*unit)),
                instants(array, *unit),
            )
        }
        Duration(unit) => (
            format!("timedelta64[{}]", unit_name(*unit)),
            spans(array, *unit),
        ),
        _ => return None,
    };
    Some((kind, bytes))
}

fn bytes<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<u8> {
    array
        .as_primitive::<T>()
        .values()
        .inner()
        .as_slice()
        .to_vec()
}

fn instants(array: &ArrayRef, unit: TimeUnit) -> Vec<u8> {
    match unit {
        TimeUnit::Second => bytes::<TimestampSecondType>(array),
        TimeUnit::Millisecond => bytes::<TimestampMillisecondType>(array),
        TimeUnit::Microsecond => bytes::<TimestampMicrosecondType>(array),
        TimeUnit::Nanosecond => bytes::<TimestampNanosecondType>(array),
    }
}

fn spans(array: &ArrayRef, unit: TimeUnit) -> Vec<u8> {
    match unit {
        TimeUnit::Second => bytes::<DurationSecondType>(array),
        TimeUnit::Millisecond => bytes::<DurationMillisecondType>(array),
        TimeUnit::Microsecond => bytes::<DurationMicrosecondType>(array),
        TimeUnit::Nanosecond => bytes::<DurationNanosecondType>(array),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}
