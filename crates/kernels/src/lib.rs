//! Kernels of grouse: loops over plain slices that the group-by runs once per row.
//!
//! In: slices. Out: slices.
//! Invariant: every kernel that computes has a twin in `naive` that is its specification.
//! Not here: Arrow types, allocation policy.

// From the ground up: a module names only those above it in this list.
pub mod hash;
pub mod scatter;
pub mod prefetch;
pub mod narrow;
pub mod divide;
pub mod multiples;
pub mod byte_pack;
mod booleans;
pub mod lookup;
pub mod places;
pub mod select;
mod view;
pub mod compare;
pub mod chain;
pub mod characters;
pub mod word;
pub mod like;
pub mod naive;
