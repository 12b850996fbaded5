//! SQL: the text of one statement becomes a parsed statement that DataFusion plans as it was meant.
//!
//! In: SQL text, values of parameters. Out: a statement for DataFusion, with the files it names; headers as people know them.
//! Invariant: what is accepted is planned; a clause that nobody plans is an error with its place.
//! Not here: DataFusion's planner (session.rs), files (scan/), rules that change plans (optimizer/).

mod tokens;
mod word_forms;
mod prefix_alias;
mod lambdas;
mod table_forms;
mod query_forms;
pub(crate) mod dialect;
mod copy_options;
pub(crate) mod copy;
mod expression_forms;
pub(crate) mod walk;
pub(crate) mod ast;
mod token_forms;
pub mod statement;
pub mod reads;
mod clauses;
pub(crate) mod constraints;
mod short_forms;
mod fallible;
mod substitute;
mod numbered_lambdas;
pub(crate) mod definitions;
pub(crate) mod expand;
mod limits;
mod asof;
mod positional;
pub(crate) mod hidden;
mod columns;
mod aliases;
mod pivot;
mod unpivot;
mod summarize;
mod describe;
mod by_name;
mod default_values;
mod inner_names;
mod long_chains;
mod composite_groups;
mod dotted_fields;
mod expressions;
mod repeated_calls;
mod whole_rows;
mod ordinals;
mod array_subqueries;
pub(crate) mod params;
pub(crate) mod spelling;
pub(crate) mod repeated_names;
pub(crate) mod samples;
pub(crate) mod planned;
pub(crate) mod changes;
pub(crate) mod changed_rows;
pub(crate) mod alterations;
pub(crate) mod named_casts;
pub(crate) mod using;
mod window_aggregates;
mod row_subqueries;
mod text_orders;
mod shared_tables;
mod inner_tables;
pub(crate) mod headers;
pub(crate) mod names;
pub(crate) mod place;

pub use composite_groups::composite_groups;
pub(crate) use row_subqueries::compare_rows;
pub use shared_tables::name_shared_tables;
pub use window_aggregates::order_windows;
