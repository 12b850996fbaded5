//! One byte string per group, or none: short ones in their entry, long ones in one arena.
//!
//! In: byte strings to replace a group's. Out: a string, binary or view column.
//! Invariant: an entry starts like an Arrow view (length, then all bytes or a prefix), but its offset has 64 bits. Bytes
//! that no entry refers to are counted as garbage and go when they are the larger part of the arena.
//! Not here: which string wins (`min_max_bytes`, `arg_rows`).

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, FixedSizeBinaryArray, GenericByteArray};
use arrow::array::{OffsetSizeTrait, StringViewArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{BinaryType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow::datatypes::{ByteArrayType, DataType};

use grouse_kernels::prefetch::prefetch;

use super::min_max::Order;
use crate::error::{Error, Result};

/// Strings up to this length live in their entry.
const INLINE_BYTES: usize = 12;
/// The length of no string at all.
const NONE: u32 = u32::MAX;
/// Arenas smaller than this are not worth compacting.
const COMPACT_BYTES_MIN: usize = 64 << 10;
/// Entries and strings of no more bytes stay in the second-level cache: asking for them took 1.02 of the time.
const NEAR_BYTES: usize = 512 << 10;
/// Arrow views address buffers with 31 bits: the arena appears as overlapping buffers that start
/// this far apart.
const BUFFER_BITS: u32 = 30;

/// `$body` with `$value`, a function from row to bytes, for a string or binary column.
macro_rules! with_byte_values {
    ($column:expr, |$value:ident| $body:expr) => {{
        use arrow::array::{Array, AsArray};
        use arrow::datatypes::DataType;
        let column: &dyn Array = $column;
        macro_rules! visit {
            ($array:expr, $bytes:expr) => {{
                let array = $array;
                let $value = |row: usize| $bytes(array.value(row));
                $body
            }};
        }
        match column.data_type() {
            DataType::Utf8 => visit!(column.as_string::<i32>(), str::as_bytes),
            DataType::LargeUtf8 => visit!(column.as_string::<i64>(), str::as_bytes),
            DataType::Utf8View => visit!(column.as_string_view(), str::as_bytes),
            DataType::Binary => visit!(column.as_binary::<i32>(), std::convert::identity),
            DataType::LargeBinary => visit!(column.as_binary::<i64>(), std::convert::identity),
            DataType::BinaryView => visit!(column.as_binary_view(), std::convert::identity),
            DataType::FixedSizeBinary(_) => {
                visit!(column.as_fixed_size_binary(), std::convert::identity)
            }
            other => unreachable!("planned for strings and binary, got {other}"),
        }
    }};
}
pub(super) use with_byte_values;

/// Length (4 bytes), then up to 12 bytes of the string, or a prefix (4) and an offset (8).
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
struct ShortString([u8; 16]);

impl ShortString {
    const EMPTY: Self = Self((NONE as u128).to_le_bytes());

    fn inline(bytes: &[u8]) -> Self {
        let mut entry = [0; 16];
        entry[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        entry[4..4 + bytes.len()].copy_from_slice(bytes);
        Self(entry)
    }

    fn long(bytes: &[u8], offset: usize) -> Self {
        let mut entry = [0; 16];
        entry[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        entry[4..8].copy_from_slice(&bytes[..4]);
        entry[8..].copy_from_slice(&(offset as u64).to_le_bytes());
        Self(entry)
    }

    #[inline]
    fn bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    #[inline]
    fn len(self) -> u32 {
        self.bits() as u32
    }

    /// The first four bytes, padded with zeros, as a number that orders as they do.
    #[inline]
    fn prefix(self) -> u32 {
        ((self.bits() >> 32) as u32).swap_bytes()
    }

    fn offset(self) -> usize {
        (self.bits() >> 64) as usize
    }

    /// Bytes in the arena.
    fn long_len(self) -> usize {
        match self.len() {
            NONE => 0,
            len if len as usize <= INLINE_BYTES => 0,
            len => len as usize,
        }
    }

    /// The view that Arrow wants.
    fn view(self) -> u128 {
        match self.len() {
            NONE => 0,
            _ if self.long_len() == 0 => self.bits(),
            _ => {
                let (buffer, offset) = (
                    self.offset() >> BUFFER_BITS,
                    self.offset() & ((1 << BUFFER_BITS) - 1),
                );
                let head = self.bits() & u128::from(u64::MAX);
                head | ((buffer as u128) << 64) | ((offset as u128) << 96)
            }
        }
    }
}

#[inline]
fn prefix_of(bytes: &[u8]) -> u32 {
    match bytes.first_chunk::<4>() {
        Some(prefix) => u32::from_be_bytes(*prefix),
        None => bytes
            .iter()
            .enumerate()
            .fold(0, |all, (at, byte)| all | u32::from(*byte) << (24 - 8 * at)),
    }
}

/// One byte string per group, or none.
#[derive(Debug, Default)]
pub(super) struct ByteValues {
    entries: Vec<ShortString>,
    arena: Vec<u8>,
    garbage_bytes: usize,
}

impl ByteValues {
    /// Entries for groups `0..total`, new ones without a string.
    pub(super) fn grow(&mut self, total: usize) {
        self.entries
            .resize(total.max(self.entries.len()), ShortString::EMPTY);
    }

    /// True if entries and strings miss the core's own cache.
    pub(super) fn are_far(&self) -> bool {
        self.entries.len() * size_of::<ShortString>() + self.arena.len() > NEAR_BYTES
    }

    /// Starts to fetch a group's entry.
    #[inline(always)]
    pub(super) fn fetch(&self, group: usize) {
        prefetch(&self.entries, group);
    }

    /// Starts to fetch the string of an entry that is there by now.
    #[inline(always)]
    pub(super) fn fetch_bytes(&self, group: usize) {
        if let Some(entry) = self.entries.get(group)
            && entry.long_len() > 0
        {
            prefetch(&self.arena, entry.offset());
        }
    }

    /// True if `bytes` should replace the group's string (or it has none).
    #[inline]
    pub(super) fn is_improved_by<O: Order>(&self, group: usize, bytes: &[u8]) -> bool {
        let entry = self.entries[group];
        if entry.len() == NONE {
            return true;
        }
        let (new, old) = (prefix_of(bytes), entry.prefix());
        if new != old {
            return O::is_better(new, old);
        }
        O::is_better_bytes(bytes, self.bytes_of(&self.entries[group]))
    }

    /// The string of an entry that has one.
    fn bytes_of<'a>(&'a self, entry: &'a ShortString) -> &'a [u8] {
        match entry.long_len() {
            0 => &entry.0[4..4 + entry.len() as usize],
            len => &self.arena[entry.offset()..entry.offset() + len],
        }
    }

    /// Leaves the group without a string.
    pub(super) fn unset(&mut self, group: usize) {
        self.garbage_bytes += self.entries[group].long_len();
        self.entries[group] = ShortString::EMPTY;
    }

    /// Makes `bytes` the group's string.
    pub(super) fn set(&mut self, group: usize, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= NONE as usize {
            let message = format!("a string of {} bytes: the limit is 4 GiB", bytes.len());
            return Err(Error::TooLarge(message));
        }
        let held = self.entries[group].long_len();
        self.garbage_bytes += held;
        self.entries[group] = if bytes.len() <= INLINE_BYTES {
            ShortString::inline(bytes)
        } else if bytes.len() <= held {
            // The new string takes the old one's place; what is left over stays garbage.
            self.garbage_bytes -= bytes.len();
            let offset = self.entries[group].offset();
            self.arena[offset..offset + bytes.len()].copy_from_slice(bytes);
            ShortString::long(bytes, offset)
        } else {
            let offset = self.arena.len();
            self.arena.extend_from_slice(bytes);
            ShortString::long(bytes, offset)
        };
        Ok(())
    }

    /// Called after each batch: gets rid of garbage where it is the larger part.
    pub(super) fn settle(&mut self) {
        let live = self.arena.len() - self.garbage_bytes;
        if self.arena.len() < COMPACT_BYTES_MIN || self.garbage_bytes <= live {
            return;
        }
        // Room for as much again: what was replaced once will be replaced again.
        let mut arena = Vec::with_capacity(live + live / 2);
        for entry in self.entries.iter_mut().filter(|entry| entry.long_len() > 0) {
            let bytes = &self.arena[entry.offset()..entry.offset() + entry.long_len()];
            let offset = arena.len();
            arena.extend_from_slice(bytes);
            *entry = ShortString::long(bytes, offset);
        }
        self.arena = arena;
        self.garbage_bytes = 0;
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<ShortString>() + self.arena.capacity()
    }

    /// The strings of `total` groups as a binary view column, without copying the arena. None
    /// are left.
    pub(super) fn take_partial(&mut self, total: usize) -> Result<ArrayRef> {
        let (views, buffers, nulls) = self.take_views(total);
        Ok(Arc::new(BinaryViewArray::try_new(views, buffers, nulls)?))
    }

    /// The strings of `total` groups as a column of `data_type`. None are left.
    pub(super) fn take(&mut self, total: usize, data_type: &DataType) -> Result<ArrayRef> {
        match data_type {
            DataType::Utf8 => self.take_with_offsets::<Utf8Type>(total),
            DataType::LargeUtf8 => self.take_with_offsets::<LargeUtf8Type>(total),
            DataType::Binary => self.take_with_offsets::<BinaryType>(total),
            DataType::LargeBinary => self.take_with_offsets::<LargeBinaryType>(total),
            DataType::Utf8View => {
                let (views, buffers, nulls) = self.take_views(total);
                Ok(Arc::new(StringViewArray::try_new(views, buffers, nulls)?))
            }
            DataType::FixedSizeBinary(width) => self.take_fixed_width(total, *width),
            _ => self.take_partial(total),
        }
    }

    fn take_views(
        &mut self,
        total: usize,
    ) -> (ScalarBuffer<u128>, Vec<Buffer>, Option<NullBuffer>) {
        let nulls = self.finish(total);
        let Self { entries, arena, .. } = std::mem::take(self);
        let views: Vec<_> = entries.into_iter().map(ShortString::view).collect();
        let arena = Buffer::from_vec(arena);
        let starts = (0..arena.len()).step_by(1 << BUFFER_BITS);
        (
            views.into(),
            starts.map(|start| arena.slice(start)).collect(),
            nulls,
        )
    }

    fn take_with_offsets<T: ByteArrayType>(&mut self, total: usize) -> Result<ArrayRef> {
        let nulls = self.finish(total);
        let held = std::mem::take(self);
        let lens = || {
            held.entries
                .iter()
                .map(|e| if e.len() == NONE { 0 } else { e.len() as usize })
        };
        let bytes: usize = lens().sum();
        if bytes > T::Offset::MAX_OFFSET {
            let message = format!(
                "{bytes} bytes of {} in one column: cast the argument to a large or view type",
                T::DATA_TYPE
            );
            return Err(Error::TooLarge(message));
        }
        let mut values = Vec::with_capacity(bytes);
        for entry in held.entries.iter().filter(|entry| entry.len() != NONE) {
            values.extend_from_slice(held.bytes_of(entry));
        }
        let offsets = OffsetBuffer::<T::Offset>::from_lengths(lens());
        Ok(Arc::new(GenericByteArray::<T>::try_new(
            offsets,
            values.into(),
            nulls,
        )?))
    }

    fn take_fixed_width(&mut self, total: usize, width: i32) -> Result<ArrayRef> {
        let nulls = self.finish(total);
        let held = std::mem::take(self);
        let mut values = Vec::with_capacity(total * width as usize);
        for entry in &held.entries {
            match entry.len() {
                NONE => values.resize(values.len() + width as usize, 0),
                _ => values.extend_from_slice(held.bytes_of(entry)),
            }
        }
        Ok(Arc::new(FixedSizeBinaryArray::try_new(
            width,
            values.into(),
            nulls,
        )?))
    }

    fn finish(&mut self, total: usize) -> Option<NullBuffer> {
        self.entries.resize(total, ShortString::EMPTY);
        let present = BooleanBuffer::collect_bool(total, |at| self.entries[at].len() != NONE);
        let nulls = NullBuffer::new(present);
        (nulls.null_count() > 0).then_some(nulls)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};

    use super::*;
    use crate::states::min_max::{Greatest, Least};

    #[test]
    fn order_is_that_of_byte_slices() {
        let strings: Vec<&[u8]> = vec![
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"ab",
            b"abcd",
            b"abcd\0",
            b"abcde",
            b"abcdefghijkl",
            b"abcdefghijklm",
            b"abcdefghijkln",
            b"abcdzzzzzzzzzzzzzzzzz",
            b"\xff\xff\xff\xff",
        ];
        for old in &strings {
            let mut values = ByteValues::default();
            values.grow(1);
            assert!(values.is_improved_by::<Least>(0, old));
            values.set(0, old).unwrap();
            for new in &strings {
                assert_eq!(
                    values.is_improved_by::<Least>(0, new),
                    new < old,
                    "{new:?} {old:?}"
                );
                assert_eq!(
                    values.is_improved_by::<Greatest>(0, new),
                    new > old,
                    "{new:?} {old:?}"
                );
            }
        }
    }

    #[test]
    fn garbage_is_bounded() {
        let mut values = ByteValues::default();
        values.grow(100);
        for round in 0..2_000 {
            for group in 0..100 {
                values
                    .set(group, &vec![group as u8; 20 + round % 90])
                    .unwrap();
            }
            values.settle();
            assert!(
                values.bytes() < 4 * COMPACT_BYTES_MIN,
                "{} bytes held",
                values.bytes()
            );
        }
        let taken = values.take(100, &DataType::Binary).unwrap();
        let expected = 20 + 1_999 % 90;
        for group in 0..100 {
            assert_eq!(
                taken.as_binary::<i32>().value(group),
                vec![group as u8; expected]
            );
        }
        assert_eq!(values.bytes(), 0);
    }

    #[test]
    fn groups_without_a_string_are_null() {
        for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let mut values = ByteValues::default();
            values.grow(3);
            values
                .set(1, b"a string that is too long for its entry")
                .unwrap();
            let taken = values.take(4, &data_type).unwrap();
            assert_eq!(taken.data_type(), &data_type);
            assert_eq!(
                (0..4).filter(|at| taken.is_valid(*at)).collect::<Vec<_>>(),
                [1]
            );
        }
    }
}
