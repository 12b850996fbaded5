//! Strings of few values as dense codes.
//!
//! In: one string column after another. Out: a code per row, the same for the same string in every
//! batch; the strings in code order.
//! Invariant: a code never changes; `VALUES_MAX` bounds them, and more values are `Full`.
//! Not here: what is addressed by codes (`direct`).
//!
//! A string repeats as the same view: short ones hold their bytes, long ones of one dictionary page
//! point at the same place. So a small cache from views to codes stands before the table.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use grouse_kernels::hash::hash_view;

use super::bytes::{self, BytesTable, hash_one, is_long};
use super::direct::Full;
use crate::error::Result;

/// More values are no fewer than rows of a hot table: they are looked up as keys.
pub(super) const VALUES_MAX: usize = 1024;
const NEAR: usize = 1024;
/// No view has this length and prefix.
const NOTHING: u128 = u128::MAX;

/// A view and its code; `batch` is the one whose buffers a long view points into.
#[derive(Debug, Clone, Copy)]
struct Near {
    low: u64,
    high: u64,
    code: u32,
    batch: u32,
}

impl Near {
    #[inline(always)]
    fn is(&self, view: u128, batch: u32) -> bool {
        self.low == view as u64
            && self.high == (view >> 64) as u64
            && (!is_long(view) || self.batch == batch)
    }
}

/// Codes of one column.
#[derive(Debug)]
pub(super) struct Interner {
    table: BytesTable,
    near: Vec<Near>,
    batch: u32,
    /// The codes of the current batch; of a NULL any.
    pub(super) codes: Vec<u32>,
}

impl Default for Interner {
    fn default() -> Self {
        let nothing = Near {
            low: NOTHING as u64,
            high: (NOTHING >> 64) as u64,
            code: 0,
            batch: 0,
        };
        Self {
            table: BytesTable::default(),
            near: vec![nothing; NEAR],
            batch: 0,
            codes: Vec::new(),
        }
    }
}

impl Interner {
    /// Fills `codes` for the rows of `column`.
    pub fn push(&mut self, column: &ArrayRef) -> std::result::Result<(), Full> {
        let keys = bytes::encode(column).map_err(|_| Full)?;
        self.batch = self.batch.checked_add(1).ok_or(Full)?;
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        codes.resize(keys.views.len(), 0);
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
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
        self.codes = codes;
        if self.values() > VALUES_MAX {
            return Err(Full);
        }
        Ok(())
    }

    #[inline(always)]
    fn code(&mut self, view: u128, buffers: &[Buffer]) -> u32 {
        let place = Self::place(view);
        // Two places per view: strings that share one would drive each other out.
        for near in [&self.near[place], &self.near[place ^ 1]] {
            if near.is(view, self.batch) {
                return near.code;
            }
        }
        self.search(view, buffers)
    }

    #[inline(always)]
    fn place(view: u128) -> usize {
        hash_view(view) as usize % NEAR
    }

    #[inline(never)]
    fn search(&mut self, view: u128, buffers: &[Buffer]) -> u32 {
        // Past the bound the batch is given up anyway.
        if self.values() > VALUES_MAX {
            return 0;
        }
        let hash = hash_one(view, buffers);
        let Ok(group) = self.table.search(view, hash, buffers) else {
            return 0;
        };
        let place = Self::place(view);
        self.near[place ^ 1] = self.near[place];
        self.near[place] = Near {
            low: view as u64,
            high: (view >> 64) as u64,
            code: group.0,
            batch: self.batch,
        };
        group.0
    }

    /// Number of different strings so far.
    pub fn values(&self) -> usize {
        self.table.groups()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.table.held_bytes() + NEAR * size_of::<Near>() + self.codes.capacity() * 4
    }

    /// The strings of these codes as a column of `data_type`.
    pub fn column(&self, codes: &[Option<i64>], data_type: &DataType) -> Result<ArrayRef> {
        self.table.column(codes, data_type)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, StringArray, StringViewArray};

    use super::*;

    #[test]
    fn a_string_has_one_code_in_all_batches() {
        let mut interner = Interner::default();
        let mut seen = Vec::new();
        // Long strings of one length and prefix at the same place of each batch's buffer.
        for end in ["one", "two", "one"] {
            let long = format!("the same beginning {end}");
            let column = StringViewArray::from(vec![Some(""), None, Some("short"), Some(&long)]);
            interner.push(&(Arc::new(column) as ArrayRef)).unwrap();
            seen.push(interner.codes[3]);
            assert_eq!((interner.codes[0], interner.codes[2]), (0, 1));
        }
        assert_eq!(seen, [2, 3, 2]);
        let back = interner
            .column(&[Some(3), None, Some(0), Some(1)], &DataType::Utf8)
            .unwrap();
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
    fn too_many_values_are_full() {
        let mut interner = Interner::default();
        let texts = |count: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                (0..count).map(|n| n.to_string()),
            ))
        };
        assert!(interner.push(&texts(VALUES_MAX)).is_ok());
        assert!(interner.push(&texts(VALUES_MAX)).is_ok());
        assert!(interner.push(&texts(VALUES_MAX + 1)).is_err());
    }
}
