//! CSV: text files with records of fields.
//!
//! In: files, what the query says about them.
//! Out: a schema and a format that DataFusion's scans read with.
//! Invariant: every record is read once, whatever the number of workers, and every value is what is written.
//! Not here: records, values and columns within a text (crate `grouse-text`), which files there are (location.rs).
//!
//! ```text
//! beginnings -> dialect -> guess -> table (columns, rules) -> source -> cuts | blocks -> records -> columns -> batches
//! ```

pub(crate) mod dialect;
pub mod options;
pub(crate) mod input;
pub(crate) mod blocks;
pub(crate) mod cuts;
pub(crate) mod rejects;
pub(crate) mod reject_tables;
pub(crate) mod decode;
pub(crate) mod source;
pub(in crate::scan) mod portable_csv;
pub(crate) mod plain_names;
pub(crate) mod table;
pub(crate) mod sample;
pub(crate) mod beginnings;
pub(crate) mod sniff;
