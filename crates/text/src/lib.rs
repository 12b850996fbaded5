//! Records of text files as Arrow arrays: CSV and JSON.
//!
//! In: bytes of a file, cut anywhere. Out: where its records and fields are, what types they look like, arrays.
//! Invariant: every value is what is written, or an error with its place; nothing is lost in silence.
//! Not here: files, streams and threads, options in SQL (the engine's `scan/csv` and `scan/json`).

pub mod blobs;
pub mod csv;
pub mod json;
