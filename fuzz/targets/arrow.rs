//! Arrow IPC files.
#![no_main]

use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| closed().read("x.arrow", bytes));
