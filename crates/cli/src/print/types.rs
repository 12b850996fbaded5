//! How values of a type stand in a column: on which side, and whether they may be cut off.
//! Invariant: a dictionary is its values.

use arrow::datatypes::DataType;

/// Whether values of this type stand at the right of their column.
pub fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        DataType::RunEndEncoded(_, values) => is_number(values.data_type()),
        other => other.is_numeric(),
    }
}

/// Whether values of this type may be cut off: part of a number or a date would be a wrong one.
pub fn may_be_cut(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => may_be_cut(values),
        DataType::RunEndEncoded(_, values) => may_be_cut(values.data_type()),
        other => !(other.is_numeric() || other.is_temporal() || *other == DataType::Boolean),
    }
}
