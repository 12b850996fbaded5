//! Keys of up to 96 bytes: the columns' bits side by side in 1 to 12 64-bit words.
//!
//! In: columns of integers, floats, decimals, dates, times, booleans, intervals; beside others also
//! strings and binary, as views of two words. Out: words.
//! Invariant: equal keys have equal words but for the places of long strings: floats are
//! normalised, a NULL's bits are zero, and its null bit is set (a single-column key marks NULL
//! through the hash instead, see `layout`).
//! Not here: nested types, 256-bit decimals, the tables (`inline`, `wide`).

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit};
use grouse_kernels::hash;

use super::bytes::{self, is_long};
use super::inline::InlineTable;
use super::layout::nulls_of;
use super::wide::{WideKeys, WideTable, set_view, view_of};
use super::{EncodedKeys, KeyRows, KeyTable};
use crate::error::Result;

/// Bytes of a string's view.
const VIEW_BYTES: usize = 16;

/// Bytes of a fixed-width key column (booleans take one), `None` for other types.
pub fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(1),
        DataType::Decimal256(..) => None,
        DataType::Interval(IntervalUnit::MonthDayNano) => Some(16),
        other => other.primitive_width().filter(|width| *width <= 16),
    }
}

/// Where one column's bits lie.
#[derive(Debug, Clone)]
struct Place {
    data_type: DataType,
    word: usize,
    shift: u32,
    bytes: usize,
    /// Bit of the last word that says NULL; `None` for columns that cannot be NULL and for
    /// single-column keys.
    null_bit: Option<u32>,
}

/// Places of all columns of a packed key.
#[derive(Debug)]
pub struct PackedLayout {
    places: Vec<Place>,
    words: usize,
    null_word: usize,
    /// The words at which views begin.
    views: Vec<usize>,
}

impl PackedLayout {
    /// `None` if a column has no place in a packed key, all together exceed 96 bytes, or it is one
    /// string, which is its own key.
    pub fn new(fields: &[FieldRef]) -> Option<Self> {
        let width = |field: &FieldRef| match bytes::is_bytes(field.data_type()) {
            true => (fields.len() > 1).then_some(VIEW_BYTES),
            false => fixed_width(field.data_type()),
        };
        let widths: Vec<usize> = fields.iter().map(width).collect::<Option<_>>()?;
        let nullable = if fields.len() == 1 {
            0
        } else {
            fields.iter().filter(|f| f.is_nullable()).count()
        };
        // Widest first keeps every column inside one word (16-byte columns start one).
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|&column| std::cmp::Reverse(widths[column]));
        let mut places = vec![None; fields.len()];
        let mut byte = 0;
        for column in order {
            places[column] = Some((byte, widths[column]));
            byte += widths[column];
        }
        let null_byte = byte;
        let bytes = byte + nullable.div_ceil(8);
        // The null bits must not straddle a word.
        let fits = nullable.div_ceil(8) <= 8 - null_byte % 8 || nullable == 0;
        let null_byte = if fits {
            null_byte
        } else {
            null_byte.next_multiple_of(8)
        };
        let bytes = bytes.max(null_byte + nullable.div_ceil(8));
        let words = match bytes {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            33..=64 => 8,
            65..=96 => 12,
            _ => return None,
        };
        let mut null_bits = 0..;
        let places = fields
            .iter()
            .zip(places)
            .map(|(field, place)| {
                let (byte, bytes) = place.expect("every column has a place");
                let null_bit = (fields.len() > 1 && field.is_nullable())
                    .then(|| (null_byte % 8 * 8) as u32 + null_bits.next().expect("endless"));
                let shift = (byte % 8 * 8) as u32;
                Place {
                    data_type: field.data_type().clone(),
                    word: byte / 8,
                    shift,
                    bytes,
                    null_bit,
                }
            })
            .collect::<Vec<Place>>();
        let is_view = |place: &&Place| bytes::is_bytes(&place.data_type);
        Some(Self {
            views: places
                .iter()
                .filter(is_view)
                .map(|place| place.word)
                .collect(),
            places,
            words,
            null_word: null_byte / 8,
        })
    }

    /// The words at which views begin.
    pub fn views(&self) -> &[usize] {
        &self.views
    }

    /// An empty table for these keys.
    pub fn table(&self) -> Box<dyn KeyTable> {
        match self.words {
            1 => Box::new(InlineTable::<1>::default()),
            2 => Box::new(InlineTable::<2>::default()),
            4 => Box::new(WideTable::<4>::new(self.views.clone())),
            8 => Box::new(WideTable::<8>::new(self.views.clone())),
            _ => Box::new(WideTable::<12>::new(self.views.clone())),
        }
    }

    /// Packs the columns of `rows` rows.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
        Ok(match self.words {
            1 => EncodedKeys::Packed1(self.pack(columns, rows)?.keys),
            2 => EncodedKeys::Packed2(self.pack(columns, rows)?.keys),
            4 => EncodedKeys::Packed4(self.pack(columns, rows)?),
            8 => EncodedKeys::Packed8(self.pack(columns, rows)?),
            _ => EncodedKeys::Packed12(self.pack(columns, rows)?),
        })
    }

    fn pack<const N: usize>(&self, columns: &[ArrayRef], rows: usize) -> Result<WideKeys<N>> {
        let mut buffers = Vec::new();
        if let ([place], [column]) = (self.places.as_slice(), columns)
            && N == 1
            && let Some(keys) = single_word(place, column)
        {
            return Ok(WideKeys { keys, buffers });
        }
        let mut keys = vec![[0u64; N]; rows];
        for (place, column) in self.places.iter().zip(columns) {
            if bytes::is_bytes(&place.data_type) {
                pack_views(place, column, &mut keys, &mut buffers)?;
            } else {
                pack_column(place, column, &mut keys);
            }
            if let (Some(bit), Some(nulls)) = (place.null_bit, column.logical_nulls()) {
                for (key, valid) in keys.iter_mut().zip(nulls.inner().iter()) {
                    if !valid {
                        clear(key, place);
                        key[self.null_word] |= 1 << bit;
                    }
                }
            }
        }
        Ok(WideKeys { keys, buffers })
    }

    /// Hashes of wide keys, appended: strings by their bytes, wherever they lie.
    pub fn hash<const N: usize>(&self, wide: &WideKeys<N>, hashes: &mut Vec<u64>) {
        if wide.buffers.is_empty() {
            return hash::hash_packed(&wide.keys, hashes);
        }
        hashes.extend(wide.keys.iter().map(|key| {
            let mut plain = *key;
            for &word in &self.views {
                let view = view_of(key, word);
                if is_long(view) {
                    plain[word + 1] = bytes::hash_one(view, &wide.buffers);
                }
            }
            hash::hash_words(&plain)
        }));
    }

    /// Of these keys, how many fit one batch: the strings of a column end at `bytes_max`.
    pub fn fitting<const N: usize>(&self, keys: &[[u64; N]], bytes_max: u64) -> usize {
        let mut totals = vec![0u64; self.views.len()];
        for (row, key) in keys.iter().enumerate() {
            for (total, &word) in totals.iter_mut().zip(&self.views) {
                *total += u64::from(key[word] as u32);
                if *total > bytes_max {
                    return row.max(1);
                }
            }
        }
        keys.len()
    }

    /// Of the key columns of these keys those that `wanted` names.
    pub fn decode(
        &self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        match keys {
            KeyRows::Packed1(keys) => self.unpack(keys, &[], hashes, wanted),
            KeyRows::Packed2(keys) => self.unpack(keys, &[], hashes, wanted),
            KeyRows::Packed4(keys, buffers) => self.unpack(keys, buffers, hashes, wanted),
            KeyRows::Packed8(keys, buffers) => self.unpack(keys, buffers, hashes, wanted),
            KeyRows::Packed12(keys, buffers) => self.unpack(keys, buffers, hashes, wanted),
            KeyRows::None(_) | KeyRows::Bytes(..) => {
                unreachable!("a packed layout has packed keys")
            }
        }
    }

    fn unpack<const N: usize>(
        &self,
        keys: &[[u64; N]],
        buffers: &[Buffer],
        hashes: &[u64],
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        wanted
            .iter()
            .map(|&column| {
                let place = &self.places[column];
                let nulls = match place.null_bit {
                    Some(bit) => {
                        let valid = |key: &[u64; N]| key[self.null_word] >> bit & 1 == 0;
                        Some(NullBuffer::from_iter(keys.iter().map(valid)))
                    }
                    None if self.places.len() == 1 => nulls_of(|row| keys[row] == [0; N], hashes),
                    None => None,
                };
                let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
                if bytes::is_bytes(&place.data_type) {
                    let views: Vec<u128> =
                        keys.iter().map(|key| view_of(key, place.word)).collect();
                    return bytes::column(&views, buffers, nulls, &place.data_type);
                }
                unpack_column(place, keys, nulls)
            })
            .collect()
    }
}

/// One 8-byte integer column is its own packed form.
fn single_word<const N: usize>(place: &Place, column: &ArrayRef) -> Option<Vec<[u64; N]>> {
    if place.bytes != 8 || place.data_type == DataType::Float64 {
        return None;
    }
    let data = column.to_data();
    let values = &data.buffers()[0].typed_data::<u64>()[data.offset()..][..data.len()];
    Some(values.iter().map(|&value| [value; N]).collect())
}

/// The views of a column of strings; its buffers come behind those of the columns before it.
fn pack_views<const N: usize>(
    place: &Place,
    column: &ArrayRef,
    keys: &mut [[u64; N]],
    buffers: &mut Vec<Buffer>,
) -> Result<()> {
    let strings = bytes::encode(column)?;
    let first = (buffers.len() as u128) << 64;
    let mut any_long = false;
    for (key, &view) in keys.iter_mut().zip(&strings.views) {
        let long = is_long(view);
        any_long |= long;
        set_view(key, place.word, if long { view + first } else { view });
    }
    if any_long {
        buffers.extend(strings.buffers);
    }
    Ok(())
}

/// The bits of one column as 64-bit integers or-ed into their place.
fn pack_column<const N: usize>(place: &Place, column: &ArrayRef, keys: &mut [[u64; N]]) {
    let data = column.to_data();
    let offset = data.offset();
    let rows = keys.len();
    let (word, shift) = (place.word, place.shift);
    macro_rules! or_in {
        ($native:ty, $bits:expr) => {{
            let values = &data.buffers()[0].typed_data::<$native>()[offset..][..rows];
            let bits = $bits;
            for (key, &value) in keys.iter_mut().zip(values) {
                key[word] |= bits(value) << shift;
            }
        }};
    }
    match (&place.data_type, place.bytes) {
        (DataType::Boolean, _) => {
            let column = column
                .as_any()
                .downcast_ref::<BooleanArray>()
                .expect("a boolean column");
            for (key, value) in keys.iter_mut().zip(column.values().iter()) {
                key[word] |= u64::from(value) << shift;
            }
        }
        (DataType::Float16, _) => or_in!(u16, |v: u16| u64::from(canonical_f16(v))),
        (DataType::Float32, _) => or_in!(f32, |v: f32| u64::from(canonical_f32(v))),
        (DataType::Float64, _) => or_in!(f64, canonical_f64),
        (_, 1) => or_in!(u8, u64::from),
        (_, 2) => or_in!(u16, u64::from),
        (_, 4) => or_in!(u32, u64::from),
        (_, 8) => or_in!(u64, |v: u64| v),
        _ => {
            let values = &data.buffers()[0].typed_data::<i128>()[offset..][..rows];
            for (key, &value) in keys.iter_mut().zip(values) {
                key[word] = value as u64;
                key[word + 1] = (value >> 64) as u64;
            }
        }
    }
}

/// Zeroes a NULL's bits: whatever lies under the null must not tell two NULLs apart.
fn clear<const N: usize>(key: &mut [u64; N], place: &Place) {
    match place.bytes {
        16 => key[place.word..place.word + 2].fill(0),
        8 => key[place.word] = 0,
        bytes => key[place.word] &= !(((1u64 << (bytes * 8)) - 1) << place.shift),
    }
}

fn unpack_column<const N: usize>(
    place: &Place,
    keys: &[[u64; N]],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let (word, shift) = (place.word, place.shift);
    if place.data_type == DataType::Boolean {
        let values =
            BooleanBuffer::collect_bool(keys.len(), |row| keys[row][word] >> shift & 1 == 1);
        return Ok(Arc::new(BooleanArray::new(values, nulls)));
    }
    let bits = keys.iter().map(|key| key[word] >> shift);
    let buffer = match place.bytes {
        1 => Buffer::from_iter(bits.map(|bits| bits as u8)),
        2 => Buffer::from_iter(bits.map(|bits| bits as u16)),
        4 => Buffer::from_iter(bits.map(|bits| bits as u32)),
        8 => Buffer::from_iter(bits),
        _ => Buffer::from_iter(
            keys.iter()
                .map(|key| (u128::from(key[word + 1]) << 64 | u128::from(key[word])) as i128),
        ),
    };
    let data = ArrayData::builder(place.data_type.clone())
        .len(keys.len())
        .add_buffer(buffer)
        .nulls(nulls);
    Ok(make_array(data.build()?))
}

/// -0.0 is 0.0 and all NaN are one.
pub(super) fn canonical_f64(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        (value + 0.0).to_bits()
    }
}

/// See `canonical_f64`.
pub(super) fn canonical_f32(value: f32) -> u32 {
    if value.is_nan() {
        f32::NAN.to_bits()
    } else {
        (value + 0.0).to_bits()
    }
}

/// See `canonical_f64`; works on the bits of a half-precision float.
pub(super) fn canonical_f16(bits: u16) -> u16 {
    match bits {
        0x8000 => 0,
        _ if bits & 0x7c00 == 0x7c00 && bits & 0x03ff != 0 => 0x7e00,
        _ => bits,
    }
}
