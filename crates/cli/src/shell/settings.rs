//! What commands set: how results look, when a script ends, what the prompt says.
//! Invariant: a setting that was not made leaves the choice to the format or to where results go.

use crate::print::{Format, Look};

/// The prompt if none is set.
const PROMPT: &str = "grouse> ";

/// What commands set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The format, if one was asked for.
    pub format: Option<Format>,
    /// How results look beside that.
    pub look: Look,
    /// Rows of a drawn table, 0 for all, if a number was asked for.
    pub rows_max: Option<usize>,
    /// When times are shown.
    pub timer: Timer,
    /// Whether statements and commands are written before what they write.
    pub echoes: bool,
    /// When a failure ends the rest.
    pub bail: Bail,
    /// What stands before the line that a person types.
    pub prompt: String,
    /// Whether a prompt pages results that are longer than the screen.
    pub pager_is_wanted: bool,
}

/// When the time of a statement is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// In the footer of tables.
    Footer,
    /// After every statement, whatever the format.
    Always,
    /// Never.
    Never,
}

/// When a failure ends what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bail {
    /// In scripts and not at the prompt.
    Scripts,
    /// Also the rest of what was typed at once.
    Always,
    /// Never: the script goes on, and its exit code says that it failed.
    Never,
}

impl Settings {
    /// For this format and number of rows.
    pub fn new(format: Option<Format>, rows_max: Option<usize>) -> Settings {
        Settings {
            format,
            look: Look::default(),
            rows_max,
            timer: Timer::Footer,
            echoes: false,
            bail: Bail::Scripts,
            prompt: PROMPT.to_owned(),
            pager_is_wanted: true,
        }
    }
}
