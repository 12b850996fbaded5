//! SQL: the text of one statement becomes a parsed statement that DataFusion plans as it was meant.
//!
//! In: SQL text, values of parameters. Out: a statement for DataFusion, with the files it names; headers as people know them.
//! Invariant: what is accepted is planned; a clause that nobody plans is an error with its place.
//! Not here: DataFusion's planner (session.rs), files (scan/), rules that change plans (optimizer/).

pub(crate) mod dialect;
pub mod statement;
mod long_chains;
mod composite_groups;
mod expressions;
pub(crate) mod params;
pub(crate) mod spelling;
pub(crate) mod repeated_names;
pub(crate) mod headers;

pub use composite_groups::composite_groups;
