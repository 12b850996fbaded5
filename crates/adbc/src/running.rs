//! A statement that runs: one run after the other, batches as they come.
//!
//! In: a session, the statement's text, the parameters of each run. Out: a reader of batches; the number of rows that were changed.
//! Invariant: a query's batches are made as they are read, but for the first, so that most of what fails does so with a status.
//! Whatever changes something has run to its end before the reader is there. Dropping the reader stops the run.
//! Not here: what was bound (params.rs), tables that are filled (ingest.rs).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use adbc_core::error::{Error as AdbcError, Status};
use arrow::array::{Array, AsArray, RecordBatch, RecordBatchReader};
use arrow::datatypes::{Int64Type, SchemaRef, UInt64Type};
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use grouse::{Params, Query, Session};

use crate::error::{OUT_OF_MEMORY, Result, adbc, internal};
use crate::params::Runs;
use crate::stop::Begun;

/// Plans that write, and have run before their count is read.
const WRITES: &[&str] = &["DataSinkExec", "DmlResultExec"];

/// A statement and what each of its runs needs.
pub struct Statement {
    /// The engine.
    pub session: Session,
    /// One statement.
    pub text: Arc<str>,
    /// Parameters of each run.
    pub runs: Runs,
    /// Ends with a cancel.
    pub begun: Begun,
}

/// What a statement gave.
pub struct Outcome {
    /// Its rows.
    pub reader: Batches,
    /// How many rows it changed, if it is a statement that changes some.
    pub changed: Option<i64>,
}

/// The batches of all runs.
pub struct Batches {
    statement: Option<Statement>,
    schema: SchemaRef,
    /// The run that is read now.
    run: Option<Run>,
    /// Batches that were read ahead, or of a statement that has run.
    ahead: std::vec::IntoIter<RecordBatch>,
}

/// One run.
struct Run {
    query: Arc<Query>,
    stream: SendableRecordBatchStream,
}

impl Statement {
    /// Starts the first run of a query; runs any other statement to its end.
    pub fn start(mut self) -> Result<Outcome> {
        let Some(params) = self.runs.next().transpose()? else {
            return self.without_rows();
        };
        let query = self.plan(params)?;
        if changes_something(&query) {
            return self.run_all(query);
        }
        let schema = self.runs.schema(query.schema());
        let mut reader = Batches {
            schema,
            run: Some(Run::of(query)?),
            statement: Some(self),
            ahead: Vec::new().into_iter(),
        };
        let first: Vec<RecordBatch> = reader.following()?.into_iter().collect();
        reader.ahead = first.into_iter();
        Ok(Outcome {
            reader,
            changed: None,
        })
    }

    /// The outcome of no run at all: the columns of a query, and nothing else.
    fn without_rows(mut self) -> Result<Outcome> {
        if !grouse::only_reads(&self.text) {
            let reader = Batches::of(
                SchemaRef::new(arrow::datatypes::Schema::empty()),
                Vec::new(),
            );
            return Ok(Outcome {
                reader,
                changed: Some(0),
            });
        }
        let nulls = self.runs.typed_nulls()?;
        let planned = self.plan(nulls)?.schema();
        let schema = self.runs.schema(planned);
        Ok(Outcome {
            reader: Batches::of(schema, Vec::new()),
            changed: None,
        })
    }

    fn plan(&mut self, params: Params) -> Result<Arc<Query>> {
        let planning = self.session.query_with(&self.text, params);
        let planned = self
            .begun
            .wait(&self.session, planning)
            .and_then(|query| query);
        planned.map(Arc::new).map_err(adbc)
    }

    /// Runs what changes something once for each row of parameters; the batches are those of the last run.
    fn run_all(mut self, first: Arc<Query>) -> Result<Outcome> {
        let (schema, mut changed) = (first.schema(), None);
        let mut query = first;
        loop {
            let batches = self.collect(&query)?;
            if let Some(rows) = changed_rows(&query, &batches) {
                changed = Some(changed.unwrap_or(0) + rows);
            }
            let Some(params) = self.runs.next().transpose()? else {
                return Ok(Outcome {
                    reader: Batches::of(schema, batches),
                    changed,
                });
            };
            query = self.plan(params)?;
        }
    }

    fn collect(&mut self, query: &Arc<Query>) -> Result<Vec<RecordBatch>> {
        let mut run = Run::of(Arc::clone(query))?;
        let mut batches = Vec::new();
        while let Some(batch) = self.step(&mut run)? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The next batch of a run.
    fn step(&mut self, run: &mut Run) -> Result<Option<RecordBatch>> {
        let step = self.begun.wait(&self.session, run.stream.next());
        let batch = step.and_then(|batch| Ok(batch.transpose()?));
        batch.map_err(adbc)
    }
}

impl Run {
    fn of(query: Arc<Query>) -> Result<Run> {
        let stream = query.execute().map_err(adbc)?;
        Ok(Run { query, stream })
    }
}

/// Whether the statement has done something, or will, beside giving rows.
fn changes_something(query: &Query) -> bool {
    let is_write = query.changes_rows() || WRITES.contains(&query.plan().name());
    is_write || query.schema().fields().is_empty()
}

/// The number of rows that a statement says it changed, or that RETURNING gives.
fn changed_rows(query: &Query, batches: &[RecordBatch]) -> Option<i64> {
    if query.schema().fields().is_empty() {
        return None;
    }
    let counts = |batch: &RecordBatch| match batch.columns() {
        [column] if batch.schema_ref().field(0).name() == "count" && column.len() == 1 => {
            let unsigned = column.as_primitive_opt::<UInt64Type>();
            let signed = column.as_primitive_opt::<Int64Type>();
            let unsigned = unsigned.and_then(|counts| i64::try_from(counts.value(0)).ok());
            unsigned.or_else(|| signed.map(|counts| counts.value(0)))
        }
        _ => None,
    };
    match batches {
        [one] if counts(one).is_some() => counts(one),
        rows => i64::try_from(rows.iter().map(RecordBatch::num_rows).sum::<usize>()).ok(),
    }
}

impl Batches {
    /// Batches that are there.
    pub fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Batches {
        Batches {
            statement: None,
            schema,
            run: None,
            ahead: batches.into_iter(),
        }
    }

    /// The query that is read now, as long as it is.
    pub fn query(&self) -> Weak<Query> {
        let run = self.run.as_ref();
        run.map_or_else(Weak::new, |run| Arc::downgrade(&run.query))
    }

    /// The next batch of this run or the next one.
    fn following(&mut self) -> Result<Option<RecordBatch>> {
        let Batches {
            statement: Some(statement),
            run,
            schema,
            ..
        } = self
        else {
            return Ok(None);
        };
        loop {
            if let Some(running) = run {
                if let Some(batch) = statement.step(running)? {
                    // One that says otherwise of NULL than the query does stays as it is: a stream in C has arrays alone.
                    let same = batch.clone().with_schema(Arc::clone(schema));
                    return Ok(Some(same.unwrap_or(batch)));
                }
                *run = None;
            }
            let Some(params) = statement.runs.next().transpose()? else {
                return Ok(None);
            };
            let query = statement.plan(params)?;
            if statement.runs.schema(query.schema()).fields() != schema.fields() {
                return Err(another_schema());
            }
            *run = Some(Run::of(query)?);
        }
    }

    /// The next batch; after the last one, and after an error, what the run holds is let go.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.ahead.next() {
            return Ok(Some(batch));
        }
        let item = self.following();
        if !matches!(item, Ok(Some(_))) {
            self.run = None;
            self.statement = None;
        }
        item
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = catch_unwind(AssertUnwindSafe(|| self.read()));
        let item = item.unwrap_or_else(|panic| {
            self.run = None;
            self.statement = None;
            Err(internal(told(panic.as_ref())))
        });
        item.map_err(foreign).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic".to_string())
}

/// The error of a stream in C, which has an errno and a text alone.
fn foreign(error: AdbcError) -> ArrowError {
    let sqlstate = error.sqlstate.map(|letter| letter as u8);
    let message = error.message;
    match error.status {
        Status::NotImplemented => ArrowError::NotYetImplemented(message),
        _ if sqlstate == OUT_OF_MEMORY.as_bytes() => ArrowError::MemoryError(message),
        Status::IO | Status::NotFound | Status::Cancelled | Status::Timeout => {
            let cause = std::io::Error::other(message.clone());
            ArrowError::IoError(message, cause)
        }
        _ => ArrowError::InvalidArgumentError(message),
    }
}

fn another_schema() -> AdbcError {
    adbc(grouse::Error::Type {
        message: "the columns of the result have other types for a later row of parameters; give the parameters one type, or cast in the statement".to_string(),
        position: None,
    })
}
