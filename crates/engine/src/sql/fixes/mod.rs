//! Fixes of statements: forms that DataFusion plans wrongly or not at all, as forms that it plans.
//!
//! In: a parsed statement. Out: the same statement in other words, one file a form; none asks for columns of tables.
//! Invariant: a fix changes no statement that DataFusion plans as it is meant.
//! Not here: forms that the parser does not take (tokens/), forms that need columns (expand/), plans (optimizer/fixes).

pub(crate) mod far_timestamps;
pub(in crate::sql) mod exclusions;
pub(crate) mod inner_values;
pub(in crate::sql) mod long_chains;
pub(in crate::sql) mod brackets;
pub(in crate::sql) mod composite_groups;
pub(in crate::sql) mod dotted_fields;
pub(in crate::sql) mod expressions;
pub(crate) mod samples;
pub(in crate::sql) mod window_aggregates;
pub(in crate::sql) mod row_subqueries;
pub(in crate::sql) mod text_orders;
pub(in crate::sql) mod typed_values;
pub(crate) mod shared_tables;
pub(in crate::sql) mod inner_tables;
