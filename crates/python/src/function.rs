//! Scalar functions written in Python, which the engine's workers call.
//!
//! In: a callable with its types and rules (grouse/_connection/functions.py). Out: a function of DataFusion's.
//! Invariant: the callable gets the types that were declared and gives the one that was; another one is an error. So is what
//! it raises, under the names of function and exception. The interpreter lets one worker at a time call it.
//! Not here: names that are taken, and removal (the engine's session); names of types (Python).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array, make_array, new_empty_array,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options, concat, filter, take};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::type_coercion::functions;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use grouse::{Error, Text, admit, admitted_schema, type_name};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;

use crate::borrowed::copied;
use crate::calls::Calling;
use crate::object_cache::ObjectCache;
use crate::rows::objects;
use crate::values::column;

/// What a caller says of a function; attributes of an object of Python's.
#[derive(FromPyObject)]
pub struct Definition {
    name: String,
    function: Py<PyAny>,
    style: String,
    null_handling: String,
    exception_handling: String,
    side_effects: bool,
    /// How many arguments of any type; any number where it is below 0; None where their types are declared.
    arguments: Option<i64>,
}

impl Definition {
    /// The function; `types` has the types of the parameters and, as its last, that of the result. `connection` is its address.
    pub fn function(self, types: &Schema, connection: usize) -> ScalarUDF {
        let mut kinds: Vec<DataType> = types
            .fields()
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        let result = kinds.pop().unwrap_or(DataType::Null);
        let volatility = match self.side_effects {
            true => Volatility::Volatile,
            false => Volatility::Immutable,
        };
        let signature = match self.arguments.map(usize::try_from) {
            None if kinds.is_empty() => Signature::nullary(volatility),
            None => Signature::user_defined(volatility),
            Some(Ok(0)) => Signature::nullary(volatility),
            Some(Ok(count)) => Signature::any(count, volatility),
            Some(Err(_)) => Signature::variadic_any(volatility),
        };
        ScalarUDF::from(PythonFunction {
            name: self.name,
            connection,
            signature,
            parameters: kinds,
            result,
            callable: Arc::new(self.function),
            style: match self.style.as_str() {
                "arrow" => CallStyle::Batches,
                _ => CallStyle::Rows,
            },
            nulls: match self.null_handling.as_str() {
                "special" => NullHandling::Passed,
                _ => NullHandling::Skipped,
            },
            failures: match self.exception_handling.as_str() {
                "return_null" => ExceptionHandling::Null,
                _ => ExceptionHandling::Error,
            },
        })
    }
}

/// How the callable is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStyle {
    /// With the values of each row.
    Rows,
    /// With arrays of pyarrow.
    Batches,
}

/// What becomes of rows with NULL among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NullHandling {
    /// They are NULL, and the callable does not see them.
    Skipped,
    /// The callable sees None, and may return it.
    Passed,
}

/// What becomes of exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExceptionHandling {
    Error,
    Null,
}

#[derive(Debug)]
struct PythonFunction {
    name: String,
    /// The address of its connection.
    connection: usize,
    signature: Signature,
    /// Their types, where these are declared.
    parameters: Vec<DataType>,
    result: DataType,
    callable: Arc<Py<PyAny>>,
    style: CallStyle,
    nulls: NullHandling,
    failures: ExceptionHandling,
}

impl PartialEq for PythonFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.callable, &other.callable)
    }
}

impl Eq for PythonFunction {}

impl Hash for PythonFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for PythonFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let mut pairs = self.parameters.iter().zip(given);
        match given.len() == self.parameters.len() && pairs.all(|(to, of)| takes(to, of)) {
            true => Ok(self.parameters.clone()),
            false => {
                let listed = |types: &[DataType]| {
                    let names: Vec<String> = types.iter().map(type_name).collect();
                    names.join(", ")
                };
                let (name, given, declared) = (&self.name, listed(given), listed(&self.parameters));
                plan_err!(
                    "function '{name}' does not take ({given}); it is written {name}({declared})"
                )
            }
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(&self.name, self.result.clone(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut values = arguments.args.iter();
        let is_one = self.signature.volatility != Volatility::Volatile
            && values.all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { arguments.number_rows };
        let columns = arguments.args.into_iter();
        let columns = columns.map(|value| value.into_array(rows));
        let found = self.results(&columns.collect::<Result<Vec<_>>>()?, rows)?;
        Ok(match is_one {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}

/// Whether a parameter takes values of this type. Integers become those of any width: one that does not fit is an error.
#[expect(
    deprecated,
    reason = "DataFusion's rule for exact signatures has no other door"
)]
fn takes(parameter: &DataType, of: &DataType) -> bool {
    let is_widened = || functions::can_coerce_from(parameter, of);
    parameter.is_integer() && of.is_integer() || is_widened()
}

impl PythonFunction {
    /// The results of rows.
    fn results(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let complete = match self.nulls {
            NullHandling::Skipped => without_nulls(columns),
            NullHandling::Passed => None,
        };
        let Some(complete) = complete else {
            return self.call(columns, rows);
        };
        let asked = columns.iter().map(|column| filter(column, &complete));
        let asked = asked.collect::<std::result::Result<Vec<_>, _>>()?;
        let found = self.call(&asked, complete.true_count())?;
        let mut next = 0;
        let places = complete.values().iter().map(|is_asked| {
            let place = is_asked.then_some(next);
            next += u64::from(is_asked);
            place
        });
        Ok(take(&found, &UInt64Array::from_iter(places), None)?)
    }

    /// The results of rows that the callable sees.
    fn call(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        if rows == 0 {
            return Ok(new_empty_array(&self.result));
        }
        let ended = || Err(self.failed("cannot run: the Python interpreter has ended"));
        let Some(calling) = Calling::of(self.connection) else {
            return ended();
        };
        let called = Python::try_attach(|py| match self.style {
            CallStyle::Rows => self.by_row(py, columns, rows, &calling),
            CallStyle::Batches if calling.has_to_stop() => Err(self.stopped()),
            CallStyle::Batches => self.by_batch(py, columns, rows),
        });
        called.unwrap_or_else(ended)
    }

    /// Nobody sees it: the query is over.
    fn stopped(&self) -> DataFusionError {
        self.failed("was stopped")
    }

    fn by_row(
        &self,
        py: Python<'_>,
        columns: &[ArrayRef],
        rows: usize,
        calling: &Calling,
    ) -> Result<ArrayRef> {
        let mut arguments = Vec::with_capacity(columns.len());
        for column in columns {
            let values = objects(py, column, &mut ObjectCache::default());
            arguments.push(values.map_err(|it| self.raised(py, &it))?.into_iter());
        }
        let mut values = Vec::with_capacity(rows);
        for _ in 0..rows {
            if calling.has_to_stop() {
                return Err(self.stopped());
            }
            // Every column has as many values as there are rows.
            let row = arguments
                .iter_mut()
                .map(|column| column.next().expect("a value per row"));
            let row = PyTuple::new(py, row).map_err(|it| self.raised(py, &it))?;
            match self.callable.bind(py).call1(row) {
                Ok(value) if value.is_none() && self.nulls == NullHandling::Skipped => {
                    return Err(self.gave_null());
                }
                Ok(value) => values.push(value),
                Err(failure) if self.is_null_for(py, &failure) => {
                    values.push(py.None().into_bound(py));
                }
                Err(failure) => return Err(self.raised(py, &failure)),
            }
        }
        column(&values, &self.result).map_err(|failure| self.returned(failure.value(py)))
    }

    fn by_batch(&self, py: Python<'_>, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let mut arguments = Vec::with_capacity(columns.len());
        for column in columns {
            let array = cast(column, &known_to_pyarrow(column.data_type()))?;
            let array = PyArray::from_array_ref(array);
            let given = array.to_pyarrow(py).map(Bound::unbind);
            arguments.push(given.map_err(|it| self.raised(py, &it))?);
        }
        let arguments = PyTuple::new(py, arguments).map_err(|it| self.raised(py, &it))?;
        let given = match self.callable.bind(py).call1(arguments) {
            Ok(given) => given,
            Err(failure) if self.is_null_for(py, &failure) => {
                return Ok(new_null_array(&self.result, rows));
            }
            Err(failure) => return Err(self.raised(py, &failure)),
        };
        let class = given.get_type().name();
        let class = class.map_err(|failure| self.raised(py, &failure))?;
        let Ok(array) = given.extract::<AnyArray>() else {
            return Err(self.returned(format!("a {class}, which is no array of pyarrow")));
        };
        let chunks = array.into_chunked_array();
        let chunks = chunks.map_err(|failure| self.returned(PyErr::from(failure).value(py)))?;
        let found = py.detach(|| self.checked(chunks.chunks(), chunks.field(), rows))?;
        match self.nulls == NullHandling::Skipped && found.logical_null_count() > 0 {
            true => Err(self.gave_null()),
            false => Ok(found),
        }
    }

    /// An array of Python's that is the result, in memory of our own.
    fn checked(&self, chunks: &[ArrayRef], field: &FieldRef, rows: usize) -> Result<ArrayRef> {
        let found: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if found != rows {
            return Err(self.returned(format!("{found} values for {rows} rows")));
        }
        let (given, wanted) = (type_name(field.data_type()), type_name(&self.result));
        if given != wanted {
            return Err(self.returned(format!("values of type {given}, not {wanted}")));
        }
        let chunks: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
        let field = Field::new("result", field.data_type().clone(), true);
        let schema = Schema::new(vec![field]);
        let admitted = admitted_schema(&schema);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![concat(&chunks)?])?;
        let batch = admit(&batch, &admitted, Text::Unknown)?;
        let own = make_array(copied(&batch.column(0).to_data())?);
        let strict = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        Ok(cast_with_options(&own, &self.result, &strict)?)
    }

    fn is_null_for(&self, py: Python<'_>, failure: &PyErr) -> bool {
        self.failures == ExceptionHandling::Null && failure.is_instance_of::<PyException>(py)
    }

    fn raised(&self, py: Python<'_>, failure: &PyErr) -> DataFusionError {
        let class = failure.get_type(py);
        let class = class
            .name()
            .map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
        let text = failure.value(py).to_string();
        let text = match text.is_empty() {
            true => class,
            false => format!("{class}: {text}"),
        };
        self.failed(&format!("raised {text}{}", place(py, failure)))
    }

    fn returned(&self, what: impl std::fmt::Display) -> DataFusionError {
        self.failed(&format!("returned {what}"))
    }

    fn gave_null(&self) -> DataFusionError {
        self.failed("returned NULL, which it may with null_handling='special' alone")
    }

    fn failed(&self, what: &str) -> DataFusionError {
        Error::Execution(format!("function '{}' {what}", self.name)).into()
    }
}

/// Which rows have no NULL; None where all are so.
fn without_nulls(columns: &[ArrayRef]) -> Option<BooleanArray> {
    let nulls = columns.iter().map(|column| column.logical_nulls());
    let nulls = nulls.fold(None, |all, of| NullBuffer::union(all.as_ref(), of.as_ref()))?;
    (nulls.null_count() > 0).then(|| BooleanArray::new(nulls.into_inner(), None))
}

/// The type that pyarrow's own functions take: no views, no dictionaries.
fn known_to_pyarrow(kind: &DataType) -> DataType {
    use DataType::*;
    let of = |field: &FieldRef| {
        let kind = known_to_pyarrow(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    match kind {
        Utf8View => Utf8,
        BinaryView => Binary,
        Dictionary(_, values) => known_to_pyarrow(values),
        List(item) => List(of(item)),
        LargeList(item) => LargeList(of(item)),
        FixedSizeList(item, length) => FixedSizeList(of(item), *length),
        Struct(fields) => Struct(fields.iter().map(of).collect()),
        Map(entries, is_sorted) => Map(of(entries), *is_sorted),
        other => other.clone(),
    }
}

/// Where it was raised: the last line of Python.
fn place(py: Python<'_>, failure: &PyErr) -> String {
    let found = || -> PyResult<Option<String>> {
        let Some(mut at) = failure.traceback(py).map(Bound::into_any) else {
            return Ok(None);
        };
        loop {
            let next = at.getattr("tb_next")?;
            if next.is_none() {
                break;
            }
            at = next;
        }
        let line: u64 = at.getattr("tb_lineno")?.extract()?;
        let code = at.getattr("tb_frame")?.getattr("f_code")?;
        let file: String = code.getattr("co_filename")?.extract()?;
        Ok(Some(format!(" ({file}, line {line})")))
    };
    found().ok().flatten().unwrap_or_default()
}
