//! Plans there and back: planned for a cluster, in stages, as messages, made again, and run by one process.
//!
//! In: every `tests/slt/*.slt`, and statements over files. Out: the rows that one process gives; how many statements were
//! distributed, and why the others were not.
//! Invariant: no plan loses anything on its way, and what cannot go says so.
//! Not here: scheduler and executors (crate `grouse-node`), stages as Ballista cuts them.

mod files;
mod messages;
