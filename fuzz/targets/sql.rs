//! Text of statements: a plan or an error.
#![no_main]

use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| closed().plan(text));
