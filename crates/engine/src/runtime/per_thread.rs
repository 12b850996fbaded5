//! What each thread keeps for itself of what all of them work with.
//!
//! In: a thread that asks. Out: its own place.
//! Invariant: up to `PLACES` threads have places of their own, whose locks nobody waits for; more of them share some.
//! Not here: what belongs to a worker. A worker goes on on another thread and finds what that one keeps.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

const PLACES: usize = 64;

/// A `T` per thread, made when one asks for the first time.
pub(crate) struct PerThread<T>(OnceLock<Box<[Place<T>]>>);

/// Two lines of a cache, which processors read as one: what a thread writes takes none of another's away.
#[repr(align(128))]
struct Place<T>(Mutex<T>);

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        PerThread(OnceLock::new())
    }
}

impl<T: Default> PerThread<T> {
    /// Does something with this thread's `T`, and does not ask for it meanwhile.
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let made = || (0..PLACES).map(|_| Place(Mutex::default())).collect();
        let places = self.0.get_or_init(made);
        act(&mut places[this_thread() % PLACES].0.lock())
    }
}

/// Threads are numbered in the order in which they ask for the first time.
fn this_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.with(|number| {
        number.get().unwrap_or_else(|| {
            let next = THREADS.fetch_add(1, Ordering::Relaxed);
            number.set(Some(next));
            next
        })
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_finds_what_it_left_and_nothing_is_lost() {
        let counts = PerThread::<usize>::default();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let before = counts.with(|count| *count);
                    for _ in 0..100 {
                        counts.with(|count| *count += 1);
                    }
                    // Other tests' threads have numbers, too, so that two of these may share a place.
                    assert!(counts.with(|count| *count) >= before + 100);
                });
            }
        });
        let places = counts.0.get().expect("somebody has asked");
        let all: usize = places.iter().map(|place| *place.0.lock()).sum();
        assert_eq!(all, 800);
        assert_eq!(size_of::<Place<u8>>() % 128, 0);
    }
}
