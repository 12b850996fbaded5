//! Names of folders that are columns.
#![no_main]

use std::fs;
use std::path::{Component, Path};

use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

/// Folders that lie in each other.
const DEPTH: usize = 4;

fuzz_target!(|names: &str| {
    let closed = closed();
    let top = closed.folder().join("top");
    for path in names.lines().take(3) {
        let mut folder = top.clone();
        let parts = Path::new(path).components().filter_map(|part| match part {
            Component::Normal(name) if name.len() < 100 => Some(name),
            _ => None,
        });
        folder.extend(parts.take(DEPTH));
        // Some names no file system takes.
        if fs::create_dir_all(&folder).is_ok() {
            fs::write(folder.join("x.csv"), "v\n1\n").expect("a folder of ours");
        }
    }
    let top = top.display().to_string().replace('\'', "''");
    closed.run(&format!("SELECT * FROM '{top}/**/*.csv'"));
    closed.run(&format!(
        "SELECT * FROM read_csv('{top}/**/*.csv', hive_partitioning => true)"
    ));
    let _ = fs::remove_dir_all(closed.folder().join("top"));
});
