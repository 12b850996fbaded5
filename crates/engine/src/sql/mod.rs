//! SQL: the text of one statement becomes a parsed statement that DataFusion plans as it was meant.
//!
//! In: SQL text, values of parameters. Out: a statement for DataFusion, with the files it names; headers as people know them.
//! Invariant: what is accepted is planned; a clause that nobody plans is an error with its place.
//! Not here: DataFusion's planner (session/mod.rs), files (scan/), rules that change plans (optimizer/).
//!
//! ```text
//! text -> tokens -> dialect (parser) -> short_forms, clauses, fixes -> params -> expand (asks for columns) -> naming
//!      -> planned (refuses the rest) -> DataFusion; errors -> place
//! ```

pub(crate) mod walk;
pub(crate) mod ast;
mod substitute;
mod tokens;
pub(crate) mod dialect;
mod clauses;
mod short_forms;
pub(crate) mod fixes;
pub(crate) mod copy;
pub(crate) mod prepared;
pub(crate) mod sequences;
pub mod statement;
pub mod reads;
pub(crate) mod definitions;
pub(crate) mod expand;
pub(crate) mod changes;
pub(crate) mod params;
pub(crate) mod naming;
pub(crate) mod planned;
pub(crate) mod place;

pub(crate) use clauses::LATERAL_TABLE;
pub use fixes::composite_groups::composite_groups;
pub(crate) use fixes::row_subqueries::compare_rows;
pub(crate) use fixes::shared_tables::{name_shared_tables, name_tables_of_functions};
pub use fixes::window_aggregates::order_windows;
