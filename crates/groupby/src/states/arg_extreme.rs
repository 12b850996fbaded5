//! min_by(x, y) and max_by(x, y): the x of the row with the least or greatest y.
//!
//! In: columns x and y, fixed width or strings, x as codes too. Out: the type of x, NULL without rows.
//! Partial: x and y of the winning row.
//! Invariant: rows where x or y is NULL do not take part. Among rows with equal y the first that these states saw wins.
//! -0.0 equals 0.0, NaN is one value and greater than all others.
//! Not here: what holds x (`chosen`), the n best rows.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::downcast_primitive;
use arrow::array::{ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, UInt8Type};

use super::Aggregate;
use super::byte_values::{ByteValues, with_byte_values};
use super::chosen::{Chosen, Fixed, Make, Rank, TakingPart, Winners, payload_of};
use super::fixed::values_of;
use super::min_max::{Extreme, Greatest, Least, NativeType, Order};
use super::native::native_of_codes;
use super::rows::Rows;
use crate::error::Result;
use crate::keys::decoded;
use crate::keys::is_bytes;

/// `min_by` or `max_by` as `result_type`; `None` if a type is not native.
pub fn arg_extreme(
    name: &str,
    extreme: Extreme,
    value_type: &DataType,
    by_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let result_type = decoded(result_type);
    let rank = match extreme {
        Extreme::Min => rank_of::<Least>(by_type)?,
        Extreme::Max => rank_of::<Greatest>(by_type)?,
    };
    let payload = payload_of(value_type, result_type)?;
    let make = move || Chosen::new(rank(), payload(), TakingPart::Whole);
    Some(native_of_codes(name, result_type, make))
}

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
            Box::new(BytesRank::<O>::default())
        })),
        _ => None,
    }
}

fn fixed_rank<N: NativeType, O: Order>(data_type: DataType) -> Make<dyn Rank> {
    Box::new(move || {
        Box::new(FixedRank::<N, O>(
            Fixed::new(data_type.clone()),
            PhantomData,
        ))
    })
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

struct FixedRank<N, O>(Fixed<N>, PhantomData<O>);

impl<N: NativeType, O: Order> Rank for FixedRank<N, O> {
    fn scan(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, winners: &mut Winners) -> Result<()> {
        let values = values_of::<N>(&one_zero_one_nan(&columns[0]))?;
        let best = self.0.values.as_mut_slice();
        let worst: N = O::worst();
        let values: &[N] = &values;
        rows.for_each_row(|group, row| {
            let new = values[row];
            // Groups start at the worst value there is; only a row that has it, too, has to ask
            // whether it is the first.
            if O::is_better(new, best[group]) || (new.is_eq(worst) && !winners.has(group)) {
                best[group] = new;
                winners.add(group, row);
            }
        });
        Ok(())
    }

    fn grow(&mut self, total: usize) {
        let values = &mut self.0.values;
        values.resize(total.max(values.len()), O::worst());
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.0.take(total, nulls)?])
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The best string per group, of y or of the columns that an order has.
pub(super) struct BytesRank<O>(ByteValues, PhantomData<O>);

impl<O> Default for BytesRank<O> {
    fn default() -> Self {
        Self(ByteValues::default(), PhantomData)
    }
}

impl<O: Order> BytesRank<O> {
    /// The rank's `scan` of strings.
    #[inline]
    pub(super) fn offer<'a>(
        &mut self,
        value: impl Fn(usize) -> &'a [u8],
        rows: &Rows<'_>,
        winners: &mut Winners,
    ) -> Result<()> {
        let best = &mut self.0;
        let mut result = Ok(());
        rows.for_each_row(|group, row| {
            let new = value(row);
            if best.is_improved_by::<O>(group, new) {
                if let Err(error) = best.set(group, new) {
                    result = Err(error);
                }
                winners.add(group, row);
            }
        });
        best.settle();
        result
    }
}

impl<O: Order> Rank for BytesRank<O> {
    fn scan(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, winners: &mut Winners) -> Result<()> {
        with_byte_values!(&columns[0], |value| self.offer(value, rows, winners))
    }

    fn grow(&mut self, total: usize) {
        self.0.grow(total);
    }

    fn take(&mut self, total: usize, _nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.0.take_partial(total)?])
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
