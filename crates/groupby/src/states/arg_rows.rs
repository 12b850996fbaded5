//! One row per group and its x: the states of min_by, max_by, first_value, last_value and any_value.
//!
//! In: column x, fixed width or strings (as codes too), of min_by and max_by any type, and the columns that say which row it is.
//! Out: the type of x, NULL without rows.
//! Partial: x of the row, whether there is one where x may be NULL, what of it later rows have to beat.
//! Not here: which row it is (`arg_extreme`, `first_last`).

use std::sync::Arc;

use arrow::array::downcast_primitive;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, UInt8Type};

use super::byte_values::{ByteValues, with_byte_values};
use super::fixed::{column_of, values_of};
use super::kept::Kept;
use super::min_max::NativeType;
use super::ranked::codes_of;
use super::rows::Rows;
use super::validity::Bitmap;
use super::{GroupStates, Groups};
use crate::error::Result;
use crate::keys::{decoded, is_bytes, strict_cast};

/// A row that became its group's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Winner {
    pub group: u32,
    pub row: u32,
}

/// The rows of a batch that became their groups', and which groups have one.
#[derive(Default)]
pub(super) struct Winners {
    present: Bitmap,
    rows: Vec<Winner>,
}

impl Winners {
    /// True if `group` has a row.
    #[inline]
    pub(super) fn has(&self, group: usize) -> bool {
        self.present.get(group)
    }

    /// Makes `row` the group's.
    #[inline]
    pub(super) fn add(&mut self, group: usize, row: usize) {
        self.present.set(group);
        self.rows.push(Winner {
            group: group as u32,
            row: row as u32,
        });
    }
}

/// Which row is a group's.
pub(super) trait Rank: Send {
    /// Makes each row that beats its group's that, and lists it: `columns` are those behind x.
    fn scan(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, winners: &mut Winners) -> Result<()>;

    /// The same of partial states, with the columns that `take` made.
    fn merge(
        &mut self,
        columns: &[ArrayRef],
        rows: &Rows<'_>,
        winners: &mut Winners,
    ) -> Result<()> {
        self.scan(columns, rows, winners)
    }

    fn grow(&mut self, total: usize);

    /// What rows have to beat; nothing is left.
    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>>;

    fn bytes(&self) -> usize;
}

pub(super) type Make<T> = Box<dyn Fn() -> Box<T> + Send + Sync>;

/// Which rows take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakingPart {
    /// Those in which neither x nor any other column is NULL.
    Whole,
    /// Those whose x is not NULL.
    WithValue,
    /// All.
    All,
}

/// The argument row of each group.
pub(super) struct ArgRows {
    rank: Box<dyn Rank>,
    payload: Box<dyn Payload>,
    taking_part: TakingPart,
    winners: Winners,
    /// In which groups x is not NULL; not kept where it never is.
    valid: Bitmap,
}

impl ArgRows {
    /// No group has a row.
    pub(super) fn new(
        rank: Box<dyn Rank>,
        payload: Box<dyn Payload>,
        taking_part: TakingPart,
    ) -> Self {
        Self {
            rank,
            payload,
            taking_part,
            winners: Winners::default(),
            valid: Bitmap::default(),
        }
    }

    fn grow(&mut self, total: usize) {
        self.winners.present.grow(total);
        self.rank.grow(total);
        self.payload.grow(total);
        self.winners.rows.clear();
        if self.taking_part == TakingPart::All {
            self.valid.grow(total);
        }
    }

    /// Takes x of the winners over.
    fn store(&mut self, column: &ArrayRef) -> Result<()> {
        if self.taking_part == TakingPart::All {
            let nulls = column
                .logical_nulls()
                .filter(|nulls| nulls.null_count() > 0);
            let valid = &mut self.valid;
            // A NULL may follow a value.
            self.winners.rows.retain(|winner| {
                let row = winner.row as usize;
                let is_valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                valid.put(winner.group as usize, is_valid);
                is_valid
            });
        }
        match self.winners.rows.is_empty() {
            true => Ok(()),
            false => self.payload.store(column, &self.winners.rows),
        }
    }

    /// Which groups have a row, and in which of these x is not NULL.
    fn take_bits(&mut self, total: usize) -> (Option<NullBuffer>, Option<NullBuffer>) {
        let present = self.winners.present.take(total);
        match self.taking_part {
            TakingPart::All => (present, self.valid.take(total)),
            TakingPart::Whole | TakingPart::WithValue => (present.clone(), present),
        }
    }
}

impl GroupStates for ArgRows {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        self.grow(total);
        let whole = match self.taking_part {
            TakingPart::Whole => columns,
            TakingPart::WithValue => &columns[..1],
            TakingPart::All => &[],
        };
        let rows = Rows::new(whole, filter, groups);
        self.rank.scan(&columns[1..], &rows, &mut self.winners)?;
        self.store(&columns[0])
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.grow(total);
        let (rows, order) = match self.taking_part {
            TakingPart::All => {
                let is_there = Some(partial[1].as_boolean());
                (Rows::new(&[], is_there, groups), &partial[2..])
            }
            TakingPart::Whole | TakingPart::WithValue => {
                (Rows::new(&partial[..1], None, groups), &partial[1..])
            }
        };
        self.rank.merge(order, &rows, &mut self.winners)?;
        self.store(&partial[0])
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let (present, valid) = self.take_bits(total);
        let mut partial = vec![self.payload.take_partial(total, valid)?];
        if self.taking_part == TakingPart::All {
            let all = || BooleanBuffer::new_set(total);
            let are_there = present.clone().map_or_else(all, NullBuffer::into_inner);
            partial.push(Arc::new(BooleanArray::new(are_there, None)));
        }
        partial.extend(self.rank.take(total, present)?);
        Ok(partial)
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let (_, valid) = self.take_bits(total);
        self.rank.take(0, None)?;
        self.payload.take(total, valid)
    }

    fn bytes(&self) -> usize {
        let winners = self.winners.rows.capacity() * size_of::<Winner>();
        let bits = self.winners.present.bytes() + self.valid.bytes();
        self.rank.bytes() + self.payload.bytes() + bits + winners
    }
}

/// The x of each group's row.
pub(super) trait Payload: Send {
    /// Takes the winners over, in which x is not NULL; the last one of a group stays.
    fn store(&mut self, column: &ArrayRef, winners: &[Winner]) -> Result<()>;
    fn grow(&mut self, total: usize);
    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn take_partial(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn bytes(&self) -> usize;
}

/// What holds values of columns of `data_type`, to hand them out as `result_type`; `None` if they are not native.
pub(super) fn payload_of(
    data_type: &DataType,
    result_type: &DataType,
) -> Option<Make<dyn Payload>> {
    let values = match data_type {
        DataType::Dictionary(_, values) if is_bytes(values) => values,
        other => other,
    };
    let are_strings = is_bytes(values) && is_bytes(result_type);
    let is_like = are_strings && values.is_string() == result_type.is_string();
    match is_like || values == result_type {
        true => payload(result_type),
        false => None,
    }
}

fn payload(data_type: &DataType) -> Option<Make<dyn Payload>> {
    let held = data_type.clone();
    macro_rules! fixed {
        ($column:ty) => {
            Some(fixed_payload::<<$column as ArrowPrimitiveType>::Native>(
                held,
            ))
        };
    }
    downcast_primitive! {
        data_type => (fixed),
        DataType::Boolean => fixed!(UInt8Type),
        other if is_bytes(other) => Some(Box::new(move || {
            Box::new(BytesPayload { data_type: held.clone(), values: ByteValues::default() })
        })),
        _ => None,
    }
}

fn fixed_payload<N: NativeType>(data_type: DataType) -> Make<dyn Payload> {
    Box::new(move || Box::new(Fixed::<N>::new(data_type.clone())))
}

/// A fixed-width value per group.
pub(super) struct Fixed<N> {
    data_type: DataType,
    pub values: Vec<N>,
}

impl<N: NativeType> Fixed<N> {
    pub(super) fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            values: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.resize(total, N::default());
        column_of(std::mem::take(&mut self.values), nulls, &self.data_type)
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<N>()
    }
}

impl<N: NativeType> Payload for Fixed<N> {
    fn store(&mut self, column: &ArrayRef, winners: &[Winner]) -> Result<()> {
        let from = values_of::<N>(column)?;
        for winner in winners {
            self.values[winner.group as usize] = from[winner.row as usize];
        }
        Ok(())
    }

    fn grow(&mut self, total: usize) {
        self.values
            .resize(total.max(self.values.len()), N::default());
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Self::take(self, total, nulls)
    }

    fn take_partial(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Self::take(self, total, nulls)
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

struct BytesPayload {
    data_type: DataType,
    values: ByteValues,
}

impl BytesPayload {
    /// Lets go of the strings that a NULL has followed.
    fn forget(&mut self, nulls: Option<&NullBuffer>) {
        let nulls = nulls.into_iter().flat_map(|nulls| nulls.iter().enumerate());
        for (group, _) in nulls.filter(|(_, is_valid)| !is_valid) {
            self.values.unset(group);
        }
    }
}

impl Payload for BytesPayload {
    fn store(&mut self, column: &ArrayRef, winners: &[Winner]) -> Result<()> {
        let values = &mut self.values;
        match column.as_any_dictionary_opt() {
            Some(coded) => {
                let codes = codes_of(coded);
                with_byte_values!(coded.values(), |value| for winner in winners {
                    let code = codes[winner.row as usize];
                    values.set(winner.group as usize, value(code as usize))?;
                });
            }
            None => with_byte_values!(column, |value| for winner in winners {
                values.set(winner.group as usize, value(winner.row as usize))?;
            }),
        }
        values.settle();
        Ok(())
    }

    fn grow(&mut self, total: usize) {
        self.values.grow(total);
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.grow(total);
        self.forget(nulls.as_ref());
        self.values.take(total, &self.data_type)
    }

    fn take_partial(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.grow(total);
        self.forget(nulls.as_ref());
        self.values.take_partial(total)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }
}

/// What holds values of any other type.
pub(super) fn copied_payload(
    data_type: &DataType,
    result_type: &DataType,
) -> Option<Make<dyn Payload>> {
    let held = decoded(data_type).clone();
    let make = move || {
        Box::new(CopiedRows {
            data_type: held.clone(),
            kept: Kept::default(),
            row_of: Vec::new(),
        }) as Box<dyn Payload>
    };
    (decoded(data_type) == result_type).then(|| Box::new(make) as Make<dyn Payload>)
}

/// The row of a group that has none.
const NO_ROW: u32 = u32::MAX;

/// Copies of the rows, of a group that got several in one batch of the last one.
struct CopiedRows {
    data_type: DataType,
    kept: Kept,
    /// Which of them is a group's.
    row_of: Vec<u32>,
}

impl Payload for CopiedRows {
    fn store(&mut self, column: &ArrayRef, winners: &[Winner]) -> Result<()> {
        let first = self.kept.rows() as u32;
        let mut rows = Vec::new();
        for winner in winners.iter().rev() {
            let row_of = &mut self.row_of[winner.group as usize];
            if *row_of == NO_ROW || *row_of < first {
                *row_of = first + rows.len() as u32;
                rows.push(winner.row);
            }
        }
        self.kept
            .add(&[strict_cast(column, &self.data_type)?], rows)?;
        if !self.kept.has_many_beside(self.row_of.len()) {
            return Ok(());
        }
        let mut live = Vec::new();
        for row_of in self.row_of.iter_mut().filter(|row_of| **row_of != NO_ROW) {
            live.push(std::mem::replace(row_of, live.len() as u32));
        }
        self.kept.keep(live)
    }

    fn grow(&mut self, total: usize) {
        self.row_of.resize(total.max(self.row_of.len()), NO_ROW);
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.grow(total);
        let rows = std::mem::take(&mut self.row_of).into_iter().enumerate();
        let is_there = |group| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(group));
        let rows = rows.map(|(group, row)| (row != NO_ROW && is_there(group)).then_some(row));
        let rows: UInt32Array = rows.collect();
        let kept = std::mem::take(&mut self.kept);
        Ok(kept.take(rows, std::iter::once(&self.data_type))?.remove(0))
    }

    fn take_partial(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.take(total, nulls)
    }

    fn bytes(&self) -> usize {
        self.kept.bytes() + self.row_of.capacity() * size_of::<u32>()
    }
}
