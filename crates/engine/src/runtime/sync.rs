//! Locks and counters of what the workers of a run share.
//!
//! In: nothing. Out: the ordinary ones. The files that take them from here are also part of tests/interleavings.rs, where
//! those of a scheduler that tries out orders of steps stand in their place.
//! Not here: the session's memory and files, each of whose counters is one step.

pub(crate) use parking_lot::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
