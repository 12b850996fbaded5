//! Fixes of joins: their keys' names, NULL-equal keys, constants of a side that has no row.
//!
//! In: plans with joins. Out: the same, in a form that DataFusion's joins get right.
//! Invariant: a row meets no other than by the condition that is written.
//! Not here: conditions that can fail (failing/), subqueries as joins (unnested/).

pub(in crate::optimizer) mod outer_constants;
pub(in crate::optimizer) mod null_equal_joins;
pub(in crate::optimizer) mod qualified_keys;
