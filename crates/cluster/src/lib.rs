//! Groupings over several machines, on Apache DataFusion Ballista.
//!
//! ```text
//! client: plan -> distribute (stages, scans that travel) -> codec -> scheduler -> codec -> executor: lower -> run
//! ```
//!
//! In: plans of a session of the engine. Out: their parts, as messages and as executors run them; their rows, their errors.
//! Invariant: an answer is that of one machine, or there is an error. A statement runs where the option `cluster` says; what runs
//! here instead says so, and nothing falls back in silence.
//! Not here: planning and operators (the engine), the scheduler's and the executors' processes (crate `grouse-node`), stages,
//! tasks, retries and shuffle files (Ballista).

// From the ground up: a module names only those above it in this list.
mod scan;
mod codec;
mod gathered_joins;
mod distribute;
mod lowering;
#[doc(hidden)]
pub mod rehearsal;
pub mod address;
pub mod tls;
pub mod failures;
pub mod settings;
mod stages;
pub mod scheduler;
mod exec;
mod placement;
mod remote;

#[doc(hidden)]
pub use codec::foreign_message;
pub use codec::{codec, functions};
pub use distribute::{ClusterShape, Distribution, distribute, encoded, staged};
pub use lowering::lower;
pub use remote::Clusters;
