//! The GROUP BY algorithm of grouse on Arrow arrays: no SQL, no DataFusion, no async.
//!
//! ```text
//! Batch -> Build (one per worker: key table + states) -> Block (sorted by partition, in memory or on disk), or groups by address
//!       -> Merge (one task per range of either)       -> Finished -> batches
//! ```
//!
//! In: batches of key and argument columns. Out: batches of key and result columns.
//! Invariant: a row's hash is computed once and decides its partition everywhere.
//! Not here: expression evaluation, scheduling, SQL types beyond Arrow's.

#![warn(unreachable_pub)]

// From the ground up: a module names only those above it in this list.
mod error;
pub mod runtime;
mod batch;
pub mod keys;
pub mod states;
mod first_groups;
mod spec;
mod policy;
mod partition;
mod addressed;
mod combine;
mod shared_blocks;
mod spill;
mod build;
pub mod emit;
pub mod merge;

pub use batch::{Arguments, Batch};
pub use build::{Build, Built, WORKING_BYTES};
pub use emit::{Condition, Finished};
pub use error::{Error, Result};
pub use first_groups::{Chosen, FirstGroups};
pub use keys::TableKind;
pub use merge::{Merge, MergeInput, MergeTask, Merged};
pub use spec::{Sizes, Spec};
pub use spill::{Disk, ScratchFile, Spill};
