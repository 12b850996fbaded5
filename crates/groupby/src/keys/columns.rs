//! Key columns as Arrow has them: which types there are, and a column's values in the type that they are encoded from.
//!
//! In: columns and types. Out: the same without dictionaries, in another type, the NULLs of decoded keys.
//! Not here: encodings.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use grouse_kernels::hash;

use crate::batch::dense;
use crate::error::Result;

/// The type of a column's values where these do not lie in the rows: a dictionary's or those of runs.
pub fn decoded(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => decoded(values),
        DataType::RunEndEncoded(_, values) => decoded(values.data_type()),
        other => other,
    }
}

/// The type of views of such strings; another type as it is.
pub fn as_views(data_type: &DataType) -> DataType {
    match data_type {
        of if of.is_string() => DataType::Utf8View,
        of if of.is_binary() => DataType::BinaryView,
        other => other.clone(),
    }
}

/// True for the types whose keys are byte strings.
pub fn is_bytes(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(
        data_type,
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_)
    )
}

/// True if a column's values are integers of up to 64 bits, as `as_integers` has them.
pub(crate) fn is_integer(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Time32, Time64, Timestamp};
    data_type.is_integer()
        || matches!(
            data_type,
            Boolean
                | Date32
                | Date64
                | Time32(_)
                | Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond)
                | Timestamp(..)
        )
}

/// Bytes of a fixed-width key column (booleans take one), `None` for other types.
pub(crate) fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(1),
        DataType::Decimal256(..) => None,
        DataType::Interval(IntervalUnit::MonthDayNano) => Some(16),
        other => other.primitive_width().filter(|width| *width <= 16),
    }
}

/// True if both are one dictionary in memory; DataFusion's filters give it a new array now and then.
pub(crate) fn same_dictionary(left: &ArrayRef, right: &ArrayRef) -> bool {
    let is_like = || left.len() == right.len() && left.to_data().ptr_eq(&right.to_data());
    Arc::ptr_eq(left, right) || is_like()
}

/// The values of a column of codes, row by row; other columns in that type. A cast of codes of strings to views takes a value
/// that is NULL for an empty one.
pub(crate) fn unpacked(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    match column.as_any_dictionary_opt() {
        Some(coded) => {
            let values = strict_cast(coded.values(), data_type)?;
            Ok(take(&values, coded.keys(), None)?)
        }
        None => strict_cast(column, data_type),
    }
}

/// The strings of a column of codes, row by row, without those of other rows that would be held by as few of them as a batch has.
pub fn strings_of(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    unpacked(column, data_type).map(dense)
}

/// The column in another type; values that it does not have are an error, not NULL.
pub(crate) fn strict_cast(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(column, data_type, &strict)?)
}

/// Which of the single-column keys are the NULL key; `None` if there is none.
pub(super) fn nulls_of(is_zero: impl Fn(usize) -> bool, hashes: &[u64]) -> Option<NullBuffer> {
    let is_null = |row: usize| hashes[row] == hash::NULL_HASH && is_zero(row);
    if !(0..hashes.len()).any(is_null) {
        return None;
    }
    Some(NullBuffer::from_iter(
        (0..hashes.len()).map(|row| !is_null(row)),
    ))
}

/// An array reference, for the decoders.
pub(super) fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}
