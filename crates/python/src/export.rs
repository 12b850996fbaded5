//! Arrow out: C streams, record batches, pyarrow and polars.
//!
//! In: a running query, or all its batches. Out: capsules and objects of other libraries; columns are never copied.
//! Invariant: a consumer that does not know of signals is stopped by them all the same. The stream ends with an error
//! and the interrupt is left pending for the interpreter.
//! Not here: pandas (frame.rs), rows (rows.rs).

use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::error::ArrowError;
use grouse::sql_name;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{
    ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule,
};
use pyo3_arrow::{PyRecordBatch, PyTable};

use crate::error::wrong_type;
use crate::object_cache::ObjectCache;
use crate::rows::tuples;
use crate::running::Running;
use crate::stop::StopFlag;
use crate::wait::{lock, try_lock};

/// The capsule of a stream that runs the query as it is read.
pub fn stream_capsule<'py>(
    py: Python<'py>,
    running: Running,
    requested: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Field::new_struct("", running.schema().fields().clone(), false)
        .with_metadata(running.schema().metadata().clone());
    let arrays = ArrayIterator::new(Arrays { running }, Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(arrays), requested)?)
}

/// The batches of a run as arrays of structs, for a consumer that may or may not hold the interpreter lock.
struct Arrays {
    running: Running,
}

impl Iterator for Arrays {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = Python::try_attach(|py| {
            self.running
                .next(py)
                .map_err(|failure| foreign(py, &failure))
        });
        match item {
            Some(Ok(batch)) => {
                batch.map(|batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef))
            }
            Some(Err(error)) => Some(Err(error)),
            None => Some(Err(ArrowError::CDataInterface(
                "the Python interpreter has ended".to_string(),
            ))),
        }
    }
}

/// The text of an exception, which is all that the C interface carries.
fn foreign(py: Python<'_>, failure: &PyErr) -> ArrowError {
    if failure.is_instance_of::<PyKeyboardInterrupt>(py) {
        // The consumer will raise an error of its own: Python has to hear of the interrupt again.
        let pending = py
            .import("_thread")
            .and_then(|thread| thread.call_method0("interrupt_main"));
        if pending.is_err() {
            return ArrowError::CDataInterface("interrupted".to_string());
        }
    }
    let text = failure.to_string().replace('\0', "\\0");
    ArrowError::ExternalError(text.into())
}

/// A pyarrow Table.
pub fn to_pyarrow<'py>(
    py: Python<'py>,
    batches: Vec<RecordBatch>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyAny>> {
    PyTable::try_new(batches, Arc::clone(schema))?.into_pyarrow(py)
}

/// A polars DataFrame, through the C stream. Polars panics at intervals.
pub fn to_polars<'py>(
    polars: &Bound<'py, PyAny>,
    batches: Vec<RecordBatch>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyAny>> {
    let has_interval = |field: &&Arc<Field>| holds_interval(field.data_type());
    if let Some(field) = schema.fields().iter().find(has_interval) {
        let name = field.name();
        return Err(wrong_type(format!(
            "column '{name}' has intervals, for which Polars has no type; cast it to VARCHAR, or use arrow() or df()"
        )));
    }
    polars
        .getattr("DataFrame")?
        .call1((PyTable::try_new(batches, Arc::clone(schema))?,))
}

fn holds_interval(kind: &DataType) -> bool {
    match kind {
        DataType::Interval(_) => true,
        DataType::Dictionary(_, values) => holds_interval(values),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_interval(field.data_type()),
        DataType::Struct(fields) => {
            let mut fields = fields.iter();
            fields.any(|field| holds_interval(field.data_type()))
        }
        _ => false,
    }
}

/// An iterator over record batches; dropping or closing it stops the query.
#[pyclass(frozen, module = "grouse")]
pub struct Batches {
    running: Mutex<Running>,
    closed: StopFlag,
    schema: SchemaRef,
}

impl Batches {
    /// The batches of a run.
    pub fn new(running: Running) -> Batches {
        let (schema, closed) = (Arc::clone(running.schema()), StopFlag::default());
        Batches {
            running: Mutex::new(running.stopped_by(closed.clone())),
            closed,
            schema,
        }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = lock(py, &self.running)?.next(py)?;
        let Some(batch) = batch else { return Ok(None) };
        if py.import("pyarrow").is_ok() {
            return PyRecordBatch::new(batch).into_pyarrow(py).map(Some);
        }
        Ok(Some(Bound::new(py, Batch(batch))?.into_any()))
    }

    /// Arrow's C schema of the batches.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    /// Stops the query; there are no more batches. A thread that waits for one gets grouse.CancelledError.
    fn close(&self, py: Python<'_>) {
        self.closed.set();
        // Where the lock is taken somebody waits for a batch: it sees the flag and stops the run.
        if let Some(mut running) = try_lock(&self.running) {
            running.stop(py);
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// One record batch, for use without pyarrow: any library that knows `__arrow_c_array__` takes it.
#[pyclass(frozen, module = "grouse")]
pub struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    /// Types of the columns, in order.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0
            .schema()
            .fields()
            .iter()
            .map(|field| sql_name(field.data_type()))
            .collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// The rows as a list of tuples.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        tuples(py, &self.0, &mut ObjectCache::default())
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!(
            "<grouse.Batch, {} rows, {} columns>",
            self.0.num_rows(),
            self.0.num_columns()
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let array = StructArray::from(self.0.clone());
        let field = Arc::new(Field::new_struct(
            "",
            self.0.schema().fields().clone(),
            false,
        ));
        Ok(to_array_pycapsules(py, field, &array, requested_schema)?)
    }
}
