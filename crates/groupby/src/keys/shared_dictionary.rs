//! Strings of a key column as numbers that all workers share.
//!
//! In: the values of dictionaries, or columns of strings. Out: a code per value, the same for the same string whoever asks;
//! the strings in code order.
//! Invariant: a code never changes, and codes have no gaps. The strings are held as long as the plan lives: only columns whose
//! dictionaries are small together have a shared one (`KeyValues::Few`).
//! Not here: who packs codes (`packed`), codes of one worker's direct table (`intern`).
//!
//! A key of several columns has 4 bytes of such a string where its view has 16: half of db-benchmark's question 10. Each
//! worker asks once per dictionary, and writes only where a string is new, so that in the end nobody waits for anybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use grouse_kernels::hash::Seeds;
use parking_lot::{Mutex, RwLock};

use super::bytes::{self, BytesTable, hash_by};
use super::dictionary_cache::DictionaryCache;
use crate::error::{Error, Result};

/// Codes of one column's strings.
#[derive(Debug)]
pub(super) struct SharedDictionary {
    data_type: DataType,
    strings: RwLock<BytesTable>,
    /// Nobody else asks for these hashes, so that nobody need know them.
    seeds: Seeds,
    /// All strings as they were when somebody last asked for them.
    column: Mutex<Option<ArrayRef>>,
    /// Bytes held by `strings`, which are asked for after each batch.
    bytes: AtomicUsize,
}

/// A row's number, its string as a view, and the hash of that: of a string whose code is not known yet.
type Missing = (usize, u128, u64);

impl SharedDictionary {
    /// An empty shared dictionary of strings of this type.
    pub(super) fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            strings: RwLock::default(),
            seeds: Seeds::random(),
            column: Mutex::default(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// The code of each of these strings; of a NULL any, which is NULL.
    pub(super) fn codes(&self, strings: &ArrayRef) -> Result<UInt32Array> {
        let keys = bytes::encode_as(strings, &self.data_type)?;
        let nulls = strings.logical_nulls();
        let is_valid = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
        let valid = keys.views.iter().enumerate();
        let mut missing: Vec<Missing> = valid
            .filter(|(row, _)| is_valid(*row))
            .map(|(row, &view)| (row, view, hash_by(self.seeds, view, &keys.buffers)))
            .collect();
        let mut codes = vec![0; keys.views.len()];
        self.look_up(&mut missing, &keys.buffers, &mut codes);
        if !missing.is_empty() {
            let known = self.strings.try_write().or_else(|| {
                // Whoever writes now has read much the same: its strings are no longer missing when it is through.
                self.look_up(&mut missing, &keys.buffers, &mut codes);
                (!missing.is_empty()).then(|| self.strings.write())
            });
            if let Some(mut known) = known {
                for (row, view, hash) in missing {
                    codes[row] = known.search(view, hash, &keys.buffers)?.0;
                }
                self.bytes.store(known.held_bytes(), Ordering::Relaxed);
            }
        }
        Ok(UInt32Array::new(codes.into(), nulls))
    }

    /// Writes the codes of the strings that are known; the others stay `missing`.
    fn look_up(&self, missing: &mut Vec<Missing>, buffers: &[Buffer], codes: &mut [u32]) {
        let known = self.strings.read();
        missing.retain(|&(row, view, hash)| {
            let found = known.find(view, hash, buffers);
            if let Some(code) = found {
                codes[row] = code.0;
            }
            found.is_none()
        });
    }

    /// All strings so far, in code order: the same array as long as there are no more.
    pub(super) fn column(&self) -> Result<ArrayRef> {
        let strings = self.strings.read();
        let mut column = self.column.lock();
        match &*column {
            Some(known) if known.len() == strings.groups() => Ok(Arc::clone(known)),
            _ => {
                let all = strings.column(&self.data_type)?;
                *column = Some(Arc::clone(&all));
                Ok(all)
            }
        }
    }

    /// Bytes held, those of the column aside, which somebody else may hold as well.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Of the dictionary that a worker had last in each column, the codes of the values in the column's shared dictionary.
#[derive(Debug, Default)]
pub struct CodeMaps(Vec<DictionaryCache<ArrayRef>>);

impl CodeMaps {
    /// The `at`th column with codes of `shared` for its values; one that is no dictionary as it is.
    pub(super) fn of(
        &mut self,
        at: usize,
        column: &ArrayRef,
        shared: &SharedDictionary,
    ) -> Result<ArrayRef> {
        let Some(coded) = column.as_any_dictionary_opt() else {
            return Ok(Arc::clone(column));
        };
        // Of a column that is NULL in a grouping set; the one that it has in others comes again.
        if coded.values().is_empty() {
            return Ok(coded.with_values(Arc::new(UInt32Array::from(Vec::<u32>::new()))));
        }
        if self.0.len() <= at {
            self.0.resize_with(at + 1, DictionaryCache::default);
        }
        let codes = || Ok::<_, Error>(Arc::new(shared.codes(coded.values())?) as ArrayRef);
        let codes = self.0[at].get_or_make(coded.values(), codes)?;
        Ok(coded.with_values(Arc::clone(codes)))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use arrow::array::{
        BinaryArray, DictionaryArray, StringArray, StringViewArray, UInt8Array, new_null_array,
    };

    use super::super::columns::unpacked;
    use super::*;
    use crate::error::Error;

    const LONG: &str = "a text that is longer than a view";

    fn strings(strings: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringViewArray::from(strings.to_vec()))
    }

    #[test]
    fn a_string_has_one_code_wherever_it_comes_from() {
        let shared = SharedDictionary::new(&DataType::Utf8View);
        let first = strings(&[Some("b"), None, Some(LONG), Some(""), Some("b")]);
        let codes = shared.codes(&first).expect("codes");
        assert_eq!(
            codes,
            UInt32Array::from(vec![Some(0), None, Some(1), Some(2), Some(0)])
        );
        let known = shared.column().expect("strings");
        let other: ArrayRef = Arc::new(StringArray::from(vec!["", LONG, "b"]));
        assert_eq!(
            shared.codes(&other).expect("codes"),
            UInt32Array::from(vec![2, 1, 0])
        );
        assert!(Arc::ptr_eq(&known, &shared.column().expect("strings")));
        let last = strings(&[Some("new")]);
        assert_eq!(
            shared.codes(&last).expect("codes"),
            UInt32Array::from(vec![3])
        );
        let all = strings(&[Some("b"), Some(LONG), Some(""), Some("new")]);
        assert_eq!(&shared.column().expect("strings"), &all);
        assert!(shared.bytes() > LONG.len());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let shared = SharedDictionary::new(&DataType::Utf8View);
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![b"fine".as_ref(), b"\xff"]));
        assert!(matches!(shared.codes(&bytes), Err(Error::Arrow(_))));
        assert_eq!(shared.column().expect("strings").len(), 0);
        let shared = SharedDictionary::new(&DataType::BinaryView);
        assert_eq!(
            shared.codes(&bytes).expect("codes"),
            UInt32Array::from(vec![0, 1])
        );
    }

    /// A dictionary is asked for once, as long as it is the one before.
    #[test]
    fn code_maps_are_of_the_dictionary_that_a_column_has() {
        let (shared, mut known) = (
            SharedDictionary::new(&DataType::Utf8View),
            CodeMaps::default(),
        );
        let keys = UInt8Array::from(vec![Some(1), None, Some(0), Some(2)]);
        let (some, others) = (
            strings(&[Some("x"), Some("y"), None]),
            strings(&[Some("y"), Some("z"), Some("x")]),
        );
        let mut previous: Option<ArrayRef> = None;
        for (dictionary, is_new) in [
            (&some, true),
            (&some, false),
            (&others, true),
            (&some, true),
        ] {
            let column: ArrayRef =
                Arc::new(DictionaryArray::new(keys.clone(), Arc::clone(dictionary)));
            let codes = known.of(1, &column, &shared).expect("codes");
            let values = codes.as_any_dictionary().values();
            let expected = shared.codes(&unpacked(&column, &DataType::Utf8View).expect("strings"));
            let found = unpacked(&codes, &DataType::UInt32).expect("codes");
            assert_eq!(found.as_ref(), &expected.expect("codes") as &dyn Array);
            let is_like = previous.as_ref().is_some_and(|of| Arc::ptr_eq(of, values));
            assert_eq!(is_like, !is_new);
            previous = Some(Arc::clone(values));
            // One without values changes nothing.
            let nothing = new_null_array(column.data_type(), 2);
            let nothing = known.of(1, &nothing, &shared).expect("codes");
            assert_eq!((nothing.len(), nothing.null_count()), (2, 2));
        }
        let plain = strings(&[Some("x")]);
        assert!(Arc::ptr_eq(
            &plain,
            &known.of(0, &plain, &shared).expect("itself")
        ));
    }

    #[test]
    fn workers_that_ask_at_once_get_the_same_codes() {
        let shared = SharedDictionary::new(&DataType::Utf8View);
        let names: Vec<String> = (0..3_000).map(|name| format!("{name} of {LONG}")).collect();
        let asked = |worker: usize| {
            // Each begins somewhere else.
            let rows = (0..names.len()).map(|row| (row + worker * 701) % names.len());
            let rows: Vec<usize> = rows.collect();
            let column: ArrayRef = Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| &names[*row]),
            ));
            let codes = shared.codes(&column).expect("codes");
            let mut by_name = vec![0; names.len()];
            for (row, code) in rows.iter().zip(codes.values()) {
                by_name[*row] = *code;
            }
            by_name
        };
        let all: Vec<Vec<u32>> = thread::scope(|scope| {
            let asked = &asked;
            let workers: Vec<_> = (0..4)
                .map(|worker| scope.spawn(move || asked(worker)))
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("no panic"))
                .collect()
        });
        assert!(all.iter().all(|codes| codes == &all[0]));
        let mut codes = all[0].clone();
        codes.sort_unstable();
        assert!(codes.into_iter().eq(0..names.len() as u32));
        let column = shared.column().expect("strings");
        for (name, code) in names.iter().zip(&all[0]) {
            assert_eq!(column.as_string_view().value(*code as usize), name);
        }
    }
}
