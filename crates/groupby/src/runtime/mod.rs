//! What every phase needs around it: memory, counters, the machine.
//!
//! In: DataFusion's budget, files of the system. Out: grants, counters, the machine's cores and caches.
//! Not here: threads; the caller owns them.

pub mod budget;
pub(crate) mod counters;
pub mod cgroup;
pub mod topology;

pub(crate) use budget::allocated;
pub use budget::{Budget, Grant};
pub use counters::Counters;
pub use topology::Topology;
