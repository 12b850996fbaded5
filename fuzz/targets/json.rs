//! JSON files, in lines or in one array.
#![no_main]

use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| closed().read("x.json", bytes));
