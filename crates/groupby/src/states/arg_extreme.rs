//! min_by(x, y) and max_by(x, y): the x of the row with the least or greatest y.
//!
//! In: columns x and y, fixed width or strings. Out: the type of x, NULL without rows.
//! Partial: x and y of the winning row.
//! Invariant: rows where x or y is NULL do not take part; among rows with equal y the first that
//! these states saw wins; -0.0 equals 0.0, NaN is one value and greater than all others.
//! Not here: the n best rows.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::downcast_primitive;
use arrow::array::{ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, UInt8Type};

use super::byte_values::{ByteValues, is_bytes, with_bytes};
use super::fixed::{column_of, values_of};
use super::min_max::{Extreme, Greatest, Least, Native, Order};
use super::native::native;
use super::rows::Rows;
use super::seen::Bits;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// `min_by` or `max_by`; `None` if a type is not native.
pub fn arg_extreme(
    name: &str,
    extreme: Extreme,
    value_type: &DataType,
    by_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let rank = match extreme {
        Extreme::Min => rank_of::<Least>(by_type)?,
        Extreme::Max => rank_of::<Greatest>(by_type)?,
    };
    let payload = payload_of(value_type)?;
    let make = move || ArgExtreme {
        rank: rank(),
        payload: payload(),
        seen: Bits::default(),
        winners: Vec::new(),
    };
    Some(native(name, value_type, make))
}

/// A row that became its group's best one.
#[derive(Debug, Clone, Copy)]
struct Winner {
    group: u32,
    row: u32,
}

/// The best y per group.
trait Rank: Send {
    /// Makes each row that beats its group's best one that, and lists it.
    fn scan(
        &mut self,
        column: &ArrayRef,
        rows: &Rows<'_>,
        seen: &mut Bits,
        winners: &mut Vec<Winner>,
    ) -> Result<()>;
    fn grow(&mut self, total: usize);
    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn bytes(&self) -> usize;
}

/// The x of the best row per group.
trait Payload: Send {
    /// Takes the winners over; the last one of a group stays.
    fn store(&mut self, column: &ArrayRef, winners: &[Winner]) -> Result<()>;
    fn grow(&mut self, total: usize);
    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn take_partial(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn bytes(&self) -> usize;
}

type Make<T> = Box<dyn Fn() -> Box<T> + Send + Sync>;

fn rank_of<O: Order>(data_type: &DataType) -> Option<Make<dyn Rank>> {
    macro_rules! fixed {
        ($column:ty) => {
            Some(fixed_rank::<<$column as ArrowPrimitiveType>::Native, O>(
                data_type.clone(),
            ))
        };
    }
    downcast_primitive! {
        data_type => (fixed),
        DataType::Boolean => fixed!(UInt8Type),
        other if is_bytes(other) => Some(Box::new(|| {
            Box::new(BytesRank::<O>(ByteValues::default(), PhantomData))
        })),
        _ => None,
    }
}

fn fixed_rank<N: Native, O: Order>(data_type: DataType) -> Make<dyn Rank> {
    Box::new(move || {
        Box::new(FixedRank::<N, O>(
            Fixed::new(data_type.clone()),
            PhantomData,
        ))
    })
}

fn payload_of(data_type: &DataType) -> Option<Make<dyn Payload>> {
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

fn fixed_payload<N: Native>(data_type: DataType) -> Make<dyn Payload> {
    Box::new(move || Box::new(Fixed::<N>::new(data_type.clone())))
}

struct ArgExtreme {
    rank: Box<dyn Rank>,
    payload: Box<dyn Payload>,
    seen: Bits,
    winners: Vec<Winner>,
}

impl GroupStates for ArgExtreme {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.seen.grow(total);
        self.rank.grow(total);
        self.payload.grow(total);
        self.winners.clear();
        self.rank
            .scan(&columns[1], &rows, &mut self.seen, &mut self.winners)?;
        self.payload.store(&columns[0], &self.winners)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.update(partial, None, groups, total)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let nulls = self.seen.take(total);
        Ok(vec![
            self.payload.take_partial(total, nulls.clone())?,
            self.rank.take(total, nulls)?,
        ])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let nulls = self.seen.take(total);
        self.rank.take(0, None)?;
        self.payload.take(total, nulls)
    }

    fn bytes(&self) -> usize {
        let winners = self.winners.capacity() * size_of::<Winner>();
        self.rank.bytes() + self.payload.bytes() + self.seen.bytes() + winners
    }
}

/// Floats such that -0.0 ties with 0.0 and all NaN tie; other columns as they are.
fn one_zero_one_nan(column: &ArrayRef) -> ArrayRef {
    macro_rules! normal {
        ($float:ident) => {{
            let nan = <$float as ArrowPrimitiveType>::Native::NAN;
            // Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
            let normal = |value: <$float as ArrowPrimitiveType>::Native| {
                if value.is_nan() {
                    nan
                } else {
                    value.add_wrapping(Default::default())
                }
            };
            Arc::new(column.as_primitive::<$float>().unary::<_, $float>(normal))
        }};
    }
    match column.data_type() {
        DataType::Float16 => normal!(Float16Type),
        DataType::Float32 => normal!(Float32Type),
        DataType::Float64 => normal!(Float64Type),
        _ => Arc::clone(column),
    }
}

/// A fixed-width value per group.
struct Fixed<N> {
    data_type: DataType,
    values: Vec<N>,
}

impl<N: Native> Fixed<N> {
    fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            values: Vec::new(),
        }
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.resize(total, N::default());
        column_of(std::mem::take(&mut self.values), nulls, &self.data_type)
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<N>()
    }
}

struct FixedRank<N, O>(Fixed<N>, PhantomData<O>);

impl<N: Native, O: Order> Rank for FixedRank<N, O> {
    fn scan(
        &mut self,
        column: &ArrayRef,
        rows: &Rows<'_>,
        seen: &mut Bits,
        winners: &mut Vec<Winner>,
    ) -> Result<()> {
        let values = values_of::<N>(&one_zero_one_nan(column))?;
        let best = self.0.values.as_mut_slice();
        let worst: N = O::worst();
        let values: &[N] = &values;
        rows.for_each_row(|group, row| {
            let new = values[row];
            // Groups start at the worst value there is; only a row that has it, too, has to ask
            // whether it is the first.
            if O::is_better(new, best[group]) || (new.is_eq(worst) && !seen.get(group)) {
                best[group] = new;
                seen.set(group);
                winners.push(Winner {
                    group: group as u32,
                    row: row as u32,
                });
            }
        });
        Ok(())
    }

    fn grow(&mut self, total: usize) {
        let values = &mut self.0.values;
        values.resize(total.max(values.len()), O::worst());
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.0.take(total, nulls)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl<N: Native> Payload for Fixed<N> {
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

struct BytesRank<O>(ByteValues, PhantomData<O>);

impl<O: Order> Rank for BytesRank<O> {
    fn scan(
        &mut self,
        column: &ArrayRef,
        rows: &Rows<'_>,
        seen: &mut Bits,
        winners: &mut Vec<Winner>,
    ) -> Result<()> {
        let best = &mut self.0;
        let mut result = Ok(());
        with_bytes!(column, |value| rows.for_each_row(|group, row| {
            let new = value(row);
            if best.is_improved_by::<O>(group, new) {
                if let Err(error) = best.set(group, new) {
                    result = Err(error);
                }
                seen.set(group);
                winners.push(Winner {
                    group: group as u32,
                    row: row as u32,
                });
            }
        }));
        best.settle();
        result
    }

    fn grow(&mut self, total: usize) {
        self.0.grow(total);
    }

    fn take(&mut self, total: usize, _nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.0.take_partial(total)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

struct BytesPayload {
    data_type: DataType,
    values: ByteValues,
}

impl Payload for BytesPayload {
    fn store(&mut self, column: &ArrayRef, winners: &[Winner]) -> Result<()> {
        with_bytes!(column, |value| for winner in winners {
            self.values
                .set(winner.group as usize, value(winner.row as usize))?;
        });
        self.values.settle();
        Ok(())
    }

    fn grow(&mut self, total: usize) {
        self.values.grow(total);
    }

    fn take(&mut self, total: usize, _nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.take(total, &self.data_type)
    }

    fn take_partial(&mut self, total: usize, _nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.take_partial(total)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }
}
