//! A barrier: all workers add their pieces, and the last one to arrive builds one result for all of them.
//!
//! In: pieces from each worker. Out: the same result to all of them, once it is built.
//! Invariant: nothing is built before all workers have arrived, and it is built once. Only a worker that has the result may
//! end the barrier; whoever arrives after that gets none and keeps nothing alive.
//! Not here: what is added and built (build_barrier.rs). Its tests are in tests/interleavings.rs.

use std::sync::Arc;

use tokio::sync::watch;

use crate::runtime::sync::{AtomicUsize, Mutex, Ordering};

/// Workers add to a `T`; the last one builds an `M` of it.
pub(super) struct Barrier<T, M> {
    /// Workers that have not arrived.
    missing: AtomicUsize,
    added: Mutex<T>,
    stage: watch::Sender<BarrierStage<M>>,
}

enum BarrierStage<M> {
    Arriving,
    Built(Arc<M>),
    /// Nobody needs it any more.
    Over,
}

impl<T: Default, M> Barrier<T, M> {
    /// Of so many workers, who add to `nothing`.
    pub fn new(workers: usize, nothing: T) -> Self {
        Self {
            missing: AtomicUsize::new(workers),
            added: Mutex::new(nothing),
            stage: watch::Sender::new(BarrierStage::Arriving),
        }
    }

    /// Adds a piece, before the worker arrives.
    pub fn add(&self, add: impl FnOnce(&mut T)) {
        add(&mut self.added.lock());
    }

    /// Arrives and waits for the others; the last one builds the result. None once it is over.
    pub async fn wait(&self, build: impl FnOnce(T) -> M) -> Option<Arc<M>> {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            let added = std::mem::take(&mut *self.added.lock());
            let built = build(added);
            self.stage
                .send_replace(BarrierStage::Built(Arc::new(built)));
        }
        let mut stage = self.stage.subscribe();
        let built = stage.wait_for(|stage| !matches!(stage, BarrierStage::Arriving));
        match built.await.as_deref() {
            Ok(BarrierStage::Built(built)) => Some(Arc::clone(built)),
            Ok(BarrierStage::Arriving | BarrierStage::Over) | Err(_) => None,
        }
    }

    /// Nobody needs it any more: what was built goes with the last worker who has it.
    pub fn end(&self) {
        self.stage.send_replace(BarrierStage::Over);
    }
}
