//! The settings that the same SQL has to give the same answers under: workers, batch sizes, forced tables, tiny sizes.
//!
//! In: nothing. Out: [`matrix`] for files that run under all of them, [`Setting::random`] for the fuzz.
//! Invariant: [`FORCED`] names all test options that must not change an answer. A refused call (oracle.rs) may end in an error,
//! and DataFusion's operator writes the expected rows (slt.rs).
//! Not here: what the options do (engine/runtime/options.rs).

use std::fmt;

use grouse::{Audience, Session, SessionOptions};

use crate::random::Random;

/// Workers of the matrix: none to share with, as many as the build machine has, an odd number above it.
pub const WORKERS: [usize; 3] = [1, 2, 7];

/// Test options and their values; the first value of each is the everyday one.
pub const FORCED: &[(&str, &[&str])] = &[
    (
        "group_by_table",
        &["auto", "direct", "packed", "bytes", "row"],
    ),
    ("group_by_sizes", &["machine", "tiny", "spilling"]),
    ("group_by_codes", &["on", "off"]),
    ("group_by_tasks", &["0", "3"]),
];

/// One way to run a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Worker threads.
    pub workers: usize,
    /// Rows per batch.
    pub batch_rows: usize,
    /// Values for the test options, in the order of [`FORCED`].
    pub forced: Vec<&'static str>,
}

impl Setting {
    /// Any setting.
    pub fn random(random: &mut Random) -> Setting {
        Setting {
            workers: *random.pick(&[1, 2, 3, 7]),
            batch_rows: *random.pick(&[8192, 8192, 64]),
            forced: FORCED
                .iter()
                .map(|(_, values)| *random.pick(values))
                .collect(),
        }
    }

    /// The same, but that everything goes to disk.
    pub fn spilling(&self) -> Setting {
        let mut setting = self.clone();
        for ((name, _), value) in FORCED.iter().zip(&mut setting.forced) {
            if *name == "group_by_sizes" {
                *value = "spilling";
            }
        }
        setting
    }

    /// A session with this setting.
    pub fn session(&self) -> Result<Session, grouse::Error> {
        let mut options = SessionOptions {
            threads: self.workers,
            batch_size: self.batch_rows,
            settable: Audience::Test,
            ..Default::default()
        };
        for ((name, _), value) in FORCED.iter().zip(&self.forced) {
            options.set(name, value)?;
        }
        Session::new(options)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "threads={} batch_size={}", self.workers, self.batch_rows)?;
        FORCED
            .iter()
            .zip(&self.forced)
            .try_for_each(|((name, _), value)| write!(f, " {name}={value}"))
    }
}

/// Every worker count with every combination of forced options, but that only everyday tables go to disk: it takes four
/// times as long, and every table leaves the same blocks. Files are read with codes: few of these files read any. Everyday tables
/// of tiny sizes are divided among tasks, too.
pub fn matrix() -> Vec<Setting> {
    let mut settings: Vec<Setting> = WORKERS
        .iter()
        .map(|&workers| Setting {
            workers,
            batch_rows: 8192,
            forced: Vec::new(),
        })
        .collect();
    for (_, values) in FORCED {
        settings = settings
            .iter()
            .flat_map(|setting| {
                values.iter().map(|value| {
                    let mut wider = setting.clone();
                    wider.forced.push(value);
                    wider
                })
            })
            .collect();
    }
    let is_everyday = |setting: &Setting| setting.forced[0] == FORCED[0].1[0];
    settings.retain(|setting| !setting.forced.contains(&"spilling") || is_everyday(setting));
    settings.retain(|setting| !setting.forced.contains(&"off"));
    let is_tiny = |setting: &Setting| setting.forced.contains(&"tiny") && is_everyday(setting);
    settings.retain(|setting| !setting.forced.contains(&"3") || is_tiny(setting));
    settings
}
