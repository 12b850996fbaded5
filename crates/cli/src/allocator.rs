//! The allocator of the process: mimalloc, told to keep the pages that it has.
//! In: every allocation of the shell and the engine.
//! Invariant: unless memory has a limit, a page that was touched once stays with the process: its first touch costs 0.25 to 12 us, more than
//! filling it. Five more runs of a query with 4 million groups: 150 page faults, against 5,500 with mimalloc's own
//! delay and 20,000 to 28,000 where 1.5 s lie between the queries; the peak is the same. The engine's budget, not the
//! allocator, is what bounds memory.
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
    purge_after(-1);
}

/// Gives freed pages back soon, for one who sets a limit: threads do not use each other's, and 500 MB became 790 instead of
/// 710 (50 M rows, 25 M keys; the time was the same within the noise). 50 ms instead of 10 save 30 M distinct rows under
/// 512 MB a tenth of their time, a third of it in the system, but 25 M keys then hold up to 895 MB instead of 705.
pub fn give_pages_back() {
    purge_after(10);
}

fn purge_after(ms: core::ffi::c_long) {
    // SAFETY: mi_option_set is linked in with the allocator, takes two plain numbers, and PURGE_DELAY is an option that
    // it knows; it may be called at any time.
    unsafe { mi_option_set(PURGE_DELAY, ms) }
}
