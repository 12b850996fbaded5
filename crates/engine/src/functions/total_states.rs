//! The three states of exact totals: one running total, the total of distinct values, a total per group.
//!
//! In: argument columns or partial totals. Out: what an aggregate makes of totals (their sum, their mean), or partial
//! totals of three columns: the total's low half in the type that is summed, its wraps, the number of values.
//! Invariant: nothing is lost between update, merge, retract and evaluate; only `evaluate` can find an overflow.
//! Not here: which state a query needs, see `sum.rs` and `avg.rs`.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, FieldRef, Float64Type, Int64Type,
};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{HashMap, Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use grouse_groupby::states;

use super::overflow::overflow;
use super::total::{Summable, Total};

/// What an aggregate makes of a total that is not empty.
pub(super) trait Outcome<T: Summable>: Debug + Send + 'static {
    /// Its type.
    type Type: ArrowPrimitiveType;

    /// The result, of a total of values of the type `summed`; none if it is no value of `data_type`.
    fn of(
        total: Total<T::Native>,
        summed: &DataType,
        data_type: &DataType,
    ) -> Option<<Self::Type as ArrowPrimitiveType>::Native>;
}

/// The total itself.
#[derive(Debug)]
pub(super) struct Sum;

impl<T: Summable> Outcome<T> for Sum {
    type Type = T;

    fn of(total: Total<T::Native>, _: &DataType, data_type: &DataType) -> Option<T::Native> {
        let exact = total.exact();
        exact.filter(|value| T::fits(*value, data_type))
    }
}

/// The double nearest to the total over the number of values.
#[derive(Debug)]
pub(super) struct Mean;

impl<T: Summable<Native: Into<i128>>> Outcome<T> for Mean {
    type Type = Float64Type;

    fn of(total: Total<T::Native>, _: &DataType, _: &DataType) -> Option<f64> {
        Some(total.mean())
    }
}

/// The total over the number of values, of decimals with the digits of the result, of durations in whole units.
#[derive(Debug)]
pub(super) struct RoundedMean;

impl<T: Summable<Native: states::RoundedMean>> Outcome<T> for RoundedMean {
    type Type = T;

    fn of(total: Total<T::Native>, summed: &DataType, data_type: &DataType) -> Option<T::Native> {
        let digits = match (summed, data_type) {
            (DataType::Decimal128(_, from), DataType::Decimal128(_, to))
            | (DataType::Decimal256(_, from), DataType::Decimal256(_, to)) => {
                to.checked_sub(*from)?
            }
            _ => 0,
        };
        let factor = 10_i64.checked_pow(u32::try_from(digits).ok()?)?;
        let mean = total.rounded_mean(factor);
        mean.filter(|mean| T::fits(*mean, data_type))
    }
}

/// The columns of a partial total of `summed` values.
pub(super) fn state_fields(aggregate: &str, name: &str, summed: &DataType) -> Vec<FieldRef> {
    let field = |part, data_type| {
        Arc::new(Field::new(
            format_state_name(aggregate, part),
            data_type,
            false,
        ))
    };
    vec![
        field(name, summed.clone()),
        field("wraps", DataType::Int64),
        field("values", DataType::Int64),
    ]
}

/// What is summed, and to what: the aggregate's name, for errors, and both types.
#[derive(Debug, Clone)]
pub(super) struct Target<T, O> {
    aggregate: String,
    summed: DataType,
    result: DataType,
    outcome: PhantomData<fn(T) -> O>,
}

impl<T: Summable, O: Outcome<T>> Target<T, O> {
    /// Totals of `summed` values, the type of the argument or a wider one of its width.
    pub(super) fn new(args: &AccumulatorArgs, summed: &DataType) -> Self {
        Self {
            aggregate: args.name.to_string(),
            summed: summed.clone(),
            result: args.return_type().clone(),
            outcome: PhantomData,
        }
    }

    /// The result of a total; NULL if it is empty.
    fn result(
        &self,
        total: Total<T::Native>,
    ) -> Result<Option<<O::Type as ArrowPrimitiveType>::Native>> {
        if total.values() == 0 {
            return Ok(None);
        }
        match O::of(total, &self.summed, &self.result) {
            Some(value) => Ok(Some(value)),
            None => Err(overflow(&self.aggregate, &self.result)),
        }
    }

    fn scalar(&self, total: Total<T::Native>) -> Result<ScalarValue> {
        ScalarValue::new_primitive::<O::Type>(self.result(total)?, &self.result)
    }

    /// A column of the values that are summed.
    fn column(&self, values: PrimitiveArray<T>) -> ArrayRef {
        Arc::new(values.with_data_type(self.summed.clone()))
    }

    fn size(&self) -> usize {
        self.aggregate.capacity()
    }
}

/// One total, which rows enter and, in a sliding window, leave.
#[derive(Debug)]
pub(super) struct Running<T: Summable, O> {
    target: Target<T, O>,
    total: Total<T::Native>,
}

impl<T: Summable, O: Outcome<T>> Running<T, O> {
    pub(super) fn new(target: Target<T, O>) -> Self {
        Self {
            target,
            total: Total::ZERO,
        }
    }
}

impl<T: Summable, O: Outcome<T>> Accumulator for Running<T, O> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut total = self.total;
        each_valid(values[0].as_primitive::<T>(), |value| total.add(value));
        self.total = total;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(values[0].as_primitive::<T>(), |value| {
            self.total.retract(value);
        });
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let partial = Partial::<T>::new(states);
        for row in 0..partial.rows() {
            partial.merge(row, &mut self.total);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (low, wraps, values) = self.total.parts();
        Ok(vec![
            ScalarValue::new_primitive::<T>(Some(low), &self.target.summed)?,
            ScalarValue::Int64(Some(wraps)),
            ScalarValue::Int64(Some(values)),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.target.scalar(self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.target.size()
    }
}

/// Partial totals.
struct Partial<'a, T: Summable> {
    low: &'a PrimitiveArray<T>,
    wraps: &'a [i64],
    values: &'a [i64],
}

impl<'a, T: Summable> Partial<'a, T> {
    fn new(states: &'a [ArrayRef]) -> Self {
        Self {
            low: states[0].as_primitive::<T>(),
            wraps: states[1].as_primitive::<Int64Type>().values(),
            values: states[2].as_primitive::<Int64Type>().values(),
        }
    }

    fn rows(&self) -> usize {
        self.low.len()
    }

    fn merge(&self, row: usize, total: &mut Total<T::Native>) {
        total.merge(self.low.value(row), self.wraps[row], self.values[row]);
    }
}

/// The total of the distinct values, each with its count, so that rows can leave a sliding window.
#[derive(Debug)]
pub(super) struct Distinct<T: Summable, O> {
    target: Target<T, O>,
    counts: HashMap<T::Native, u64>,
    total: Total<T::Native>,
}

impl<T: Summable, O: Outcome<T>> Distinct<T, O> {
    pub(super) fn new(target: Target<T, O>) -> Self {
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

impl<T: Summable, O: Outcome<T>> Accumulator for Distinct<T, O> {
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
        let values = PrimitiveArray::<T>::from_iter_values(self.counts.keys().copied());
        let values = self.target.column(values);
        Ok(vec![
            SingleRowListArrayBuilder::new(values).build_list_scalar(),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.target.scalar(self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.target.size()
            + self.counts.capacity() * (size_of::<(T::Native, u64)>() + 1)
    }
}

/// A total per group.
pub(super) struct PerGroup<T: Summable, O> {
    target: Target<T, O>,
    totals: Vec<Total<T::Native>>,
}

impl<T: Summable, O: Outcome<T>> PerGroup<T, O> {
    pub(super) fn new(target: Target<T, O>) -> Self {
        Self {
            target,
            totals: Vec::new(),
        }
    }

    /// Totals as the columns of a partial state.
    fn columns(&self, totals: Vec<Total<T::Native>>) -> Vec<ArrayRef> {
        let low = totals.iter().map(|total| total.parts().0);
        let wraps = totals.iter().map(|total| total.parts().1);
        let values = totals.iter().map(|total| total.parts().2);
        vec![
            self.target.column(PrimitiveArray::from_iter_values(low)),
            Arc::new(Int64Array::from_iter_values(wraps)),
            Arc::new(Int64Array::from_iter_values(values)),
        ]
    }
}

impl<T: Summable, O: Outcome<T>> GroupsAccumulator for PerGroup<T, O> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::ZERO);
        let values = values[0].as_primitive::<T>();
        let rows = group_indices.iter().zip(values.values());
        match counted(values, opt_filter) {
            None => rows.for_each(|(group, value)| self.totals[*group].add(*value)),
            Some(counted) => {
                for ((group, value), counts) in rows.zip(&counted) {
                    if counts {
                        self.totals[*group].add(*value);
                    }
                }
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::ZERO);
        let partial = Partial::<T>::new(values);
        for (row, group) in group_indices.iter().enumerate() {
            partial.merge(row, &mut self.totals[*group]);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let results = totals.into_iter().map(|total| self.target.result(total));
        let column = results.collect::<Result<PrimitiveArray<O::Type>>>()?;
        Ok(Arc::new(column.with_data_type(self.target.result.clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = emit_to.take_needed(&mut self.totals);
        Ok(self.columns(totals))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let counted = counted(values, opt_filter);
        let total = |row| match &counted {
            Some(counted) if counted.is_null(row) => Total::ZERO,
            _ => Total::of(values.value(row)),
        };
        Ok(self.columns((0..values.len()).map(total).collect()))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.target.size()
            + self.totals.capacity() * size_of::<Total<T::Native>>()
    }
}

/// The rows that count: not NULL and kept by the FILTER; none if all do.
fn counted<T: Summable>(
    values: &PrimitiveArray<T>,
    filter: Option<&BooleanArray>,
) -> Option<NullBuffer> {
    NullBuffer::union(values.nulls(), filter.map(kept_rows).as_ref())
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
