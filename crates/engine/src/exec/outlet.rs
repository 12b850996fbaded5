//! Where finished batches wait for whoever polls next.
//!
//! In: batches of all merge workers. Out: the same batches, each to exactly one of the output streams.
//! Invariant: no batch is bound to a stream, so a stream that is never polled again holds nothing up; the first error
//! wins, reaches every stream and stops all workers; the queue is bounded, and full means that workers wait, not threads.
//! Not here: order; a GROUP BY has none.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use parking_lot::Mutex;

/// Batches that may wait for each output stream, on average.
const WAITING_PER_STREAM: usize = 2;

/// What a worker learns when it hands a batch over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// Somebody will take it.
    Taken,
    /// The run has failed or nobody is left: the worker stops.
    Stopped,
}

/// The queue between the merge workers and the output streams.
pub(super) struct Outlet {
    state: Mutex<State>,
    /// Streams that exist; workers look at it without the lock.
    readers: AtomicUsize,
    stopped: AtomicBool,
    batches_max: usize,
}

struct State {
    batches: VecDeque<RecordBatch>,
    /// Workers that may still give something.
    givers: usize,
    failure: Option<Arc<DataFusionError>>,
    /// One place per output stream that waits for a batch.
    takers_waiting: Vec<Option<Waker>>,
    /// One place per worker that waits for room or for a reader.
    givers_waiting: Vec<Option<Waker>>,
}

impl Outlet {
    /// An empty outlet between `givers` workers and `streams` streams.
    pub fn new(givers: usize, streams: usize) -> Outlet {
        Outlet {
            state: Mutex::new(State {
                batches: VecDeque::new(),
                givers,
                failure: None,
                takers_waiting: vec![None; streams],
                givers_waiting: vec![None; givers],
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
            wake(&mut self.state.lock().givers_waiting);
        }
    }

    /// A stream is gone.
    pub fn detach(&self) {
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    /// True once the run has failed or is given up.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Nobody wants the rest.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        wake(&mut self.state.lock().givers_waiting);
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
            state.givers_waiting[worker] = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Hands a batch over; waits while the queue is full.
    pub async fn give(&self, worker: usize, batch: RecordBatch) -> Given {
        let mut batch = Some(batch);
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if self.is_stopped() {
                return Poll::Ready(Given::Stopped);
            }
            if state.batches.len() >= self.batches_max {
                state.givers_waiting[worker] = Some(cx.waker().clone());
                return Poll::Pending;
            }
            state.batches.extend(batch.take());
            // All of them: the one that would be picked may never poll again.
            wake(&mut state.takers_waiting);
            Poll::Ready(Given::Taken)
        })
        .await
    }

    /// A worker has nothing more to give.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        state.givers -= 1;
        if state.givers == 0 {
            wake(&mut state.takers_waiting);
        }
    }

    /// The run has failed; only the first failure counts.
    pub fn fail(&self, error: DataFusionError) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(Arc::new(error));
            state.batches.clear();
        }
        self.stopped.store(true, Ordering::Relaxed);
        wake(&mut state.takers_waiting);
        wake(&mut state.givers_waiting);
    }

    /// The next batch for stream `taker`.
    pub fn poll_take(
        &self,
        taker: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        let mut state = self.state.lock();
        if let Some(failure) = &state.failure {
            return Poll::Ready(Some(Err(DataFusionError::Shared(Arc::clone(failure)))));
        }
        if let Some(batch) = state.batches.pop_front() {
            wake(&mut state.givers_waiting);
            return Poll::Ready(Some(Ok(batch)));
        }
        if state.givers == 0 {
            return Poll::Ready(None);
        }
        state.takers_waiting[taker] = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn wake(waiting: &mut [Option<Waker>]) {
    for waker in waiting.iter_mut().filter_map(Option::take) {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use futures::FutureExt;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn batch(value: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
        RecordBatch::try_from_iter([("x", column)]).expect("one column")
    }

    fn take(
        outlet: &Outlet,
        taker: usize,
        woken: &Arc<Woken>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        let waker = Waker::from(Arc::clone(woken));
        outlet.poll_take(taker, &mut Context::from_waker(&waker))
    }

    #[test]
    fn a_batch_goes_to_whoever_polls_and_all_waiting_streams_are_woken() {
        let outlet = Outlet::new(1, 2);
        let (never_again, eager) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        assert!(take(&outlet, 0, &never_again).is_pending());
        assert!(take(&outlet, 1, &eager).is_pending());
        assert_eq!(outlet.give(0, batch(1)).now_or_never(), Some(Given::Taken));
        assert!(never_again.0.load(Ordering::SeqCst) && eager.0.load(Ordering::SeqCst));
        assert!(matches!(take(&outlet, 1, &eager), Poll::Ready(Some(Ok(_)))));
        outlet.finish();
        assert!(matches!(take(&outlet, 1, &eager), Poll::Ready(None)));
        assert!(matches!(take(&outlet, 0, &eager), Poll::Ready(None)));
    }

    #[test]
    fn a_full_outlet_makes_workers_wait_until_a_batch_is_taken() {
        let outlet = Outlet::new(1, 1);
        for value in 0..WAITING_PER_STREAM as i64 {
            assert_eq!(
                outlet.give(0, batch(value)).now_or_never(),
                Some(Given::Taken)
            );
        }
        assert_eq!(outlet.give(0, batch(9)).now_or_never(), None);
        assert!(matches!(
            take(&outlet, 0, &Arc::default()),
            Poll::Ready(Some(Ok(_)))
        ));
        assert_eq!(outlet.give(0, batch(9)).now_or_never(), Some(Given::Taken));
    }

    #[test]
    fn the_first_failure_reaches_every_stream_and_stops_the_workers() {
        let outlet = Outlet::new(2, 2);
        assert_eq!(outlet.give(0, batch(1)).now_or_never(), Some(Given::Taken));
        outlet.fail(DataFusionError::Execution("first".to_string()));
        outlet.fail(DataFusionError::Execution("second".to_string()));
        for taker in [0, 1] {
            let Poll::Ready(Some(Err(error))) = take(&outlet, taker, &Arc::default()) else {
                panic!("stream {taker} saw no failure");
            };
            assert!(error.to_string().contains("first"), "{error}");
        }
        assert_eq!(
            outlet.give(1, batch(2)).now_or_never(),
            Some(Given::Stopped)
        );
    }

    #[test]
    fn workers_wait_while_there_is_no_reader() {
        let outlet = Outlet::new(1, 1);
        assert_eq!(outlet.has_reader(0).now_or_never(), None);
        outlet.attach();
        assert_eq!(outlet.has_reader(0).now_or_never(), Some(()));
        outlet.detach();
        assert_eq!(outlet.has_reader(0).now_or_never(), None);
    }
}
