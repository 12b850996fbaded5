//! Per-code pre-aggregation: rows whose keys are codes of few values, or integers of a small range, are counted and added up
//! by code before any group is looked up.
//!
//! In: a batch of rows. Out: its groups' states.
//! Invariant: a batch is taken in whole, or not at all.
//! Not here: the loops (`states::pre_aggregation`), the groups of codes (`keys::direct`).
//!
//! A row's group is neither looked up nor written, and read again by each aggregate: a sum by 100 strings takes 0.4 ns per
//! row instead of 0.8. Each batch by itself: its groups are few, and looking them up costs less than a sum per code and
//! dictionary that would have to be watched.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, DictionaryArray, UInt8Array, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use grouse_kernels::select::{Selected, Side};

use super::Build;
use crate::batch::{Arguments, Batch};
use crate::error::Result;
use crate::keys::columns::is_integer;
use crate::keys::direct::{as_integers, ends};
use crate::keys::with_integers;
use crate::runtime::counters::Stopwatch;
use crate::states::PreAggregator;

/// After so many batches in a row with too many codes, NULLs, or what cannot be added up there is mostly no other.
const NOT_PRE_AGGREGATED_MAX: usize = 4;
/// Rows that are looked at before all.
const SAMPLE_ROWS: usize = 64;

/// The codes of a batch's rows, of all key columns together.
struct Codes {
    of_rows: Vec<u8>,
    columns: Vec<Column>,
    /// Of how many combinations of keys.
    of_keys: usize,
    /// The same with the code of rows that are not selected.
    with_unselected: usize,
}

/// What the codes of one key column are: those of its dictionary, or distances from the least integer.
struct Column {
    /// How many there are.
    codes: usize,
    least: i64,
}

impl Column {
    /// `None` if it has NULLs or more codes than pay.
    fn of(key: &ArrayRef) -> Option<Column> {
        if let Some(dictionary) = key.as_any_dictionary_opt() {
            let codes = dictionary.values().len();
            let is_whole = codes > 0 && dictionary.keys().null_count() == 0;
            return is_whole.then_some(Column { codes, least: 0 });
        }
        if !is_integer(key.data_type()) || key.null_count() > 0 {
            return None;
        }
        let (least, most) = with_integers!(&key.to_data(), values => {
            let (least, most) = ends(values.iter().copied().take(SAMPLE_ROWS))?;
            codes_of(least as i64, most as i64)?;
            let (least, most) = ends(values.iter().copied())?;
            (least as i64, most as i64)
        });
        let codes = codes_of(least, most)?;
        Some(Column { codes, least })
    }

    /// Adds the codes, so many times each.
    fn add(&self, key: &ArrayRef, stride: u8, codes: &mut [u8]) {
        let data = match key.as_any_dictionary_opt() {
            Some(dictionary) => dictionary.keys().to_data(),
            None => key.to_data(),
        };
        let least = self.least as u8;
        with_integers!(&data, values => {
            for (code, value) in codes.iter_mut().zip(values) {
                *code = code.wrapping_add((*value as u8).wrapping_sub(least).wrapping_mul(stride));
            }
        });
    }

    /// The keys of these codes.
    fn keys(&self, key: &ArrayRef, codes: Vec<u8>) -> Result<ArrayRef> {
        if let Some(dictionary) = key.as_any_dictionary_opt() {
            let (codes, values) = (UInt8Array::from(codes), Arc::clone(dictionary.values()));
            return Ok(Arc::new(DictionaryArray::try_new(codes, values)?));
        }
        let data = key.to_data();
        let rows = codes.len();
        let buffer = with_integers!(&data, values => {
            let mut keys = values[..0].to_vec();
            for code in codes {
                keys.push(self.least.wrapping_add(code.into()) as _);
            }
            Buffer::from_vec(keys)
        });
        let keys = ArrayData::builder(key.data_type().clone()).len(rows);
        Ok(make_array(keys.add_buffer(buffer).build()?))
    }
}

/// Integers there are between these, if they are few.
fn codes_of(least: i64, most: i64) -> Option<usize> {
    let distance = usize::try_from(most.wrapping_sub(least) as u64).ok()?;
    (distance < PreAggregator::CODES_MAX).then_some(distance + 1)
}

impl Codes {
    /// `None` if a column has NULLs, or all together more combinations than pay.
    fn of(keys: &[ArrayRef], batch: &Batch) -> Option<Codes> {
        let rows = batch.rows;
        let columns = keys.iter().map(Column::of);
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let sizes = columns.iter().map(|column| column.codes);
        let of_keys = sizes.fold(1, usize::saturating_mul);
        let with_unselected = of_keys.saturating_add(usize::from(batch.selection().is_some()));
        if !PreAggregator::pays(rows, with_unselected) {
            return None;
        }
        let (mut of_rows, mut stride) = (vec![0; rows], 1);
        for (key, column) in keys.iter().zip(&columns) {
            // All codes are below `of_keys`, which a byte holds. The stride may be more, where all codes left are 0.
            column.add(key, stride as u8, &mut of_rows);
            stride *= column.codes;
        }
        // Rows that are not selected have a code of their own, the last, which no group has.
        if let Some(selection) = batch.selection() {
            let words: Vec<u64> = selection.values().bit_chunks().iter_padded().collect();
            let unselected = Side::Value(of_keys as u8);
            of_rows = u8::select(&words, rows, Side::Column(&of_rows), unselected);
        }
        Some(Codes {
            of_rows,
            columns,
            of_keys,
            with_unselected,
        })
    }

    /// The keys of these codes.
    fn keys(&self, keys: &[ArrayRef], codes: &[u8]) -> Result<Vec<ArrayRef>> {
        let mut stride = 1;
        let columns = keys.iter().zip(&self.columns).map(|(key, column)| {
            let of_all = codes.iter().map(|code| usize::from(*code));
            let of_one = of_all.map(|code| (code / stride % column.codes) as u8);
            let of_one = of_one.collect();
            stride *= column.codes;
            column.keys(key, of_one)
        });
        columns.collect()
    }
}

impl Build {
    /// True if batches are pre-aggregated, as far as is known of those before: then those with a selection are welcome.
    pub fn takes_selections(&self) -> bool {
        self.index.is_addressed() && self.not_pre_aggregated < NOT_PRE_AGGREGATED_MAX
    }

    /// Takes in a batch, pre-aggregated by code. Where it has to be looked at row by row, nothing was taken, and its selected
    /// rows come back.
    pub(super) fn push_pre_aggregated<'a>(
        &mut self,
        batch: &'a Batch,
    ) -> Result<Option<Cow<'a, Batch>>> {
        // States take a group that is new to them to have a row: those that do not know all groups yet get rows first.
        let know_all = self.states.know(self.groups());
        let is_tried =
            self.takes_selections() && !batch.are_partial && PreAggregator::pays(batch.rows, 1);
        if !is_tried || !know_all {
            return batch.kept().map(Some);
        }
        self.not_pre_aggregated += 1;
        let mut is_done = self.pre_aggregate(batch)?;
        let mut left = Cow::Borrowed(batch);
        if !is_done && batch.selection().is_some() {
            // What was in the way may have been in the other rows.
            left = batch.kept()?;
            is_done = self.pre_aggregate(&left)?;
        }
        if !is_done {
            return Ok(Some(left));
        }
        self.not_pre_aggregated = 0;
        Ok(None)
    }

    /// Takes in a batch by codes; false, and nothing was taken, where that does not go.
    fn pre_aggregate(&mut self, batch: &Batch) -> Result<bool> {
        let groups = self.groups();
        if !batch.arguments.iter().all(are_whole) {
            return Ok(false);
        }
        let mut stopwatch = Stopwatch::start();
        let keys: Vec<_> = batch.keys.iter().map(as_integers).collect();
        let Some(codes) = Codes::of(&keys, batch) else {
            return Ok(false);
        };
        let mut by_code = PreAggregator::new(&codes.of_rows, codes.with_unselected);
        let Some(sums) = self.states.pre_aggregate(&batch.arguments, &mut by_code)? else {
            return Ok(false);
        };
        let (counts, mut present) = by_code.present();
        present.pop_if(|last| usize::from(*last) == codes.of_keys);
        let counts = &counts[..present.len()];
        stopwatch.lap(&mut self.counters.update_ns);
        let keys = codes.keys(&keys, &present)?;
        self.groups.clear();
        if !self.index.address(&keys, &mut self.groups) {
            return Ok(false);
        }
        stopwatch.lap(&mut self.counters.assign_ns);
        let total = self.groups();
        let sums = sums.into_iter().map(|sums| sums.of(&present));
        self.states
            .add_pre_aggregated(sums, counts, &self.groups, total);
        stopwatch.lap(&mut self.counters.update_ns);
        self.counters.pre_aggregated_rows += batch.selected_rows() as u64;
        self.see(batch.selected_rows() as u64, (total - groups) as u64);
        Ok(true)
    }
}

/// True of arguments of all rows, without NULLs.
fn are_whole(arguments: &Option<Arguments>) -> bool {
    let are_whole = |of_one: &Arguments| {
        let mut columns = of_one.columns.iter();
        of_one.filter.is_none() && columns.all(|column| column.logical_null_count() == 0)
    };
    arguments.as_ref().is_some_and(are_whole)
}
