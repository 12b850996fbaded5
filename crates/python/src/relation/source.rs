//! Python objects with Arrow data as tables of the engine.
//!
//! In: an object with `__arrow_c_stream__` or `__arrow_c_array__`. Out: a `TableProvider`.
//! Invariant: data in memory (the object has a length) is taken when the table is made, with a copy where the table lasts and
//! the object may change. A stream is pulled while a query runs and never collected.
//! Not here: finding the objects (variables.rs), what is admitted of them (the engine's scan/door.rs).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::PartitionStream;
use grouse::{Text, admit, admitted_schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::borrowed::Borrowed;
use crate::error::{raise, wrong_type};
use crate::relation::Relation;
use crate::relation::scans::ScanTable;

/// Rows of a piece that one worker takes from a table in memory.
const PIECE_ROWS: usize = 1 << 16;
/// Batches that a stream reads ahead.
pub(super) const AHEAD_BATCHES: usize = 2;

/// What [`table`] takes.
pub const READABLE: &str = "a frame of pandas or Polars (LazyFrame too), a table or dataset of pyarrow, an array of numpy, a \
                            dict of columns, or what has __arrow_c_stream__";

type Reader = Box<dyn RecordBatchReader + Send>;

/// Whether the object has Arrow data itself.
fn holds_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    // A class has the methods of its objects, but no data.
    Ok(!object.is_instance_of::<pyo3::types::PyType>()
        && (object.hasattr(intern!(py, "__arrow_c_stream__"))?
            || object.hasattr(intern!(py, "__arrow_c_array__"))?))
}

/// How long a table is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// By one statement, which keeps nothing of it.
    Statement,
    /// By later ones, too: the object may have changed by then.
    Longer,
}

/// A table, and which memory of others it stands on.
pub struct Source {
    /// The rows.
    pub table: Arc<dyn TableProvider>,
    /// Memory that may change.
    pub borrowed: Borrowed,
}

impl Source {
    /// One that stands on no memory of others.
    pub fn own(table: Arc<dyn TableProvider>) -> Source {
        Source {
            table,
            borrowed: Borrowed::default(),
        }
    }
}

/// The object's rows as a table.
pub fn table(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    threads: usize,
    lasting: Lasting,
) -> PyResult<Source> {
    match readable(object)? {
        Some(object) => table_of_arrow(py, &object, threads, lasting),
        None => {
            let class = object.get_type().name()?;
            Err(wrong_type(format!(
                "a {class} cannot be read as a table: pass {READABLE}"
            )))
        }
    }
}

/// The object, or what stands for it and has Arrow data; None where nobody can read it.
pub fn readable<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if holds_arrow(object)? {
        return Ok(Some(object.clone()));
    }
    let arrow = object
        .py()
        .import("grouse._objects")?
        .call_method1("arrow_of", (object,))
        .map_err(|failure| unreadable(object, failure))?;
    Ok((!arrow.is_none()).then_some(arrow))
}

fn table_of_arrow(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    threads: usize,
    lasting: Lasting,
) -> PyResult<Source> {
    if let Ok(relation) = object.cast::<Relation>() {
        return relation.get().as_source(py, lasting);
    }
    if let Some(table) = ScanTable::of(object, lasting)? {
        return Ok(Source::own(Arc::new(table)));
    }
    if is_reader(object)
        && py
            .import("grouse._frames")?
            .call_method1("was_read", (object,))?
            .is_truthy()?
    {
        let class = object.get_type().name()?;
        return Err(wrong_type(format!(
            "the {class} has been read, and has no more rows; name a table instead"
        )));
    }
    let reader = open(object)?;
    let schema = admitted_schema(&reader.schema());
    if !object.hasattr(intern!(py, "__len__"))?
        && !object.hasattr(intern!(py, "__arrow_c_array__"))?
    {
        let object = object.clone().unbind();
        return streaming(Arc::new(ObjectStream {
            schema,
            object,
            lasting,
            opened: Mutex::new(Some(reader)),
        }))
        .map(Source::own);
    }
    // Rust's own strings. Numbers may be those of an array of numpy, which can be written to.
    let text = match is_of_class(object, "polars", "DataFrame")? {
        true => Text::Valid,
        false => Text::Unknown,
    };
    let admitted = py.detach(|| {
        let batches = reader.map(|batch| admit(&batch?, &schema, text));
        let batches = batches.collect::<Result<Vec<_>, ArrowError>>()?;
        let borrowed = Borrowed::of(&batches);
        if lasting == Lasting::Statement {
            return Ok((batches, borrowed));
        }
        let owned = batches.into_iter().map(|batch| borrowed.owned(batch));
        let owned = owned.collect::<Result<Vec<_>, ArrowError>>()?;
        Ok((owned, Borrowed::default()))
    });
    let (batches, borrowed) = admitted.map_err(refused)?;
    let table = in_memory(schema, batches, threads)?;
    Ok(Source { table, borrowed })
}

/// What the door says is about the caller's data.
fn refused(failure: ArrowError) -> PyErr {
    match failure {
        ArrowError::InvalidArgumentError(message) => wrong_type(message),
        other => raise(other.into()),
    }
}

/// A table of batches, cut into pieces and dealt to as many partitions as there are threads.
pub fn in_memory(
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    threads: usize,
) -> PyResult<Arc<dyn TableProvider>> {
    let pieces: Vec<RecordBatch> = batches
        .iter()
        .flat_map(|batch| {
            (0..batch.num_rows())
                .step_by(PIECE_ROWS)
                .map(|start| batch.slice(start, PIECE_ROWS.min(batch.num_rows() - start)))
        })
        .collect();
    let per_partition = pieces.len().div_ceil(threads.max(1)).max(1);
    let mut partitions: Vec<Vec<RecordBatch>> = pieces
        .chunks(per_partition)
        .map(<[RecordBatch]>::to_vec)
        .collect();
    if partitions.is_empty() {
        partitions.push(Vec::new());
    }
    let table = MemTable::try_new(schema, partitions).map_err(|failure| raise(failure.into()))?;
    Ok(Arc::new(table))
}

fn streaming(partition: Arc<dyn PartitionStream>) -> PyResult<Arc<dyn TableProvider>> {
    let schema = Arc::clone(partition.schema());
    let table = StreamingTable::try_new(schema, vec![partition])
        .map_err(|failure| raise(failure.into()))?;
    Ok(Arc::new(table))
}

/// Whether the object is a stream that is gone when it has been read: what it gives then is empty, a wrong answer.
fn is_reader(object: &Bound<'_, PyAny>) -> bool {
    let has = |name: &str| object.hasattr(name).unwrap_or(false);
    has("read_next_batch") || has("__next__")
}

/// Notes that the object's rows are being read.
fn note_read(object: &Py<PyAny>) {
    Python::try_attach(|py| {
        let object = object.bind(py);
        if is_reader(object) {
            // One that cannot be remembered is asked again.
            let _ = py
                .import("grouse._frames")
                .and_then(|frames| frames.call_method1("note_read", (object,)));
        }
    });
}

/// The object's stream.
pub(super) fn open(object: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let unreadable = |failure: PyErr| unreadable(object, failure);
    let object = &plain(object).map_err(unreadable)?;
    let input: AnyRecordBatch = object.extract().map_err(unreadable)?;
    input.into_reader()
}

/// The error about an object that some library could not hand over.
fn unreadable(object: &Bound<'_, PyAny>, failure: PyErr) -> PyErr {
    let class = match object.get_type().name() {
        Ok(class) => class,
        Err(failure) => return failure,
    };
    let reason = failure.value(object.py()).to_string();
    // Of one column, as in a Series, Arrow's structs are no table.
    let reason = match reason.starts_with("C Data interface error") {
        true => "it is no table of columns; pass a frame",
        false => &reason,
    };
    wrong_type(format!("a {class} cannot be read as a table: {reason}"))
}

/// Data whose own way into Arrow loses something, by way of grouse/_frames.py.
fn plain<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let ways = [
        ("pandas", "DataFrame", "of_pandas"),
        ("polars", "DataFrame", "of_polars"),
        ("pyarrow", "Table", "of_pyarrow"),
        ("pyarrow", "RecordBatch", "of_pyarrow"),
        ("pyarrow", "RecordBatchReader", "of_pyarrow"),
    ];
    for (library, class, function) in ways {
        if is_of_class(object, library, class)? {
            return py
                .import("grouse._frames")?
                .call_method1(function, (object,));
        }
    }
    Ok(object.clone())
}

/// Whether it is of this class of a library, which then has been imported.
fn is_of_class(object: &Bound<'_, PyAny>, library: &str, class: &str) -> PyResult<bool> {
    let py = object.py();
    let modules = py.import(intern!(py, "sys"))?.getattr("modules")?;
    let module = modules.call_method1("get", (library,))?;
    if module.is_none() {
        return Ok(false);
    }
    match module.getattr(class) {
        Ok(class) => object.is_instance(&class),
        // A module of this name that is another one, or is being imported.
        Err(_) => Ok(false),
    }
}

/// A stream of a Python object.
struct ObjectStream {
    schema: SchemaRef,
    object: Py<PyAny>,
    lasting: Lasting,
    /// The stream that told the schema; the first query reads it, later ones ask the object for another.
    opened: Mutex<Option<Reader>>,
}

impl fmt::Debug for ObjectStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStream")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for ObjectStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let opened = self
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let object = Python::try_attach(|py| self.object.clone_ref(py));
        let (schema, lasting) = (Arc::clone(&self.schema), self.lasting);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), AHEAD_BATCHES);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let reader = match opened {
                Some(reader) => {
                    object.iter().for_each(note_read);
                    reader
                }
                None => reopen(object)?,
            };
            for batch in reader {
                let batch = batch
                    .and_then(|batch| admit(&batch, &schema, Text::Unknown))
                    .and_then(|batch| lasting_batch(batch, lasting))
                    .map_err(DataFusionError::from);
                let failed = batch.is_err();
                if sender.blocking_send(batch).is_err() || failed {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}

/// A batch that may be kept as long as that.
pub(super) fn lasting_batch(
    batch: RecordBatch,
    lasting: Lasting,
) -> Result<RecordBatch, ArrowError> {
    match lasting {
        Lasting::Statement => Ok(batch),
        Lasting::Longer => Borrowed::of(std::slice::from_ref(&batch)).owned(batch),
    }
}

fn reopen(object: Option<Py<PyAny>>) -> Result<Reader, DataFusionError> {
    let reader = object.and_then(|object| {
        Python::try_attach(|py| {
            let object = object.bind(py);
            if is_reader(object) {
                return Err("it is a reader; name a table instead".to_owned());
            }
            open(object).map_err(|e| e.to_string())
        })
    });
    match reader {
        Some(Ok(reader)) => Ok(reader),
        Some(Err(reason)) => Err(DataFusionError::Execution(format!(
            "the stream cannot be read a second time: {reason}"
        ))),
        None => Err(grouse::Error::Cancelled.into()),
    }
}
