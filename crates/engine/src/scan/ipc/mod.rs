//! Arrow IPC: files and streams of record batches.
//!
//! In: objects in a store. Out: their schemas, and a format whose files are checked before DataFusion's reader sees them.
//! Invariant: no length or offset of a file is believed: a file that is cut off or damaged is an error that says where.
//! Not here: decoding of batches, which is DataFusion's.
//!
//! ```text
//! schema (footer or head) -> format (DataFusion's, with checks) -> messages (what a file claims, held against its size)
//! ```

mod schema;
mod types;
mod columns;
mod format;
mod messages;
pub(in crate::scan) mod portable_arrow;

pub(crate) use format::CheckedArrow;
pub(crate) use schema::ipc_schema;
pub(crate) use types::check_schema;
