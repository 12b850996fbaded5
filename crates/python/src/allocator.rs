//! The allocator of the library: mimalloc, told to keep freed pages for a while.
//!
//! In: every allocation of the engine inside the Python process; Python's own objects are not ours.
//! Invariant: a page that a query has touched serves the next one, because the first touch of a page costs more than
//! filling it; a process that stops querying gets its memory back with the first allocations after the delay.
//! Not here: arenas and their reuse, which are the engine's.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// mimalloc's number for "give freed pages back after this many milliseconds".
const PURGE_DELAY: core::ffi::c_int = 15;

/// Longer than a person thinks between two cells of a notebook; the shell, which has its process to itself, never gives back.
const PURGE_DELAY_MS: core::ffi::c_long = 60_000;

unsafe extern "C" {
    fn mi_option_set(option: core::ffi::c_int, value: core::ffi::c_long);
}

/// Keeps freed pages for [`PURGE_DELAY_MS`].
pub fn keep_pages() {
    purge_after(PURGE_DELAY_MS);
}

/// Gives freed pages back soon, for one who sets a limit; see the shell's.
pub fn give_pages_back() {
    purge_after(10);
}

fn purge_after(ms: core::ffi::c_long) {
    // SAFETY: mi_option_set is linked in with the allocator, takes two plain numbers, and PURGE_DELAY is an option that
    // it knows; it may be called at any time.
    unsafe { mi_option_set(PURGE_DELAY, ms) }
}
