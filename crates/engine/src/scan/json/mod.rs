//! JSON: files of records, read to the last digit.
//!
//! In: files with one record per line, with an array of records, or with records one after the other.
//! Out: one column per field, in the order of the file; batches.
//! Invariant: nothing of a file is lost in silence: a value, a field or a record that has no place is an error with its line.
//! Not here: records, values and columns within a text (crate `grouse-text`), JSON in strings, writing.
//!
//! ```text
//! sample: chunks -> records -> cursor -> shape -> types
//! scan:   chunks -> splitter -> records -> cursor -> columns
//! ```
//!
//! DataFusion's reader is not used: it makes 1 of 1.9 in a column of integers and leaves out fields that it does not know.

mod chunks;
mod records;
mod source;
mod options;
mod format;
pub(in crate::scan) mod portable_json;

pub(crate) use format::{Json, JsonFactory};
pub(crate) use grouse_text::json::timestamps::is_date;
pub use options::JsonOptions;
