//! The output queue: finished batches wait for whichever stream polls next.
//!
//! In: batches of all merge workers. Out: the same batches, each to exactly one of the output streams.
//! Invariant: no batch is bound to a stream, so a stream that is never polled again holds nothing up. The first error
//! wins, reaches every stream and stops all workers. The queue is bounded, and full means that workers wait, not threads.
//! Not here: order; a GROUP BY has none. Its tests are in tests/interleavings.rs.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};

use crate::runtime::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// Batches that may wait for each output stream, on average.
pub(super) const WAITING_PER_STREAM: usize = 2;

/// What a worker learns when it hands a batch over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It is in the queue.
    Queued,
    /// The execution has failed or nobody is left: the worker stops.
    Stopped,
}

/// The queue between the merge workers and the output streams.
pub(super) struct OutputQueue {
    state: Mutex<QueueState>,
    /// Streams that exist; workers look at it without the lock.
    readers: AtomicUsize,
    stopped: AtomicBool,
    batches_max: usize,
}

struct QueueState {
    batches: VecDeque<RecordBatch>,
    /// Workers that may still push something.
    producers: usize,
    failure: Option<Arc<DataFusionError>>,
    /// One place per output stream that waits for a batch.
    consumers_waiting: Vec<Option<Waker>>,
    /// One place per worker that waits for room or for a reader.
    producers_waiting: Vec<Option<Waker>>,
}

impl OutputQueue {
    /// An empty queue between `producers` workers and `streams` streams.
    pub fn new(producers: usize, streams: usize) -> OutputQueue {
        OutputQueue {
            state: Mutex::new(QueueState {
                batches: VecDeque::new(),
                producers,
                failure: None,
                consumers_waiting: vec![None; streams],
                producers_waiting: vec![None; producers],
            }),
            readers: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            batches_max: WAITING_PER_STREAM * streams,
        }
    }

    /// A stream exists from now on.
    pub fn attach(&self) {
        let before = self.readers.fetch_add(1, Ordering::SeqCst);
        if before == 0 {
            wake(&mut self.state.lock().producers_waiting);
        }
    }

    /// A stream is gone.
    pub fn detach(&self) {
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    /// True once the execution has failed or is given up.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Nobody wants the rest.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        wake(&mut self.state.lock().producers_waiting);
    }

    /// Waits while there is no stream: rows that nobody may ever ask for are not worked on.
    pub async fn has_reader(&self, worker: usize) {
        if self.readers.load(Ordering::Relaxed) > 0 {
            return;
        }
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if self.readers.load(Ordering::SeqCst) > 0 || self.is_stopped() {
                return Poll::Ready(());
            }
            state.producers_waiting[worker] = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Hands a batch over; waits while the queue is full.
    pub async fn push(&self, worker: usize, batch: RecordBatch) -> Pushed {
        let mut batch = Some(batch);
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if self.is_stopped() {
                return Poll::Ready(Pushed::Stopped);
            }
            if state.batches.len() >= self.batches_max {
                state.producers_waiting[worker] = Some(cx.waker().clone());
                return Poll::Pending;
            }
            state.batches.extend(batch.take());
            // All of them: the one that would be picked may never poll again.
            wake(&mut state.consumers_waiting);
            Poll::Ready(Pushed::Queued)
        })
        .await
    }

    /// A worker has nothing more to push.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        state.producers -= 1;
        if state.producers == 0 {
            wake(&mut state.consumers_waiting);
        }
    }

    /// The execution has failed; only the first failure counts.
    pub fn fail(&self, error: DataFusionError) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(Arc::new(error));
            state.batches.clear();
        }
        self.stopped.store(true, Ordering::Relaxed);
        wake(&mut state.consumers_waiting);
        wake(&mut state.producers_waiting);
    }

    /// The next batch for stream `consumer`.
    pub fn poll_pop(
        &self,
        consumer: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        let mut state = self.state.lock();
        if let Some(failure) = &state.failure {
            return Poll::Ready(Some(Err(DataFusionError::Shared(Arc::clone(failure)))));
        }
        if let Some(batch) = state.batches.pop_front() {
            wake(&mut state.producers_waiting);
            return Poll::Ready(Some(Ok(batch)));
        }
        if state.producers == 0 {
            return Poll::Ready(None);
        }
        state.consumers_waiting[consumer] = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn wake(waiting: &mut [Option<Waker>]) {
    for waker in waiting.iter_mut().filter_map(Option::take) {
        waker.wake();
    }
}
