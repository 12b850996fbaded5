//! Text files: what is said of the beginnings from which their columns are found.
//!
//! In: nothing. Out: how much of a file is at hand, how many rows are looked at.
//! Invariant: none.
//! Not here: CSV (csv/), JSON (json.rs).

pub(crate) use crate::error::from_datafusion::SAMPLE_ROWS;

/// Whether the bytes at hand are all of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole file.
    Whole,
    /// The file goes on.
    Part,
}
