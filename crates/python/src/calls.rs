//! Whose function runs on this thread.
//!
//! In: calls of functions written in Python. Out: whether a connection is asked from within one of its own.
//! Invariant: such a call holds a worker of the connection, so that a statement of the same one might wait for itself for ever.
//! Not here: the functions (function.rs), the refusal (shared.rs).

use std::cell::Cell;

thread_local! {
    /// The connection, by its address.
    static CALLING: Cell<usize> = const { Cell::new(0) };
}

/// A call of a connection's function on this thread, until it is dropped.
pub struct Calling {
    before: usize,
}

impl Calling {
    /// Of the connection at this address.
    pub fn of(connection: usize) -> Calling {
        Calling {
            before: CALLING.replace(connection),
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALLING.set(self.before);
    }
}

/// Whether a function of the connection at this address runs here.
pub fn is_called_by(connection: usize) -> bool {
    CALLING.get() == connection
}
