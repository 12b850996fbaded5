//! Casts that SQL means in another way than DataFusion, and the text of values.
//!
//! In: columns of strings, times, bytes, nested values. Out: columns of another type; strings as the shell writes them.
//! Invariant: a value that the type does not hold is an error, and NULL in TRY_CAST.
//! Not here: which casts of a plan these replace (optimizer/fixes/types/own_casts.rs).

mod own_cast;
pub(in crate::functions) mod at_time_zone;
pub(in crate::functions) mod coarser_times;
pub(in crate::functions) mod uuid_text;
pub(in crate::functions) mod intervals;
pub(in crate::functions) mod map_keys;
pub(in crate::functions) mod unsigned_huge;
pub(in crate::functions) mod text_casts;
pub(in crate::functions) mod written_times;
pub(in crate::functions) mod zones;
pub(in crate::functions) mod value_text;
pub(in crate::functions) mod bytes_text;
pub(in crate::functions) mod far_dates;
pub(in crate::functions) mod numbered_days;
pub(in crate::functions) mod nested_casts;
pub(in crate::functions) mod decimal_doubles;
pub(in crate::functions) mod near_doubles;
pub(in crate::functions) mod spans;

use datafusion::logical_expr::ScalarUDF;

use crate::wire::{FunctionKind, scalar};

/// Casts that travel.
pub(in crate::functions) fn kinds() -> Vec<FunctionKind<ScalarUDF>> {
    vec![
        scalar::<bytes_text::TextOfBytes>(),
        scalar::<coarser_times::NearestTimes>(),
        scalar::<far_dates::Midnight>(),
        scalar::<near_doubles::CheckedDouble>(),
        scalar::<own_cast::CastFunction<decimal_doubles::NearestDouble>>(),
        scalar::<own_cast::CastFunction<nested_casts::NestedCast>>(),
        scalar::<own_cast::CastFunction<numbered_days::DateOfNumber>>(),
        scalar::<own_cast::CastFunction<spans::IntervalOfSpan>>(),
        scalar::<own_cast::CastFunction<text_casts::TextCast>>(),
        scalar::<own_cast::CastFunction<value_text::TextOfValue>>(),
        scalar::<zones::Zoned>(),
    ]
}
