//! The shell as a user meets it: the real binary, its output, its messages and its exit codes.
//! Invariant: but for terminal.rs nothing here has a terminal, so no bar is drawn and tables have their full width.

mod grouse;
mod formats;
mod errors;
mod input;
mod startup;
mod commands;
mod output;
mod profile;
mod safe;
mod signals;
mod terminal;
