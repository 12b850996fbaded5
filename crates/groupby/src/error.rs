//! What can go wrong inside a group-by, told so that a caller can act on it.
//!
//! In: failures of states, budget and Arrow kernels. Out: one enum.
//! Invariant: bad input is an `Error`, never a panic.

use arrow::error::ArrowError;

/// Result of this crate's fallible calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a group-by stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A result does not fit the type that SQL gives it.
    #[error("{aggregate} does not fit {data_type}: {remedy}")]
    Overflow {
        /// The aggregate as the query wrote it.
        aggregate: String,
        /// The result's type.
        data_type: String,
        /// The way out.
        remedy: String,
    },
    /// The memory budget refused to grow.
    #[error("{error}")]
    Memory {
        /// The budget's own error.
        error: Box<dyn std::error::Error + Send + Sync>,
        /// The aggregate whose states were most of what had to be held, if one's were.
        aggregate: Option<String>,
    },
    /// A file for tuples that do not fit memory could not be made, written or read.
    #[error("cannot {doing} {name}: {error}")]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        name: String,
        /// The system's own words.
        error: std::io::Error,
    },
    /// A key column has a value beyond the bounds that were stated for it.
    #[error("column {column} has the value {value}, which is outside of its stated bounds")]
    OutOfBounds {
        /// The key's name.
        column: String,
        /// The value as text.
        value: String,
    },
    /// Nobody wants the result any more.
    #[error("cancelled")]
    Cancelled,
    /// An Arrow kernel failed.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// An aggregate that DataFusion provides failed.
    #[error("{0}")]
    DataFusion(Box<dyn std::error::Error + Send + Sync>),
    /// Bytes that are no state of this aggregate.
    #[error("malformed state of {0}: it was cut, changed or made by another program")]
    Malformed(&'static str),
    /// One key table or one key is larger than what 32-bit group ids and lengths address.
    #[error("{0}")]
    TooLarge(String),
}
