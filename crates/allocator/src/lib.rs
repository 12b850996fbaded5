//! The allocator of the process: mimalloc, told to keep the pages that it has as long as memory is not short.
//!
//! In: every allocation of the shell, or of the engine inside a Python process, whose own objects are not ours.
//! Invariant: a page that was touched once serves the next query: its first touch costs 0.25 to 12 us, more than filling it. Five
//! more runs of a query with 4 million groups: 150 page faults, against 5,500 with mimalloc's own delay and 20,000 to 28,000
//! where 1.5 s lie between the queries. The peak is the same. The engine's budget, not the allocator, is what bounds memory;
//! where that is half used, freed pages go back at once. A process that stops querying gets its memory back with the first
//! allocations after the delay. Huge pages, a tenth of the time where tables are large, are for when memory is ample. A page of 2
//! MB is in use as a whole with the first of its bytes. 10,000 sketches under 500 MB, four workers: 535 instead of 1,090 MB.
//! Not here: arenas and their reuse, which are the engine's.

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// mimalloc's number for "give freed pages back after this many milliseconds" (1000 by default).
const PURGE_DELAY: core::ffi::c_int = 15;

/// Longer than a person thinks between two queries or two cells of a notebook. "Never" would keep them where memory becomes short, too.
const KEPT_MS: core::ffi::c_long = 60_000;

/// While memory is short: threads do not use each other's freed pages, and 500 MB became 790 instead of 710 (50 M rows,
/// 25 M keys). 50 ms save 30 M distinct rows under 512 MB a tenth of their time, a third of it in the system. But 25 M
/// keys then hold up to 895 MB instead of 705.
const SHORT_MS: core::ffi::c_long = 10;

/// Linux's number for "no huge pages for this process".
#[cfg(target_os = "linux")]
const PR_SET_THP_DISABLE: core::ffi::c_int = 41;
/// And the one that asks for it.
#[cfg(target_os = "linux")]
const PR_GET_THP_DISABLE: core::ffi::c_int = 42;

/// Whether the process had none before: that is its owner's wish.
#[cfg(target_os = "linux")]
static HAD_NO_HUGE_PAGES: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    #[cfg(target_os = "linux")]
    fn prctl(option: core::ffi::c_int, ...) -> core::ffi::c_int;
    fn mi_option_set(option: core::ffi::c_int, value: core::ffi::c_long);
    fn mi_collect(force: bool);
}

/// Keeps freed pages while the engine's sessions have memory enough.
pub fn keep_pages() {
    #[cfg(target_os = "linux")]
    {
        let none: core::ffi::c_ulong = 0;
        // SAFETY: the call takes five plain numbers and reads no memory; a kernel that does not know it refuses it.
        let found = unsafe { prctl(PR_GET_THP_DISABLE, none, none, none, none) };
        HAD_NO_HUGE_PAGES.store(found > 0, Ordering::Relaxed);
    }
    keep_or_give_back(false);
    grouse::on_short_memory(keep_or_give_back);
}

fn keep_or_give_back(memory_is_short: bool) {
    let delay = match memory_is_short {
        true => SHORT_MS,
        false => KEPT_MS,
    };
    // SAFETY: both are linked in with the allocator and may be called at any time. The first takes two plain numbers,
    // and PURGE_DELAY is an option that it knows. The second gives back what was freed before.
    unsafe {
        mi_option_set(PURGE_DELAY, delay);
        if memory_is_short {
            mi_collect(true);
        }
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes five plain numbers and reads no memory; a kernel that does not know it refuses it.
    unsafe {
        let off = memory_is_short || HAD_NO_HUGE_PAGES.load(Ordering::Relaxed);
        let off = core::ffi::c_ulong::from(off);
        let none: core::ffi::c_ulong = 0;
        prctl(PR_SET_THP_DISABLE, off, none, none, none);
    }
}
