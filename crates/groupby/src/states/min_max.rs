//! min(x) and max(x) of fixed-width values.
//!
//! In: integers, floats, decimals, dates, times, timestamps, durations, intervals, booleans.
//! Out: the same type, NULL without values.
//! Invariant: all NaN are one value and the greatest, -0.0 comes before 0.0. The answer depends neither on the order of
//! rows nor on the sign that a machine gives to 0.0 / 0.0.
//! Not here: strings and binary (`min_max_bytes`).

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::downcast_primitive;
use arrow::array::{ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, BooleanArray};
use arrow::datatypes::{ArrowNativeType, DataType, UInt8Type};

use super::fixed::{column_of, values_of};
use super::native::native;
use super::rows::Rows;
use super::validity::Validity;
use super::{Aggregate, GroupStates, Groups, min_max_bytes};
use crate::error::Result;

/// Which end of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// `min` or `max` of a column of `data_type`, strings and binary as `result_type`; `None` if it is not native.
pub fn min_max(
    name: &str,
    extreme: Extreme,
    data_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    match extreme {
        Extreme::Min => states_of::<Least>(name, data_type, result_type),
        Extreme::Max => states_of::<Greatest>(name, data_type, result_type),
    }
}

fn states_of<O: Order>(
    name: &str,
    data_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    macro_rules! fixed {
        ($column:ty) => {
            Some(fixed::<<$column as ArrowPrimitiveType>::Native, O>(
                name, data_type,
            ))
        };
    }
    downcast_primitive! {
        data_type => (fixed),
        DataType::Boolean => fixed!(UInt8Type),
        _ => min_max_bytes::min_max_bytes::<O>(name, data_type, result_type),
    }
}

fn fixed<N: NativeType, O: Order>(name: &str, data_type: &DataType) -> Arc<dyn Aggregate> {
    let result_type = data_type.clone();
    native(name, data_type, move || {
        MinMax::<N, O>::new(result_type.clone())
    })
}

/// Values with a total order.
pub(super) trait NativeType: ArrowNativeType + ArrowNativeTypeOp {}

impl<N: ArrowNativeType + ArrowNativeTypeOp> NativeType for N {}

/// One end of the order.
pub(super) trait Order: Send + Sync + 'static {
    /// True if `new` comes nearer to this end than `old`.
    fn is_better<N: ArrowNativeTypeOp>(new: N, old: N) -> bool;

    /// The same for byte strings.
    fn is_better_bytes(new: &[u8], old: &[u8]) -> bool;

    /// The value that no other is worse than.
    fn worst<N: ArrowNativeTypeOp>() -> N;

    /// The better of two values.
    #[inline]
    fn better<N: ArrowNativeTypeOp>(new: N, old: N) -> N {
        if Self::is_better(new, old) { new } else { old }
    }
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
}

/// All NaN as one, the greatest of the total order; other values as they are.
#[inline]
#[expect(clippy::eq_op, reason = "only NaN is unlike itself")]
fn one_nan<N: NativeType>(value: N) -> N {
    if value == value {
        value
    } else {
        N::MAX_TOTAL_ORDER
    }
}

/// The best of some values, found in as many lanes as a vector register may have.
fn best<N: NativeType, O: Order>(values: &[N]) -> N {
    let mut lanes = [O::worst::<N>(); 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = O::better(one_nan(*value), *lane);
        }
    }
    let rest = rest.iter().map(|value| one_nan(*value));
    rest.chain(lanes)
        .fold(O::worst(), |best, value| O::better(value, best))
}

struct MinMax<N, O> {
    data_type: DataType,
    best: Vec<N>,
    seen: Validity,
    order: PhantomData<O>,
}

impl<N, O> MinMax<N, O> {
    fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            best: Vec::new(),
            seen: Validity::default(),
            order: PhantomData,
        }
    }
}

impl<N: NativeType, O: Order> GroupStates for MinMax<N, O> {
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
        let values = values_of::<N>(&columns[0])?;
        let states = self.best.as_mut_slice();
        if rows.is_whole_column() {
            states[0] = O::better(best::<N, O>(&values), states[0]);
        } else {
            rows.for_each(&values, |group, value| {
                states[group] = O::better(one_nan(value), states[group])
            });
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
        column_of(
            std::mem::take(&mut self.best),
            self.seen.take(total),
            &self.data_type,
        )
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<N>() + self.seen.bytes()
    }
}
