//! Strings of few values as dense codes.
//!
//! In: one string column after another, plain or as codes of its own dictionaries. Out: a code per
//! row, the same for the same string in every batch; the strings in code order.
//! Invariant: a code never changes; `VALUES_MAX` or, of an only column of codes, `CODED_VALUES_MAX` bounds them, and more
//! values are `Full`, after which no batch is taken.
//! Not here: what is addressed by codes (`direct`).
//!
//! A string repeats as the same view: short ones hold their bytes, long ones of one dictionary page
//! point at the same place. So a small cache from views to codes stands before the table. Of a
//! column that comes as codes each value is looked up once while its dictionary lives.

use std::sync::Arc;

use arrow::array::types;
use arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray, DictionaryArray, UInt32Array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, DataType};
use grouse_kernels::hash::Seeds;

use super::ByteKeys;
use super::bytes::{self, BytesTable, hash_by};
use super::dictionary_cache::DictionaryCache;
use super::views::is_long;
use crate::error::Result;

/// More values are no fewer than rows of a hot table: they are looked up as keys.
const VALUES_MAX: usize = 1024;
/// The same of a column of codes that is the only key: a value is looked up once per dictionary, its rows by their code.
const CODED_VALUES_MAX: usize = 16 << 10;
const NEAR: usize = 1024;
/// A dictionary of more values costs more to take note of than a batch's rows.
const DICTIONARY_MAX: usize = 64 << 10;
/// The code of a value that no row had yet.
pub(super) const UNKNOWN: u32 = u32::MAX;
/// No view has this length and prefix.
const NOTHING: u128 = u128::MAX;

/// The ranges do not fit the array: the keys have to be hashed.
#[derive(Debug)]
pub struct Full;

/// A view and its code; `batch` is the one whose buffers a long view points into.
#[derive(Debug, Clone, Copy)]
struct CachedView {
    low: u64,
    high: u64,
    code: u32,
    batch: u32,
}

impl CachedView {
    #[inline(always)]
    fn is(&self, view: u128, batch: u32) -> bool {
        self.low == view as u64
            && self.high == (view >> 64) as u64
            && (!is_long(view) || self.batch == batch)
    }
}

/// A dictionary's values and the interner's codes for them.
#[derive(Debug)]
struct InternedDictionary {
    values: ByteKeys,
    /// Of each value, and `UNKNOWN` up to a power of two.
    codes: Vec<u32>,
}

impl InternedDictionary {
    /// Nothing is looked up yet; `Full` if these are no values of `data_type`.
    fn new(dictionary: &ArrayRef, data_type: &DataType) -> std::result::Result<Self, Full> {
        if dictionary.len() > DICTIONARY_MAX {
            return Err(Full);
        }
        Ok(Self {
            values: bytes::encode_as(dictionary, data_type).map_err(|_| Full)?,
            codes: vec![UNKNOWN; dictionary.len().next_power_of_two()],
        })
    }
}

/// Codes of one column.
#[derive(Debug)]
pub(super) struct Interner {
    table: BytesTable,
    /// Its hashes leave it nowhere, so that nobody need know them: a thousand chosen strings took 17 times as long.
    seeds: Seeds,
    near: Vec<CachedView>,
    batch: u32,
    interned: DictionaryCache<InternedDictionary>,
    /// Dictionaries that were translated so far.
    pub(super) dictionaries: u32,
    coded_values_max: usize,
    /// Values that there may be with those of the current batch.
    values_max: usize,
    /// The codes of the current batch; of a NULL any.
    pub(super) codes: Vec<u32>,
}

impl Interner {
    /// No values yet, of a column that is the only key or not.
    pub(super) fn new(is_only: bool) -> Self {
        let nothing = CachedView {
            low: NOTHING as u64,
            high: (NOTHING >> 64) as u64,
            code: 0,
            batch: 0,
        };
        Self {
            table: BytesTable::default(),
            seeds: Seeds::random(),
            near: vec![nothing; NEAR],
            batch: 0,
            interned: DictionaryCache::default(),
            dictionaries: 0,
            coded_values_max: if is_only {
                CODED_VALUES_MAX
            } else {
                VALUES_MAX
            },
            values_max: VALUES_MAX,
            codes: Vec::new(),
        }
    }

    /// Fills `codes` for the rows of `column`, whose values are of `data_type`.
    pub(super) fn push(
        &mut self,
        column: &ArrayRef,
        data_type: &DataType,
    ) -> std::result::Result<(), Full> {
        self.batch = self.batch.checked_add(1).ok_or(Full)?;
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
        let pushed = match column.as_any_dictionary_opt() {
            Some(coded) => {
                self.values_max = self.coded_values_max;
                self.push_coded(coded, nulls.as_ref(), data_type, &mut codes)
            }
            None => {
                self.values_max = VALUES_MAX;
                self.push_plain(column, nulls.as_ref(), &mut codes)
            }
        };
        self.codes = codes;
        pushed?;
        if self.values() > self.values_max {
            return Err(Full);
        }
        Ok(())
    }

    /// Takes up the dictionary of a column before its rows, if it is another than the last: the codes of those of its values that
    /// have any. Not of one that has more values than there are rows.
    pub(super) fn intern_dictionary(&mut self, column: &ArrayRef, data_type: &DataType) {
        let Some(coded) = column.as_any_dictionary_opt() else {
            return;
        };
        let dictionary = coded.values();
        if self.interned.get(dictionary).is_some() || dictionary.len() > column.len() {
            return;
        }
        // What is wrong with it is for `push` to say.
        let Ok(mut interned) = InternedDictionary::new(dictionary, data_type) else {
            return;
        };
        let InternedDictionary { values, codes, .. } = &mut interned;
        for (value, (code, &view)) in codes.iter_mut().zip(&values.views).enumerate() {
            if dictionary.is_valid(value) {
                let hash = hash_by(self.seeds, view, &values.buffers);
                let group = self.table.find(view, hash, &values.buffers);
                *code = group.map_or(UNKNOWN, |group| group.0);
            }
        }
        self.dictionaries += 1;
        self.interned.insert(dictionary, interned);
    }

    fn push_plain(
        &mut self,
        column: &ArrayRef,
        nulls: Option<&NullBuffer>,
        codes: &mut Vec<u32>,
    ) -> std::result::Result<(), Full> {
        let keys = bytes::encode(column).map_err(|_| Full)?;
        codes.resize(keys.views.len(), 0);
        match nulls {
            None => {
                for (code, &view) in codes.iter_mut().zip(&keys.views) {
                    *code = self.code(view, &keys.buffers);
                }
            }
            Some(nulls) => {
                for row in nulls.valid_indices() {
                    codes[row] = self.code(keys.views[row], &keys.buffers);
                }
            }
        }
        Ok(())
    }

    fn push_coded(
        &mut self,
        column: &dyn AnyDictionaryArray,
        nulls: Option<&NullBuffer>,
        data_type: &DataType,
        codes: &mut Vec<u32>,
    ) -> std::result::Result<(), Full> {
        let dictionary = column.values();
        let mut cache = std::mem::take(&mut self.interned);
        let interned = cache.get_or_make(dictionary, || {
            self.dictionaries += 1;
            InternedDictionary::new(dictionary, data_type)
        })?;
        let keys = column.keys();
        macro_rules! typed {
            ($key:ty) => {
                self.translate::<$key>(keys, nulls, interned, codes)
            };
        }
        match keys.data_type() {
            DataType::Int8 => typed!(types::Int8Type),
            DataType::Int16 => typed!(types::Int16Type),
            DataType::Int32 => typed!(types::Int32Type),
            DataType::Int64 => typed!(types::Int64Type),
            DataType::UInt8 => typed!(types::UInt8Type),
            DataType::UInt16 => typed!(types::UInt16Type),
            DataType::UInt32 => typed!(types::UInt32Type),
            DataType::UInt64 => typed!(types::UInt64Type),
            other => unreachable!("{other} is no type of dictionary keys"),
        }
        self.interned = cache;
        Ok(())
    }

    /// The keys of a column of codes and the codes of its dictionary's values, as many as a power of two. `None` if a key
    /// is NULL (a value may be), or if the dictionary is not that of the last batch that came as codes.
    pub(super) fn translated<'a>(
        &'a self,
        column: &'a ArrayRef,
    ) -> Option<(&'a dyn Array, &'a [u32])> {
        let coded = column.as_any_dictionary_opt()?;
        let known = self.interned.get(coded.values())?;
        (column.null_count() == 0).then_some((coded.keys(), &known.codes))
    }

    /// Whether the dictionary of the last batch that came as codes has values that are NULL, whose codes are not known.
    pub(super) fn has_null_value(&self) -> bool {
        let known = self.interned.last();
        known.is_some_and(|(dictionary, _)| dictionary.null_count() > 0)
    }

    fn translate<K: ArrowDictionaryKeyType>(
        &mut self,
        keys: &dyn Array,
        nulls: Option<&NullBuffer>,
        interned: &mut InternedDictionary,
        codes: &mut Vec<u32>,
    ) {
        let keys = keys.as_primitive::<K>().values();
        let InternedDictionary {
            values,
            codes: known,
            ..
        } = interned;
        let mut translate = |key: K::Native| {
            let code = &mut known[key.as_usize()];
            if *code == UNKNOWN {
                *code = self.code(values.views[key.as_usize()], &values.buffers);
            }
            *code
        };
        if let Some(nulls) = nulls {
            // Of a NULL the key says nothing.
            codes.resize(keys.len(), 0);
            for row in nulls.valid_indices() {
                codes[row] = translate(keys[row]);
            }
        } else {
            codes.extend(keys.iter().map(|key| translate(*key)));
        }
    }

    #[inline(always)]
    fn code(&mut self, view: u128, buffers: &[Buffer]) -> u32 {
        let place = self.place(view);
        // Two places per view: strings that share one would drive each other out.
        for near in [&self.near[place], &self.near[place ^ 1]] {
            if near.is(view, self.batch) {
                return near.code;
            }
        }
        self.search(view, buffers)
    }

    #[inline(always)]
    fn place(&self, view: u128) -> usize {
        self.seeds.hash_view(view) as usize % NEAR
    }

    #[inline(never)]
    fn search(&mut self, view: u128, buffers: &[Buffer]) -> u32 {
        // Past the bound the batch is given up anyway, and the table with it.
        if self.values() > self.values_max {
            return 0;
        }
        let hash = hash_by(self.seeds, view, buffers);
        let Ok(group) = self.table.search(view, hash, buffers) else {
            return 0;
        };
        let place = self.place(view);
        self.near[place ^ 1] = self.near[place];
        self.near[place] = CachedView {
            low: view as u64,
            high: (view >> 64) as u64,
            code: group.0,
            batch: self.batch,
        };
        group.0
    }

    /// Number of different strings so far.
    pub(super) fn values(&self) -> usize {
        self.table.groups()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let translated = self.interned.last().map_or(0, |(dictionary, known)| {
            dictionary.get_array_memory_size() + known.codes.len() * (4 + 16)
        });
        let held = NEAR * size_of::<CachedView>() + self.codes.capacity() * 4;
        self.table.held_bytes() + held + translated
    }

    /// These codes with the strings that they stand for, of `data_type`.
    pub(super) fn column(&self, codes: &[Option<i64>], data_type: &DataType) -> Result<ArrayRef> {
        let codes = codes.iter().map(|code| code.map(|code| code as u32));
        let strings = self.table.column(data_type)?;
        Ok(Arc::new(DictionaryArray::try_new(
            codes.collect::<UInt32Array>(),
            strings,
        )?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, Int8Array, Int32Array, StringArray, StringViewArray, UInt16Array,
    };

    use super::super::KeyTable;
    use super::super::columns::unpacked;
    use super::*;

    #[test]
    fn a_string_has_one_code_in_all_batches() {
        let mut interner = Interner::new(false);
        let mut seen = Vec::new();
        // Long strings of one length and prefix at the same place of each batch's buffer.
        for end in ["one", "two", "one"] {
            let long = format!("the same beginning {end}");
            let column = StringViewArray::from(vec![Some(""), None, Some("short"), Some(&long)]);
            let column: ArrayRef = Arc::new(column);
            interner.push(&column, &DataType::Utf8View).unwrap();
            seen.push(interner.codes[3]);
            assert_eq!((interner.codes[0], interner.codes[2]), (0, 1));
        }
        assert_eq!(seen, [2, 3, 2]);
        let back = interner
            .column(&[Some(3), None, Some(0), Some(1)], &DataType::Utf8)
            .unwrap();
        let back = unpacked(&back, &DataType::Utf8).unwrap();
        let back: Vec<_> = back.as_string::<i32>().iter().collect();
        assert_eq!(
            back,
            [
                Some("the same beginning two"),
                None,
                Some(""),
                Some("short")
            ]
        );
    }

    #[test]
    fn columns_of_codes_and_plain_ones_share_their_codes() {
        let mut interner = Interner::new(false);
        let mut push = |column: ArrayRef| {
            interner.push(&column, &DataType::Utf8View).unwrap();
            interner.codes.clone()
        };
        let plain: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
        assert_eq!(push(Arc::clone(&plain)), [0, 1]);
        // A value that is NULL, a NULL key, a value that no row has, bytes for strings.
        let values = StringArray::from(vec![Some("a"), None, Some("no row"), Some("c")]);
        let keys = Int8Array::from(vec![Some(3), Some(1), None, Some(0)]);
        let coded = DictionaryArray::new(keys, Arc::new(values));
        assert_eq!(push(Arc::new(coded.slice(0, 3))), [2, 0, 0]);
        assert_eq!(push(Arc::new(coded)), [2, 0, 0, 1]);
        let bytes = BinaryArray::from(vec!["c".as_bytes(), "b".as_bytes()]);
        let keys = UInt16Array::from(vec![1, 0, 0]);
        assert_eq!(
            push(Arc::new(DictionaryArray::new(keys, Arc::new(bytes)))),
            [0, 2, 2]
        );
        assert_eq!(push(plain), [0, 1]);
        assert_eq!(interner.values(), 3);
    }

    /// The fixed hash of 12 bytes is a product, one of whose factors is zero if they end so.
    #[test]
    fn values_chosen_to_have_one_hash_have_places_of_their_own() {
        const END: u64 = 0x4b33_a62e_d433_d4a3 ^ 0xaa6c_78a5_2d35_8dcc;
        let chosen = |at: u32| [at.to_le_bytes().as_slice(), &END.to_le_bytes()].concat();
        let values: Vec<Vec<u8>> = (0..VALUES_MAX as u32).map(chosen).collect();
        let hash = |value: &Vec<u8>| grouse_kernels::hash::hash_bytes(value);
        assert!(values.iter().all(|value| hash(value) == hash(&values[0])));
        let rows = (0..8 * VALUES_MAX).map(|row| &values[row % VALUES_MAX]);
        let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows));
        let mut interner = Interner::new(true);
        interner.push(&column, &DataType::Binary).unwrap();
        let codes = (0..8 * VALUES_MAX).map(|row| (row % VALUES_MAX) as u32);
        assert!(interner.codes.iter().copied().eq(codes));
        let vain = interner.table.collisions();
        assert!(vain < 64 * VALUES_MAX as u64, "{vain} slots in vain");
    }

    #[test]
    fn bytes_that_are_no_text_are_full() {
        let bytes = BinaryArray::from(vec![[0xff].as_slice()]);
        let coded = DictionaryArray::new(Int32Array::from(vec![0]), Arc::new(bytes));
        let coded: ArrayRef = Arc::new(coded);
        assert!(
            Interner::new(false)
                .push(&coded, &DataType::Utf8View)
                .is_err()
        );
        assert!(Interner::new(false).push(&coded, &DataType::Binary).is_ok());
    }

    #[test]
    fn too_many_values_are_full() {
        let mut interner = Interner::new(false);
        let strings = |count: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                (0..count).map(|n| n.to_string()),
            ))
        };
        let mut push = |column: ArrayRef| interner.push(&column, &DataType::Utf8);
        assert!(push(strings(VALUES_MAX)).is_ok());
        assert!(push(strings(VALUES_MAX)).is_ok());
        assert!(push(strings(VALUES_MAX + 1)).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "16,384 strings take it hours")]
    fn more_values_may_come_as_codes_of_an_only_column() {
        let coded = |count: usize| -> ArrayRef {
            let values = StringArray::from_iter_values((0..count).map(|n| n.to_string()));
            let keys = Int32Array::from_iter_values(0..count as i32);
            Arc::new(DictionaryArray::new(keys, Arc::new(values)))
        };
        let is_taken = |is_only, count| {
            let mut interner = Interner::new(is_only);
            interner.push(&coded(count), &DataType::Utf8).is_ok()
        };
        assert!(is_taken(true, CODED_VALUES_MAX) && !is_taken(true, CODED_VALUES_MAX + 1));
        assert!(is_taken(false, VALUES_MAX) && !is_taken(false, VALUES_MAX + 1));
        let mut interner = Interner::new(true);
        let mut push = |column: ArrayRef| interner.push(&column, &DataType::Utf8).is_ok();
        assert!(push(coded(VALUES_MAX + 1)));
        let plain: ArrayRef = Arc::new(StringArray::from(vec!["0"]));
        assert!(!push(plain), "too many for rows that come as they are");
    }
}
