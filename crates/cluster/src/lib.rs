//! Groupings over several machines, on Apache DataFusion Ballista.
//!
//! ```text
//! client: plan -> distribute (stages, scans that travel) -> codec -> scheduler -> codec -> executor: lower -> run
//! ```
//!
//! In: plans that a session made for a cluster. Out: their parts, as messages and as executors run them.
//! Invariant: an answer is that of one machine, or there is an error; nothing falls back in silence.
//! Not here: planning and operators (the engine), stages, tasks, retries and shuffle files (Ballista).

mod scan;
mod codec;
mod distribute;
mod lowering;
#[doc(hidden)]
pub mod rehearsal;

#[doc(hidden)]
pub use codec::foreign_message;
pub use codec::{codec, functions};
pub use distribute::{ClusterShape, Distribution, distribute, encoded, staged};
pub use lowering::lower;
