//! Kernels of grouse: loops over plain slices that the group-by runs once per row.
//!
//! In: slices. Out: slices.
//! Invariant: every kernel that computes has a twin in `naive` that is its specification.
//! Not here: Arrow types, allocation policy.

pub mod hash;
pub mod scatter;
pub mod prefetch;
pub mod narrow;
pub mod divide;
pub mod multiples;
pub mod byte_pack;
mod truths;
pub mod compare;
pub mod lookup;
pub mod places;
pub mod select;
pub mod chain;
mod view;
pub mod characters;
pub mod word;
pub mod naive;
