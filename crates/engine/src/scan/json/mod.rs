//! JSON: files of records, read to the last digit.
//!
//! In: files with one record per line, with an array of records, or with records one after the other.
//! Out: one column per field, in the order of the file; batches.
//! Invariant: nothing of a file is lost in silence: a value, a field or a record that has no place is an error with its line.
//! Not here: JSON inside of text columns, writing (the host).
//!
//! ```text
//! sample: chunks -> records -> cursor -> shape -> types
//! scan:   chunks -> splitter -> records -> cursor -> columns
//! ```
//!
//! The host's reader is not used: it makes 1 of 1.9 in a column of integers and leaves out fields that it does not know.

mod cursor;
mod splitter;
mod moments;
mod types;
mod shape;
mod columns;
mod chunks;
mod records;
mod source;
mod options;
mod format;

pub(crate) use format::{Json, JsonFactory};
pub(crate) use moments::is_date;
pub use options::JsonOptions;
