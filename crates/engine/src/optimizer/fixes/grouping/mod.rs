//! Fixes of groupings: keys, what determines what, grouping sets and aggregates that others make up.
//!
//! In: plans with groupings. Out: the same with the keys that are written, and nothing believed of columns that does not hold.
//! Invariant: no grouping has a key more or less than its statement.
//! Not here: our operator's rule (group_by.rs).

pub(in crate::optimizer) mod composed;
pub(in crate::optimizer) mod single_distinct;
pub(in crate::optimizer) mod grouping_sets;
pub(in crate::optimizer) mod repeated_keys;
pub(in crate::optimizer) mod idle_sorts;
pub(in crate::optimizer) mod repeated_order;
pub(in crate::optimizer) mod true_dependencies;
pub(in crate::optimizer) mod written_keys;
pub(in crate::optimizer) mod grouped_elements;
