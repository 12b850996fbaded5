//! first_value(x), last_value(x) and any_value(x), with and without ORDER BY.
//!
//! In: x, fixed width or strings (as codes too), and the columns of the order. Out: the type of x, NULL without rows.
//! Partial: see `arg_rows`; the order's columns as one string.
//! Invariant: NULL is a value like any other unless it is ignored. Of rows that are equal in the order the first wins that
//! these states saw, without an order the first or the last.
//! Not here: what holds x (`arg_rows`).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::row::{self, RowConverter, SortField};

use super::Aggregate;
use super::arg_extreme::BytesRank;
use super::arg_rows::{ArgRows, Make, Rank, TakingPart, Winners, payload_of};
use super::min_max::{Greatest, Least, Order};
use super::native::native_of_codes;
use super::per_group::PerGroup;
use super::rows::Rows;
use crate::error::Result;
use crate::keys::decoded;

/// Which end of a group's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// What rows are whose x is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullRows {
    /// Rows as others are.
    Respected,
    /// None.
    Ignored,
}

/// `first_value(x)` or `last_value(x)` as `result_type`, of rows in this order, or as they come where `order` is empty; `None`
/// if a type is not native.
pub fn first_last(
    name: &str,
    (end, nulls): (End, NullRows),
    order: &[SortField],
    value_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let result_type = decoded(result_type);
    let payload = payload_of(value_type, result_type)?;
    let rank = match end {
        _ if order.is_empty() => arriving(end),
        End::First => sorted::<Least>(order)?,
        End::Last => sorted::<Greatest>(order)?,
    };
    let taking_part = match nulls {
        NullRows::Respected => TakingPart::All,
        NullRows::Ignored => TakingPart::WithValue,
    };
    let make = move || ArgRows::new(rank(), payload(), taking_part);
    Some(native_of_codes(name, result_type, make))
}

fn arriving(end: End) -> Make<dyn Rank> {
    match end {
        End::First => Box::new(|| Box::new(FirstComer)),
        End::Last => Box::new(|| Box::new(LastComer::default())),
    }
}

/// The first or last row in an order; `None` if a type has none.
pub(super) fn sorted<O: Order>(order: &[SortField]) -> Option<Make<dyn Rank>> {
    let converter = Arc::new(RowConverter::new(order.to_vec()).ok()?);
    Some(Box::new(move || {
        Box::new(ByOrder::<O> {
            converter: Arc::clone(&converter),
            rows: None,
            best: BytesRank::default(),
        })
    }))
}

/// The row that comes first.
struct FirstComer;

impl Rank for FirstComer {
    fn scan(
        &mut self,
        _columns: &[ArrayRef],
        rows: &Rows<'_>,
        winners: &mut Winners,
    ) -> Result<()> {
        rows.for_each_row(|group, row| {
            if !winners.has(group) {
                winners.add(group, row);
            }
        });
        Ok(())
    }

    fn grow(&mut self, _total: usize) {}

    fn take(&mut self, _total: usize, _nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        Ok(Vec::new())
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// The row that comes last.
#[derive(Default)]
struct LastComer {
    /// Of the batch that is scanned; of groups without rows in it any.
    last: PerGroup<u32>,
}

impl Rank for LastComer {
    /// Two passes, so that a group's x is taken once per batch and not once per row.
    fn scan(
        &mut self,
        _columns: &[ArrayRef],
        rows: &Rows<'_>,
        winners: &mut Winners,
    ) -> Result<()> {
        let last = self.last.grow(0);
        rows.for_each_row(|group, row| last[group] = row as u32);
        rows.for_each_row(|group, row| {
            if last[group] == row as u32 {
                winners.add(group, row);
            }
        });
        Ok(())
    }

    fn grow(&mut self, total: usize) {
        self.last.grow(total);
    }

    fn take(&mut self, _total: usize, _nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        self.last.take(0);
        Ok(Vec::new())
    }

    fn bytes(&self) -> usize {
        self.last.bytes()
    }
}

/// The row that an order puts first or last: its columns are one string whose bytes order as they do.
struct ByOrder<O> {
    converter: Arc<RowConverter>,
    /// Of the last batch, to be used again.
    rows: Option<row::Rows>,
    best: BytesRank<O>,
}

impl<O: Order> Rank for ByOrder<O> {
    fn scan(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, winners: &mut Winners) -> Result<()> {
        let converter = &self.converter;
        let strings = self.rows.get_or_insert_with(|| converter.empty_rows(0, 0));
        strings.clear();
        converter.append(strings, columns)?;
        let strings = &*strings;
        self.best
            .offer(|row| strings.row(row).data(), rows, winners)
    }

    fn merge(
        &mut self,
        columns: &[ArrayRef],
        rows: &Rows<'_>,
        winners: &mut Winners,
    ) -> Result<()> {
        let strings = columns[0].as_binary_view();
        self.best.offer(|row| strings.value(row), rows, winners)
    }

    fn grow(&mut self, total: usize) {
        self.best.grow(total);
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        self.rows = None;
        self.best.take(total, nulls)
    }

    fn bytes(&self) -> usize {
        let rows = self.rows.as_ref().map_or(0, row::Rows::size);
        rows + self.best.bytes()
    }
}
