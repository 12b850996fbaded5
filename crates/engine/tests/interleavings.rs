//! What the workers and streams of a run share, in many orders of their steps.
//!
//! In: the files of the outlet, of the rendezvous and of the turns themselves, over locks and counters of a scheduler that picks who goes
//! on at each of them. Out: every batch once, everybody's end, the first failure to all, one thing made of what all brought.
//! Not here: the merge's tasks and its memory (`grouse-groupby`, operator/interleavings.rs).

#[path = "../src/exec/outlet.rs"]
mod outlet;
#[path = "../src/exec/rendezvous.rs"]
mod rendezvous;
#[path = "../src/exec/turns.rs"]
mod turns;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::{DataFusionError, Result};
use futures::FutureExt;
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use outlet::{Given, Outlet, WAITING_PER_STREAM};
use rendezvous::Rendezvous;
use runtime::sync::{Mutex, Ordering};
use turns::Turns;

/// Orders that are tried of each case: by chance, and with few changes of who goes on.
const ORDERS: usize = 400;
const CHANGES: usize = 3;

/// The scheduler's locks and counters, as the engine's `sync` has the ordinary ones.
mod runtime {
    pub(crate) mod sync {
        pub(crate) use shuttle::sync::MutexGuard;
        pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

        pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

        impl<T> Mutex<T> {
            pub fn new(value: T) -> Self {
                Self(shuttle::sync::Mutex::new(value))
            }

            pub fn lock(&self) -> MutexGuard<'_, T> {
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

/// A worker that waits for a reader, gives these and is done.
fn giver(outlet: &Arc<Outlet>, worker: usize, values: Vec<i64>) -> JoinHandle<Vec<Given>> {
    let outlet = Arc::clone(outlet);
    thread::spawn(move || {
        let given = block_on(async {
            let mut given = Vec::new();
            for value in values {
                outlet.has_reader(worker).await;
                given.push(outlet.give(worker, batch(value)).await);
            }
            given
        });
        outlet.finish();
        given
    })
}

/// A stream that takes so many at most and is gone.
fn taker(outlet: &Arc<Outlet>, stream: usize, most: usize) -> JoinHandle<Vec<Result<i64>>> {
    let outlet = Arc::clone(outlet);
    thread::spawn(move || {
        outlet.attach();
        let taken = block_on(async {
            let mut taken = Vec::new();
            while taken.len() < most {
                match poll_fn(|cx| outlet.poll_take(stream, cx)).await {
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
        outlet.detach();
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
        let outlet = Arc::new(Outlet::new(3, 2));
        let givers =
            (0..3).map(|at| giver(&outlet, at, (0..4).map(|i| 10 * at as i64 + i).collect()));
        let givers: Vec<_> = givers.collect();
        let takers = (0..2).map(|at| taker(&outlet, at, usize::MAX)).collect();
        let taken = joined(takers).into_iter().flatten();
        let mut taken: Vec<i64> = taken.map(|value| value.expect("no failure")).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        let given = joined(givers).into_iter().flatten();
        assert!(given.into_iter().all(|given| given == Given::Taken));
    });
}

#[test]
fn a_stream_that_ends_early_holds_nobody_up() {
    in_all_orders(|| {
        let outlet = Arc::new(Outlet::new(2, 2));
        let early = taker(&outlet, 0, 1);
        let late = taker(&outlet, 1, usize::MAX);
        let givers = (0..2).map(|at| giver(&outlet, at, vec![1; 6])).collect();
        let taken = joined(vec![early, late]);
        assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), 12);
        joined(givers);
    });
}

#[test]
fn the_first_failure_reaches_every_stream_and_stops_the_workers() {
    in_all_orders(|| {
        let outlet = Arc::new(Outlet::new(3, 2));
        let givers = (0..2).map(|at| giver(&outlet, at, vec![1; 9])).collect();
        let takers = (0..2).map(|at| taker(&outlet, at, usize::MAX)).collect();
        let failing = {
            let outlet = Arc::clone(&outlet);
            thread::spawn(move || {
                outlet.fail(DataFusionError::Execution("first".to_string()));
                outlet.fail(DataFusionError::Execution("second".to_string()));
                outlet.finish();
            })
        };
        for taken in joined(takers) {
            let last = taken.into_iter().next_back().expect("a failure at least");
            let error = last.expect_err("a failure").to_string();
            assert!(error.contains("first"), "{error}");
        }
        joined(givers);
        joined(vec![failing]);
    });
}

#[test]
fn a_stop_ends_workers_that_wait() {
    in_all_orders(|| {
        let outlet = Arc::new(Outlet::new(2, 1));
        let givers = (0..2).map(|at| giver(&outlet, at, vec![1; 4])).collect();
        outlet.attach();
        outlet.stop();
        let given: Vec<_> = joined(givers).into_iter().flatten().collect();
        let taken = given.iter().filter(|given| **given == Given::Taken);
        assert!(taken.count() <= WAITING_PER_STREAM);
    });
}

#[test]
fn all_that_was_brought_is_made_into_one_thing_for_all() {
    in_all_orders(|| {
        let place = Arc::new(Rendezvous::new(3, Vec::new()));
        let workers = (0..3).map(|worker| {
            let place: Arc<Rendezvous<Vec<i64>, Vec<i64>>> = Arc::clone(&place);
            thread::spawn(move || {
                for piece in [worker, worker + 10] {
                    place.bring(|all| all.push(piece));
                }
                let made = block_on(place.meet(|mut all| {
                    all.sort_unstable();
                    all
                }));
                place.end();
                made
            })
        });
        let mut made = joined(workers.collect()).into_iter().flatten();
        // One worker may be through before another has seen it.
        let first = made.next().expect("nobody has it");
        assert_eq!(*first, [0, 1, 2, 10, 11, 12]);
        assert!(made.all(|other| Arc::ptr_eq(&other, &first)));
        assert!(
            place
                .meet(|_| Vec::new())
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

fn take(outlet: &Outlet, stream: usize, woken: &Arc<Woken>) -> Poll<Option<Result<RecordBatch>>> {
    let waker = Waker::from(Arc::clone(woken));
    outlet.poll_take(stream, &mut Context::from_waker(&waker))
}

#[test]
fn a_batch_wakes_all_streams_that_wait() {
    in_one_order(|| {
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
    });
}

#[test]
fn a_full_outlet_makes_workers_wait_until_a_batch_is_taken() {
    in_one_order(|| {
        let outlet = Outlet::new(1, 1);
        let give = |value| outlet.give(0, batch(value)).now_or_never();
        for value in 0..WAITING_PER_STREAM as i64 {
            assert_eq!(give(value), Some(Given::Taken));
        }
        assert_eq!(give(9), None);
        let taken = take(&outlet, 0, &Arc::default());
        assert!(matches!(taken, Poll::Ready(Some(Ok(_)))));
        assert_eq!(give(9), Some(Given::Taken));
    });
}

#[test]
fn workers_wait_while_there_is_no_reader() {
    in_one_order(|| {
        let outlet = Outlet::new(1, 1);
        let has_reader = || outlet.has_reader(0).now_or_never();
        assert_eq!(has_reader(), None);
        outlet.attach();
        assert_eq!(has_reader(), Some(()));
        outlet.detach();
        assert_eq!(has_reader(), None);
    });
}

/// Workers that read sources of so many batches each, and how many batches each worker has had.
fn read(batches: &[usize], workers: usize, help: bool) -> Vec<usize> {
    let turns = Arc::new(Turns::new(batches.len(), help));
    let left: Arc<Vec<_>> = Arc::new(batches.iter().map(|&left| Mutex::new(left)).collect());
    let workers = (0..workers).map(|worker| {
        let (turns, left) = (Arc::clone(&turns), Arc::clone(&left));
        thread::spawn(move || {
            block_on(async {
                let mut taken = 0;
                let mut turn = turns.first(worker).await;
                while let Some(source) = turn {
                    let mut of_source = left[source].lock();
                    turns.come(source);
                    if *of_source == 0 {
                        drop(of_source);
                        turns.ended(source);
                    } else {
                        *of_source -= 1;
                        drop(of_source);
                        turns.taken(source);
                        taken += 1;
                    }
                    turn = turns.next(worker, source).await;
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
fn a_run_that_is_over_leaves_nobody_idle() {
    in_all_orders(|| {
        let turns = Arc::new(Turns::new(1, true));
        let idle = (1..3).map(|worker| {
            let turns = Arc::clone(&turns);
            thread::spawn(move || block_on(turns.first(worker)))
        });
        let idle: Vec<_> = idle.collect();
        turns.over();
        // One may have found that nobody waits for the source.
        let found = joined(idle).into_iter().flatten().count();
        assert!(found <= 1);
    });
}
