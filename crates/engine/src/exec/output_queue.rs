//! The output queue: finished batches wait for whichever stream polls next.
//!
//! In: batches of all merge workers. Out: the same batches, each to exactly one of the output streams.
//! Invariant: no batch is bound to a stream. A batch wakes one stream. If that one is never polled again, the next batch, a
//! full queue or the end wakes others. The first error wins, reaches every stream and stops all workers. The queue is bounded,
//! and full means that workers wait, not threads.
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
    /// Output streams that wait for a batch.
    consumers_waiting: Waiting,
    /// Workers that wait for room or for a reader.
    producers_waiting: Waiting,
}

/// Those that wait, in the order in which they began to.
struct Waiting {
    /// A place for each that may wait.
    wakers: Vec<Option<Waker>>,
    /// The places that are taken.
    order: VecDeque<usize>,
}

impl OutputQueue {
    /// An empty queue between `producers` workers and `streams` streams.
    pub fn new(producers: usize, streams: usize) -> OutputQueue {
        OutputQueue {
            state: Mutex::new(QueueState {
                batches: VecDeque::new(),
                producers,
                failure: None,
                consumers_waiting: Waiting::new(streams),
                producers_waiting: Waiting::new(producers),
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
            let woken = self.state.lock().producers_waiting.all();
            wake(woken);
        }
    }

    /// Stream `consumer` is gone; a batch that it was woken for is another one's.
    pub fn detach(&self, consumer: usize) {
        self.readers.fetch_sub(1, Ordering::SeqCst);
        let woken = {
            let mut state = self.state.lock();
            state.consumers_waiting.forget(consumer);
            match state.batches.is_empty() {
                true => None,
                false => state.consumers_waiting.last(),
            }
        };
        wake(woken);
    }

    /// True once the execution has failed or is given up.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Nobody wants the rest.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let woken = self.state.lock().producers_waiting.all();
        wake(woken);
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
            state.producers_waiting.add(worker, cx.waker());
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
                state.producers_waiting.add(worker, cx.waker());
                let woken = state.consumers_waiting.all();
                drop(state);
                wake(woken);
                return Poll::Pending;
            }
            state.batches.extend(batch.take());
            let one = state.consumers_waiting.last();
            // The one that was woken for the batch before may never poll again.
            let another = match state.batches.len() {
                ..=1 => None,
                _ => state.consumers_waiting.last(),
            };
            drop(state);
            wake(one.into_iter().chain(another));
            Poll::Ready(Pushed::Queued)
        })
        .await
    }

    /// A worker has nothing more to push.
    pub fn finish(&self) {
        let woken = {
            let mut state = self.state.lock();
            state.producers -= 1;
            match state.producers {
                0 => state.consumers_waiting.all(),
                _ => Vec::new(),
            }
        };
        wake(woken);
    }

    /// The execution has failed; only the first failure counts.
    pub fn fail(&self, error: DataFusionError) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(Arc::new(error));
            state.batches.clear();
        }
        self.stopped.store(true, Ordering::Relaxed);
        let (consumers, producers) = (state.consumers_waiting.all(), state.producers_waiting.all());
        drop(state);
        wake(consumers.into_iter().chain(producers));
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
            let woken = state.producers_waiting.first();
            drop(state);
            wake(woken);
            return Poll::Ready(Some(Ok(batch)));
        }
        if state.producers == 0 {
            return Poll::Ready(None);
        }
        state.consumers_waiting.add(consumer, cx.waker());
        Poll::Pending
    }
}

impl Waiting {
    fn new(places: usize) -> Waiting {
        Waiting {
            wakers: vec![None; places],
            order: VecDeque::with_capacity(places),
        }
    }

    fn add(&mut self, place: usize, waker: &Waker) {
        match &mut self.wakers[place] {
            Some(known) => known.clone_from(waker),
            free => {
                *free = Some(waker.clone());
                self.order.push_back(place);
            }
        }
    }

    fn forget(&mut self, place: usize) {
        if self.wakers[place].take().is_some() {
            self.order.retain(|taken| *taken != place);
        }
    }

    /// The one that has waited longest.
    fn first(&mut self) -> Option<Waker> {
        let place = self.order.pop_front()?;
        self.wakers[place].take()
    }

    /// The one that began last: what it works with is still in a cache.
    fn last(&mut self) -> Option<Waker> {
        let place = self.order.pop_back()?;
        self.wakers[place].take()
    }

    fn all(&mut self) -> Vec<Waker> {
        let order = self.order.drain(..);
        order
            .filter_map(|place| self.wakers[place].take())
            .collect()
    }
}

/// Without the lock: whoever is woken asks for it.
fn wake(woken: impl IntoIterator<Item = Waker>) {
    woken.into_iter().for_each(Waker::wake);
}
