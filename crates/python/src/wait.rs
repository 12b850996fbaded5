//! Waiting for the engine, or for another thread, without holding the interpreter up.
//!
//! In: a future, or a lock. Out: its value, or the exception that a signal handler (or the progress callback) raised meanwhile.
//! Invariant: the interpreter lock is free while waiting. A signal is seen within [`POLL`], in one long wait as in many short
//! ones. When the wait ends early the future is dropped, which stops the work behind it.
//! Not here: what is waited for.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Time between two looks for signals: a fifth of the tenth of a second in which Ctrl-C has to work.
const POLL: Duration = Duration::from_millis(20);
/// Time between two attempts at a lock; whoever holds one either lets go within microseconds or waits for a query.
const LOCK_POLL: Duration = Duration::from_millis(1);

/// When signals are looked for next.
///
/// One for all waits of a run: a query that gives a batch every few milliseconds never waits as long as [`POLL`].
#[derive(Debug)]
pub struct Watch {
    next: Instant,
}

impl Watch {
    /// A watch that looks after [`POLL`] for the first time.
    pub fn new() -> Watch {
        Watch {
            next: Instant::now() + POLL,
        }
    }

    /// Waits for `future` on this thread; `tick` runs every [`POLL`] with the lock held and may end the wait with an exception.
    pub fn wait<F>(
        &mut self,
        py: Python<'_>,
        future: F,
        tick: impl FnMut(Python<'_>) -> PyResult<()> + Send,
    ) -> PyResult<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        py.detach(move || self.block(future, tick))
    }

    fn block<F: Future>(
        &mut self,
        future: F,
        mut tick: impl FnMut(Python<'_>) -> PyResult<()>,
    ) -> PyResult<F::Output> {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if self.left().is_zero() {
                look(|py| py.check_signals().and_then(|()| tick(py)))?;
                self.next = Instant::now() + POLL;
            }
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return Ok(value);
            }
            std::thread::park_timeout(self.left());
        }
    }

    fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }
}

/// Runs `tick` with the interpreter lock. In a process that is ending a daemon thread has nothing to come back to, and
/// must not begin the interpreter anew, which `attach` does: it waits for the end.
fn look(tick: impl FnOnce(Python<'_>) -> PyResult<()>) -> PyResult<()> {
    Python::try_attach(tick).unwrap_or_else(|| {
        loop {
            std::thread::park();
        }
    })
}

/// Wakes the waiting thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Locks what another thread may hold for as long as its query runs.
pub fn lock<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    loop {
        if let Some(guard) = try_lock(mutex) {
            return Ok(guard);
        }
        py.check_signals()?;
        py.detach(|| std::thread::sleep(LOCK_POLL));
    }
}

/// Locks what nobody holds.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
