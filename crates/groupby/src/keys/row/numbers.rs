//! Numbers of any type as unsigned ones that are small where the value is simple.
//!
//! In: values of a column of fixed width. Out: one unsigned integer per value, and the way back.
//! Invariant: a bijection per type, up to NaN and -0.0: signed values alternate around zero, floats
//! have their bytes reversed, so that trailing zeros of the mantissa lead.
//! Not here: NULLs; how a row stores them (`row`).

use arrow::array::{ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;

use super::super::columns::{array, fixed_width};
use super::super::packed::{canonical_f16, canonical_f32, canonical_f64};
use crate::error::Result;

/// Bytes of a number without its leading zero bytes.
#[inline(always)]
pub(super) fn bytes(value: u64) -> u64 {
    u64::from(71 - value.leading_zeros()) >> 3
}

/// 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
#[inline(always)]
fn folded(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline(always)]
fn unfolded(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The values from row `start` on; whatever lies under NULLs as well.
pub(super) fn load(data: &ArrayData, start: usize, out: &mut [u64]) {
    use DataType::{Boolean, Float16, Float32, Float64, UInt8, UInt16, UInt32, UInt64};
    macro_rules! load {
        ($native:ty, $number:expr) => {{
            let values = &data.buffers()[0].typed_data::<$native>()[data.offset() + start..];
            for (out, &value) in out.iter_mut().zip(values) {
                *out = $number(value);
            }
        }};
    }
    match data.data_type() {
        Boolean => {
            let (first, rows) = (data.offset() + start, out.len());
            let values = BooleanBuffer::new(data.buffers()[0].clone(), first, rows);
            for (out, value) in out.iter_mut().zip(values.iter()) {
                *out = u64::from(value);
            }
        }
        Float16 => load!(u16, |v: u16| u64::from(canonical_f16(v).swap_bytes())),
        Float32 => load!(f32, |v: f32| u64::from(canonical_f32(v).swap_bytes())),
        Float64 => load!(f64, |v: f64| canonical_f64(v).swap_bytes()),
        UInt8 => load!(u8, u64::from),
        UInt16 => load!(u16, u64::from),
        UInt32 => load!(u32, u64::from),
        UInt64 => load!(u64, |v: u64| v),
        other => match fixed_width(other) {
            Some(1) => load!(i8, |v: i8| folded(v.into())),
            Some(2) => load!(i16, |v: i16| folded(v.into())),
            Some(4) => load!(i32, |v: i32| folded(v.into())),
            _ => load!(i64, folded),
        },
    }
}

/// The same for values of 16 bytes.
pub(super) fn load_wide(data: &ArrayData, start: usize, out: &mut [u128]) {
    let values = &data.buffers()[0].typed_data::<i128>()[data.offset() + start..];
    for (out, &value) in out.iter_mut().zip(values) {
        *out = (value << 1 ^ value >> 127) as u128;
    }
}

/// Numbers that were loaded, as a column again.
pub(super) fn column(
    values: &[u64],
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    use DataType::{Boolean, Float16, Float32, Float64, UInt8, UInt16, UInt32, UInt64};
    macro_rules! buffer {
        ($number:expr) => {
            Buffer::from_iter(values.iter().map(|&value| $number(value)))
        };
    }
    let buffer = match data_type {
        Boolean => {
            let values = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
            return Ok(array(BooleanArray::new(values, nulls)));
        }
        Float16 => buffer!(|v: u64| (v as u16).swap_bytes()),
        Float32 => buffer!(|v: u64| (v as u32).swap_bytes()),
        Float64 => buffer!(u64::swap_bytes),
        UInt8 => buffer!(|v: u64| v as u8),
        UInt16 => buffer!(|v: u64| v as u16),
        UInt32 => buffer!(|v: u64| v as u32),
        UInt64 => Buffer::from_slice_ref(values),
        other => match fixed_width(other) {
            Some(1) => buffer!(|v: u64| unfolded(v) as i8),
            Some(2) => buffer!(|v: u64| unfolded(v) as i16),
            Some(4) => buffer!(|v: u64| unfolded(v) as i32),
            _ => buffer!(unfolded),
        },
    };
    of_buffer(buffer, values.len(), nulls, data_type)
}

/// The same for values of 16 bytes.
pub(super) fn wide_column(
    values: &[u128],
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let unfolded = |value: u128| (value >> 1) as i128 ^ -((value & 1) as i128);
    let buffer = Buffer::from_iter(values.iter().map(|&value| unfolded(value)));
    of_buffer(buffer, values.len(), nulls, data_type)
}

fn of_buffer(
    buffer: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .add_buffer(buffer)
        .nulls(nulls);
    Ok(make_array(data.build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_goes_both_ways_and_keeps_small_numbers_short() {
        for (value, length) in [
            (0, 0),
            (-1, 1),
            (127, 1),
            (-128, 1),
            (128, 2),
            (i64::MAX, 8),
            (i64::MIN, 8),
        ] {
            assert_eq!(unfolded(folded(value)), value);
            assert_eq!(bytes(folded(value)), length, "{value}");
        }
    }
}
