//! Fixed-width keys: the columns' bits side by side in one, two or four 64-bit words.
//!
//! In: columns of integers, floats, decimals, dates, times, booleans, intervals. Out: words.
//! Invariant: equal keys have equal words: floats are normalised, a NULL's bits are zero, and its
//! null bit is set (a single-column key marks NULL through the hash instead, see `layout`).
//! Not here: strings, nested types.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit};

use super::layout::nulls_of;
use super::slots::Slots;
use super::{DistinctKeys, EncodedKeys, GroupId, KeyRows, KeyTable};
use crate::error::Result;

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
}

impl PackedLayout {
    /// `None` if a column is not of fixed width or all together exceed 32 bytes.
    pub fn new(fields: &[FieldRef]) -> Option<Self> {
        let widths: Vec<usize> = fields
            .iter()
            .map(|f| fixed_width(f.data_type()))
            .collect::<Option<_>>()?;
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
            .collect();
        Some(Self {
            places,
            words,
            null_word: null_byte / 8,
        })
    }

    /// 64-bit words of a key: 1, 2 or 4.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Packs the columns of `rows` rows.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize) -> EncodedKeys {
        match self.words {
            1 => EncodedKeys::Packed1(self.pack(columns, rows)),
            2 => EncodedKeys::Packed2(self.pack(columns, rows)),
            _ => EncodedKeys::Packed4(self.pack(columns, rows)),
        }
    }

    fn pack<const N: usize>(&self, columns: &[ArrayRef], rows: usize) -> Vec<[u64; N]> {
        if let ([place], [column]) = (self.places.as_slice(), columns)
            && N == 1
            && let Some(keys) = single_word(place, column)
        {
            return keys;
        }
        let mut keys = vec![[0u64; N]; rows];
        for (place, column) in self.places.iter().zip(columns) {
            pack_column(place, column, &mut keys);
            if let (Some(bit), Some(nulls)) = (place.null_bit, column.logical_nulls()) {
                for (key, valid) in keys.iter_mut().zip(nulls.inner().iter()) {
                    if !valid {
                        clear(key, place);
                        key[self.null_word] |= 1 << bit;
                    }
                }
            }
        }
        keys
    }

    /// The key columns of these keys.
    pub fn decode(&self, keys: KeyRows<'_>, hashes: &[u64]) -> Result<Vec<ArrayRef>> {
        match keys {
            KeyRows::Packed1(keys) => self.unpack(keys, hashes),
            KeyRows::Packed2(keys) => self.unpack(keys, hashes),
            KeyRows::Packed4(keys) => self.unpack(keys, hashes),
            KeyRows::None(_) | KeyRows::Bytes(..) => {
                unreachable!("a packed layout has packed keys")
            }
        }
    }

    fn unpack<const N: usize>(&self, keys: &[[u64; N]], hashes: &[u64]) -> Result<Vec<ArrayRef>> {
        self.places
            .iter()
            .map(|place| {
                let nulls = match place.null_bit {
                    Some(bit) => {
                        let valid = |key: &[u64; N]| key[self.null_word] >> bit & 1 == 0;
                        Some(NullBuffer::from_iter(keys.iter().map(valid)))
                    }
                    None if self.places.len() == 1 => nulls_of(|row| keys[row] == [0; N], hashes),
                    None => None,
                };
                unpack_column(place, keys, nulls.filter(|nulls| nulls.null_count() > 0))
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

/// A table of packed keys of `N` words: tagged slots beside dense keys.
#[derive(Debug, Default)]
pub struct PackedTable<const N: usize> {
    slots: Slots,
    keys: Vec<[u64; N]>,
}

/// Packed keys as one of the encodings.
pub(super) trait Packed: Sized {
    /// The keys of a borrowed range; the layout guarantees the width.
    fn of(keys: KeyRows<'_>) -> &[Self];
    /// Owned keys.
    fn encoded(keys: Vec<Self>) -> EncodedKeys;
}

macro_rules! packed {
    ($words:literal, $variant:ident) => {
        impl Packed for [u64; $words] {
            fn of(keys: KeyRows<'_>) -> &[Self] {
                match keys {
                    KeyRows::$variant(keys) => keys,
                    _ => unreachable!("the layout made keys of another width"),
                }
            }

            fn encoded(keys: Vec<Self>) -> EncodedKeys {
                EncodedKeys::$variant(keys)
            }
        }
    };
}
packed!(1, Packed1);
packed!(2, Packed2);
packed!(4, Packed4);

impl<const N: usize> KeyTable for PackedTable<N>
where
    [u64; N]: Packed,
{
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        let rows = <[u64; N]>::of(keys);
        assert_eq!(rows.len(), hashes.len(), "one hash per key");
        self.slots.reserve(rows.len());
        groups.reserve(rows.len());
        let Self { slots, keys } = self;
        groups.extend(rows.iter().zip(hashes).map(|(key, &hash)| {
            slots
                .find_or_insert(hash, |group| keys[group.0 as usize] == *key)
                .unwrap_or_else(|| {
                    keys.push(*key);
                    GroupId(keys.len() as u32 - 1)
                })
        }));
        Ok(())
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn bytes(&self) -> usize {
        self.slots.bytes() + self.keys.capacity() * N * 8
    }

    fn used_bytes(&self) -> usize {
        self.slots.used_bytes() + self.keys.len() * N * 8
    }

    fn probes(&self) -> u64 {
        self.slots.probes()
    }

    fn drain(&mut self) -> DistinctKeys {
        let capacity = self.keys.capacity();
        let keys = std::mem::replace(&mut self.keys, Vec::with_capacity(capacity));
        DistinctKeys {
            keys: <[u64; N]>::encoded(keys),
            hashes: self.slots.drain(),
        }
    }
}
