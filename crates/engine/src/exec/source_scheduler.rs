//! The scheduler of sources, which decides what a worker reads next: its own, then those that have more batches than workers.
//!
//! In: workers that have nothing to do, sources that give batches and end. Out: a source, or nothing once all have ended.
//! Invariant: a source that has not ended has a worker that waits for it or works on its last batch. Others are called one at a
//! time, the one that became idle last first, when a batch is taken and nobody waits for the next. So a source that gives
//! batches slowly, or only a few, keeps few workers.
//! Not here: reading (source.rs). Its tests are in tests/interleavings.rs.

use tokio::sync::oneshot;

use crate::runtime::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// With so many workers that wait for a source, no other one does: where batches are taken quickly one may wait by chance.
const WAITING_MAX: usize = 2;

/// The sources of an execution and its idle workers.
pub(super) struct SourceScheduler {
    sources: Vec<SourceState>,
    /// False where each worker reads its own source alone.
    help: bool,
    /// Sources that have not ended.
    open: AtomicUsize,
    /// Idle workers, as is known without the lock.
    are_idle: AtomicUsize,
    idle: Mutex<IdleWorkers>,
}

struct SourceState {
    /// Workers that are on their way to the source's next batch.
    waiting: AtomicUsize,
    has_ended: AtomicBool,
}

struct IdleWorkers {
    workers: Vec<oneshot::Sender<usize>>,
    is_over: bool,
}

impl SourceScheduler {
    /// Of so many sources; whether workers read those of others.
    pub fn new(sources: usize, help: bool) -> SourceScheduler {
        let state = || SourceState {
            waiting: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
        };
        SourceScheduler {
            sources: std::iter::repeat_with(state).take(sources).collect(),
            help,
            open: AtomicUsize::new(sources),
            are_idle: AtomicUsize::new(0),
            idle: Mutex::new(IdleWorkers {
                workers: Vec::new(),
                is_over: sources == 0,
            }),
        }
    }

    /// The worker's first source: its own, if there is one.
    pub async fn first(&self, worker: usize) -> Option<usize> {
        match self.sources.get(worker) {
            Some(own) => {
                own.waiting.fetch_add(1, Ordering::SeqCst);
                Some(worker)
            }
            None => self.another(worker).await,
        }
    }

    /// The source to read after `last`, mostly the same.
    pub async fn next(&self, worker: usize, last: usize) -> Option<usize> {
        match self.sources[last].enter(WAITING_MAX) {
            true => Some(last),
            false => self.another(worker).await,
        }
    }

    /// A source that needs one more worker; waits until one does. None when all have ended.
    async fn another(&self, worker: usize) -> Option<usize> {
        if !self.help {
            return None;
        }
        if let Some(source) = self.unattended(worker) {
            return Some(source);
        }
        let called = {
            let mut idle = self.idle.lock();
            if idle.is_over {
                return None;
            }
            // Whoever takes a batch from now on sees it; who took one before has left a source without anybody who waits.
            self.are_idle.fetch_add(1, Ordering::SeqCst);
            if let Some(source) = self.unattended(worker) {
                self.are_idle.fetch_sub(1, Ordering::SeqCst);
                return Some(source);
            }
            let (call, called) = oneshot::channel();
            idle.workers.push(call);
            called
        };
        called.await.ok()
    }

    /// The worker has reached this source.
    pub fn reached(&self, source: usize) {
        self.sources[source].waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// A worker leaves it with a batch; whether another worker goes on by that.
    pub fn taken(&self, source: usize) -> bool {
        let state = &self.sources[source];
        if state.waiting.load(Ordering::SeqCst) > 0 {
            return true;
        }
        let is_calling = self.are_idle.load(Ordering::SeqCst) > 0 && state.enter(1);
        if is_calling {
            self.call(source);
        }
        is_calling
    }

    /// The source has no batch left.
    pub fn ended(&self, source: usize) {
        let had_ended = self.sources[source].has_ended.swap(true, Ordering::SeqCst);
        if !had_ended && self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.over();
        }
    }

    /// Nobody reads any more.
    pub fn over(&self) {
        let mut idle = self.idle.lock();
        idle.is_over = true;
        idle.workers.clear();
    }

    /// Sends an idle worker to a source that waits for it.
    fn call(&self, source: usize) {
        let mut idle = self.idle.lock();
        while let Some(worker) = idle.workers.pop() {
            self.are_idle.fetch_sub(1, Ordering::SeqCst);
            if worker.send(source).is_ok() {
                return;
            }
        }
        self.reached(source);
    }

    /// A source for which nobody waits; the worker does now.
    fn unattended(&self, worker: usize) -> Option<usize> {
        let count = self.sources.len();
        let mut all = (0..count).map(|offset| (worker + offset) % count);
        all.find(|&source| self.sources[source].enter(1))
    }
}

impl SourceState {
    /// Waits for the source unless it has ended or so many do.
    fn enter(&self, waiting_max: usize) -> bool {
        let more = |waiting| (waiting < waiting_max).then_some(waiting + 1);
        !self.has_ended.load(Ordering::SeqCst)
            && self
                .waiting
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
                .is_ok()
    }
}
