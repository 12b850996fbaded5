//! Fixes of types: what operands, columns and literals are brought to before anything is computed or compared.
//!
//! In: expressions and plans, before and after DataFusion's type coercion. Out: the same, with casts that lose nothing.
//! Invariant: no digit, no time and no NULL is lost that the query does not cast away itself.
//! Not here: how a cast of ours is computed (functions/casts).

pub(in crate::optimizer) mod long_literals;
pub(in crate::optimizer) mod unsigned_literals;
pub(in crate::optimizer) mod signed_counts;
pub(in crate::optimizer) mod outer_types;
pub(in crate::optimizer) mod own_casts;
pub(in crate::optimizer) mod compared;
pub(in crate::optimizer) mod decimals;
pub(in crate::optimizer) mod beside_integers;
pub(in crate::optimizer) mod decimal_columns;
pub(in crate::optimizer) mod decimal_quotients;
pub(in crate::optimizer) mod day_spans;
pub(in crate::optimizer) mod rounded;
pub(in crate::optimizer) mod compared_casts;
pub(in crate::optimizer) mod timestamps;
pub(in crate::optimizer) mod mixed_types;
pub(in crate::optimizer) mod narrow_dictionaries;
mod nested_literals;
pub(in crate::optimizer) mod joined_codes;
pub(in crate::optimizer) mod settled_types;
