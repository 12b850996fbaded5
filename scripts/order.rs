//! Build script of what users load: the library of the Python package and the shell.
//!
//! In: `functions.order` in cargo's release folder, where `order.py` has written it. Out: the linker lays those functions side by side,
//! first called first. Before that the file is empty, and functions stay as compiled, as they do by another linker.

use std::fs::{File, metadata};
use std::path::Path;
use std::time::SystemTime;

fn main() {
    let out = std::env::var_os("OUT_DIR").expect("cargo names the folder");
    // target/release/build/<package>/out
    let release = Path::new(&out)
        .ancestors()
        .nth(3)
        .expect("cargo's own layout");
    let order = release.join("functions.order");
    println!("cargo::rerun-if-changed={}", order.display());
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Another linker than Rust's own may not know these words.
    let is_own = std::env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link");
    if is_own {
        // functions that are the same bytes are laid down once; `safe` finds none, as rustc does not say whose address is compared
        println!("cargo::rustc-link-arg=-Wl,--icf=all");
    }
    let Ok(found) = metadata(&order) else {
        // cargo takes a file that is missing, or younger than this run, for a change
        let made = File::create(&order).and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH));
        return made.expect("cargo writes to this folder too");
    };
    if found.len() > 0 && is_own {
        println!(
            "cargo::rustc-link-arg=-Wl,--symbol-ordering-file={}",
            order.display()
        );
        println!("cargo::rustc-link-arg=-Wl,--no-warn-symbol-ordering"); // names of the other of the two, or of an older build
    }
}
