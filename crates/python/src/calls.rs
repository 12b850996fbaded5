//! Calls of functions written in Python: whose function runs on this thread, and that none runs when the interpreter ends.
//!
//! In: calls. Out: whether a connection would wait for itself, also by way of others, and whether a call has to stop.
//! Invariant: such a call holds a worker of the connection, so that a statement of the same one might wait for itself for ever.
//! Once the interpreter begins to end, no call begins, and it waits for those that run: a thread within Python would be ended by
//! it, and with it the process.
//! Not here: the functions (function.rs), the refusal (shared.rs).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;

/// Calls that run, or are about to look whether they may.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter ends.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Of functions that wait for another connection: their own and that one, by their addresses.
static WAITING: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

thread_local! {
    /// The connection, by its address.
    static CALLING: Cell<usize> = const { Cell::new(0) };
}

/// A call of a connection's function on this thread, until it is dropped.
pub struct Calling {
    before: usize,
}

impl Calling {
    /// Of the connection at this address; `None` once the interpreter ends.
    pub fn of(connection: usize) -> Option<Calling> {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        if IS_ENDING.load(Ordering::SeqCst) {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(Calling {
            before: CALLING.replace(connection),
        })
    }

    /// Whether the rest of its rows is not wanted.
    pub fn has_to_stop(&self) -> bool {
        IS_ENDING.load(Ordering::Relaxed) || grouse::query_is_over()
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALLING.set(self.before);
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a function of the connection at this address runs here.
pub fn is_called_by(connection: usize) -> bool {
    CALLING.get() == connection
}

/// A wait of this thread for a connection, until it is dropped.
#[derive(Debug)]
pub struct Waiting(Option<(usize, usize)>);

impl Waiting {
    /// For the connection at this address; `None` if that one waits for the connection whose function runs here, maybe by way
    /// of others: each would wait for the other.
    pub fn of(connection: usize) -> Option<Waiting> {
        let caller = CALLING.get();
        if caller == 0 {
            return Some(Waiting(None));
        }
        let mut waiting = all_waiting();
        let mut awaited = vec![connection];
        let mut at = 0;
        while let Some(&one) = awaited.get(at) {
            if one == caller {
                return None;
            }
            for (by, of) in waiting.iter() {
                if *by == one && !awaited.contains(of) {
                    awaited.push(*of);
                }
            }
            at += 1;
        }
        waiting.push((caller, connection));
        Some(Waiting(Some((caller, connection))))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(ended) = self.0 else {
            return;
        };
        let mut waiting = all_waiting();
        if let Some(at) = waiting.iter().position(|one| *one == ended) {
            waiting.swap_remove(at);
        }
    }
}

fn all_waiting() -> MutexGuard<'static, Vec<(usize, usize)>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the interpreter wait for calls before it ends.
pub fn end_with_the_interpreter(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let wait = wrap_pyfunction!(end_calls, module)?;
    let exit = module.py().import("atexit")?;
    exit.call_method1("register", (wait,)).map(drop)
}

#[pyfunction]
fn end_calls(py: Python<'_>) -> PyResult<()> {
    IS_ENDING.store(true, Ordering::SeqCst);
    while RUNNING.load(Ordering::SeqCst) > 0 {
        py.check_signals()?;
        py.detach(|| sleep(Duration::from_millis(1)));
    }
    Ok(())
}
