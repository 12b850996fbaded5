//! The three states of the exact `sum`: one running total, the total of distinct values, a total per group.
//!
//! In: argument columns or partial totals. Out: totals of the result type, or partial totals of two columns, the
//! total's low half in the result type (NULL where nothing was summed) and its wraps.
//! Invariant: nothing is lost between update, merge, retract and evaluate; only `evaluate` can find an overflow.
//! Not here: which state a query needs, see `sum.rs`.

use std::fmt::Debug;
use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{HashMap, Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::NullState;

use super::overflow::overflow;
use super::total::{Summable, Total};

/// What is summed: the aggregate's name, for errors, and its result type.
#[derive(Debug, Clone)]
pub(super) struct Target {
    aggregate: String,
    data_type: DataType,
}

impl Target {
    pub(super) fn new(args: &AccumulatorArgs) -> Self {
        Self {
            aggregate: args.name.to_string(),
            data_type: args.return_type().clone(),
        }
    }

    /// The total as a value of the result type.
    fn fit<T: Summable>(&self, total: Total<T::Native>) -> Result<T::Native> {
        match total.exact() {
            Some(value) if T::fits(value, &self.data_type) => Ok(value),
            _ => Err(overflow(&self.aggregate, &self.data_type)),
        }
    }

    fn scalar<T: Summable>(&self, value: Option<T::Native>) -> Result<ScalarValue> {
        ScalarValue::new_primitive::<T>(value, &self.data_type)
    }
}

/// One total, which rows enter and, in a sliding window, leave.
#[derive(Debug)]
pub(super) struct RunningSum<T: Summable> {
    target: Target,
    total: Total<T::Native>,
    /// Values in the total, so that an empty one is NULL.
    values: u64,
}

impl<T: Summable> RunningSum<T> {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            total: Total::ZERO,
            values: 0,
        }
    }
}

impl<T: Summable> Accumulator for RunningSum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.values += (values.len() - values.null_count()) as u64;
        let mut total = self.total;
        each_valid(values, |value| total.add(value));
        self.total = total;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.values -= (values.len() - values.null_count()) as u64;
        each_valid(values, |value| self.total.retract(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(&states[..1])?;
        each_valid(states[1].as_primitive::<Int64Type>(), |wraps| {
            self.total.add_wraps(wraps)
        });
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (low, wraps) = self.total.halves();
        let low = self.target.scalar::<T>((self.values > 0).then_some(low))?;
        Ok(vec![low, ScalarValue::Int64(Some(wraps))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values == 0 {
            return self.target.scalar::<T>(None);
        }
        let value = self.target.fit::<T>(self.total)?;
        self.target.scalar::<T>(Some(value))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.target.aggregate.capacity()
    }
}

/// The total of the distinct values, each with its count, so that rows can leave a sliding window.
#[derive(Debug)]
pub(super) struct DistinctSum<T: Summable> {
    target: Target,
    counts: HashMap<T::Native, u64>,
    total: Total<T::Native>,
}

impl<T: Summable> DistinctSum<T> {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            counts: HashMap::default(),
            total: Total::ZERO,
        }
    }

    fn insert(&mut self, value: T::Native) {
        let count = self.counts.entry(value).or_insert(0);
        if *count == 0 {
            self.total.add(value);
        }
        *count += 1;
    }

    fn remove(&mut self, value: T::Native) {
        let Some(count) = self.counts.get_mut(&value) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&value);
            self.total.retract(value);
        }
    }
}

impl<T: Summable> Accumulator for DistinctSum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(values[0].as_primitive::<T>(), |value| self.insert(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(values[0].as_primitive::<T>(), |value| self.remove(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            each_valid(list.as_primitive::<T>(), |value| self.insert(value));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = PrimitiveArray::<T>::from_iter_values(self.counts.keys().copied())
            .with_data_type(self.target.data_type.clone());
        Ok(vec![
            SingleRowListArrayBuilder::new(Arc::new(values)).build_list_scalar(),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return self.target.scalar::<T>(None);
        }
        let value = self.target.fit::<T>(self.total)?;
        self.target.scalar::<T>(Some(value))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.target.aggregate.capacity()
            + self.counts.capacity() * (size_of::<(T::Native, u64)>() + 1)
    }
}

/// A total per group.
pub(super) struct GroupSums<T: Summable> {
    target: Target,
    totals: Vec<Total<T::Native>>,
    seen: NullState,
}

impl<T: Summable> GroupSums<T> {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            totals: Vec::new(),
            seen: NullState::new(),
        }
    }

    /// A column of the result type.
    fn column(&self, values: Vec<T::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
        let column = PrimitiveArray::<T>::new(values.into(), nulls);
        Arc::new(column.with_data_type(self.target.data_type.clone()))
    }
}

impl<T: Summable> GroupsAccumulator for GroupSums<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::ZERO);
        let (totals, values) = (&mut self.totals, values[0].as_primitive::<T>());
        self.seen.accumulate(
            group_indices,
            values,
            opt_filter,
            total_num_groups,
            |group, value| totals[group].add(value),
        );
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(&values[..1], group_indices, None, total_num_groups)?;
        let wraps = values[1].as_primitive::<Int64Type>();
        for (group, wraps) in group_indices.iter().zip(wraps.values()) {
            self.totals[*group].add_wraps(*wraps);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let nulls = self.seen.build(emit_to);
        let values = totals
            .into_iter()
            .map(|total| self.target.fit::<T>(total))
            .collect::<Result<Vec<_>>>()?;
        Ok(self.column(values, nulls))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = emit_to.take_needed(&mut self.totals);
        let nulls = self.seen.build(emit_to);
        let (low, wraps): (Vec<_>, Vec<_>) = totals.into_iter().map(Total::halves).unzip();
        Ok(vec![
            self.column(low, nulls),
            Arc::new(Int64Array::from(wraps)),
        ])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let kept = opt_filter.map(kept_rows);
        let nulls = NullBuffer::union(values.nulls(), kept.as_ref());
        let low = PrimitiveArray::<T>::new(values.values().clone(), nulls)
            .with_data_type(self.target.data_type.clone());
        let wraps = Int64Array::from_value(0, values.len());
        Ok(vec![Arc::new(low), Arc::new(wraps)])
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.target.aggregate.capacity()
            + self.totals.capacity() * size_of::<Total<T::Native>>()
            + self.seen.size()
    }
}

/// The rows that a FILTER keeps, as a validity mask: NULL keeps nothing.
pub(super) fn kept_rows(filter: &BooleanArray) -> NullBuffer {
    match filter.nulls() {
        Some(nulls) => NullBuffer::new(filter.values() & nulls.inner()),
        None => NullBuffer::new(filter.values().clone()),
    }
}

/// Calls `take` with each value that is not NULL.
fn each_valid<T>(values: &PrimitiveArray<T>, mut take: impl FnMut(T::Native))
where
    T: Summable,
{
    if values.null_count() == 0 {
        values.values().iter().for_each(|value| take(*value));
    } else {
        values.iter().flatten().for_each(take);
    }
}
