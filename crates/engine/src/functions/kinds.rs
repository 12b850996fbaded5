//! Functions that rules make, and how they travel.
//!
//! In: functions of this room that no statement names, or that are more than their names. Out: the tables of their kinds.
//! Invariant: a function that stands here is known by its type and values; one that is registered is known by its name alone.
//! Not here: functions of the optimizer (optimizer/kinds.rs).

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use super::aggregates::distinct_rows::DistinctRows;
use super::aggregates::exclusions;
use super::aggregates::frequent::Frequent;
use super::aggregates::quantiles::Quantiles;
use super::aggregates::recomputed::Recomputed;
use super::aggregates::top_rows::TopRows;
use super::aggregates::totals_in_order::TotalInOrder;
use super::arithmetic::bits::OnBits;
use super::arithmetic::decimal_quotient::DecimalQuotient;
use super::arithmetic::rounding::HalfToEven;
use super::between::Between;
use super::calendar::{Epoch, WithinMinute};
use super::casts;
use super::equal_values;
use super::sql_formats::{CheckedFormat, EachRow, InZone, ReadableFormat};
use super::sql_patterns::PatternFunction;
use super::tried::Tried;
use crate::wire::{FunctionKind, aggregate, scalar};

/// Scalar functions.
pub(crate) fn scalars() -> Vec<FunctionKind<ScalarUDF>> {
    let mut kinds = vec![
        scalar::<Between>(),
        scalar::<CheckedFormat>(),
        scalar::<EachRow>(),
        scalar::<Epoch>(),
        scalar::<HalfToEven>(),
        scalar::<InZone>(),
        scalar::<OnBits>(),
        scalar::<PatternFunction>(),
        scalar::<DecimalQuotient>(),
        scalar::<ReadableFormat>(),
        scalar::<TotalInOrder>(),
        scalar::<Tried>(),
        scalar::<WithinMinute>(),
    ];
    kinds.extend(casts::kinds());
    kinds.extend(equal_values::kinds());
    kinds
}

/// Aggregates.
pub(crate) fn aggregates() -> Vec<FunctionKind<AggregateUDF>> {
    vec![
        aggregate::<DistinctRows>(),
        aggregate::<Frequent>(),
        aggregate::<Quantiles>(),
        aggregate::<Recomputed>(),
        aggregate::<TopRows>(),
    ]
}

/// Window functions.
pub(crate) fn windows() -> Vec<FunctionKind<WindowUDF>> {
    exclusions::kinds()
}
