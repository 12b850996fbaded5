//! `max_by` and `min_by` over rows that form one group: all rows at once, or the rows of a sliding window.
//!
//! In: x and y columns. Out: the x of the best row.
//! Invariant: what is kept are copies of single rows, never a batch. A window keeps only rows that can still win:
//! from front to back they arrived later and rank lower, so each row enters and leaves once.
//! Not here: one state per group, see `arg_extreme_groups.rs`.

use std::collections::VecDeque;
use std::mem::size_of_val;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array, make_comparator};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::Accumulator;
use grouse_groupby::keys::decoded;

use super::arg_extreme::{
    Extreme, NULL_LAST, key_column, null_row, rows_of_their_own, rows_with_both,
};

/// The best row so far, as two one-row columns; both NULL before the first.
#[derive(Debug)]
pub(super) struct BestRow {
    extreme: Extreme,
    x: ArrayRef,
    y: ArrayRef,
}

impl BestRow {
    pub(super) fn new(extreme: Extreme, x: DataType, y: &DataType) -> Result<Self> {
        Ok(Self {
            extreme,
            x: null_row(&x),
            y: null_row(decoded(y)),
        })
    }

    /// The best row of a batch, if one takes part.
    fn best_of(&self, x: &ArrayRef, y: &ArrayRef) -> Result<Option<usize>> {
        let order = make_comparator(y, y, NULL_LAST)?;
        let better = |best: usize, row: usize| {
            if self.extreme.prefers(order(row, best)) {
                row
            } else {
                best
            }
        };
        Ok(match rows_with_both(x, y) {
            Some(both) => both.valid_indices().reduce(better),
            None => (0..y.len()).reduce(better),
        })
    }
}

impl Accumulator for BestRow {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (x, y) = (&values[0], key_column(&values[1])?);
        let Some(row) = self.best_of(x, &y)? else {
            return Ok(());
        };
        let wins = self.y.is_null(0) || {
            let order = make_comparator(&y, &self.y, NULL_LAST)?;
            self.extreme.prefers(order(row, 0))
        };
        if wins {
            let row = UInt32Array::from(vec![row as u32]);
            self.x = rows_of_their_own(take(x, &row, None)?);
            self.y = rows_of_their_own(take(&y, &row, None)?);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::try_from_array(&self.x, 0)?,
            ScalarValue::try_from_array(&self.y, 0)?,
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.x, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.x.get_array_memory_size() + self.y.get_array_memory_size()
    }
}

/// A row of the window that no later row beats.
#[derive(Debug)]
struct Contender {
    /// Rows that entered the window before this one.
    number: u64,
    x: ScalarValue,
    y: OwnedRow,
}

/// The rows of a sliding window that can still win.
#[derive(Debug)]
pub(super) struct WindowRows {
    extreme: Extreme,
    nothing: ScalarValue,
    converter: RowConverter,
    contenders: VecDeque<Contender>,
    entered: u64,
    left: u64,
}

impl WindowRows {
    pub(super) fn new(extreme: Extreme, x: DataType, y: &DataType) -> Result<Self> {
        Ok(Self {
            extreme,
            nothing: ScalarValue::try_from(&x)?,
            converter: RowConverter::new(vec![SortField::new_with_options(
                decoded(y).clone(),
                NULL_LAST,
            )])?,
            contenders: VecDeque::new(),
            entered: 0,
            left: 0,
        })
    }
}

impl Accumulator for WindowRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (x, y) = (&values[0], key_column(&values[1])?);
        let both = rows_with_both(x, &y);
        let keys = self.converter.convert_columns(&[y])?;
        for row in 0..x.len() {
            if both.as_ref().is_none_or(|both| both.is_valid(row)) {
                let key = keys.row(row);
                while let Some(last) = self.contenders.back()
                    && self.extreme.prefers(key.cmp(&last.y.row()))
                {
                    self.contenders.pop_back();
                }
                self.contenders.push_back(Contender {
                    number: self.entered + row as u64,
                    x: ScalarValue::try_from_array(x, row)?,
                    y: key.owned(),
                });
            }
        }
        self.entered += x.len() as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.left += values[0].len() as u64;
        while self
            .contenders
            .front()
            .is_some_and(|first| first.number < self.left)
        {
            self.contenders.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        not_impl_err!("the rows of a window frame are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("the rows of a window frame have no partial state")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self
            .contenders
            .front()
            .map_or_else(|| self.nothing.clone(), |best| best.x.clone()))
    }

    fn size(&self) -> usize {
        let rows: usize = self
            .contenders
            .iter()
            .map(|row| row.x.size() + row.y.row().data().len() + size_of_val(row))
            .sum();
        size_of_val(self) + self.converter.size() + rows
    }
}
