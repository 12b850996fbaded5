//! What the process and Ballista say, on standard error.
//! In: log records. Out: a line each.
//! Not here: what is worth saying.

use std::error::Error as StdError;
use std::io::Write;

use log::{LevelFilter, Log, Metadata, Record};

use crate::args::LogLevel;

/// What ends a process before it is told to end: its last line.
pub type Failure = Box<dyn StdError + Send + Sync>;

struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let level = record.level().as_str().to_lowercase();
        say(&format!("{level}: {}", record.args()));
    }

    fn flush(&self) {}
}

/// Writes log records from now on.
pub fn begin(level: LogLevel) {
    // A second call in one process changes nothing.
    if log::set_logger(&Lines).is_ok() {
        log::set_max_level(match level {
            LogLevel::Error => LevelFilter::Error,
            LogLevel::Warn => LevelFilter::Warn,
            LogLevel::Info => LevelFilter::Info,
            LogLevel::Debug => LevelFilter::Debug,
        });
    }
}

/// A line for whoever watches; nobody may.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A line on standard output, where scripts look for addresses.
pub fn announce(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
