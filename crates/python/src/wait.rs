//! Waiting for the engine without holding the interpreter up.
//!
//! In: a future. Out: its value, or the exception that a signal handler (or the progress callback) raised meanwhile.
//! Invariant: the interpreter lock is free while waiting; a signal is seen within [`POLL`]; when the wait ends early the
//! future is dropped, which stops the work behind it.
//! Not here: what is waited for.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Time between two looks for signals: a fifth of the tenth of a second in which Ctrl-C has to work.
const POLL: Duration = Duration::from_millis(20);

/// Waits for `future` on this thread; `tick` runs every [`POLL`] with the lock held and may end the wait with an exception.
pub fn wait<F>(
    py: Python<'_>,
    future: F,
    tick: impl FnMut(Python<'_>) -> PyResult<()> + Send,
) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    py.detach(move || block(future, tick))
}

fn block<F: Future>(
    future: F,
    mut tick: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut next_tick = Instant::now() + POLL;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Ok(value);
        }
        let left = next_tick.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Python::attach(|py| py.check_signals().and_then(|()| tick(py)))?;
            next_tick = Instant::now() + POLL;
        } else {
            std::thread::park_timeout(left);
        }
    }
}

/// Wakes the waiting thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
