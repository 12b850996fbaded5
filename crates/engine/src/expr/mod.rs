//! Expressions that we evaluate ourselves: arithmetic in 64 bits, values computed once per distinct value, codes.
//!
//! In: DataFusion's physical expressions. Out: expressions of ours with the same values, types and NULLs.
//! Invariant: what is not known to be the same is DataFusion's.
//! Not here: which expressions of a plan become ours (optimizer/), functions by name (functions/), loops over values (kernels).

pub(crate) mod units;
pub(crate) mod function_methods;
pub(crate) mod plan_nodes;
pub(crate) mod columns;
pub(crate) mod plan_expressions;
pub(crate) mod specialised;
pub(crate) mod truncated_times;
pub(crate) mod decimal64;
pub(crate) mod distinct_values;
pub(crate) mod arithmetic;
