//! min_by(x, y) and max_by(x, y): the x of the row with the least or greatest y.
//!
//! In: columns x and y of any types, x as codes too; y has an order. Out: the type of x, NULL without rows.
//! Partial: x and y of the winning row, a nested y as a string whose bytes order as it does.
//! Invariant: rows where x or y is NULL do not take part. Among rows with equal y the first that these states saw wins.
//! -0.0 equals 0.0, NaN is one value and greater than all others.
//! Not here: what holds x (`arg_rows`), the n best rows.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::downcast_primitive;
use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::buffer::NullBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, UInt8Type};
use arrow::row::SortField;

use super::Aggregate;
use super::arg_rows::{ArgRows, Fixed, Make, Payload, Rank, TakingPart, Winners};
use super::arg_rows::{copied_payload, payload_of};
use super::byte_values::{ByteValues, with_byte_values};
use super::first_last::sorted;
use super::fixed::values_of;
use super::min_max::{Extreme, Greatest, Least, NativeType, Order};
use super::native::{native, native_of_codes};
use super::rows::Rows;
use crate::error::Result;
use crate::keys::row::canonical_values;
use crate::keys::{decoded, is_bytes, strict_cast};

/// NULL inside of a list or struct is greater than all else there, as in ORDER BY.
const NULL_LAST: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// `min_by` or `max_by` as `result_type`; `None` if y has no order.
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
    let states =
        |payload: Make<dyn Payload>| move || ArgRows::new(rank(), payload(), TakingPart::Whole);
    Some(match payload_of(value_type, result_type) {
        Some(payload) => native_of_codes(name, result_type, states(payload)),
        None => {
            let payload = copied_payload(value_type, result_type)?;
            native(name, result_type, states(payload))
        }
    })
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
        other if decoded(other) != other => {
            decoded_rank(decoded(other), rank_of::<O>(decoded(other))?)
        }
        other => {
            let order = SortField::new_with_options(other.clone(), NULL_LAST);
            decoded_rank(other, sorted::<O>(&[order])?)
        }
    }
}

/// The rank of values that are made plain and canonical before it sees them.
fn decoded_rank(data_type: &DataType, of: Make<dyn Rank>) -> Option<Make<dyn Rank>> {
    let data_type = data_type.clone();
    Some(Box::new(move || {
        Box::new(DecodedRank {
            data_type: data_type.clone(),
            of: of(),
        })
    }))
}

struct DecodedRank {
    data_type: DataType,
    of: Box<dyn Rank>,
}

impl Rank for DecodedRank {
    fn scan(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, winners: &mut Winners) -> Result<()> {
        let column = canonical_values(&strict_cast(&columns[0], &self.data_type)?)?;
        self.of.scan(&[column], rows, winners)
    }

    fn merge(
        &mut self,
        columns: &[ArrayRef],
        rows: &Rows<'_>,
        winners: &mut Winners,
    ) -> Result<()> {
        self.of.merge(columns, rows, winners)
    }

    fn grow(&mut self, total: usize) {
        self.of.grow(total);
    }

    fn take(&mut self, total: usize, nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        self.of.take(total, nulls)
    }

    fn bytes(&self) -> usize {
        self.of.bytes()
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

struct FixedRank<N, O>(Fixed<N>, PhantomData<O>);

impl<N: NativeType, O: Order> Rank for FixedRank<N, O> {
    fn scan(&mut self, columns: &[ArrayRef], rows: &Rows<'_>, winners: &mut Winners) -> Result<()> {
        let values = values_of::<N>(&canonical_values(&columns[0])?)?;
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
