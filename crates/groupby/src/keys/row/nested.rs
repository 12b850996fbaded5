//! Columns that only Arrow's row format knows: nested types, 256-bit decimals.
//!
//! In: a column. Out: one byte string per value, NULL included, and the way back.
//! Invariant: every float and interval inside is canonical: Arrow's row format tells NaN from NaN, -0.0 from 0.0 and 30 days
//! from a month.
//! Not here: where the byte strings lie in a row (`row`).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, MutableArrayData,
    make_array,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalDayTime, IntervalMonthDayNano, IntervalUnit,
};
use arrow::row::{RowConverter, Rows};

use super::super::ByteKeys;
use super::super::bytes;
use super::super::packed::{canonical_f16, canonical_f32, canonical_f64};
use super::super::views::with_bytes;
use crate::error::Result;

/// The values as byte strings.
pub(super) fn encode(converter: &RowConverter, column: &ArrayRef) -> Result<ByteKeys> {
    let column = canonical_values(column)?;
    let mut rows: Rows = converter.empty_rows(column.len(), 0);
    converter.append(&mut rows, std::slice::from_ref(&column))?;
    let binary = rows.try_into_binary()?;
    bytes::encode(&(Arc::new(binary) as ArrayRef))
}

/// Whether values of a type are floats or have floats in them.
pub fn has_floats(data_type: &DataType) -> bool {
    has(data_type, DataType::is_floating)
}

/// Whether equal values of a type may differ in their bits: floats, intervals, and what has them inside.
pub fn has_forms(data_type: &DataType) -> bool {
    has(data_type, |data_type| {
        data_type.is_floating() || has_interval_forms(data_type)
    })
}

/// Whether equal values of a type are intervals with different units.
pub fn has_interval_forms(data_type: &DataType) -> bool {
    use IntervalUnit::{DayTime, MonthDayNano};
    matches!(data_type, DataType::Interval(MonthDayNano | DayTime))
}

/// Whether a type, or one inside of it, is of a kind.
fn has(data_type: &DataType, is_one: fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has(field.data_type(), is_one)),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => has(field.data_type(), is_one),
        DataType::Union(fields, _) => fields
            .iter()
            .any(|(_, field)| has(field.data_type(), is_one)),
        DataType::Dictionary(_, values) => has(values, is_one),
        other => is_one(other),
    }
}

/// The same values, every float and interval in them canonical.
pub fn canonical_values(column: &ArrayRef) -> Result<ArrayRef> {
    if is_canonical(column) {
        return Ok(Arc::clone(column));
    }
    let mut data = column.to_data();
    if !data.child_data().is_empty() {
        // Only what the rows of a slice have: its children may be those of a whole table.
        let mut rows = MutableArrayData::new(vec![&data], false, data.len());
        rows.try_extend(0, 0, data.len())?;
        data = rows.freeze();
    }
    Ok(make_array(canonical_data(data)?))
}

/// Whether a column is known to be canonical. A look at floats costs less than a copy, which hardly any of them needs.
fn is_canonical(column: &ArrayRef) -> bool {
    macro_rules! all {
        ($of:ty, $canonical:ident) => {{
            let values = column.as_primitive::<$of>().values().chunks(1024);
            values.into_iter().all(|values| {
                let change = |value: &<$of as ArrowPrimitiveType>::Native| {
                    value.to_bits() ^ $canonical(*value)
                };
                values.iter().fold(0, |all, value| all | change(value)) == 0
            })
        }};
    }
    match column.data_type() {
        DataType::Float32 => all!(Float32Type, canonical_f32),
        DataType::Float64 => all!(Float64Type, canonical_f64),
        other => !has_forms(other),
    }
}

fn canonical_data(data: ArrayData) -> Result<ArrayData> {
    let children = data.child_data().iter().cloned().map(canonical_data);
    let children = children.collect::<Result<Vec<_>>>()?;
    macro_rules! map {
        ($native:ty, $canonical:expr) => {{
            // Only the rows of a slice: its buffer may be that of a whole table.
            let values = &data.buffers()[0].typed_data::<$native>()[data.offset()..][..data.len()];
            let values = values.iter().map(|&value| $canonical(value)).collect();
            let nulls = data.nulls().cloned();
            ArrayData::builder(data.data_type().clone())
                .len(data.len())
                .nulls(nulls)
                .buffers(vec![values])
        }};
    }
    let builder = match data.data_type() {
        DataType::Float16 => map!(u16, canonical_f16),
        DataType::Float32 => map!(f32, canonical_f32),
        DataType::Float64 => map!(f64, canonical_f64),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            map!(IntervalMonthDayNano, canonical_interval)
        }
        DataType::Interval(IntervalUnit::DayTime) => map!(IntervalDayTime, canonical_day_time),
        _ => data.into_builder(),
    };
    Ok(builder.child_data(children).build()?)
}

const DAY_NS: i128 = 86_400_000_000_000;
const DAYS_OF_MONTH: i128 = 30;
const DAY_MS: i64 = 86_400_000;

/// The interval of the same length with as many months as it has, then days: a month has 30 days, a day 24 hours. Such
/// intervals order by their parts as they do by their length.
fn canonical_interval(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let days = i128::from(interval.months) * DAYS_OF_MONTH + i128::from(interval.days);
    let length_ns = days * DAY_NS + i128::from(interval.nanoseconds);
    let months = as_i32(length_ns.div_euclid(DAYS_OF_MONTH * DAY_NS));
    let rest_ns = length_ns - i128::from(months) * DAYS_OF_MONTH * DAY_NS;
    let days = as_i32(rest_ns.div_euclid(DAY_NS));
    let rest_ns = rest_ns - i128::from(days) * DAY_NS;
    // What days and months of 32 bits leave is never more than the interval had.
    IntervalMonthDayNano::new(months, days, rest_ns as i64)
}

/// See `canonical_interval`.
fn canonical_day_time(interval: IntervalDayTime) -> IntervalDayTime {
    let length_ms = i64::from(interval.days) * DAY_MS + i64::from(interval.milliseconds);
    let days = as_i32(length_ms.div_euclid(DAY_MS).into());
    let rest_ms = length_ms - i64::from(days) * DAY_MS;
    IntervalDayTime::new(days, rest_ms as i32)
}

fn as_i32(value: i128) -> i32 {
    value.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The byte strings as a column.
pub(super) fn decode(
    converter: &RowConverter,
    views: &[u128],
    buffers: &[Buffer],
) -> Result<ArrayRef> {
    let mut values: Vec<u8> = Vec::new();
    let mut lengths = Vec::with_capacity(views.len());
    for &view in views {
        with_bytes(view, buffers, |bytes| values.extend_from_slice(bytes));
        lengths.push(view as u32 as usize);
    }
    let rows = BinaryArray::new(
        OffsetBuffer::from_lengths(lengths),
        Buffer::from_vec(values),
        None,
    );
    let rows = converter.from_binary(rows);
    Ok(converter.convert_rows(&rows)?.remove(0))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, IntervalMonthDayNanoArray};

    use super::*;

    #[test]
    fn intervals_of_one_length_have_one_form() {
        let hours = |hours: i64| hours * 3_600_000_000_000;
        let canonical =
            |months, days, ns| canonical_interval(IntervalMonthDayNano::new(months, days, ns));
        assert_eq!(canonical(0, 30, 0), canonical(1, 0, 0));
        assert_eq!(canonical(0, 0, hours(720)), canonical(1, 0, 0));
        assert_eq!(canonical(1, -30, 0), canonical(0, 0, 0));
        assert_eq!(canonical(0, 1, -hours(1)), canonical(0, 0, hours(23)));
        assert!(canonical(-1, 0, 0) < canonical(0, -29, 0));
        let ends = [
            (i32::MIN, i32::MIN, i64::MIN),
            (i32::MAX, i32::MAX, i64::MAX),
        ];
        for (months, days, ns) in ends {
            let interval = IntervalMonthDayNano::new(months, days, ns);
            assert_eq!(canonical_interval(interval), interval);
        }
    }

    #[test]
    fn slices_and_nulls_stay() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(1.0),
            None,
            Some(-0.0),
            Some(-f64::NAN),
        ]));
        let canonical = canonical_values(&floats.slice(1, 3)).unwrap();
        let canonical = canonical.as_primitive::<Float64Type>();
        assert!(canonical.is_null(0));
        assert_eq!(canonical.value(1).to_bits(), 0);
        assert_eq!(canonical.value(2).to_bits(), f64::NAN.to_bits());
        let days = vec![None, Some(IntervalMonthDayNano::new(0, 60, 0))];
        let days: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(days));
        let canonical = canonical_values(&days).unwrap();
        let expected = vec![None, Some(IntervalMonthDayNano::new(2, 0, 0))];
        let expected: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(expected));
        assert_eq!(&canonical, &expected);
    }
}
