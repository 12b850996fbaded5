//! Functions that fixes put into plans, and how they travel.
//!
//! In: functions of this room. Out: the table of their kinds.
//! Invariant: what a fix makes of a plan, another machine makes of its rows.
//! Not here: what each of them has (beside its type).

use datafusion::logical_expr::ScalarUDF;

use super::in_lists::PartOfList;
use super::null_structs::FieldOf;
use super::orders::bounded_keys::Bounded;
use super::types::compared_casts::KeptCast;
use super::types::long_literals::LongLiteral;
use super::types::rounded::FixedRound;
use super::unnested::one_row::OneRow;
use crate::wire::{FunctionKind, scalar};

/// Scalar functions.
pub(in crate::optimizer) fn kinds() -> Vec<FunctionKind<ScalarUDF>> {
    vec![
        scalar::<PartOfList>(),
        scalar::<FieldOf>(),
        scalar::<Bounded>(),
        scalar::<KeptCast>(),
        scalar::<LongLiteral>(),
        scalar::<FixedRound>(),
        scalar::<OneRow>(),
    ]
}
