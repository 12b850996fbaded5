//! The GROUP BY algorithm of grouse on Arrow arrays: no SQL, no host, no async.
//!
//! ```text
//! Batch -> Build (one per worker: key table + states) -> Block (sorted by partition, in memory or on disk)
//!       -> Merge (one task per range of partitions)   -> Finished -> batches
//! ```
//!
//! In: batches of key and argument columns. Out: batches of key and result columns.
//! Invariant: a row's hash is computed once and decides its partition everywhere.
//! Not here: expression evaluation, scheduling, SQL types beyond Arrow's.

pub mod error;
pub mod spec;
pub mod batch;
pub mod keys;
pub mod states;
pub mod policy;
pub mod build;
pub mod partition;
pub mod spill;
mod combine;
pub mod merge;
pub mod emit;
pub mod runtime;

pub use batch::{Arguments, Batch};
pub use build::{Build, Built, WORKING_BYTES};
pub use emit::{Condition, Finished};
pub use error::{Error, Result};
pub use keys::TableKind;
pub use merge::{Gathered, Merge, MergeTask, Merged};
pub use spec::{Sizes, Spec};
pub use spill::{Disk, ScratchFile, Spill};
