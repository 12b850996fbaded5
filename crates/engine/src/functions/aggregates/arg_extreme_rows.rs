//! `max_by` and `min_by` over the rows of a sliding window.
//!
//! In: x and y columns. Out: the x of the best row.
//! Invariant: what is kept are copies of single rows, never a batch. A window keeps only rows that can still win:
//! from front to back they arrived later and rank lower, so each row enters and leaves once.
//! Not here: rows that do not leave (`grouse_groupby::states::arg_extreme`).

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::mem::size_of_val;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;
use grouse_groupby::keys::decoded;
use grouse_groupby::keys::row::canonical_values;
use grouse_groupby::states::Extreme;

use crate::error::to_datafusion;

/// NULL inside of a list or struct is greater than all else there, as in ORDER BY.
const NULL_LAST: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// The y column as it is compared: decoded, with one NaN and one zero.
fn key_column(y: &ArrayRef) -> Result<ArrayRef> {
    canonical_values(&cast(y, decoded(y.data_type()))?).map_err(to_datafusion)
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
    pub(super) fn new(extreme: Extreme, args: &AccumulatorArgs) -> Result<Self> {
        let (x, y) = (&args.expr_fields[0], &args.expr_fields[1]);
        Ok(Self {
            extreme,
            nothing: ScalarValue::try_from(x.data_type())?,
            converter: RowConverter::new(vec![SortField::new_with_options(
                decoded(y.data_type()).clone(),
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
        let both = NullBuffer::union(x.logical_nulls().as_ref(), y.logical_nulls().as_ref());
        let keys = self.converter.convert_columns(&[y])?;
        // Of rows with equal y the first stays.
        let better = match self.extreme {
            Extreme::Max => Ordering::Greater,
            Extreme::Min => Ordering::Less,
        };
        for row in 0..x.len() {
            if both.as_ref().is_none_or(|both| both.is_valid(row)) {
                let key = keys.row(row);
                while let Some(last) = self.contenders.back()
                    && key.cmp(&last.y.row()) == better
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
