//! The object cache: Python objects of values that came before, so that equal values of a column share one.
//!
//! In: a value's bytes, or the codes and values of a dictionary. Out: an object, the earlier one where there is one.
//! Invariant: what is kept is bounded, except by the dictionary that is being read; a column whose values do not repeat
//! is looked at now and then only.
//! Not here: making objects (rows.rs).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::take;
use grouse_kernels::hash::Seeds;
use pyo3::prelude::*;

use crate::error::raise;

/// Values that are kept for a column.
const VALUES_MAX: usize = 16 << 10;
/// Longer values are made anew each time.
const VALUE_BYTES_MAX: usize = 256;
/// After so many values it is looked at how many of them came before.
const WINDOW: u32 = 4096;
/// Where they were few, as many times the window passes without a look.
const PAUSE: u32 = 15;

/// The objects of one column, or of the columns of a row, from batch to batch.
#[derive(Default)]
pub struct ObjectCache {
    values: HashMap<Box<[u8]>, Py<PyAny>, BytesHash>,
    asked: u32,
    found: u32,
    pause: u32,
    dictionary: Option<Dictionary>,
    children: Vec<ObjectCache>,
}

/// The dictionary of the batch before; objects are made of values that a row had.
struct Dictionary {
    values: ArrayRef,
    objects: Vec<Option<Py<PyAny>>>,
}

impl ObjectCache {
    /// Of one of the columns that this one is made of: a field, the items.
    pub fn child(&mut self, at: usize) -> &mut ObjectCache {
        let children = self.children.len().max(at + 1);
        self.children.resize_with(children, ObjectCache::default);
        &mut self.children[at]
    }

    /// The object of the value that has these bytes; values of a column are equal where their bytes are.
    pub fn object<'py>(
        &mut self,
        py: Python<'py>,
        value: &[u8],
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.pause > 0 {
            self.pause -= 1;
            return make();
        }
        if value.len() > VALUE_BYTES_MAX {
            return make();
        }
        if self.asked == WINDOW {
            if self.found < WINDOW / 4 {
                self.values.clear();
                self.pause = PAUSE * WINDOW;
            }
            (self.asked, self.found) = (0, 0);
        }
        self.asked += 1;
        if let Some(object) = self.values.get(value) {
            self.found += 1;
            return Ok(object.bind(py).clone());
        }
        let object = make()?;
        if self.values.len() < VALUES_MAX {
            self.values.insert(value.into(), object.clone().unbind());
        }
        Ok(object)
    }

    /// The objects of rows with these codes, of which each value of `values` gets one; `make` makes those of a column.
    pub fn decoded<'py>(
        &mut self,
        py: Python<'py>,
        values: &ArrayRef,
        codes: impl Iterator<Item = Option<usize>> + Clone,
        make: impl FnOnce(&ArrayRef, &mut ObjectCache) -> PyResult<Vec<Bound<'py, PyAny>>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let last = self.dictionary.take();
        let last = last.filter(|last| last.values.to_data().ptr_eq(&values.to_data()));
        let mut dictionary = last.unwrap_or_else(|| Dictionary {
            values: ArrayRef::clone(values),
            objects: (0..values.len()).map(|_| None).collect(),
        });
        let new = codes.clone().flatten();
        let new = new.filter(|&code| dictionary.objects[code].is_none());
        let mut new: Vec<u64> = new.map(|code| code as u64).collect();
        new.sort_unstable();
        new.dedup();
        let new = UInt64Array::from(new);
        let taken = take(values, &new, None).map_err(|failure| raise(failure.into()))?;
        for (&code, object) in new.values().iter().zip(make(&taken, self)?) {
            dictionary.objects[code as usize] = Some(object.unbind());
        }
        let none = || py.None().into_bound(py);
        let rows = codes.map(|code| {
            let object = code.and_then(|code| dictionary.objects[code].as_ref());
            object.map_or_else(none, |object| object.bind(py).clone())
        });
        let rows = rows.collect();
        self.dictionary = Some(dictionary);
        Ok(rows)
    }
}

/// The engine's own hash of a byte string, by seeds that who chose the strings does not know.
struct BytesHash(Seeds);

impl Default for BytesHash {
    fn default() -> Self {
        Self(Seeds::random())
    }
}

impl BuildHasher for BytesHash {
    type Hasher = BytesHasher;

    fn build_hasher(&self) -> BytesHasher {
        BytesHasher {
            seeds: self.0,
            hash: 0,
        }
    }
}

struct BytesHasher {
    seeds: Seeds,
    hash: u64,
}

impl Hasher for BytesHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.hash = self.seeds.hash_bytes(bytes);
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.hash
    }
}
