//! Byte-string keys: Arrow views, compared by hash tag, then length and prefix, then bytes.
//!
//! In: string or binary columns (or encoded rows) as views. Out: group ids; distinct keys as views
//! into arenas, which become the buffers of a view column without a copy.
//! Invariant: a view of up to 12 bytes holds the whole string and zero padding, so that equal short strings have equal
//! views. The table copies bytes once per distinct key or, where they outlive it, never.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BinaryViewArray, FixedSizeBinaryBuilder,
    GenericByteArray, GenericByteViewArray, LargeBinaryBuilder, LargeStringBuilder, StringBuilder,
    StringViewArray,
};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    BinaryViewType, ByteArrayType, ByteViewType, DataType, GenericBinaryType, GenericStringType,
    StringViewType,
};
use grouse_kernels::hash::{self, Seeds};

use super::columns::{is_bytes, nulls_of, strict_cast};
use super::slots::{AT_ONCE, Slots};
use super::views::{INLINE_BYTES_MAX, is_long, long_bytes, view, with_bytes};
use super::{ByteKeys, DistinctKeys, EncodedKeys, GroupId, KeyRows, KeyTable, room};
use crate::error::{Error, Result};

/// Arena chunks start small, for tables that never grow, and stop doubling here.
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=1 << 20;

/// True of codes whose values are of `data_type`'s kind and no more than there are rows.
pub(super) fn are_views_of(column: &ArrayRef, data_type: &DataType) -> bool {
    column.as_any_dictionary_opt().is_some_and(|coded| {
        let values = coded.values();
        let is_like = values.data_type().is_string() == data_type.is_string();
        is_like && is_bytes(values.data_type()) && values.len() <= column.len()
    })
}

/// The column as views that share its buffers; of a NULL any.
pub(super) fn encode(column: &ArrayRef) -> Result<ByteKeys> {
    match column.data_type() {
        DataType::Dictionary(..) => {
            let coded = column.as_any_dictionary();
            let values = encode(coded.values())?;
            let views = with_integers!(&coded.keys().to_data(), codes => {
                codes.iter().map(|&code| view_at(&values.views, code as usize)).collect()
            });
            Ok(ByteKeys {
                views,
                buffers: values.buffers,
            })
        }
        DataType::Utf8View => Ok(shared(column.as_byte_view::<StringViewType>())),
        DataType::BinaryView => Ok(shared(column.as_byte_view::<BinaryViewType>())),
        DataType::Utf8 => viewed(column.as_bytes::<GenericStringType<i32>>()),
        DataType::LargeUtf8 => viewed(column.as_bytes::<GenericStringType<i64>>()),
        DataType::Binary => viewed(column.as_bytes::<GenericBinaryType<i32>>()),
        DataType::LargeBinary => viewed(column.as_bytes::<GenericBinaryType<i64>>()),
        DataType::FixedSizeBinary(_) => {
            let column = column.as_fixed_size_binary();
            copied((0..column.len()).map(|row| column.value(row)))
        }
        other => unreachable!("{other} is no byte-string type"),
    }
}

/// The same of strings that are to be of `data_type`: bytes become strings where they are valid.
pub(super) fn encode_as(column: &ArrayRef, data_type: &DataType) -> Result<ByteKeys> {
    match data_type.is_string() && !column.data_type().is_string() {
        true => encode(&strict_cast(column, data_type)?),
        false => encode(column),
    }
}

/// The view that a code stands for; a NULL's code may be none.
#[inline(always)]
pub(super) fn view_at(views: &[u128], code: usize) -> u128 {
    views.get(code).copied().unwrap_or(0)
}

fn shared<T: ByteViewType + ?Sized>(column: &GenericByteViewArray<T>) -> ByteKeys {
    ByteKeys {
        views: column.views().to_vec(),
        buffers: column.data_buffers().to_vec(),
    }
}

fn viewed<T: ByteArrayType>(column: &GenericByteArray<T>) -> Result<ByteKeys>
where
    T::Offset: Into<i64>,
{
    let offsets = column.value_offsets();
    let bytes = column.values().as_slice();
    let end: i64 = offsets[column.len()].into();
    if end > i64::from(u32::MAX) {
        return copied((0..column.len()).map(|row| column.value(row).as_ref()));
    }
    let views = offsets
        .windows(2)
        .map(|pair| {
            let (from, to): (i64, i64) = (pair[0].into(), pair[1].into());
            view(&bytes[from as usize..to as usize], 0, from as u32)
        })
        .collect();
    Ok(ByteKeys {
        views,
        buffers: vec![column.values().clone()],
    })
}

fn copied<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<ByteKeys> {
    let mut arena = Arena::default();
    let views = values
        .map(|value| arena.keep(value))
        .collect::<Result<_>>()?;
    Ok(ByteKeys {
        views,
        buffers: arena.into_buffers(),
    })
}

/// Hashes of all keys, appended.
pub(super) fn hash(keys: &ByteKeys, hashes: &mut Vec<u64>) {
    hashes.extend(keys.views.iter().map(|&view| hash_one(view, &keys.buffers)));
}

/// The hash of one view's bytes.
#[inline(always)]
pub(super) fn hash_one(view: u128, buffers: &[Buffer]) -> u64 {
    hash_by(Seeds::FIXED, view, buffers)
}

/// The same by other seeds.
#[inline(always)]
pub(super) fn hash_by(seeds: Seeds, view: u128, buffers: &[Buffer]) -> u64 {
    if is_long(view) {
        seeds.hash_bytes(long_bytes(view, buffers))
    } else {
        seeds.hash_view(view)
    }
}

/// Distinct keys as a column of `data_type`.
pub(super) fn decode(keys: KeyRows<'_>, hashes: &[u64], data_type: &DataType) -> Result<ArrayRef> {
    let KeyRows::Bytes(views, buffers) = keys else {
        unreachable!("byte-string keys")
    };
    let nulls = nulls_of(|row| views[row] == 0, hashes);
    column(views, buffers, nulls, data_type)
}

/// The string of a key.
#[expect(unsafe_code, reason = "checked when the column was made")]
fn utf8(bytes: &[u8]) -> &str {
    // SAFETY: keys of a string type come from columns of that type, which were valid UTF-8.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

/// Views as a column of `data_type`; view types share the buffers, others copy.
#[expect(
    unsafe_code,
    reason = "the views were valid in the arrays they came from"
)]
pub(super) fn column(
    views: &[u128],
    buffers: &[Buffer],
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    macro_rules! build {
        ($builder:expr, $append:expr) => {{
            let mut builder = $builder;
            for (row, &view) in views.iter().enumerate() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    builder.append_null();
                } else {
                    with_bytes(view, buffers, |bytes| $append(&mut builder, bytes))?;
                }
            }
            Ok(Arc::new(builder.finish()))
        }};
    }
    match data_type {
        DataType::Utf8View => {
            let views = ScalarBuffer::from(views.to_vec());
            // SAFETY: every view is inline or points into `buffers` (`Arena::keep`, `encode`), and
            // its bytes are a whole value of a string column.
            Ok(Arc::new(unsafe {
                StringViewArray::new_unchecked(views, buffers.to_vec(), nulls)
            }))
        }
        DataType::BinaryView => {
            let views = ScalarBuffer::from(views.to_vec());
            // SAFETY: as above; binary needs no encoding.
            Ok(Arc::new(unsafe {
                BinaryViewArray::new_unchecked(views, buffers.to_vec(), nulls)
            }))
        }
        DataType::Utf8 => build!(StringBuilder::new(), |b: &mut StringBuilder, v: &[u8]| {
            b.append_value(utf8(v));
            Ok::<_, Error>(())
        }),
        DataType::LargeUtf8 => build!(
            LargeStringBuilder::new(),
            |b: &mut LargeStringBuilder, v: &[u8]| {
                b.append_value(utf8(v));
                Ok::<_, Error>(())
            }
        ),
        DataType::Binary => build!(BinaryBuilder::new(), |b: &mut BinaryBuilder, v: &[u8]| {
            b.append_value(v);
            Ok::<_, Error>(())
        }),
        DataType::LargeBinary => build!(
            LargeBinaryBuilder::new(),
            |b: &mut LargeBinaryBuilder, v: &[u8]| {
                b.append_value(v);
                Ok::<_, Error>(())
            }
        ),
        DataType::FixedSizeBinary(width) => {
            build!(
                FixedSizeBinaryBuilder::new(*width),
                |b: &mut FixedSizeBinaryBuilder, v: &[u8]| b.append_value(v)
            )
        }
        other => unreachable!("{other} is no byte-string type"),
    }
}

/// Copies of long keys in chunks whose addresses never change.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Arena {
    /// An arena whose first chunk holds `bytes`.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut arena = Self::default();
        if bytes > 0 {
            // Views reach 4 GiB into a chunk.
            let first = bytes.min(u32::MAX as usize);
            arena.chunks.push(Vec::with_capacity(first));
            arena.bytes = first;
        }
        arena
    }

    /// Copies a string longer than an inline view holds (others need no place) and returns its view.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<u128> {
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(hash::inline_view(bytes));
        }
        let place = self.place(bytes)?;
        Ok(view(bytes, place as u32, (place >> 32) as u32))
    }

    /// Copies a long string and returns the second word of its view. In line, so that the word is never written as two
    /// halves and then read as a whole. That read waits until the copy before it has left the core: 3 % of all time for
    /// strings that are mostly new.
    #[inline(always)]
    pub(crate) fn place(&mut self, bytes: &[u8]) -> Result<u64> {
        let has_room = |chunk: &&mut Vec<u8>| chunk.capacity() - chunk.len() >= bytes.len();
        if self.chunks.last_mut().filter(has_room).is_none() {
            self.grow(bytes.len())?;
        }
        let buffer = self.chunks.len() as u64 - 1;
        let chunk = self.chunks.last_mut().expect("a chunk with room");
        let offset = chunk.len() as u64;
        chunk.extend_from_slice(bytes);
        Ok(buffer | offset << 32)
    }

    /// One more chunk, with room for so many bytes.
    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<()> {
        if u32::try_from(bytes).is_err() {
            return Err(Error::TooLarge(format!(
                "a key of {bytes} bytes; keys end at 4 GiB"
            )));
        }
        let next = match self.chunks.last() {
            Some(chunk) => chunk.capacity() * 2,
            None => *CHUNK_BYTES.start(),
        };
        let capacity = next
            .clamp(*CHUNK_BYTES.start(), *CHUNK_BYTES.end())
            .max(bytes);
        self.chunks.push(Vec::with_capacity(capacity));
        self.bytes += capacity;
        Ok(())
    }

    /// The chunks, in the order that views name them.
    pub(super) fn chunks(&self) -> &[Vec<u8>] {
        &self.chunks
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The chunks as Arrow buffers, in the order that views name them.
    pub(crate) fn into_buffers(self) -> Vec<Buffer> {
        self.chunks.into_iter().map(Buffer::from_vec).collect()
    }
}

/// Where a table's long strings lie.
pub(super) trait LongStrings: Default + Send {
    /// What own views point into.
    fn chunks(&self) -> &[impl std::ops::Deref<Target = [u8]>];
    /// Views of these buffers come next.
    fn begin(&mut self, buffers: &[Buffer]);
    /// The own view of a long string that lies in `buffers`.
    fn keep(&mut self, key: u128, buffers: &[Buffer]) -> Result<u128>;
    /// Bytes held by the table alone.
    fn bytes(&self) -> usize;
    /// The chunks as Arrow buffers.
    fn into_buffers(self) -> Vec<Buffer>;
}

/// Strings are copied: where they come from goes away.
impl LongStrings for Arena {
    fn chunks(&self) -> &[impl std::ops::Deref<Target = [u8]>] {
        &self.chunks
    }

    fn begin(&mut self, _buffers: &[Buffer]) {}

    #[inline(always)]
    fn keep(&mut self, key: u128, buffers: &[Buffer]) -> Result<u128> {
        let place = self.place(long_bytes(key, buffers))?;
        Ok(u128::from(key as u64) | u128::from(place) << 64)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn into_buffers(self) -> Vec<Buffer> {
        Arena::into_buffers(self)
    }
}

/// Strings stay where they are: blocks live as long as groups of theirs wait to leave.
#[derive(Debug, Default)]
pub(super) struct Shared {
    buffers: Vec<Buffer>,
    /// The first buffer of those that keys come from now.
    first: usize,
}

impl LongStrings for Shared {
    fn chunks(&self) -> &[impl std::ops::Deref<Target = [u8]>] {
        &self.buffers
    }

    fn begin(&mut self, buffers: &[Buffer]) {
        let known = &self.buffers[self.first..];
        let same = known.len() == buffers.len()
            && known
                .iter()
                .zip(buffers)
                .all(|(one, other)| one.ptr_eq(other));
        if !same {
            self.first = self.buffers.len();
            self.buffers.extend_from_slice(buffers);
        }
    }

    #[inline(always)]
    fn keep(&mut self, key: u128, _buffers: &[Buffer]) -> Result<u128> {
        Ok(key + ((self.first as u128) << 64))
    }

    fn bytes(&self) -> usize {
        self.buffers.capacity() * size_of::<Buffer>()
    }

    fn into_buffers(self) -> Vec<Buffer> {
        self.buffers
    }
}

/// A table of byte strings: tagged slots beside dense views.
#[derive(Debug, Default)]
pub(super) struct BytesTable<S = Arena> {
    slots: Slots,
    views: Vec<u128>,
    strings: S,
}

impl<S: LongStrings> BytesTable<S> {
    #[inline(always)]
    fn is_same(
        own: u128,
        own_chunks: &[impl std::ops::Deref<Target = [u8]>],
        other: u128,
        other_buffers: &[Buffer],
    ) -> bool {
        if own as u64 != other as u64 {
            return false; // length or prefix
        }
        if !is_long(own) {
            return own == other;
        }
        long_bytes(own, own_chunks) == long_bytes(other, other_buffers)
    }

    /// Strings none of which is long: a view is all of them. First those that their first slot holds, then all others. Tried and
    /// rejected: asking for the views of the others before they are searched (strings of 100,000 values 1.02 of the time).
    fn assign_short(&mut self, rows: &[u128], hashes: &[u64], out: &mut [GroupId]) -> Result<()> {
        let chunks = out.chunks_mut(AT_ONCE).zip(rows.chunks(AT_ONCE));
        for ((out, rows), hashes) in chunks.zip(hashes.chunks(AT_ONCE)) {
            let same = |row: usize, view: &u128| *view == rows[row];
            let others = self.slots.find(&self.views, hashes, out, same);
            for row in others.rows() {
                out[row] = self.search(rows[row], hashes[row], &[])?;
            }
        }
        Ok(())
    }

    /// Strings of any length, one after the other: in two passes long ones took 1.1 of the time.
    fn assign_any(
        &mut self,
        rows: &[u128],
        buffers: &[Buffer],
        hashes: &[u64],
        out: &mut [GroupId],
    ) -> Result<()> {
        let far = self.slots.is_far();
        for (row, group) in out.iter_mut().enumerate() {
            if far {
                self.slots.fetch_ahead(hashes, row, &self.views);
            }
            let (key, hash) = (rows[row], hashes[row]);
            let same = |view: &u128| !is_long(key) && *view == key;
            *group = match self.slots.held_first(hash, &self.views, same) {
                Some(known) => known,
                None => self.search(key, hash, buffers)?,
            };
        }
        Ok(())
    }

    /// A long string, a new one, or one whose first slot another string holds.
    #[inline(never)]
    pub(super) fn search(&mut self, key: u128, hash: u64, buffers: &[Buffer]) -> Result<GroupId> {
        let (views, chunks) = (&self.views, self.strings.chunks());
        let same = |group: GroupId| Self::is_same(views[group.0 as usize], chunks, key, buffers);
        if let Some(group) = self.slots.find_or_insert(hash, same) {
            return Ok(group);
        }
        self.views.push(if is_long(key) {
            self.strings.keep(key, buffers)?
        } else {
            key
        });
        Ok(GroupId(self.views.len() as u32 - 1))
    }

    /// The group of a string; `None` if it has none.
    pub(super) fn find(&self, key: u128, hash: u64, buffers: &[Buffer]) -> Option<GroupId> {
        let (views, chunks) = (&self.views, self.strings.chunks());
        let same = |group: GroupId| Self::is_same(views[group.0 as usize], chunks, key, buffers);
        self.slots.find_one(hash, same)
    }

    /// Number of different strings.
    pub(super) fn groups(&self) -> usize {
        self.views.len()
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        self.slots.bytes() + self.views.capacity() * 16 + self.strings.bytes()
    }

    /// All strings, in the order of their groups, as a column of `data_type`; the table keeps its own.
    pub(super) fn column(&self, data_type: &DataType) -> Result<ArrayRef> {
        let chunks = self.strings.chunks().iter();
        let buffers: Vec<Buffer> = chunks.map(|chunk| Buffer::from(&**chunk)).collect();
        column(&self.views, &buffers, None, data_type)
    }
}

impl<S: LongStrings> KeyTable for BytesTable<S> {
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        let KeyRows::Bytes(rows, buffers) = keys else {
            unreachable!("byte-string keys")
        };
        assert_eq!(rows.len(), hashes.len(), "one hash per key");
        self.strings.begin(buffers);
        let out = room(groups, rows.len());
        match buffers.is_empty() {
            true => self.assign_short(rows, hashes, out),
            false => self.assign_any(rows, buffers, hashes, out),
        }
    }

    fn expect(&mut self, groups: usize) {
        self.slots.expect(groups);
        self.views.reserve(groups);
    }

    fn len(&self) -> usize {
        self.views.len()
    }

    fn bytes(&self) -> usize {
        self.held_bytes()
    }

    fn used_bytes(&self) -> usize {
        self.slots.used_bytes() + self.views.len() * 16 + self.strings.bytes()
    }

    fn collisions(&self) -> u64 {
        self.slots.collisions()
    }

    fn drain(&mut self) -> DistinctKeys {
        let capacity = self.views.capacity();
        let views = std::mem::replace(&mut self.views, Vec::with_capacity(capacity));
        let buffers = std::mem::take(&mut self.strings).into_buffers();
        DistinctKeys {
            keys: EncodedKeys::Bytes(ByteKeys { views, buffers }),
            hashes: self.slots.drain(),
        }
    }
}
