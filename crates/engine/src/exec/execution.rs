//! One execution of a node: its workers, from the first poll to the last stream.
//!
//! In: a node's compiled aggregation and input. Out: one stream per output partition.
//! Invariant: nothing runs before a stream is polled. When the last stream of an execution and the node's hold on it are
//! gone, every worker is stopped. A worker's panic is an error of the query.
//! Not here: what a worker does (worker.rs).

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::RecordBatchStream;
use futures::{FutureExt, Stream};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::NAME;
use super::worker::{SharedByWorkers, work};
use crate::runtime::fair_shares::{current, taking_turns};

/// One execution.
pub(super) struct Execution {
    shared: Arc<SharedByWorkers>,
    workers: usize,
    started: Once,
    /// Aborts the workers when dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Execution {
    /// An execution that begins with the first poll of one of its streams.
    pub fn new(shared: SharedByWorkers, workers: usize) -> Execution {
        Execution {
            shared: Arc::new(shared),
            workers,
            started: Once::new(),
            tasks: Mutex::new(JoinSet::new()),
        }
    }

    fn start(&self) {
        self.started.call_once(|| {
            let mut tasks = self.tasks.lock();
            for worker in 0..self.workers {
                let work = guarded(Arc::clone(&self.shared), worker);
                // Of a program that runs the plan itself, no query is known.
                match current() {
                    Some(share) => tasks.spawn(taking_turns(share, work)),
                    None => tasks.spawn(work),
                };
            }
        });
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

async fn guarded(shared: Arc<SharedByWorkers>, worker: usize) {
    let outcome = AssertUnwindSafe(work(Arc::clone(&shared), worker))
        .catch_unwind()
        .await;
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => shared.fail(error),
        Err(panic) => shared.fail(DataFusionError::Internal(format!(
            "{NAME}: {}",
            text_of(&*panic)
        ))),
    }
    shared.output_queue.finish();
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a worker panicked")
}

/// One of an execution's output streams.
pub(super) struct Output {
    execution: Arc<Execution>,
    schema: SchemaRef,
    partition: usize,
    failed: bool,
}

impl Output {
    /// The stream of `partition`.
    pub fn new(execution: Arc<Execution>, schema: SchemaRef, partition: usize) -> Output {
        execution.shared.output_queue.attach();
        Output {
            execution,
            schema,
            partition,
            failed: false,
        }
    }
}

impl Stream for Output {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.failed {
            return Poll::Ready(None);
        }
        self.execution.start();
        let polled = self
            .execution
            .shared
            .output_queue
            .poll_pop(self.partition, cx);
        self.failed = matches!(polled, Poll::Ready(Some(Err(_))));
        polled
    }
}

impl RecordBatchStream for Output {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.execution.shared.output_queue.detach(self.partition);
    }
}
