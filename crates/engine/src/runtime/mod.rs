//! Runtime: what a session runs within: options, memory, temporary files, the processor, warnings.
//!
//! In: what the user set and what the machine has. Out: limits and places that everything above keeps to.
//! Not here: plans, files that are read.

pub mod processor;
pub(crate) mod warnings;
pub(crate) mod trace;
pub(crate) mod wakeups;
pub(crate) mod fair_shares;
pub(crate) mod sync;
pub(crate) mod per_thread;
pub(crate) mod faults;
mod worker_count;
pub(crate) mod options;
mod locks;
pub(crate) mod fixed_options;
pub(crate) mod memory;
pub(crate) mod accounted;
pub(crate) mod temp;
pub(crate) mod datafusion_options;
