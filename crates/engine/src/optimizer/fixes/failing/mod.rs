//! Fixes of what can fail: which rows an expression is computed for, and which results are errors.
//!
//! In: plans in which a condition, a cast or an operation may fail. Out: the same, computed only for rows that are asked for.
//! Invariant: a row that no part of the query asks for makes no error, and an overflow is one wherever it is computed.
//! Not here: TRY (sql/short_forms/fallible.rs).

pub(in crate::optimizer) mod fallible;
pub(in crate::optimizer) mod tried;
pub(in crate::optimizer) mod held_filters;
pub(in crate::optimizer) mod guarded_joins;
pub(in crate::optimizer) mod short_circuit;
pub(in crate::optimizer) mod filtered_arguments;
pub(in crate::optimizer) mod long_conditions;
pub(in crate::optimizer) mod volatile_windows;
pub(in crate::optimizer) mod constants;
mod around_operation;
pub(in crate::optimizer) mod checked_operation;
pub(in crate::optimizer) mod checked;
pub(in crate::optimizer) mod within_digits;
pub(in crate::optimizer) mod checked_plan;
