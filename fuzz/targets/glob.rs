//! Patterns of names, over a folder with a few files.
#![no_main]

use std::fs;
use std::sync::Once;

use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

const FILES: [&str; 5] = ["a.csv", "b.csv", "ab/c.csv", "ab/d [1].csv", "k=1/é.csv"];

fuzz_target!(|pattern: &str| {
    static FILES_WRITTEN: Once = Once::new();
    let closed = closed();
    FILES_WRITTEN.call_once(|| {
        for folder in ["ab", "k=1"] {
            fs::create_dir_all(closed.folder().join(folder)).expect("a folder of ours");
        }
        for file in FILES {
            closed.write(file, b"v\n1\n");
        }
    });
    let pattern = closed.folder().join(pattern.trim_start_matches('/'));
    let pattern = pattern.display().to_string().replace('\'', "''");
    closed.run(&format!("SELECT count(*), sum(v) FROM '{pattern}'"));
});
