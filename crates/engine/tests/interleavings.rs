//! What the workers and streams of an execution share, in many orders of their steps.
//!
//! In: the files of the output queue, of the barrier and of the scheduler of sources themselves. They stand over locks and
//! counters of `shuttle`, which picks who goes on at each of them. Out: every batch once, everybody's end, the first failure to
//! all, one result built of what all added.
//! Not here: the merge's tasks and its memory (`grouse-groupby`, operator/interleavings.rs).

#[path = "../src/exec/output_queue.rs"]
mod output_queue;
#[path = "../src/exec/barrier.rs"]
mod barrier;
#[path = "../src/exec/source_scheduler.rs"]
mod source_scheduler;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::{DataFusionError, Result};
use futures::FutureExt;
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use barrier::Barrier;
use output_queue::{OutputQueue, Pushed, WAITING_PER_STREAM};
use runtime::sync::{LOCKS, Mutex, Ordering};
use source_scheduler::SourceScheduler;

/// Orders that are tried of each case: by chance, and with few changes of who goes on.
const ORDERS: usize = 400;
const CHANGES: usize = 3;

/// The scheduler's locks and counters, as the engine's `sync` has the ordinary ones.
mod runtime {
    pub(crate) mod sync {
        pub(crate) use shuttle::sync::MutexGuard;
        pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

        thread_local! {
            /// How often somebody asked for one, in the orders that this thread tries out.
            pub(crate) static LOCKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
        }

        pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

        impl<T> Mutex<T> {
            pub fn new(value: T) -> Self {
                Self(shuttle::sync::Mutex::new(value))
            }

            pub fn lock(&self) -> MutexGuard<'_, T> {
                LOCKS.set(LOCKS.get() + 1);
                self.0.lock().expect("nobody has panicked under it")
            }
        }
    }
}

fn in_all_orders(case: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(case.clone(), ORDERS);
    shuttle::check_pct(case, ORDERS, CHANGES);
}

/// One thread has one order.
fn in_one_order(case: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(case, 1);
}

fn batch(value: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
    RecordBatch::try_from_iter([("x", column)]).expect("one column")
}

fn value(batch: &RecordBatch) -> i64 {
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

/// A worker that waits for a reader, pushes these and is done.
fn producer(
    output_queue: &Arc<OutputQueue>,
    worker: usize,
    values: Vec<i64>,
) -> JoinHandle<Vec<Pushed>> {
    let output_queue = Arc::clone(output_queue);
    thread::spawn(move || {
        let pushed = block_on(async {
            let mut pushed = Vec::new();
            for value in values {
                output_queue.has_reader(worker).await;
                pushed.push(output_queue.push(worker, batch(value)).await);
            }
            pushed
        });
        output_queue.finish();
        pushed
    })
}

/// A stream that takes so many at most and is gone.
fn consumer(
    output_queue: &Arc<OutputQueue>,
    stream: usize,
    most: usize,
) -> JoinHandle<Vec<Result<i64>>> {
    let output_queue = Arc::clone(output_queue);
    thread::spawn(move || {
        output_queue.attach();
        let taken = block_on(async {
            let mut taken = Vec::new();
            while taken.len() < most {
                match poll_fn(|cx| output_queue.poll_pop(stream, cx)).await {
                    Some(Ok(batch)) => taken.push(Ok(value(&batch))),
                    Some(Err(error)) => {
                        taken.push(Err(error));
                        break;
                    }
                    None => break,
                }
            }
            taken
        });
        output_queue.detach(stream);
        taken
    })
}

fn joined<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    let ends = threads.into_iter().map(JoinHandle::join);
    ends.map(|end| end.expect("no panic")).collect()
}

#[test]
fn every_batch_goes_to_one_stream() {
    in_all_orders(|| {
        let output_queue = Arc::new(OutputQueue::new(3, 2));
        let producers = (0..3).map(|at| {
            producer(
                &output_queue,
                at,
                (0..4).map(|i| 10 * at as i64 + i).collect(),
            )
        });
        let producers: Vec<_> = producers.collect();
        let consumers = (0..2)
            .map(|at| consumer(&output_queue, at, usize::MAX))
            .collect();
        let taken = joined(consumers).into_iter().flatten();
        let mut taken: Vec<i64> = taken.map(|value| value.expect("no failure")).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        let pushed = joined(producers).into_iter().flatten();
        assert!(pushed.into_iter().all(|pushed| pushed == Pushed::Queued));
    });
}

#[test]
fn a_stream_that_ends_early_holds_nobody_up() {
    in_all_orders(|| {
        let output_queue = Arc::new(OutputQueue::new(2, 2));
        let early = consumer(&output_queue, 0, 1);
        let late = consumer(&output_queue, 1, usize::MAX);
        let producers = (0..2)
            .map(|at| producer(&output_queue, at, vec![1; 6]))
            .collect();
        let taken = joined(vec![early, late]);
        assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), 12);
        joined(producers);
    });
}

#[test]
fn the_first_failure_reaches_every_stream_and_stops_the_workers() {
    in_all_orders(|| {
        let output_queue = Arc::new(OutputQueue::new(3, 2));
        let producers = (0..2)
            .map(|at| producer(&output_queue, at, vec![1; 9]))
            .collect();
        let consumers = (0..2)
            .map(|at| consumer(&output_queue, at, usize::MAX))
            .collect();
        let failing = {
            let output_queue = Arc::clone(&output_queue);
            thread::spawn(move || {
                output_queue.fail(DataFusionError::Execution("first".to_string()));
                output_queue.fail(DataFusionError::Execution("second".to_string()));
                output_queue.finish();
            })
        };
        for taken in joined(consumers) {
            let last = taken.into_iter().next_back().expect("a failure at least");
            let error = last.expect_err("a failure").to_string();
            assert!(error.contains("first"), "{error}");
        }
        joined(producers);
        joined(vec![failing]);
    });
}

#[test]
fn a_stop_ends_workers_that_wait() {
    in_all_orders(|| {
        let output_queue = Arc::new(OutputQueue::new(2, 1));
        let producers = (0..2)
            .map(|at| producer(&output_queue, at, vec![1; 4]))
            .collect();
        output_queue.attach();
        output_queue.stop();
        let pushed: Vec<_> = joined(producers).into_iter().flatten().collect();
        let taken = pushed.iter().filter(|pushed| **pushed == Pushed::Queued);
        assert!(taken.count() <= WAITING_PER_STREAM);
    });
}

#[test]
fn all_that_was_added_is_built_into_one_result_for_all() {
    in_all_orders(|| {
        let barrier = Arc::new(Barrier::new(3, Vec::new()));
        let workers = (0..3).map(|worker| {
            let barrier: Arc<Barrier<Vec<i64>, Vec<i64>>> = Arc::clone(&barrier);
            thread::spawn(move || {
                for piece in [worker, worker + 10] {
                    barrier.add(|all| all.push(piece));
                }
                let built = block_on(barrier.wait(|mut all| {
                    all.sort_unstable();
                    all
                }));
                barrier.end();
                built
            })
        });
        let mut built = joined(workers.collect()).into_iter().flatten();
        // One worker may be through before another has seen it.
        let first = built.next().expect("nobody has it");
        assert_eq!(*first, [0, 1, 2, 10, 11, 12]);
        assert!(built.all(|other| Arc::ptr_eq(&other, &first)));
        assert!(
            barrier
                .wait(|_| Vec::new())
                .now_or_never()
                .is_some_and(|late| late.is_none())
        );
    });
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn take(
    output_queue: &OutputQueue,
    stream: usize,
    woken: &Arc<Woken>,
) -> Poll<Option<Result<RecordBatch>>> {
    let waker = Waker::from(Arc::clone(woken));
    output_queue.poll_pop(stream, &mut Context::from_waker(&waker))
}

/// Which of these were woken since they were last asked.
fn woken<const N: usize>(streams: [&Arc<Woken>; N]) -> [bool; N] {
    streams.map(|stream| stream.0.swap(false, Ordering::SeqCst))
}

#[test]
fn a_batch_wakes_one_stream_and_one_more_if_that_does_not_come() {
    in_one_order(|| {
        let output_queue = OutputQueue::new(1, 3);
        let push = |value| output_queue.push(0, batch(value)).now_or_never();
        let streams: [Arc<Woken>; 3] = Default::default();
        let all = || woken(streams.each_ref());
        for (stream, waker) in streams.iter().enumerate() {
            assert!(take(&output_queue, stream, waker).is_pending());
        }
        assert_eq!(push(1), Some(Pushed::Queued));
        assert_eq!(all(), [false, false, true]);
        let taken = take(&output_queue, 2, &streams[2]);
        assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        assert!(take(&output_queue, 2, &streams[2]).is_pending());
        assert_eq!(push(2), Some(Pushed::Queued));
        assert_eq!(all(), [false, false, true]);
        // The last one does not come any more.
        assert_eq!(push(3), Some(Pushed::Queued));
        assert_eq!(all(), [true, true, false]);
        for _ in 0..2 {
            let taken = take(&output_queue, 1, &streams[1]);
            assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        }
        assert!(take(&output_queue, 1, &streams[1]).is_pending());
        assert!(take(&output_queue, 0, &streams[0]).is_pending());
        output_queue.finish();
        assert_eq!(all(), [true, true, false]);
        for (stream, waker) in streams.iter().enumerate() {
            let taken = take(&output_queue, stream, waker);
            assert!(matches!(taken, Poll::Ready(None)));
        }
    });
}

#[test]
fn a_stream_that_goes_leaves_its_batch_to_another() {
    in_one_order(|| {
        let output_queue = OutputQueue::new(1, 2);
        output_queue.attach();
        output_queue.attach();
        let (stays, goes) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        assert!(take(&output_queue, 0, &stays).is_pending());
        assert!(take(&output_queue, 1, &goes).is_pending());
        let pushed = output_queue.push(0, batch(1)).now_or_never();
        assert_eq!(pushed, Some(Pushed::Queued));
        assert_eq!(woken([&stays, &goes]), [false, true]);
        output_queue.detach(1);
        assert_eq!(woken([&stays, &goes]), [true, false]);
    });
}

#[test]
fn a_full_queue_wakes_all_streams_and_room_wakes_one_worker() {
    in_one_order(|| {
        let output_queue = OutputQueue::new(2, 2);
        let [stream, another, worker, other]: [Arc<Woken>; 4] = Default::default();
        assert!(take(&output_queue, 0, &stream).is_pending());
        assert!(take(&output_queue, 1, &another).is_pending());
        for value in 0..2 * WAITING_PER_STREAM as i64 {
            let pushed = output_queue.push(0, batch(value)).now_or_never();
            assert_eq!(pushed, Some(Pushed::Queued));
        }
        assert_eq!(woken([&stream, &another]), [true, true]);
        let mut waiting = [0, 1].map(|at| Box::pin(output_queue.push(at, batch(9))));
        for (pushing, waker) in waiting.iter_mut().zip([&worker, &other]) {
            let waker = Waker::from(Arc::clone(waker));
            let polled = pushing.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        let taken = take(&output_queue, 0, &stream);
        assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        assert_eq!(woken([&worker, &other]), [true, false]);
        let taken = take(&output_queue, 0, &stream);
        assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        assert_eq!(woken([&worker, &other]), [false, true]);
    });
}

#[test]
fn what_a_batch_costs_does_not_grow_with_the_streams() {
    const BATCHES: usize = 50;
    in_one_order(|| {
        let costs = [2, 240].map(|count| {
            let output_queue = OutputQueue::new(1, count);
            let streams: Vec<Arc<Woken>> = (0..count).map(|_| Arc::default()).collect();
            for (stream, waker) in streams.iter().enumerate() {
                assert!(take(&output_queue, stream, waker).is_pending());
            }
            let (locks, mut wakes) = (LOCKS.get(), 0);
            for _ in 0..BATCHES {
                let pushed = output_queue.push(0, batch(1)).now_or_never();
                assert_eq!(pushed, Some(Pushed::Queued));
                for (stream, waker) in streams.iter().enumerate() {
                    if waker.0.swap(false, Ordering::SeqCst) {
                        wakes += 1;
                        let taken = take(&output_queue, stream, waker);
                        assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
                        assert!(take(&output_queue, stream, waker).is_pending());
                    }
                }
            }
            (LOCKS.get() - locks, wakes)
        });
        assert_eq!(costs, [(3 * BATCHES, BATCHES); 2]);
    });
}

#[test]
fn a_full_queue_makes_workers_wait_until_a_batch_is_taken() {
    in_one_order(|| {
        let output_queue = OutputQueue::new(1, 1);
        let push = |value| output_queue.push(0, batch(value)).now_or_never();
        for value in 0..WAITING_PER_STREAM as i64 {
            assert_eq!(push(value), Some(Pushed::Queued));
        }
        assert_eq!(push(9), None);
        let taken = take(&output_queue, 0, &Arc::default());
        assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        assert_eq!(push(9), Some(Pushed::Queued));
    });
}

#[test]
fn workers_wait_while_there_is_no_reader() {
    in_one_order(|| {
        let output_queue = OutputQueue::new(1, 1);
        let has_reader = || output_queue.has_reader(0).now_or_never();
        assert_eq!(has_reader(), None);
        output_queue.attach();
        assert_eq!(has_reader(), Some(()));
        output_queue.detach(0);
        assert_eq!(has_reader(), None);
    });
}

/// Workers that read sources of so many batches each, and how many batches each worker has had.
fn read(batches: &[usize], workers: usize, help: bool) -> Vec<usize> {
    let scheduler = Arc::new(SourceScheduler::new(batches.len(), help));
    let left: Arc<Vec<_>> = Arc::new(batches.iter().map(|&left| Mutex::new(left)).collect());
    let workers = (0..workers).map(|worker| {
        let (scheduler, left) = (Arc::clone(&scheduler), Arc::clone(&left));
        thread::spawn(move || {
            block_on(async {
                let mut taken = 0;
                let mut next = scheduler.first(worker).await;
                while let Some(source) = next {
                    let mut of_source = left[source].lock();
                    scheduler.reached(source);
                    if *of_source == 0 {
                        drop(of_source);
                        scheduler.ended(source);
                    } else {
                        *of_source -= 1;
                        drop(of_source);
                        scheduler.taken(source);
                        taken += 1;
                    }
                    next = scheduler.next(worker, source).await;
                }
                taken
            })
        })
    });
    let workers = workers.collect();
    let taken = joined(workers);
    assert!(left.iter().all(|left| *left.lock() == 0));
    taken
}

#[test]
fn every_source_is_read_to_its_end_and_every_worker_ends() {
    in_all_orders(|| {
        assert_eq!(read(&[4, 0, 1], 4, true).into_iter().sum::<usize>(), 5);
        assert_eq!(read(&[3], 3, true).into_iter().sum::<usize>(), 3);
        assert_eq!(read(&[], 2, true), [0, 0]);
    });
}

#[test]
fn where_order_matters_each_worker_reads_its_own_source() {
    in_all_orders(|| assert_eq!(read(&[3, 0, 2], 3, false), [3, 0, 2]));
}

#[test]
fn an_execution_that_is_over_leaves_nobody_idle() {
    in_all_orders(|| {
        let scheduler = Arc::new(SourceScheduler::new(1, true));
        let idle = (1..3).map(|worker| {
            let scheduler = Arc::clone(&scheduler);
            thread::spawn(move || block_on(scheduler.first(worker)))
        });
        let idle: Vec<_> = idle.collect();
        scheduler.over();
        // One may have found that nobody waits for the source.
        let found = joined(idle).into_iter().flatten().count();
        assert!(found <= 1);
    });
}
