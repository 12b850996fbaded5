//! What the whole-system tests share: settings, generated tables and queries, peers, and how answers are compared.
//!
//! In: the engine's public interface. Out: what `tests/tests/*.rs` and the soak binary call.
//! Invariant: nothing here knows the operator's inside; every random choice follows from one printed seed.
//! Not here: unit tests (beside the code), the tests of the shell and of the Python package (in their crates).
#![forbid(unsafe_code)]

pub mod random;
pub mod setting;
pub mod cell;
pub mod answer;
pub mod duck;
pub mod tables;
pub mod expressions;
pub mod queries;
pub mod metamorphic;
pub mod oracle;
pub mod endings;
pub mod mutants;
pub mod damaged;
pub mod write_faults;
pub mod interrupted_writes;
pub mod renames;
pub mod stops;
pub mod soak_record;
