//! What every phase needs around it: memory, counters, the machine's caches.
//!
//! In: DataFusion's budget, the topology. Out: grants, counters, sizes.
//! Not here: threads; the caller owns them.

pub mod budget;
pub(crate) mod counters;
pub mod topology;

pub(crate) use budget::allocated;
pub use budget::{Budget, Grant};
pub use counters::Counters;
