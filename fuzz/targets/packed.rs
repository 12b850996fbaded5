//! Compressed text files: the first byte says how they are.
#![no_main]

use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 5] = [
    "x.csv.gz",
    "x.csv.zst",
    "x.csv.xz",
    "x.csv.bz2",
    "x.json.xz",
];

fuzz_target!(|bytes: &[u8]| {
    if let Some((kind, bytes)) = bytes.split_first() {
        closed().read(NAMES[usize::from(*kind) % NAMES.len()], bytes);
    }
});
