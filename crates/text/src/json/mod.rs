//! JSON: bytes -> splitter (records) -> cursor (values) -> shape (types) | columns (arrays).
//!
//! In: text. Out: the type of each field, arrays.
//! Invariant: numbers keep their digits; a field or value that has no place is an error with its place.
//! Not here: files, samples, batches (the engine's `scan/json`).

pub mod splitter;
pub mod cursor;
pub mod timestamps;
pub mod types;
pub mod shape;
pub mod columns;
