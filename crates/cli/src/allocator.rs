//! The allocator of the process: mimalloc, told to keep the pages that it has.
//! In: every allocation of the shell and the engine.
//! Invariant: a page that was touched once stays with the process, because the first touch of a page costs 0.25 to
//! 12 us, more than filling it; the engine's budget, not the allocator, is what bounds memory.
//! Not here: arenas and their reuse, which are the engine's.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// mimalloc's number for "give freed pages back after this many milliseconds" (1000 by default, -1 is never).
const PURGE_DELAY: core::ffi::c_int = 15;

unsafe extern "C" {
    fn mi_option_set(option: core::ffi::c_int, value: core::ffi::c_long);
}

/// Keeps freed pages for the life of the process.
pub fn keep_pages() {
    // SAFETY: mi_option_set is linked in with the allocator, takes two plain numbers, and PURGE_DELAY is an option that
    // it knows; it may be called at any time.
    unsafe { mi_option_set(PURGE_DELAY, -1) }
}
