//! A query that runs: batches one after the other, for whoever asks.
//!
//! In: a planned query. Out: its batches, signals and progress looked after while waiting.
//! Invariant: dropping it stops the query, and so does its [`StopFlag`], from any thread; nothing is read ahead but what
//! the engine's own channel holds.
//! Not here: rows (relation.rs), Arrow's C interface (export.rs).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::IntoIter;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use grouse::{Error, Query};
use pyo3::prelude::*;

use crate::borrowed::Borrowed;
use crate::error::raise;
use crate::progress::Display;
use crate::wait::Watch;

/// The batches of one execution.
pub struct Running {
    schema: SchemaRef,
    batches: BatchSource,
    watch: Watch,
    flag: StopFlag,
    borrowed: Borrowed,
}

/// Stops a run from another thread than the one that waits for it; that one gets `CancelledError`.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Stops the runs that look at the flag, now and later.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> PyResult<()> {
        match self.is_set() {
            true => Err(raise(Error::Cancelled)),
            false => Ok(()),
        }
    }
}

enum BatchSource {
    /// From the engine.
    Live {
        query: Query,
        stream: SendableRecordBatchStream,
        display: Display,
    },
    /// Of a statement that has run already.
    Kept(IntoIter<RecordBatch>),
    /// Read to the end, failed or interrupted.
    Over,
}

impl Running {
    /// Starts a query.
    pub fn start(query: Query, display: Display) -> PyResult<Running> {
        let stream = query.execute().map_err(raise)?;
        Ok(Running {
            schema: query.schema(),
            batches: BatchSource::Live {
                query,
                stream,
                display,
            },
            watch: Watch::new(),
            flag: StopFlag::default(),
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
            borrowed: Borrowed::default(),
        }
    }

    /// The same run, which ends when `flag` is set.
    pub fn stopped_by(self, flag: StopFlag) -> Running {
        Running { flag, ..self }
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
            borrowed,
            ..
        } = &mut *self;
        let item = match batches {
            BatchSource::Over => return Ok(None),
            BatchSource::Kept(kept) => return Ok(kept.next()),
            BatchSource::Live {
                query,
                stream,
                display,
            } => flag.check().and_then(|()| {
                watch.wait(py, stream.next(), |py| {
                    flag.check()?;
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
