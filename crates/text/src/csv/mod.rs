//! CSV: bytes -> grammar -> records -> columns.
//!
//! In: bytes and a dialect. Out: fields, guessed types, arrays.
//! Invariant: a record is found whatever piece of the file it lies in.
//! Not here: which dialect a file has, how a file is cut for workers (the engine's `scan/csv`).

pub mod grammar;
pub mod records;
pub mod values;
pub mod columns;
pub mod guess;
