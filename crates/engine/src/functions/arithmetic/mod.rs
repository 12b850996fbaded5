//! Arithmetic of single values that DataFusion wraps, cuts or answers with NaN.
//!
//! In: columns of numbers. Out: columns of numbers, or an error that names the operation.
//! Invariant: a result that does not fit its type is an error, never another number.
//! Not here: sums of groups (aggregates/), loops of the operator's own (expr/arithmetic.rs).

pub(in crate::functions) mod modulo;
pub(in crate::functions) mod whole_quotient;
pub(in crate::functions) mod domains;
pub(in crate::functions) mod signed;
pub(in crate::functions) mod rounding;
pub(in crate::functions) mod many_places;
pub(in crate::functions) mod whole_numbers;
pub(in crate::functions) mod decimal_quotient;
pub(in crate::functions) mod bits;
