//! A query that runs: batches one after the other, for whoever asks.
//!
//! In: a planned query. Out: its batches, signals and progress looked after while waiting.
//! Invariant: dropping it stops the query, and so does its [`StopFlag`] and an interrupt, from any thread; nothing is read ahead but what
//! the engine's own channel holds.
//! Not here: rows (relation.rs), Arrow's C interface (export.rs).

use std::time::{Duration, Instant};
use std::vec::IntoIter;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use grouse::{Error, Query};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::borrowed::Borrowed;
use crate::error::raise;
use crate::progress::Display;
use crate::shared::{Shared, wait_for};
use crate::stop::{Begun, StopFlag};
use crate::wait::Watch;

/// The batches of one execution.
pub struct Running {
    schema: SchemaRef,
    batches: BatchSource,
    watch: Watch,
    flag: StopFlag,
    /// When the run ends, whatever is left.
    deadline: Option<Instant>,
    borrowed: Borrowed,
}

enum BatchSource {
    /// From the engine.
    Live {
        query: Query,
        stream: SendableRecordBatchStream,
        display: Display,
        begun: Begun,
        /// The address of its connection.
        connection: usize,
    },
    /// Of a statement that has run already.
    Kept(IntoIter<RecordBatch>),
    /// Read to the end, failed or interrupted.
    Over,
}

impl Running {
    /// Starts a query of a connection.
    pub fn start(py: Python<'_>, query: Query, connection: &Shared) -> PyResult<Running> {
        let (display, begun) = (connection.display(py), connection.begin());
        let stream = query.execute().map_err(raise)?;
        Ok(Running {
            schema: query.schema(),
            batches: BatchSource::Live {
                query,
                stream,
                display,
                begun,
                connection: connection.address(),
            },
            watch: Watch::new(),
            flag: StopFlag::default(),
            deadline: None,
            borrowed: Borrowed::default(),
        })
    }

    /// The result of a statement that has run already.
    pub fn kept(schema: SchemaRef, batches: Vec<RecordBatch>) -> Running {
        Running {
            schema,
            batches: BatchSource::Kept(batches.into_iter()),
            watch: Watch::new(),
            flag: StopFlag::default(),
            deadline: None,
            borrowed: Borrowed::default(),
        }
    }

    /// The same run, which ends when `flag` is set.
    pub fn stopped_by(self, flag: StopFlag) -> Running {
        Running { flag, ..self }
    }

    /// The number of rows that are left, if that is known after `patience`; the run is over then.
    pub fn count_left(&mut self, py: Python<'_>, patience: Duration) -> PyResult<Option<usize>> {
        self.deadline = Some(Instant::now() + patience);
        let mut rows = 0;
        loop {
            match self.next(py) {
                Ok(Some(batch)) => rows += batch.num_rows(),
                Ok(None) => return Ok(Some(rows)),
                // Whoever wants the rows will hear of what is wrong with them.
                Err(failure) if failure.is_instance_of::<PyException>(py) => return Ok(None),
                Err(interrupt) => return Err(interrupt),
            }
        }
    }

    /// The same run, whose batches have nothing of this memory.
    pub fn owning(self, borrowed: Borrowed) -> Running {
        Running { borrowed, ..self }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; None at the end. After an exception there are none.
    pub fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let Running {
            batches,
            watch,
            flag,
            deadline,
            borrowed,
            ..
        } = &mut *self;
        let deadline = *deadline;
        let in_time = move || deadline.map_or(Ok(()), check_time);
        let item = match batches {
            BatchSource::Over => return Ok(None),
            BatchSource::Kept(kept) => return Ok(kept.next()),
            BatchSource::Live {
                query,
                stream,
                display,
                begun,
                connection,
            } => flag.check().and_then(|()| begun.check()).and_then(|()| {
                in_time()?;
                let _waiting = wait_for(*connection)?;
                watch.wait(py, stream.next(), |py| {
                    flag.check()?;
                    begun.check()?;
                    in_time()?;
                    display.tick(py, || query.progress())
                })
            }),
        };
        match item {
            Ok(Some(Ok(batch))) => {
                let owned = py.detach(|| borrowed.owned(batch));
                owned.map(Some).map_err(|failure| raise(failure.into()))
            }
            Ok(Some(Err(failure))) => {
                self.stop(py);
                Err(raise(failure.into()))
            }
            Ok(None) => {
                self.stop(py);
                Ok(None)
            }
            Err(interrupt) => {
                self.stop(py);
                Err(interrupt)
            }
        }
    }

    /// All batches that are left.
    pub fn collect(&mut self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next(py)? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Stops the query.
    pub fn stop(&mut self, py: Python<'_>) {
        if let BatchSource::Live { display, .. } = &mut self.batches {
            display.end(py);
        }
        let over = std::mem::replace(&mut self.batches, BatchSource::Over);
        // What a query holds may be large, and sources may be waiting for the interpreter.
        py.detach(|| drop(over));
    }
}

/// An error after a moment.
fn check_time(deadline: Instant) -> PyResult<()> {
    match Instant::now() > deadline {
        true => Err(raise(Error::Cancelled)),
        false => Ok(()),
    }
}
