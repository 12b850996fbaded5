//! What ends a run before its last row: a flag of its own, or an interrupt of its connection.
//!
//! In: calls of `close` and `interrupt`, from any thread. Out: `CancelledError` in the thread that waits for the run.
//! Invariant: an interrupt ends the runs that have begun, and none that begins later.
//! Not here: waiting (wait.rs), signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use grouse::Error;
use pyo3::prelude::*;

use crate::error::raise;

/// Stops a run from another thread than the one that waits for it; that one gets `CancelledError`.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Stops the runs that look at the flag, now and later.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once it is set.
    pub fn check(&self) -> PyResult<()> {
        cancelled(self.is_set())
    }
}

/// The interrupts of a connection so far.
#[derive(Debug, Default)]
pub struct Interrupts(Arc<AtomicU64>);

impl Interrupts {
    /// Ends what runs.
    pub fn interrupt(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// For something that begins.
    pub fn begin(&self) -> Begun {
        Begun {
            interrupts: Arc::clone(&self.0),
            before: self.0.load(Ordering::Relaxed),
        }
    }
}

/// Something that has begun, and ends with the next interrupt.
#[derive(Debug)]
pub struct Begun {
    interrupts: Arc<AtomicU64>,
    before: u64,
}

impl Begun {
    /// An error once there was an interrupt.
    pub fn check(&self) -> PyResult<()> {
        cancelled(self.interrupts.load(Ordering::Relaxed) != self.before)
    }
}

fn cancelled(is_stopped: bool) -> PyResult<()> {
    match is_stopped {
        true => Err(raise(Error::Cancelled)),
        false => Ok(()),
    }
}
