//! Scans: what a plan reads of its files, and how.
//!
//! In: scans as DataFusion plans them. Out: pieces that workers take from one queue or in the order of their rows, codes of
//! dictionaries, columns that are read late.
//! Not here: files (scan/).

mod late_materialisation;
mod conditions;
pub(crate) mod recorded;
pub(crate) mod morsels;
pub(crate) mod codes;
mod ordered_coalesce;
pub(crate) mod row_order;
pub(crate) mod guarded;
