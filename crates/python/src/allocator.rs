//! The allocator of the library: mimalloc, told to keep freed pages for a while, unless memory is short.
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

/// Longer than a person thinks between two cells of a notebook.
const KEPT_MS: core::ffi::c_long = 60_000;

/// While memory is short; see the shell's.
const SHORT_MS: core::ffi::c_long = 10;

unsafe extern "C" {
    fn mi_option_set(option: core::ffi::c_int, value: core::ffi::c_long);
    fn mi_collect(force: bool);
}

/// Keeps freed pages while the engine's sessions have memory enough.
pub fn keep_pages() {
    keep_or_give_back(false);
    grouse::memory::on_short_memory(keep_or_give_back);
}

fn keep_or_give_back(memory_is_short: bool) {
    let delay = match memory_is_short {
        true => SHORT_MS,
        false => KEPT_MS,
    };
    // SAFETY: both are linked in with the allocator and may be called at any time; the first takes two plain numbers,
    // and PURGE_DELAY is an option that it knows, the second gives back what was freed before.
    unsafe {
        mi_option_set(PURGE_DELAY, delay);
        if memory_is_short {
            mi_collect(true);
        }
    }
}
