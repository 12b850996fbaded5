//! The distinct values of a batch's column, found by their hashes.
//!
//! In: a column. Out: the first row of each value, and each row's value.
//! Invariant: NULL is a value; values are those of rows and no other.
//! Not here: what is computed of them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::datatypes::Field;
use datafusion::common::Result;
use grouse_groupby::TableKind;
use grouse_groupby::keys::{KeyLayout, is_bytes};

use crate::error::to_datafusion;

/// Strings that tell whether more are worth comparing, and how many of them may be different. A search takes 200 to 500 ns,
/// finding a string among those of its batch 40.
const SAMPLE: usize = 1024;
const SAMPLE_DIFFERENT_MAX: usize = SAMPLE / 8 * 7;

/// Where rows find the results of different values.
pub(crate) struct Hashed {
    /// The first row of each.
    pub firsts: UInt32Array,
    /// Of each row, which value it has.
    pub codes: UInt32Array,
}

/// The distinct strings of a column; `None` if there are few rows, or few strings occur in several.
pub(crate) fn repeated(strings: &ArrayRef) -> Result<Option<Hashed>> {
    if strings.len() < SAMPLE || !is_bytes(strings.data_type()) {
        return Ok(None);
    }
    let sample = hashed(&strings.slice(0, SAMPLE))?;
    if sample.firsts.len() > SAMPLE_DIFFERENT_MAX {
        return Ok(None);
    }
    hashed(strings).map(Some)
}

/// The distinct values of a column.
pub(crate) fn hashed(values: &ArrayRef) -> Result<Hashed> {
    let field = Field::new("value", values.data_type().clone(), true);
    let layout = KeyLayout::new(&[Arc::new(field)], TableKind::Auto).map_err(to_datafusion)?;
    let mut hashes = Vec::with_capacity(values.len());
    let keys = layout.encode(&[Arc::clone(values)], values.len(), &mut hashes);
    let keys = keys.map_err(to_datafusion)?;
    let mut table = layout.table();
    let mut groups = Vec::with_capacity(values.len());
    let assigned = table.assign(keys.all(), &hashes, &mut groups);
    assigned.map_err(to_datafusion)?;
    let mut firsts: Vec<u32> = Vec::with_capacity(table.len());
    for (row, group) in groups.iter().enumerate() {
        if group.0 as usize == firsts.len() {
            firsts.push(row as u32);
        }
    }
    let codes = groups.into_iter().map(|group| group.0);
    Ok(Hashed {
        firsts: firsts.into(),
        codes: codes.collect::<Vec<_>>().into(),
    })
}
