//! Fair shares of threads for queries that run at once on them: one that has used little goes before one that has used much.
//!
//! In: queries, and how long their tasks run. Out: tasks that give way while others want the thread.
//! Invariant: nobody waits for another query: a thread that has nothing else to do goes on at once. A query that is ahead
//! still has a slice in every round, so none starves. Alone, a query measures nothing and gives way as tokio asks.
//! Not here: which of its own tasks a query runs first, and sessions with threads of their own, among which the system chooses.
//!
//! Tokio asks a task to give way after 128 steps, which are batches here. At 2 to 4 ms each, a query of 65 ms waited 350 to
//! 520 ms beside two long ones on 2 threads.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use tokio::task::coop::{consume_budget, poll_proceed};

/// So long a query keeps a thread that another wants, if the other has used no less.
const SLICE: Duration = Duration::from_millis(20);
/// So long it keeps one that another wants who has used less: a few batches. Each change costs what the core's cache has.
const SLICE_AHEAD: Duration = Duration::from_millis(2);
/// More than this is as good as this: queries that have used so much have equal shares.
const USED_MAX: Duration = Duration::from_secs(1);
/// A query none of whose tasks ran for so long waits for its reader, and wants no thread.
const QUIET: Duration = Duration::from_secs(1);
/// Steps of a task that tokio allows before it has to give way.
const STEPS: usize = 128;
/// Those of a query that is ahead. Filters that leave nothing go from batch to batch within one call.
const STEPS_AHEAD: usize = 16;
/// A call that took less has done nothing, and the next one has all steps: streams within streams may need as many at once.
const NOTHING_DONE: Duration = Duration::from_micros(50);

/// Queries that run at once.
pub(crate) struct FairShares {
    /// As is known without the lock.
    count: AtomicUsize,
    running: RwLock<Vec<Arc<Used>>>,
}

/// The queries of this process.
pub(crate) static PROCESS: FairShares = FairShares::new();

/// Since then times are counted.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What a query has used.
#[derive(Debug)]
struct Used {
    nanos: AtomicU64,
    /// When one of its tasks ran last, in milliseconds.
    seen: AtomicU64,
}

impl Used {
    fn up_to_max(&self) -> u64 {
        let max = nanos(USED_MAX);
        self.nanos.load(Ordering::Relaxed).min(max)
    }

    fn is_quiet(&self, now: Instant) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        millis_of(now).saturating_sub(seen) > QUIET.as_millis() as u64
    }
}

impl FairShares {
    const fn new() -> FairShares {
        FairShares {
            count: AtomicUsize::new(0),
            running: RwLock::new(Vec::new()),
        }
    }

    /// A query begins; it is over when its share is dropped.
    pub fn begin(&'static self) -> Arc<FairShare> {
        let used = Arc::new(Used {
            nanos: AtomicU64::new(0),
            seen: AtomicU64::new(millis_of(Instant::now())),
        });
        let mut running = self.running.write();
        running.push(Arc::clone(&used));
        self.count.store(running.len(), Ordering::Relaxed);
        drop(running);
        Arc::new(FairShare {
            shares: self,
            used,
            is_over: AtomicBool::new(false),
        })
    }
}

/// One query's; its tasks have it together.
pub(crate) struct FairShare {
    shares: &'static FairShares,
    used: Arc<Used>,
    /// Nobody wants its rows any more, though tasks of it may run.
    is_over: AtomicBool,
}

impl Drop for FairShare {
    fn drop(&mut self) {
        let mut running = self.shares.running.write();
        running.retain(|other| !Arc::ptr_eq(other, &self.used));
        self.shares.count.store(running.len(), Ordering::Relaxed);
    }
}

/// Ends the query when it is dropped.
pub(crate) struct EndWhenDropped(pub Arc<FairShare>);

impl Drop for EndWhenDropped {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl FairShare {
    /// Says to its tasks that nobody wants their rows.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_alone(&self) -> bool {
        self.shares.count.load(Ordering::Relaxed) < 2
    }

    /// How the query stands to the others that want the threads.
    fn standing(&self, now: Instant) -> Standing {
        if self.is_alone() {
            return Standing::Alone;
        }
        let own = self.used.up_to_max();
        let running = self.shares.running.read();
        let wanting = |other: &&Arc<Used>| !Arc::ptr_eq(other, &self.used) && !other.is_quiet(now);
        let others = running.iter().filter(wanting);
        match others.map(|other| other.up_to_max()).min() {
            None => Standing::Alone,
            Some(least) if own > least + nanos(SLICE) => Standing::Ahead,
            Some(_) => Standing::Even,
        }
    }

    fn ran(&self, since: Instant, now: Instant) {
        let used = nanos(now.duration_since(since));
        self.used.nanos.fetch_add(used, Ordering::Relaxed);
        self.used.seen.store(millis_of(now), Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// No other query wants a thread.
    Alone,
    /// None has used less by a slice.
    Even,
    /// One has.
    Ahead,
}

/// The task that runs on this thread.
struct RunningTask {
    share: Arc<FairShare>,
    /// When this call of it began.
    began: Instant,
    /// Up to when its time is counted.
    counted: Instant,
}

impl RunningTask {
    fn count(&mut self, now: Instant) {
        self.share.ran(self.counted, now);
        self.counted = now;
    }
}

thread_local! {
    static RUNNING: RefCell<Option<RunningTask>> = const { RefCell::new(None) };
}

/// Puts back what ran on this thread before, also when the task panics.
struct Restore(Option<RunningTask>);

impl Drop for Restore {
    fn drop(&mut self) {
        let before = self.0.take();
        let ended = RUNNING.with_borrow_mut(|running| std::mem::replace(running, before));
        if let Some(mut ended) = ended {
            ended.count(Instant::now());
        }
    }
}

/// The work as a task of the query that has this share.
pub(crate) async fn taking_turns<F: Future>(share: Arc<FairShare>, work: F) -> F::Output {
    let mut work = pin!(work);
    let mut did_nothing = false;
    poll_fn(|cx| {
        let began = Instant::now();
        if !did_nothing && share.standing(began) == Standing::Ahead {
            leave_few_steps(cx);
        }
        let polled = run(&share, began, work.as_mut(), cx);
        did_nothing = polled.is_pending() && began.elapsed() < NOTHING_DONE;
        polled
    })
    .await
}

fn run<F: Future>(
    share: &Arc<FairShare>,
    began: Instant,
    work: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    let task = RunningTask {
        share: Arc::clone(share),
        began,
        counted: began,
    };
    let _restore = Restore(RUNNING.replace(Some(task)));
    work.poll(cx)
}

/// Takes most of the steps that tokio allows this call.
fn leave_few_steps(cx: &mut Context<'_>) {
    for _ in STEPS_AHEAD..STEPS {
        match poll_proceed(cx) {
            Poll::Ready(step) => step.made_progress(),
            Poll::Pending => return,
        }
    }
}

/// After a step: lets others have the thread, if it is their turn.
pub(crate) async fn give_way() {
    match has_had_its_turn() {
        true => tokio::task::yield_now().await,
        false => consume_budget().await,
    }
}

fn has_had_its_turn() -> bool {
    RUNNING.with_borrow_mut(|running| {
        let Some(task) = running.as_mut().filter(|task| !task.share.is_alone()) else {
            return false;
        };
        let now = Instant::now();
        task.count(now);
        let ran = now.duration_since(task.began);
        match task.share.standing(now) {
            Standing::Alone => false,
            Standing::Even => ran >= SLICE,
            Standing::Ahead => ran >= SLICE_AHEAD,
        }
    })
}

/// The share of the task that runs on this thread, for tasks that it spawns.
pub(crate) fn current() -> Option<Arc<FairShare>> {
    RUNNING.with_borrow(|running| running.as_ref().map(|task| Arc::clone(&task.share)))
}

/// Whether the query whose task runs on this thread was stopped. For work that does not give way by itself.
pub fn query_is_over() -> bool {
    RUNNING.with_borrow(|running| {
        let task = running.as_ref();
        task.is_some_and(|task| task.share.is_over.load(Ordering::Relaxed))
    })
}

/// Has tasks that DataFusion spawns take turns as the tasks do that spawn them.
pub(crate) fn follow_spawned() {
    // Another program around the engine may have a use of its own for it.
    let _ = set_join_set_tracer(&SpawnedTasks);
}

struct SpawnedTasks;

type Erased = Box<dyn Any + Send>;

impl JoinSetTracer for SpawnedTasks {
    fn trace_future(&self, task: BoxFuture<'static, Erased>) -> BoxFuture<'static, Erased> {
        match current() {
            Some(share) => taking_turns(share, task).boxed(),
            None => task,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Erased + Send>,
    ) -> Box<dyn FnOnce() -> Erased + Send> {
        work
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn millis_of(now: Instant) -> u64 {
    let since = now.saturating_duration_since(*ORIGIN);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use datafusion::common::runtime::SpawnedTask;
    use parking_lot::Mutex;
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::Notify;

    use super::*;

    fn shares() -> &'static FairShares {
        Box::leak(Box::new(FairShares::new()))
    }

    fn one_thread() -> Runtime {
        let builder = Builder::new_multi_thread().worker_threads(1).build();
        builder.expect("one thread")
    }

    fn has_used(share: &FairShare, time: Duration) {
        share.used.nanos.store(nanos(time), Ordering::Relaxed);
    }

    /// The order of steps of tasks that begin together on one thread: each of a query and with a number of steps.
    fn order(tasks: Vec<(Arc<FairShare>, usize)>) -> Vec<usize> {
        let (order, begin) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let waiting = Arc::new(AtomicUsize::new(tasks.len()));
        let threads = one_thread();
        let mut all = tokio::task::JoinSet::new();
        for (at, (share, steps)) in tasks.into_iter().enumerate() {
            let (order, begin) = (Arc::clone(&order), Arc::clone(&begin));
            let waiting = Arc::clone(&waiting);
            let steps = async move {
                let begun = begin.notified();
                if waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
                    begin.notify_waiters();
                }
                begun.await;
                for _ in 0..steps {
                    order.lock().push(at);
                    std::thread::sleep(SLICE_AHEAD);
                    give_way().await;
                }
            };
            all.spawn_on(taking_turns(share, steps), threads.handle());
        }
        threads.block_on(async { while all.join_next().await.is_some() {} });
        let order = order.lock();
        order.clone()
    }

    #[test]
    fn one_that_has_used_little_ends_within_a_few_steps_of_those_that_have_used_much() {
        let shares = shares();
        let (long, other, short) = (shares.begin(), shares.begin(), shares.begin());
        has_used(&long, USED_MAX);
        has_used(&other, 2 * USED_MAX);
        // The last one runs first.
        let order = order(vec![(short, 8), (long, 50), (other, 50)]);
        let end = order.iter().rposition(|&at| at == 0).expect("it ran");
        let before = order[..end].iter().filter(|&&at| at != 0).count();
        assert!(before < 25, "{before} steps of others before the last one");
        assert_eq!(order.len(), 108);
    }

    #[test]
    fn one_that_is_ahead_does_not_starve() {
        let shares = shares();
        let (long, short) = (shares.begin(), shares.begin());
        has_used(&long, USED_MAX);
        // The other would go on for ever.
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let endless = async move {
            while !until.load(Ordering::SeqCst) {
                give_way().await;
            }
        };
        let steps = async move {
            for _ in 0..20 {
                give_way().await;
            }
            over.store(true, Ordering::SeqCst);
        };
        let threads = one_thread();
        let endless = threads.spawn(taking_turns(short, endless));
        let steps = threads.spawn(taking_turns(long, steps));
        threads
            .block_on(async { (steps.await, endless.await) })
            .0
            .expect("it ends");
    }

    #[test]
    fn standings() {
        let shares = shares();
        let now = Instant::now();
        let first = shares.begin();
        assert_eq!(first.standing(now), Standing::Alone);
        let second = shares.begin();
        assert_eq!(first.standing(now), Standing::Even);
        has_used(&first, SLICE);
        assert_eq!(first.standing(now), Standing::Even);
        has_used(&first, 2 * SLICE);
        assert_eq!(first.standing(now), Standing::Ahead);
        assert_eq!(second.standing(now), Standing::Even);
        // One that nobody reads wants no thread.
        assert_eq!(first.standing(now + 2 * QUIET), Standing::Alone);
        has_used(&first, 9 * USED_MAX);
        has_used(&second, USED_MAX);
        assert_eq!(first.standing(now), Standing::Even);
        drop(second);
        assert_eq!(first.standing(now), Standing::Alone);
    }

    #[test]
    fn time_of_tasks_is_their_querys_and_spawned_tasks_are_too() {
        let shares = shares();
        let (share, other) = (shares.begin(), shares.begin());
        let threads = one_thread();
        let work = async {
            std::thread::sleep(Duration::from_millis(3));
            // Time that a task waits is not used.
            tokio::task::yield_now().await;
            let spawned = SpawnedTask::spawn(async { current().is_some() });
            (current().is_some(), spawned.join().await.expect("it ends"))
        };
        follow_spawned();
        let known = threads.spawn(taking_turns(Arc::clone(&share), work));
        let known = threads.block_on(known).expect("it ends");
        assert_eq!(known, (true, true));
        assert!(share.used.nanos.load(Ordering::Relaxed) >= 3_000_000);
        assert_eq!(other.used.nanos.load(Ordering::Relaxed), 0);
        let outside = threads.spawn(async { current().is_none() });
        assert!(threads.block_on(outside).expect("it ends"));
    }

    #[test]
    fn a_task_that_its_steps_stop_before_it_did_anything_gets_all_of_them() {
        let shares = shares();
        let (ahead, _other) = (shares.begin(), shares.begin());
        has_used(&ahead, USED_MAX);
        // As streams within streams: all hold a step while the innermost looks for one.
        let nested = poll_fn(|cx| {
            let mut held = Vec::new();
            for _ in 0..2 * STEPS_AHEAD {
                match poll_proceed(cx) {
                    Poll::Ready(step) => held.push(step),
                    Poll::Pending => return Poll::Pending,
                }
            }
            held.iter().for_each(|step| step.made_progress());
            Poll::Ready(())
        });
        // Held steps stay on one thread.
        let alone = Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a thread");
        let work = taking_turns(ahead, nested);
        let ends = async { tokio::time::timeout(Duration::from_secs(30), work).await };
        assert!(alone.block_on(ends).is_ok());
    }
}
