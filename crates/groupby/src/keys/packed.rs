//! Keys of up to 96 bytes: the columns' bits side by side in 1 to 12 64-bit words.
//!
//! In: columns of integers, floats, decimals, dates, times, booleans, intervals, and what is known of their values.
//! Beside others also strings and binary, as views of two words or as codes of a shared dictionary. Out: words.
//! Invariant: equal keys have equal words but for the places of long strings. Floats are normalised. A NULL's bits are
//! zero, and its null bit is set (a single-column key marks NULL through the hash instead, see `layout`). A value that
//! its column's bits do not hold is an error.
//! Not here: nested types, 256-bit decimals, the tables (`inline`, `wide`), who knows bounds.
//!
//! A column with bounds takes the bits of their difference. Keys of two BIGINT columns of 50,000 and 1 M values are one
//! word instead of two, and so are their slots and what waits for the merge.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    AnyDictionaryArray, Array, ArrayData, ArrayRef, AsArray, BooleanArray, DictionaryArray,
    UInt32Array, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef, UInt32Type};
use arrow::util::display::array_value_to_string;
use grouse_kernels::hash::{self, Seeds};

use super::bytes;
use super::columns::{fixed_width, is_bytes, nulls_of};
use super::fixed_width::{
    FixedWidthKeys, FixedWidthRows, PackedKeys, PackedRows, set_view, view_of, with_width,
};
use super::inline::InlineTable;
use super::shared_dictionary::{CodeMaps, SharedDictionary};
use super::views::is_long;
use super::wide::WideTable;
use super::{EncodedKeys, KeyRows, KeyTable};
use crate::error::{Error, Result};

/// Bits of a word.
const WORD_BITS: u32 = 64;

/// Bits of a string's view.
const VIEW_BITS: u32 = 128;

/// Bits of a string's code in its shared dictionary.
const CODE_BITS: u32 = 32;

/// Words of the longest key.
const WORDS_MAX: usize = 12;

/// The least and the greatest value of a column, NULL aside, as Arrow stores them: decimals without their point, dates
/// and times as integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyBounds {
    /// No value is less.
    pub least: i128,
    /// No value is greater.
    pub greatest: i128,
}

impl KeyBounds {
    /// The bounds of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }

    /// Bits that tell the values apart.
    fn bits(self) -> u32 {
        let most = self.greatest.wrapping_sub(self.least) as u128;
        (u128::BITS - most.leading_zeros()).max(1)
    }
}

/// What is known of a key column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyValues {
    /// Nothing.
    Any,
    /// They lie between these.
    Within(KeyBounds),
    /// Strings as views that mostly come as codes, and of which memory holds one each.
    Few,
}

/// Hashes of keys with views at these words, appended.
pub(super) fn hash_wide<const N: usize>(
    keys: &[[u64; N]],
    buffers: &[Buffer],
    views: &[usize],
    hashes: &mut Vec<u64>,
) {
    if buffers.is_empty() {
        return hash::hash_packed(keys, hashes);
    }
    let hash = |key| hash_by(Seeds::FIXED, key, buffers, views);
    hashes.extend(keys.iter().map(hash));
}

/// The hash of one key of which strings may be long; where they lie does not count.
#[inline(always)]
pub(super) fn hash_by<const N: usize>(
    seeds: Seeds,
    key: &[u64; N],
    buffers: &[Buffer],
    views: &[usize],
) -> u64 {
    let mut plain = *key;
    for &word in views {
        let view = view_of(key, word);
        if is_long(view) {
            plain[word + 1] = bytes::hash_by(seeds, view, buffers);
        }
    }
    seeds.hash_words(&plain)
}

/// True of types whose values are integers in the order of their bits.
fn is_integral(data_type: &DataType) -> bool {
    let is_other = data_type.is_floating() || matches!(data_type, DataType::Interval(_));
    !is_other && data_type.is_primitive()
}

/// How many bits a column takes, above which value.
#[derive(Debug, Clone)]
struct ColumnWidth {
    /// Bytes of a value in Arrow's array.
    bytes: usize,
    bits: u32,
    /// Subtracted from each value.
    least: i128,
    /// True of strings that codes of a shared dictionary stand for.
    is_code: bool,
}

/// Bits of a column without bounds; `None` if the type has no place in a packed key.
fn type_bits(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Boolean => Some(1),
        other if is_bytes(other) => Some(VIEW_BITS),
        other => fixed_width(other).map(|bytes| 8 * bytes as u32),
    }
}

impl ColumnWidth {
    /// `None` if the type has no place in a packed key.
    fn of(data_type: &DataType, values: KeyValues) -> Option<Self> {
        let bits = type_bits(data_type)?;
        // Those of other types than views have 32-bit offsets in a batch (`fitting`).
        let are_views = matches!(data_type, DataType::Utf8View | DataType::BinaryView);
        if are_views && values == KeyValues::Few {
            return Some(Self {
                bytes: size_of::<u32>(),
                bits: CODE_BITS,
                least: 0,
                is_code: true,
            });
        }
        // What takes more than a word takes two.
        let narrow = match values {
            KeyValues::Within(bounds) if is_integral(data_type) => Some(bounds),
            _ => None,
        };
        let narrow = narrow.filter(|bounds| bounds.bits() < bits.min(WORD_BITS));
        Some(Self {
            bytes: bits.div_ceil(8) as usize,
            bits: narrow.map_or(bits, KeyBounds::bits),
            least: narrow.map_or(0, |bounds| bounds.least),
            is_code: false,
        })
    }
}

/// A place in a key's words.
#[derive(Debug, Clone, Copy)]
struct BitOffset {
    word: usize,
    shift: u32,
}

/// The words of a key, filled from the first.
#[derive(Default)]
struct WordsUsed {
    used: Vec<u32>,
}

impl WordsUsed {
    /// The first place for so many bits; none straddles a word, and what takes two begins one.
    fn place(&mut self, bits: u32) -> BitOffset {
        if bits > WORD_BITS {
            self.used.extend([WORD_BITS; 2]);
            return BitOffset {
                word: self.used.len() - 2,
                shift: 0,
            };
        }
        let has_room = |used: &u32| used + bits <= WORD_BITS;
        let word = self.used.iter().position(has_room).unwrap_or_else(|| {
            self.used.push(0);
            self.used.len() - 1
        });
        let shift = self.used[word];
        self.used[word] += bits;
        BitOffset { word, shift }
    }
}

/// Where one column's bits lie.
#[derive(Debug, Clone)]
struct PackedColumn {
    name: String,
    data_type: DataType,
    width: ColumnWidth,
    at: BitOffset,
    /// The bit that says NULL; `None` for columns that cannot be NULL and for single-column keys.
    null: Option<BitOffset>,
    /// Of strings that are codes here.
    shared: Option<Arc<SharedDictionary>>,
}

impl PackedColumn {
    /// True of strings that lie in the words, or whose place does.
    fn is_view(&self) -> bool {
        is_bytes(&self.data_type) && self.shared.is_none()
    }
}

/// Places of all columns of a packed key.
#[derive(Debug)]
pub(super) struct PackedLayout {
    places: Vec<PackedColumn>,
    words: usize,
    /// The words at which views begin.
    views: Vec<usize>,
}

impl PackedLayout {
    /// `None` if a column has no place in a packed key, all together exceed 96 bytes, or it is one
    /// string, which is its own key. `values` has one entry per field.
    pub(super) fn new(fields: &[FieldRef], values: &[KeyValues]) -> Option<Self> {
        let is_one = fields.len() == 1;
        if is_one && is_bytes(fields[0].data_type()) {
            return None;
        }
        let widths = fields.iter().zip(values).map(|(field, values)| {
            // One word is one word.
            let is_word = is_one && fixed_width(field.data_type()).is_some_and(|bytes| bytes <= 8);
            let values = if is_word { KeyValues::Any } else { *values };
            ColumnWidth::of(field.data_type(), values)
        });
        let widths: Vec<ColumnWidth> = widths.collect::<Option<_>>()?;
        // Widest first leaves the smallest gaps, null bits close them.
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|&column| std::cmp::Reverse(widths[column].bits));
        let mut words = WordsUsed::default();
        let mut at = vec![BitOffset { word: 0, shift: 0 }; fields.len()];
        for column in order {
            at[column] = words.place(widths[column].bits);
        }
        let places = fields
            .iter()
            .zip(widths)
            .zip(at)
            .map(|((field, width), at)| {
                let null = (!is_one && field.is_nullable()).then(|| words.place(1));
                let data_type = field.data_type();
                PackedColumn {
                    name: field.name().clone(),
                    data_type: data_type.clone(),
                    at,
                    null,
                    shared: width
                        .is_code
                        .then(|| Arc::new(SharedDictionary::new(data_type))),
                    width,
                }
            });
        let places: Vec<PackedColumn> = places.collect();
        let words = match words.used.len() {
            0..=1 => 1,
            2 => 2,
            3..=4 => 4,
            5..=8 => 8,
            9..=WORDS_MAX => WORDS_MAX,
            _ => return None,
        };
        let views = places.iter().filter(|place| place.is_view());
        Some(Self {
            views: views.map(|place| place.at.word).collect(),
            places,
            words,
        })
    }

    /// Bits of a key, if bounds or shared dictionaries have made it shorter.
    pub(super) fn narrowed_bits(&self) -> Option<u32> {
        let is_narrow = |place: &PackedColumn| Some(place.width.bits) < type_bits(&place.data_type);
        let nulls = self.places.iter().filter(|place| place.null.is_some());
        let bits: u32 = self.places.iter().map(|place| place.width.bits).sum();
        let is_narrowed = self.places.iter().any(is_narrow);
        is_narrowed.then(|| bits + nulls.count() as u32)
    }

    /// See `KeyLayout::translated`.
    pub(super) fn translated<'a>(
        &self,
        columns: &'a [ArrayRef],
        known: &mut CodeMaps,
    ) -> Result<Cow<'a, [ArrayRef]>> {
        if self.places.iter().all(|place| place.shared.is_none()) {
            return Ok(Cow::Borrowed(columns));
        }
        let places = self.places.iter().zip(columns).enumerate();
        let columns = places.map(|(at, (place, column))| match &place.shared {
            Some(shared) => known.of(at, column, shared),
            None => Ok(Arc::clone(column)),
        });
        columns.collect::<Result<_>>().map(Cow::Owned)
    }

    /// True if the `at`th column's strings are codes of a shared dictionary.
    pub(super) fn has_shared_dictionary(&self, at: usize) -> bool {
        self.places[at].shared.is_some()
    }

    /// Bytes of the shared dictionaries.
    pub(super) fn shared_bytes(&self) -> usize {
        let dictionaries = self.places.iter().filter_map(|place| place.shared.as_ref());
        dictionaries.map(|shared| shared.bytes()).sum()
    }

    /// The words at which views begin.
    pub(super) fn views(&self) -> &[usize] {
        &self.views
    }

    /// An empty table for these keys.
    pub(super) fn table(&self) -> Box<dyn KeyTable> {
        match self.words {
            1 => Box::new(InlineTable::<1>::default()),
            2 => Box::new(InlineTable::<2>::default()),
            4 => Box::new(WideTable::<4>::new(self.views.clone())),
            8 => Box::new(WideTable::<8>::new(self.views.clone())),
            _ => Box::new(WideTable::<12>::new(self.views.clone())),
        }
    }

    /// Packs the columns of `rows` rows.
    pub(super) fn encode(&self, columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
        Ok(EncodedKeys::Packed(match self.words {
            1 => PackedKeys::One(self.pack(columns, rows)?),
            2 => PackedKeys::Two(self.pack(columns, rows)?),
            4 => PackedKeys::Four(self.pack(columns, rows)?),
            8 => PackedKeys::Eight(self.pack(columns, rows)?),
            _ => PackedKeys::Twelve(self.pack(columns, rows)?),
        }))
    }

    fn pack<const N: usize>(&self, columns: &[ArrayRef], rows: usize) -> Result<FixedWidthKeys<N>> {
        let mut buffers = Vec::new();
        if let ([place], [column]) = (self.places.as_slice(), columns)
            && N == 1
            && let Some(keys) = single_word(place, column)
        {
            return Ok(FixedWidthKeys { keys, buffers });
        }
        let mut keys = vec![[0u64; N]; rows];
        for (place, column) in self.places.iter().zip(columns) {
            let nulls = column
                .logical_nulls()
                .filter(|nulls| nulls.null_count() > 0);
            if let Some(shared) = &place.shared {
                pack_codes(place, shared, column, nulls.as_ref(), &mut keys)?;
            } else if place.is_view() {
                pack_views(place, column, nulls.as_ref(), &mut keys, &mut buffers)?;
            } else if let Err(row) = pack_column(place, column, nulls.as_ref(), &mut keys) {
                return Err(Error::OutOfBounds {
                    column: place.name.clone(),
                    value: array_value_to_string(column, row)?,
                });
            }
            if let (Some(at), Some(nulls)) = (place.null, nulls) {
                for (key, valid) in keys.iter_mut().zip(nulls.inner().iter()) {
                    key[at.word] |= u64::from(!valid) << at.shift;
                }
            }
        }
        Ok(FixedWidthKeys { keys, buffers })
    }

    /// Hashes of keys, appended: strings by their bytes, wherever they lie.
    pub(super) fn hash(&self, keys: &PackedKeys, hashes: &mut Vec<u64>) {
        with_width!(keys, PackedKeys(FixedWidthKeys { keys, buffers }) => {
            hash_wide(keys, buffers, &self.views, hashes);
        });
    }

    /// Of these keys, how many fit one batch: the strings of a column end at `bytes_max`.
    pub(super) fn fitting(&self, keys: KeyRows<'_>, bytes_max: u64) -> usize {
        let KeyRows::Packed(rows) = keys else {
            unreachable!("a packed layout has packed keys")
        };
        with_width!(rows, PackedRows(rows) => self.fitting_words(rows.keys, bytes_max))
    }

    fn fitting_words<const N: usize>(&self, keys: &[[u64; N]], bytes_max: u64) -> usize {
        let length = |key: &[u64; N], word: usize| u64::from(key[word] as u32);
        let total = |word: &usize| keys.iter().map(|key| length(key, *word)).sum::<u64>();
        if self.views.iter().all(|word| total(word) <= bytes_max) {
            return keys.len();
        }
        let mut totals = vec![0u64; self.views.len()];
        for (row, key) in keys.iter().enumerate() {
            for (total, &word) in totals.iter_mut().zip(&self.views) {
                *total += length(key, word);
                if *total > bytes_max {
                    return row.max(1);
                }
            }
        }
        keys.len()
    }

    /// Of the key columns of these keys those that `wanted` names.
    pub(super) fn decode(
        &self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let KeyRows::Packed(rows) = keys else {
            unreachable!("a packed layout has packed keys")
        };
        with_width!(rows, PackedRows(rows) => self.unpack(rows, hashes, wanted))
    }

    fn unpack<const N: usize>(
        &self,
        FixedWidthRows { keys, buffers }: FixedWidthRows<'_, N>,
        hashes: &[u64],
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        wanted
            .iter()
            .map(|&column| {
                let place = &self.places[column];
                let nulls = match place.null {
                    Some(at) => {
                        let is_null = |key: &[u64; N]| key[at.word] >> at.shift & 1;
                        // Bit by bit takes longer than a look whether there is any.
                        let any = keys.iter().fold(0, |any, key| any | is_null(key)) == 1;
                        let valid = keys.iter().map(|key| is_null(key) == 0);
                        any.then(|| NullBuffer::from_iter(valid))
                    }
                    None if self.places.len() == 1 => nulls_of(|row| keys[row] == [0; N], hashes),
                    None => None,
                };
                let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
                if let Some(shared) = &place.shared {
                    return unpack_codes(place, shared, keys, nulls);
                }
                if place.is_view() {
                    let views = keys.iter().map(|key| view_of(key, place.at.word));
                    let views: Vec<u128> = views.collect();
                    return bytes::column(&views, buffers, nulls, &place.data_type);
                }
                unpack_column(place, keys, nulls)
            })
            .collect()
    }
}

/// One 8-byte integer column is its own packed form.
fn single_word<const N: usize>(place: &PackedColumn, column: &ArrayRef) -> Option<Vec<[u64; N]>> {
    if place.width.bytes != 8 || place.data_type == DataType::Float64 {
        return None;
    }
    let data = column.to_data();
    let values = values_of::<u64>(&data);
    Some(values.iter().map(|&value| [value; N]).collect())
}

/// The values of a primitive column, whatever their type.
fn values_of<T: ArrowNativeType>(data: &ArrayData) -> &[T] {
    &data.buffers()[0].typed_data::<T>()[data.offset()..][..data.len()]
}

fn copied<T: ArrowNativeType>(data: &ArrayData) -> impl Iterator<Item = T> + Clone {
    values_of::<T>(data).iter().copied()
}

/// The views of a column of strings; its buffers come behind those of the columns before it.
fn pack_views<const N: usize>(
    place: &PackedColumn,
    column: &ArrayRef,
    nulls: Option<&NullBuffer>,
    keys: &mut [[u64; N]],
    buffers: &mut Vec<Buffer>,
) -> Result<()> {
    let coded = column.as_any_dictionary_opt();
    let mut strings = bytes::encode(coded.map_or(column, AnyDictionaryArray::values))?;
    let first = (buffers.len() as u128) << 64;
    let are_long = strings.views.iter().map(|view| is_long(*view));
    let any_long = !strings.buffers.is_empty() && are_long.fold(false, |any, long| any | long);
    if any_long && first > 0 {
        let long = strings.views.iter_mut().filter(|view| is_long(**view));
        long.for_each(|view| *view += first);
    }
    let (views, word) = (&strings.views, place.at.word);
    match coded {
        None => {
            let views = views.iter().copied();
            put_views(views, word, nulls, keys);
        }
        Some(coded) => with_integers!(&coded.keys().to_data(), codes => {
            let views = codes.iter().map(|&code| bytes::view_at(views, code as usize));
            put_views(views, word, nulls, keys);
        }),
    }
    if any_long {
        buffers.extend(strings.buffers);
    }
    Ok(())
}

/// The codes of a column of strings in its shared dictionary. A column that comes as codes has those for its values already, or
/// they are asked for.
fn pack_codes<const N: usize>(
    place: &PackedColumn,
    shared: &SharedDictionary,
    column: &ArrayRef,
    nulls: Option<&NullBuffer>,
    keys: &mut [[u64; N]],
) -> Result<()> {
    let (at, coded) = ((place.at, CODE_BITS), column.as_any_dictionary_opt());
    let strings = coded.map_or(column, AnyDictionaryArray::values);
    let codes = match strings.as_primitive_opt::<UInt32Type>() {
        Some(codes) => codes.clone(),
        None => shared.codes(strings)?,
    };
    let codes = codes.values();
    let packed = match coded {
        None => pack_values(at, codes.iter().copied(), nulls, keys, u64::from),
        Some(coded) => with_integers!(&coded.keys().to_data(), rows => {
            // What lies under a NULL may be no key of the dictionary.
            let of_row = |&row| codes.get(row as usize).copied().unwrap_or(0);
            pack_values(at, rows.iter().map(of_row), nulls, keys, u64::from)
        }),
    };
    debug_assert!(packed.is_ok(), "codes have their bits");
    Ok(())
}

fn unpack_codes<const N: usize>(
    place: &PackedColumn,
    shared: &SharedDictionary,
    keys: &[[u64; N]],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let BitOffset { word, shift } = place.at;
    let codes = keys.iter().map(|key| (key[word] >> shift) as u32);
    let codes = UInt32Array::new(codes.collect::<Vec<u32>>().into(), nulls);
    Ok(Arc::new(DictionaryArray::try_new(codes, shared.column()?)?))
}

fn put_views<const N: usize>(
    views: impl Iterator<Item = u128>,
    word: usize,
    nulls: Option<&NullBuffer>,
    keys: &mut [[u64; N]],
) {
    let rows = keys.iter_mut().zip(views);
    match nulls {
        None => rows.for_each(|(key, view)| set_view(key, word, view)),
        Some(nulls) => {
            for ((key, view), valid) in rows.zip(nulls.inner().iter()) {
                if valid {
                    set_view(key, word, view);
                }
            }
        }
    }
}

/// The bits of one column as 64-bit integers or-ed into their place; the row of the first that has more than the place.
fn pack_column<const N: usize>(
    place: &PackedColumn,
    column: &ArrayRef,
    nulls: Option<&NullBuffer>,
    keys: &mut [[u64; N]],
) -> Result<(), usize> {
    let data = column.to_data();
    let at = place.at;
    let ColumnWidth {
        bytes, bits, least, ..
    } = place.width;
    macro_rules! pack {
        ($native:ty, $bits:expr) => {
            pack_values((at, bits), copied::<$native>(&data), nulls, keys, $bits)
        };
    }
    macro_rules! above_least {
        ($native:ty) => {{
            let least = least as $native;
            pack!($native, |v: $native| u64::from(v.wrapping_sub(least)))
        }};
    }
    match (&place.data_type, bytes) {
        (DataType::Boolean, _) => {
            let values = BooleanArray::from(data);
            pack_values((at, bits), values.values().iter(), nulls, keys, u64::from)
        }
        (DataType::Float16, _) => pack!(u16, |v| u64::from(canonical_f16(v))),
        (DataType::Float32, _) => pack!(f32, |v| u64::from(canonical_f32(v))),
        (DataType::Float64, _) => pack!(f64, canonical_f64),
        (_, 1) => above_least!(u8),
        (_, 2) => above_least!(u16),
        (_, 4) => above_least!(u32),
        (_, 8) => above_least!(u64),
        _ if bits <= WORD_BITS => pack!(i128, |v: i128| {
            let above = v.wrapping_sub(least);
            u64::try_from(above).unwrap_or(u64::MAX)
        }),
        _ => {
            pack!(i128, |v: i128| v as u64)?;
            let next = BitOffset {
                word: at.word + 1,
                ..at
            };
            let high = |v: i128| (v >> WORD_BITS) as u64;
            pack_values((next, bits), copied::<i128>(&data), nulls, keys, high)
        }
    }
}

#[inline(always)]
fn pack_values<T: Copy, const N: usize>(
    (at, bits): (BitOffset, u32),
    values: impl Iterator<Item = T> + Clone,
    nulls: Option<&NullBuffer>,
    keys: &mut [[u64; N]],
    bits_of: impl Fn(T) -> u64,
) -> Result<(), usize> {
    let BitOffset { word, shift } = at;
    let mut all = 0;
    let mut pack = |key: &mut [u64; N], bits: u64| {
        all |= bits;
        key[word] |= bits << shift;
    };
    // Whatever lies under a NULL must not tell two NULLs apart.
    let valid_bits = |(value, is_valid)| if is_valid { bits_of(value) } else { 0 };
    match nulls {
        None => {
            let pairs = keys.iter_mut().zip(values.clone());
            pairs.for_each(|(key, value)| pack(key, bits_of(value)));
        }
        Some(nulls) => {
            let pairs = values.clone().zip(nulls.inner().iter());
            let pairs = keys.iter_mut().zip(pairs);
            pairs.for_each(|(key, pair)| pack(key, valid_bits(pair)));
        }
    }
    let fits = |value: u64| bits >= WORD_BITS || value >> bits == 0;
    if fits(all) {
        return Ok(());
    }
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let mut rows = values.enumerate();
    let first = rows.find(|(row, value)| !fits(valid_bits((*value, is_valid(*row)))));
    first.map_or(Ok(()), |(row, _)| Err(row))
}

fn unpack_column<const N: usize>(
    place: &PackedColumn,
    keys: &[[u64; N]],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let BitOffset { word, shift } = place.at;
    let ColumnWidth {
        bytes, bits, least, ..
    } = place.width;
    let mask = u64::MAX >> WORD_BITS.saturating_sub(bits);
    let values = keys.iter().map(|key| key[word] >> shift & mask);
    macro_rules! from_least {
        ($native:ty) => {
            Buffer::from_iter(values.map(|bits| (bits as $native).wrapping_add(least as $native)))
        };
    }
    if place.data_type == DataType::Boolean {
        let values =
            BooleanBuffer::collect_bool(keys.len(), |row| keys[row][word] >> shift & 1 == 1);
        return Ok(Arc::new(BooleanArray::new(values, nulls)));
    }
    let buffer =
        match bytes {
            1 => from_least!(u8),
            2 => from_least!(u16),
            4 => from_least!(u32),
            8 => from_least!(u64),
            _ if bits <= WORD_BITS => from_least!(i128),
            _ => Buffer::from_iter(keys.iter().map(|key| {
                (u128::from(key[word + 1]) << WORD_BITS | u128::from(key[word])) as i128
            })),
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
