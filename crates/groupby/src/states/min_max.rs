//! min(x) and max(x) of fixed-width values.
//!
//! In: integers, floats, decimals, dates, times, timestamps, durations, intervals, booleans.
//! Out: the same type, NULL without values.
//! Invariant: values are ordered as ORDER BY orders them: floats by their total order, so that
//! -0.0 comes before 0.0 and NaN after infinity; the answer does not depend on the order of rows.
//! Not here: strings and binary (`min_max_bytes`).

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::array::{PrimitiveArray, downcast_primitive};
use arrow::compute;
use arrow::datatypes::{DataType, UInt8Type};

use super::native::native;
use super::rows::Rows;
use super::seen::Seen;
use super::{Aggregate, GroupStates, Groups, min_max_bytes};
use crate::error::Result;

/// Which end of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// `min` or `max` of a column of `data_type`; `None` if it is not native.
pub fn min_max(name: &str, extreme: Extreme, data_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    match extreme {
        Extreme::Min => states_of::<Least>(name, data_type),
        Extreme::Max => states_of::<Greatest>(name, data_type),
    }
}

fn states_of<O: Order>(name: &str, data_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    macro_rules! fixed {
        ($column:ty) => {{
            let result_type = data_type.clone();
            Some(native(name, data_type, move || {
                MinMax::<$column, O>::new(result_type.clone())
            }))
        }};
    }
    downcast_primitive! {
        data_type => (fixed),
        DataType::Boolean => fixed!(UInt8Type),
        _ => min_max_bytes::min_max_bytes::<O>(name, data_type),
    }
}

/// One end of the order.
pub(super) trait Order: Send + Sync + 'static {
    /// True if `new` comes nearer to this end than `old`.
    fn is_better<N: ArrowNativeTypeOp>(new: N, old: N) -> bool;

    /// The same for byte strings.
    fn is_better_bytes(new: &[u8], old: &[u8]) -> bool;

    /// The value that no other is worse than.
    fn worst<N: ArrowNativeTypeOp>() -> N;

    /// The best value of a column.
    fn best<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>) -> Option<T::Native>;
}

/// The low end.
pub(super) struct Least;

impl Order for Least {
    #[inline]
    fn is_better<N: ArrowNativeTypeOp>(new: N, old: N) -> bool {
        new.is_lt(old)
    }

    #[inline]
    fn is_better_bytes(new: &[u8], old: &[u8]) -> bool {
        new < old
    }

    fn worst<N: ArrowNativeTypeOp>() -> N {
        N::MAX_TOTAL_ORDER
    }

    fn best<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>) -> Option<T::Native> {
        compute::min(column)
    }
}

/// The high end.
pub(super) struct Greatest;

impl Order for Greatest {
    #[inline]
    fn is_better<N: ArrowNativeTypeOp>(new: N, old: N) -> bool {
        new.is_gt(old)
    }

    #[inline]
    fn is_better_bytes(new: &[u8], old: &[u8]) -> bool {
        new > old
    }

    fn worst<N: ArrowNativeTypeOp>() -> N {
        N::MIN_TOTAL_ORDER
    }

    fn best<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>) -> Option<T::Native> {
        compute::max(column)
    }
}

/// A column as the states hold it: booleans as 0 and 1.
pub(super) fn as_fixed(column: &ArrayRef) -> Result<ArrayRef> {
    match column.data_type() {
        DataType::Boolean => Ok(compute::cast(column, &DataType::UInt8)?),
        _ => Ok(Arc::clone(column)),
    }
}

/// Values that states held as a column of `data_type`.
pub(super) fn from_fixed<T: ArrowPrimitiveType>(
    array: PrimitiveArray<T>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    match data_type {
        DataType::Boolean => Ok(compute::cast(&array, data_type)?),
        _ => Ok(Arc::new(array.with_data_type(data_type.clone()))),
    }
}

struct MinMax<T: ArrowPrimitiveType, O> {
    data_type: DataType,
    best: Vec<T::Native>,
    seen: Seen,
    order: PhantomData<O>,
}

impl<T: ArrowPrimitiveType, O> MinMax<T, O> {
    fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            best: Vec::new(),
            seen: Seen::default(),
            order: PhantomData,
        }
    }
}

impl<T: ArrowPrimitiveType, O: Order> GroupStates for MinMax<T, O> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.best.resize(total.max(self.best.len()), O::worst());
        self.seen.note(&rows, total);
        let column = as_fixed(&columns[0])?;
        let values = column.as_primitive::<T>().values();
        let best = self.best.as_mut_slice();
        let keep = |best: &mut T::Native, value: T::Native| {
            *best = if O::is_better(value, *best) {
                value
            } else {
                *best
            };
        };
        if rows.is_one_group() {
            let live = PrimitiveArray::<T>::new(values.clone(), rows.validity());
            O::best(&live)
                .into_iter()
                .for_each(|value| keep(&mut best[0], value));
        } else {
            rows.for_each(values, |group, value| keep(&mut best[group], value));
        }
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.update(partial, None, groups, total)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.drain_final(total)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.best.resize(total, O::worst());
        let values = std::mem::take(&mut self.best).into();
        from_fixed(
            PrimitiveArray::<T>::new(values, self.seen.take(total)),
            &self.data_type,
        )
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<T::Native>() + self.seen.bytes()
    }
}
