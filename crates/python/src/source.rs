//! Python objects with Arrow data as tables of the engine.
//!
//! In: an object with `__arrow_c_stream__` or `__arrow_c_array__`. Out: a `TableProvider`.
//! Invariant: data in memory (the object has a length) is taken when the table is made, without a copy where it is
//! Arrow; a stream is pulled while a query runs and never collected; the schema's metadata (pandas puts its own there) stays behind.
//! Not here: finding the objects (variables.rs).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::streaming::PartitionStream;
use futures::TryStreamExt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::error::{raise, wrong_type};
use crate::relation::{Recipe, Relation};

/// Rows of a piece that one worker takes from a table in memory.
const PIECE_ROWS: usize = 1 << 16;
/// Batches that a stream reads ahead.
const AHEAD_BATCHES: usize = 2;

type Reader = Box<dyn RecordBatchReader + Send>;

/// Whether [`table`] can read the object.
pub fn holds_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    // A class has the methods of its objects, but no data.
    Ok(!object.is_instance_of::<pyo3::types::PyType>()
        && (object.hasattr(intern!(py, "__arrow_c_stream__"))?
            || object.hasattr(intern!(py, "__arrow_c_array__"))?))
}

/// The object's rows as a table.
pub fn table(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<Arc<dyn TableProvider>> {
    if let Ok(relation) = object.cast::<Relation>() {
        return relation.get().as_table(py);
    }
    if !holds_arrow(object)? {
        let class = object.get_type().name()?;
        return Err(wrong_type(format!(
            "a {class} cannot be read: it has neither __arrow_c_stream__ nor __arrow_c_array__"
        )));
    }
    let reader = open(object)?;
    let schema = without_metadata(&reader.schema());
    if object.hasattr(intern!(py, "__len__"))?
        || object.hasattr(intern!(py, "__arrow_c_array__"))?
    {
        let batches = py.detach(|| {
            reader
                .map(|batch| bare(batch?, &schema))
                .collect::<Result<Vec<_>, ArrowError>>()
        });
        return in_memory(
            schema.clone(),
            batches.map_err(|failure| raise(failure.into()))?,
            threads,
        );
    }
    let object = object.clone().unbind();
    streaming(Arc::new(ObjectStream {
        schema,
        object,
        opened: Mutex::new(Some(reader)),
    }))
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

/// A table that runs a relation's statement whenever it is read.
pub fn of_recipe(
    recipe: Recipe,
    session: grouse::Session,
    schema: SchemaRef,
) -> PyResult<Arc<dyn TableProvider>> {
    streaming(Arc::new(RecipeStream {
        recipe,
        session,
        schema,
    }))
}

fn streaming(partition: Arc<dyn PartitionStream>) -> PyResult<Arc<dyn TableProvider>> {
    let schema = Arc::clone(partition.schema());
    let table = StreamingTable::try_new(schema, vec![partition])
        .map_err(|failure| raise(failure.into()))?;
    Ok(Arc::new(table))
}

fn open(object: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let class = object.get_type().name()?;
    let input: AnyRecordBatch = object.extract().map_err(|failure: PyErr| {
        wrong_type(format!(
            "a {class} cannot be read as a table: {}",
            failure.value(object.py())
        ))
    })?;
    input.into_reader()
}

fn without_metadata(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().clone()))
}

fn bare(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)
}

/// A stream of a Python object.
struct ObjectStream {
    schema: SchemaRef,
    object: Py<PyAny>,
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
        let schema = Arc::clone(&self.schema);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), AHEAD_BATCHES);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let reader = match opened {
                Some(reader) => reader,
                None => reopen(object)?,
            };
            for batch in reader {
                let batch = batch
                    .and_then(|batch| bare(batch, &schema))
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

fn reopen(object: Option<Py<PyAny>>) -> Result<Reader, DataFusionError> {
    let reader = object.and_then(|object| {
        Python::try_attach(|py| {
            let object = object.bind(py);
            // A reader that has been read gives an empty stream, which would be a wrong answer.
            if object.hasattr("read_next_batch").unwrap_or(false)
                || object.hasattr("__next__").unwrap_or(false)
            {
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

/// The rows of another relation, of whatever connection.
#[derive(Debug)]
struct RecipeStream {
    recipe: Recipe,
    session: grouse::Session,
    schema: SchemaRef,
}

impl PartitionStream for RecipeStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (recipe, session, schema) = (
            self.recipe.clone(),
            self.session.clone(),
            Arc::clone(&self.schema),
        );
        let batches = async move {
            let query = recipe.plan(&session).await?;
            recipe.check(&query.schema(), &schema)?;
            Ok::<_, DataFusionError>(query.execute()?)
        };
        let stream = futures::stream::once(batches).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        ))
    }
}
