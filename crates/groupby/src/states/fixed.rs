//! Fixed-width columns as native values, whatever they mean: states are compiled once per width
//! and not once per Arrow type (a third of the code).
//!
//! In: a column. Out: its values. And back.
//! Invariant: booleans are held as 0 and 1 in bytes, all others as Arrow holds them.
//! Not here: NULLs, which stay with `rows` and `validity`.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute;
use arrow::datatypes::{ArrowNativeType, DataType};

use crate::error::Result;

/// The values of a column whose type has the width of `N`.
pub(super) fn values_of<N: ArrowNativeType>(column: &ArrayRef) -> Result<ScalarBuffer<N>> {
    let column = match column.data_type() {
        DataType::Boolean => compute::cast(column, &DataType::UInt8)?,
        _ => ArrayRef::clone(column),
    };
    let width = column.data_type().primitive_width();
    assert_eq!(
        width,
        Some(size_of::<N>()),
        "{} in a column of another width",
        column.data_type()
    );
    let data = column.to_data();
    Ok(ScalarBuffer::new(
        data.buffers()[0].clone(),
        data.offset(),
        data.len(),
    ))
}

/// Values as a column of `data_type`, which has the width of `N`.
pub(super) fn column_of<N: ArrowNativeType>(
    values: impl Into<ScalarBuffer<N>>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let values: ScalarBuffer<N> = values.into();
    let held = match data_type {
        DataType::Boolean => &DataType::UInt8,
        _ => data_type,
    };
    let data = ArrayData::builder(held.clone())
        .len(values.len())
        .nulls(nulls)
        .add_buffer(values.into_inner())
        .build()?;
    let column = make_array(data);
    match data_type {
        DataType::Boolean => Ok(compute::cast(&column, data_type)?),
        _ => Ok(column),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, Decimal128Array, TimestampSecondArray};

    use super::*;

    fn there_and_back<N: ArrowNativeType>(column: ArrayRef) {
        let column = column.slice(1, 2);
        let values = values_of::<N>(&column).unwrap();
        let back = column_of(values, column.nulls().cloned(), column.data_type()).unwrap();
        assert_eq!(&back, &column);
    }

    #[test]
    fn slices_of_any_type_come_back() {
        there_and_back::<u8>(Arc::new(BooleanArray::from(vec![
            Some(true),
            None,
            Some(true),
        ])));
        let times = TimestampSecondArray::from(vec![None, Some(7), None]).with_timezone("+02:00");
        there_and_back::<i64>(Arc::new(times));
        let decimals = Decimal128Array::from(vec![Some(1), Some(-2), None]);
        there_and_back::<i128>(Arc::new(decimals.with_precision_and_scale(20, 3).unwrap()));
    }
}
