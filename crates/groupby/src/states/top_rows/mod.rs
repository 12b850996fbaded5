//! top_rows(n, columns ORDER BY keys): the n first rows of each group in that order.
//!
//! In: argument columns of any types that can be copied row by row, some of which rows are ordered
//! by. Out: per group a list of structs, the first row first, with its number as the last field.
//! Partial: the same lists with all arguments and without numbers.
//! Invariant: the order is total on the keys' values as `SortOptions` define it (-0.0 before 0.0, NaN by sign). Among
//! rows with equal keys any may stay. No group has more than n rows.
//! Not here: which row has which key (rank.rs), the rows of a group (slots.rs), their columns
//! (`kept`).

mod rank;
mod slots;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, StructArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Fields};

use self::rank::Ranking;
use self::slots::{RankedRow, TopSlots};
use super::kept::{Kept, is_copied};
use super::native::native;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::{Error, Result};
use crate::keys::GroupId;

/// Rows per group at most: a row that enters looks at all rows of its group, which are 1 KiB then.
pub const TOP_ROWS_MAX: usize = 64;

/// The field of the result that counts a group's rows from 1.
pub const ROW_NUMBER: &str = "row_number";

/// Rows between asking for a group's place in memory, asking for its rows, and looking at them.
const AHEAD: usize = 8;

/// One of the keys that rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Which argument column.
    pub column: usize,
    /// Its direction, and where NULLs stand.
    pub options: SortOptions,
}

/// What is kept of each group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopRows {
    /// Rows per group, at least 1 and at most `TOP_ROWS_MAX`.
    pub rows_max: usize,
    /// The argument columns.
    pub columns: Fields,
    /// How many of them, the first ones, are in the result.
    pub results: usize,
    /// What rows are ordered by; nothing if any rows will do.
    pub order: Vec<SortKey>,
}

impl TopRows {
    /// The type of the result: a list of the result columns and the row's number.
    pub fn result_type(&self) -> DataType {
        let number = Field::new(ROW_NUMBER, DataType::UInt64, false);
        let fields = self.columns[..self.results].iter().cloned();
        list_of(fields.chain([Arc::new(number)]).collect())
    }

    fn partial_type(&self) -> DataType {
        list_of(self.columns.clone())
    }
}

fn list_of(fields: Fields) -> DataType {
    let row = Field::new_list_field(DataType::Struct(fields), false);
    DataType::List(Arc::new(row))
}

/// The n first rows of each group; `None` if a type cannot be copied or has no order.
pub fn top_rows(name: &str, shape: TopRows) -> Option<Arc<dyn Aggregate>> {
    assert!(
        (1..=TOP_ROWS_MAX).contains(&shape.rows_max) && shape.results <= shape.columns.len(),
        "the caller keeps to the limits"
    );
    let copied = shape.columns.iter().all(|f| is_copied(f.data_type()));
    if !copied || shape.columns.is_empty() || !Ranking::supports(&shape) {
        return None;
    }
    let result_type = shape.result_type();
    let shape = Arc::new(shape);
    let make = move || TopRowStates {
        ranking: Ranking::new(&shape),
        slots: TopSlots::new(shape.rows_max),
        kept: Kept::default(),
        candidates: Vec::new(),
        shape: Arc::clone(&shape),
    };
    Some(native(name, &result_type, make))
}

/// A row that may be among the first of its group.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    group: u32,
    row: u32,
}

struct TopRowStates {
    shape: Arc<TopRows>,
    ranking: Ranking,
    slots: TopSlots,
    kept: Kept,
    candidates: Vec<Candidate>,
}

impl GroupStates for TopRowStates {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(&[], filter, groups);
        self.slots.grow(total);
        self.ranking.load(columns, rows.count())?;
        self.candidates.clear();
        let (codes, thresholds) = (self.ranking.codes(), self.slots.thresholds());
        let candidates = &mut self.candidates;
        rows.for_each_row(|group, row| {
            // Nearly all rows end here once groups are full.
            if codes[row] <= thresholds[group] {
                candidates.push(Candidate {
                    group: group as u32,
                    row: row as u32,
                });
            }
        });
        self.offer(columns)?;
        if self.kept.has_many_beside(self.slots.rows()) {
            self.sweep()?;
        }
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let lists = partial[0].as_list::<i32>();
        let offsets = lists.value_offsets();
        let from = offsets[0] as usize;
        let rows = offsets[lists.len()] as usize - from;
        let values = lists.values().slice(from, rows);
        let columns = values.as_struct().columns();
        match groups {
            Groups::One(_) => self.update(columns, None, Groups::One(rows), total),
            Groups::Ids(ids) => {
                let mut expanded: Vec<GroupId> = Vec::with_capacity(rows);
                for (id, ends) in ids.iter().zip(offsets.windows(2)) {
                    expanded.extend((ends[0]..ends[1]).map(|_| *id));
                }
                self.update(columns, None, Groups::Ids(&expanded), total)
            }
        }
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let (columns, offsets) = self.drain(total)?;
        Ok(vec![list(&self.shape.partial_type(), columns, offsets)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let (mut columns, offsets) = self.drain(total)?;
        columns.truncate(self.shape.results);
        let numbers = offsets.windows(2).flat_map(|ends| 1..=ends[1] - ends[0]);
        let numbers = numbers.map(|number| number as u64);
        columns.push(Arc::new(UInt64Array::from_iter_values(numbers)));
        list(&self.shape.result_type(), columns, offsets)
    }

    fn bytes(&self) -> usize {
        let candidates = self.candidates.capacity() * size_of::<Candidate>();
        self.ranking.bytes() + self.slots.bytes() + self.kept.bytes() + candidates
    }
}

impl TopRowStates {
    /// Takes those candidates in that are among the first of their groups.
    fn offer(&mut self, columns: &[ArrayRef]) -> Result<()> {
        if self.candidates.is_empty() {
            return Ok(());
        }
        let first = self.kept.rows();
        if u32::try_from(first + self.candidates.len()).is_err() {
            return Err(Error::TooLarge(format!(
                "top_rows: more than {} rows in one table",
                u32::MAX
            )));
        }
        self.ranking.encode(columns, &self.candidates)?;
        let mut accepted: Vec<u32> = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            if let Some(later) = self.candidates.get(at + 2 * AHEAD) {
                self.slots.expect(later.group as usize);
            }
            if let Some(later) = self.candidates.get(at + AHEAD) {
                self.slots.expect_rows(later.group as usize);
            }
            let kept = (first + accepted.len()) as u32;
            let entry = self.ranking.push(at, candidate.row as usize, kept);
            let group = candidate.group as usize;
            if self
                .slots
                .offer(group, entry, |a, b| self.ranking.compare(a, b))
            {
                accepted.push(candidate.row);
            } else {
                self.ranking.pop();
            }
        }
        self.kept.add(columns, accepted)
    }

    /// Drops the rows that were overtaken.
    fn sweep(&mut self) -> Result<()> {
        let live = self.slots.renumber();
        self.ranking.keep(&live);
        self.kept.keep(live)
    }

    /// The rows of all groups, group after group in order, and where each group ends; nothing is
    /// left afterwards.
    fn drain(&mut self, total: usize) -> Result<(Vec<ArrayRef>, Vec<i32>)> {
        self.slots.grow(total);
        let live = self.slots.rows();
        if i32::try_from(live).is_err() {
            return Err(Error::TooLarge(format!(
                "top_rows: {live} rows of one table, a list holds {}",
                i32::MAX
            )));
        }
        let mut rows = Vec::with_capacity(live);
        let mut offsets = Vec::with_capacity(total + 1);
        offsets.push(0);
        for group in 0..total {
            let entries = self.slots.of(group);
            entries.sort_unstable_by(|a, b| self.ranking.compare(a, b));
            rows.extend(entries.iter().map(|entry: &RankedRow| entry.kept));
            offsets.push(rows.len() as i32);
        }
        let types = self.shape.columns.iter().map(|field| field.data_type());
        let columns = std::mem::take(&mut self.kept).take(rows.into(), types)?;
        self.slots = TopSlots::new(self.shape.rows_max);
        self.ranking.clear();
        Ok((columns, offsets))
    }
}

/// Columns of rows as lists of the given type.
fn list(data_type: &DataType, columns: Vec<ArrayRef>, offsets: Vec<i32>) -> Result<ArrayRef> {
    let DataType::List(field) = data_type else {
        unreachable!("a list of rows")
    };
    let DataType::Struct(fields) = field.data_type() else {
        unreachable!("rows are structs")
    };
    let rows = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = OffsetBuffer::new(offsets.into());
    let lists = ListArray::try_new(Arc::clone(field), offsets, Arc::new(rows), None)?;
    Ok(Arc::new(lists))
}
