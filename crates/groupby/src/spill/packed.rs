//! Columns of fixed width in a page: the bytes in which their values differ, and which of them are NULL.
//!
//! ```text
//! are there NULLs (1 byte) | if so a bit per value
//! | of each word of a value: the bits that all have (8) | lowest byte kept (1) | bytes kept (1) | these, value by value
//! ```
//!
//! In: parts of columns. Out: bytes; the columns, in one part.
//! Invariant: what comes out is what went in, also under NULL; the bytes of a page end with spare ones.
//! Not here: which columns a page has (`page`), the packing itself (kernels).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, i256};
use grouse_kernels::byte_pack::{BytePacking, SPARE_BYTES, differing};

use crate::error::{Error, Result};

/// Ends a page.
pub(super) fn finish(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; SPARE_BYTES]);
}

/// True of columns that are packed.
pub(super) fn is_fixed(data_type: &DataType) -> bool {
    let widths = [1, 2, 4, 8, 16, 32];
    *data_type == DataType::Boolean
        || data_type
            .primitive_width()
            .is_some_and(|width| widths.contains(&width))
}

/// Appends values of several words each.
pub(super) fn write_words<'a, T, const N: usize>(
    parts: impl Iterator<Item = &'a [[T; N]]> + Clone,
    out: &mut Vec<u8>,
) where
    T: Copy + Into<u64> + 'a,
{
    let mut firsts = parts.clone().filter_map(<[_]>::first);
    let Some(first) = firsts.next().map(|value| value.map(Into::into)) else {
        return;
    };
    let mut bits = [0; N];
    for values in parts.clone() {
        differing(values, &first, &mut bits);
    }
    for at in 0..N {
        let packing = BytePacking::new(first[at], bits[at]);
        let (alike, lowest, width) = packing.parts();
        out.extend_from_slice(&alike.to_le_bytes());
        out.extend_from_slice(&[lowest, width]);
        for values in parts.clone() {
            packing.pack(
                values.iter().map(|value| value[at].into()),
                values.len(),
                out,
            );
        }
    }
}

/// Appends bits; of a part without any, all are ones.
pub(super) fn write_bits<'a>(
    parts: impl Iterator<Item = (Option<&'a BooleanBuffer>, usize)>,
    out: &mut Vec<u8>,
) {
    let mut bits = BooleanBufferBuilder::new(0);
    for (part, rows) in parts {
        match part {
            Some(part) => bits.append_buffer(part),
            None => bits.append_n(rows, true),
        }
    }
    out.extend_from_slice(bits.as_slice());
}

/// Appends a column for which `is_fixed`.
pub(super) fn write_column(parts: &[ArrayRef], out: &mut Vec<u8>) {
    let has_nulls = parts.iter().any(|part| part.null_count() > 0);
    out.push(u8::from(has_nulls));
    if has_nulls {
        let nulls = parts.iter().map(|part| {
            let valid = part.nulls().map(NullBuffer::inner);
            (valid, part.len())
        });
        write_bits(nulls, out);
    }
    if *parts[0].data_type() == DataType::Boolean {
        let values = parts.iter().map(|part| part.as_boolean());
        return write_bits(values.map(|part| (Some(part.values()), part.len())), out);
    }
    let data: Vec<ArrayData> = parts.iter().map(|part| part.to_data()).collect();
    match parts[0].data_type().primitive_width() {
        Some(1) => write_words(data.iter().map(values::<u8, 1>), out),
        Some(2) => write_words(data.iter().map(values::<u16, 1>), out),
        Some(4) => write_words(data.iter().map(values::<u32, 1>), out),
        Some(8) => write_words(data.iter().map(values::<u64, 1>), out),
        Some(16) => write_words(data.iter().map(values::<u64, 2>), out),
        Some(32) => write_words(data.iter().map(values::<u64, 4>), out),
        _ => unreachable!("widths of fixed columns"),
    }
}

fn values<T: ArrowNativeType, const N: usize>(data: &ArrayData) -> &[[T; N]] {
    let words = data.buffers()[0].typed_data::<T>();
    &words.as_chunks::<N>().0[data.offset()..][..data.len()]
}

/// The bytes of a page that are not read yet.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From there on.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// True where nothing but what `finish` appends is left.
    pub(super) fn is_done(&self) -> bool {
        self.bytes.len() == SPARE_BYTES
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.bytes.split_at_checked(count).ok_or_else(malformed)?;
        self.bytes = rest;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// A number that was written as its bytes.
    pub(super) fn number(&mut self) -> Result<u64> {
        let bytes = self.bytes(8)?.try_into();
        Ok(u64::from_le_bytes(bytes.expect("eight bytes")))
    }

    /// What `write_words` made of so many values.
    pub(super) fn words<T: ArrowNativeType, const N: usize>(
        &mut self,
        rows: usize,
    ) -> Result<Vec<[T; N]>> {
        let mut values = vec![[T::default(); N]; rows];
        if rows == 0 {
            return Ok(values);
        }
        for at in 0..N {
            let (alike, lowest, width) = (self.number()?, self.byte()?, self.byte()?);
            let packing = BytePacking::from_parts(alike, lowest, width).ok_or_else(malformed)?;
            let packed = self.bytes;
            self.bytes(rows * packing.width() + SPARE_BYTES)?;
            let words = packing.unpack(packed, rows);
            for (value, word) in values.iter_mut().zip(words) {
                value[at] = T::usize_as(word as usize);
            }
            self.bytes = &packed[rows * packing.width()..];
        }
        Ok(values)
    }

    /// What `write_bits` made of so many.
    pub(super) fn bits(&mut self, rows: usize) -> Result<BooleanBuffer> {
        let bytes = self.bytes(rows.div_ceil(8))?;
        Ok(BooleanBuffer::new(Buffer::from(bytes), 0, rows))
    }

    /// What `write_column` made of so many values.
    pub(super) fn column(&mut self, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
        let nulls = match self.byte()? {
            0 => None,
            _ => Some(NullBuffer::new(self.bits(rows)?)),
        };
        if *data_type == DataType::Boolean {
            return Ok(Arc::new(BooleanArray::new(self.bits(rows)?, nulls)));
        }
        let values = match data_type.primitive_width() {
            Some(1) => Buffer::from_vec(self.words::<u8, 1>(rows)?.into_flattened()),
            Some(2) => Buffer::from_vec(self.words::<u16, 1>(rows)?.into_flattened()),
            Some(4) => Buffer::from_vec(self.words::<u32, 1>(rows)?.into_flattened()),
            Some(8) => Buffer::from_vec(self.words::<u64, 1>(rows)?.into_flattened()),
            Some(16) => {
                Buffer::from_vec(self.words(rows)?.into_iter().map(wide).collect::<Vec<_>>())
            }
            Some(32) => {
                let values = self.words::<u64, 4>(rows)?.into_iter();
                let value =
                    |[a, b, c, d]: [u64; 4]| i256::from_parts(wide([a, b]) as u128, wide([c, d]));
                Buffer::from_vec(values.map(value).collect::<Vec<_>>())
            }
            _ => unreachable!("widths of fixed columns"),
        };
        let data = ArrayData::builder(data_type.clone()).len(rows);
        Ok(make_array(data.add_buffer(values).nulls(nulls).build()?))
    }
}

fn wide([low, high]: [u64; 2]) -> i128 {
    (u128::from(high) << 64 | u128::from(low)) as i128
}

fn malformed() -> Error {
    Error::Malformed("records on disk")
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date32Array, Decimal128Array, Decimal256Array, Float32Array, Float64Array, Int8Array,
        Int16Array, Int64Array, IntervalMonthDayNanoArray,
    };
    use arrow::datatypes::IntervalMonthDayNano;
    use proptest::prelude::*;

    use super::*;

    /// One column per width and kind, of values of any size.
    fn columns(values: &[Option<i64>]) -> Vec<ArrayRef> {
        let of = || values.iter().copied();
        let wide = |value: i64| i128::from(value) << (value & 63);
        let days = |value: i64| IntervalMonthDayNano::new(value as i32, -3, value);
        vec![
            Arc::new(BooleanArray::from_iter(of().map(|v| v.map(|v| v > 0)))),
            Arc::new(Int8Array::from_iter(of().map(|v| v.map(|v| v as i8)))),
            Arc::new(Int16Array::from_iter(of().map(|v| v.map(|v| v as i16)))),
            Arc::new(Date32Array::from_iter(of().map(|v| v.map(|v| v as i32)))),
            Arc::new(Float32Array::from_iter(of().map(|v| v.map(|v| v as f32)))),
            Arc::new(Int64Array::from_iter(of())),
            Arc::new(Float64Array::from_iter(of().map(|v| v.map(|v| v as f64)))),
            Arc::new(Decimal128Array::from_iter(of().map(|v| v.map(wide)))),
            Arc::new(IntervalMonthDayNanoArray::from_iter(
                of().map(|v| v.map(days)),
            )),
            Arc::new(Decimal256Array::from_iter(
                of().map(|v| v.map(|v| i256::from_parts(7, wide(v)))),
            )),
        ]
    }

    proptest! {
        #[test]
        fn columns_come_out_as_they_went_in(
            values in proptest::collection::vec(proptest::option::weighted(0.8, any::<i64>()), 1..60),
            bits in 0u32..64,
            is_whole in any::<bool>(),
            cuts in (0usize..60, 0usize..60),
        ) {
            let filled = |value: &Option<i64>| if is_whole { value.or(Some(1)) } else { *value };
            let values: Vec<Option<i64>> =
                values.iter().map(|v| filled(v).map(|v| v >> bits)).collect();
            let rows = values.len();
            let (a, b) = (cuts.0.min(cuts.1).min(rows), cuts.0.max(cuts.1).min(rows));
            let columns = columns(&values);
            let mut page = vec![1, 2, 3];
            for column in &columns {
                prop_assert!(is_fixed(column.data_type()));
                write_column(&[column.slice(a, b - a), column.slice(b, rows - b)], &mut page);
            }
            finish(&mut page);
            let mut reader = Reader::new(&page[3..]);
            for column in &columns {
                let found = reader.column(column.data_type(), rows - a).expect("as written");
                prop_assert_eq!(&found, &column.slice(a, rows - a));
            }
            prop_assert!(reader.is_done());
        }
    }

    #[test]
    fn what_ends_too_early_is_an_error() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 1000]));
        let mut page = Vec::new();
        write_column(&[Arc::clone(&column)], &mut page);
        finish(&mut page);
        for end in 0..page.len() {
            let read = Reader::new(&page[..end]).column(column.data_type(), 3);
            assert!(matches!(read, Err(Error::Malformed(_))), "{end}");
        }
        assert_eq!(
            &Reader::new(&page)
                .column(column.data_type(), 3)
                .expect("whole"),
            &column
        );
    }

    #[test]
    fn other_columns_are_left_to_the_stream() {
        for data_type in [
            DataType::Null,
            DataType::Utf8View,
            DataType::FixedSizeBinary(8),
        ] {
            assert!(!is_fixed(&data_type));
        }
    }
}
