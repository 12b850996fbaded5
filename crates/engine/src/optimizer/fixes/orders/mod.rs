//! Fixes of orders: of windows, below LIMIT and OFFSET, within recursions, and what DataFusion believes of keys that are sorted.
//!
//! In: plans with sorts and windows. Out: the same with rows in the order that the statement says.
//! Invariant: no fix sorts what DataFusion has in the right order.
//! Not here: sorts below groupings (grouping/).

pub(in crate::optimizer) mod offset_order;
pub(in crate::optimizer) mod exclusions;
pub(in crate::optimizer) mod window_orders;
pub(in crate::optimizer) mod bounded_keys;
pub(in crate::optimizer) mod recursion_order;
pub(in crate::optimizer) mod limited_sorts;
