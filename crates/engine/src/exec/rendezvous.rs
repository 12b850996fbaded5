//! Where all workers bring something and the last one makes of it what all go on with.
//!
//! In: pieces from each worker. Out: the same thing to all of them, once it is made.
//! Invariant: nothing is made before all workers have come; it is made once; who looks after the end, which only one that
//! has it may say, gets none and keeps nothing alive.
//! Not here: what is brought and made (meeting.rs). Its tests are in tests/interleavings.rs.

use std::sync::Arc;

use tokio::sync::watch;

use crate::runtime::sync::{AtomicUsize, Mutex, Ordering};

/// Brought are pieces of `T`; an `M` is made of them.
pub(super) struct Rendezvous<T, M> {
    /// Workers that have not come.
    missing: AtomicUsize,
    brought: Mutex<T>,
    stage: watch::Sender<Stage<M>>,
}

enum Stage<M> {
    Coming,
    Made(Arc<M>),
    /// Nobody needs it any more.
    Over,
}

impl<T: Default, M> Rendezvous<T, M> {
    /// Of so many workers, who add to `nothing`.
    pub fn new(workers: usize, nothing: T) -> Self {
        Self {
            missing: AtomicUsize::new(workers),
            brought: Mutex::new(nothing),
            stage: watch::Sender::new(Stage::Coming),
        }
    }

    /// Adds a piece, before the worker comes.
    pub fn bring(&self, add: impl FnOnce(&mut T)) {
        add(&mut self.brought.lock());
    }

    /// Comes and waits for the others; the last one makes it. None once it is over.
    pub async fn meet(&self, make: impl FnOnce(T) -> M) -> Option<Arc<M>> {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            let brought = std::mem::take(&mut *self.brought.lock());
            let made = make(brought);
            self.stage.send_replace(Stage::Made(Arc::new(made)));
        }
        let mut stage = self.stage.subscribe();
        let made = stage.wait_for(|stage| !matches!(stage, Stage::Coming));
        match made.await.as_deref() {
            Ok(Stage::Made(made)) => Some(Arc::clone(made)),
            Ok(Stage::Coming | Stage::Over) | Err(_) => None,
        }
    }

    /// Nobody needs it any more: what was made goes with the last worker who has it.
    pub fn end(&self) {
        self.stage.send_replace(Stage::Over);
    }
}
