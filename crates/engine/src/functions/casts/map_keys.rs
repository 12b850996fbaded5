//! Maps made of keys and values that are there.
//!
//! In: keys and values of all maps, one behind the other, and how many each map has. Out: the maps.
//! Invariant: no map has a key twice or a NULL as one: that is an error, or the whole map is NULL with TRY_CAST. Values that are
//! equal are one key, such as 0.0 and -0.0.
//! Not here: where keys and values are from (nested_casts.rs, text_casts.rs, scalar/lists.rs).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, MapArray, StructArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use grouse_groupby::keys::row::canonical_values;

use crate::error::to_datafusion;

/// Maps in parts.
pub(in crate::functions) struct MapParts {
    /// Whether a row is a map; one that is none has no entries.
    pub(in crate::functions) valid: Vec<bool>,
    /// Entries of each row.
    pub(in crate::functions) lengths: Vec<usize>,
    pub(in crate::functions) keys: ArrayRef,
    pub(in crate::functions) values: ArrayRef,
}

/// How an entry is no entry of its map.
enum WrongKey {
    Null,
    Twice(usize),
}

impl MapParts {
    /// The parts of maps that are there already.
    pub(in crate::functions) fn of(maps: &MapArray) -> Result<MapParts> {
        let valid: Vec<bool> = (0..maps.len()).map(|row| maps.is_valid(row)).collect();
        let mut lengths = vec![0; maps.len()];
        let mut entries: Vec<u32> = Vec::with_capacity(maps.entries().len());
        for (row, window) in maps.offsets().windows(2).enumerate() {
            if valid[row] {
                lengths[row] = (window[1] - window[0]) as usize;
                entries.extend(window[0] as u32..window[1] as u32);
            }
        }
        let entries = UInt32Array::from(entries);
        Ok(MapParts {
            valid,
            lengths,
            keys: take(maps.keys(), &entries, None)?,
            values: take(maps.values(), &entries, None)?,
        })
    }

    /// The maps; `entries` and `is_sorted` are those of their type.
    pub(in crate::functions) fn maps(
        mut self,
        entries: &FieldRef,
        is_sorted: bool,
        is_try: bool,
    ) -> Result<ArrayRef> {
        let DataType::Struct(fields) = entries.data_type() else {
            return internal_err!("a map of {entries}");
        };
        self.check(is_try)?;
        let columns = vec![self.keys, self.values];
        let columns = StructArray::try_new(fields.clone(), columns, None)?;
        Ok(Arc::new(MapArray::try_new(
            Arc::clone(entries),
            OffsetBuffer::from_lengths(self.lengths),
            columns,
            Some(NullBuffer::from(self.valid)),
            is_sorted,
        )?))
    }

    /// An error of a map whose keys are no keys; `is_try`: none such is left.
    fn check(&mut self, is_try: bool) -> Result<()> {
        let keys = canonical_values(&self.keys).map_err(to_datafusion)?;
        let converter = RowConverter::new(vec![SortField::new(keys.data_type().clone())])?;
        let rows = converter.convert_columns(&[keys])?;
        let mut known = HashSet::new();
        let (mut start, mut kept, mut is_wrong) = (0, Vec::new(), false);
        for (length, valid) in self.lengths.iter_mut().zip(&mut self.valid) {
            let entries = start..start + *length;
            start = entries.end;
            known.clear();
            let wrong = entries.clone().find_map(|at| {
                if self.keys.is_null(at) {
                    return Some(WrongKey::Null);
                }
                (!known.insert(rows.row(at))).then_some(WrongKey::Twice(at))
            });
            match wrong {
                None => kept.extend(entries.map(|at| at as u32)),
                Some(wrong) if !is_try => return error(&self.keys, &wrong),
                Some(_) => (*length, *valid, is_wrong) = (0, false, true),
            }
        }
        if is_wrong {
            let kept = UInt32Array::from(kept);
            self.keys = take(&self.keys, &kept, None)?;
            self.values = take(&self.values, &kept, None)?;
        }
        Ok(())
    }
}

fn error(keys: &ArrayRef, wrong: &WrongKey) -> Result<()> {
    match wrong {
        WrongKey::Null => exec_err!("map key must not be NULL"),
        WrongKey::Twice(at) => {
            let key = ScalarValue::try_from_array(keys, *at)?;
            exec_err!("map key must be unique, duplicate key found: {key}")
        }
    }
}
