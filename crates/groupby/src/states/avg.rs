//! avg(x): floats in Float64, integers, decimals and durations from an exact sum.
//!
//! In: the column as the engine coerced it, integers of fewer bits also as they are. Out: DataFusion's result type, NULL without values;
//! decimals and durations are rounded, halves away from zero, where DataFusion cuts them.
//! Invariant: sum and count are partial states of their own; they divide once, at the end.
//! Not here: states of integers (`avg_integers`), averages of distinct values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type, i256};

use super::avg_integers::{AvgIntegers, nearest_mean};
use super::count::{add_counts, count_rows};
use super::fixed::{column_of, values_of};
use super::fold::Reduce;
use super::mean::{Mean, counts_of, not_zero};
use super::native::native;
use super::per_group::PerGroup;
use super::rows::Rows;
use super::sum::sum_floats;
use super::wide::{
    Fewer, NarrowDecimals, SumWidth, Summed, WideSums, limit_of, with_integers_summed, with_summed,
};
use super::{Aggregate, CodeSums, GroupStates, Groups, PreAggregated, PreAggregator};
use crate::error::{Error, Result};

/// `avg` of a column of `input_type`; `None` if it is not native.
pub fn avg(
    name: &str,
    input_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    if input_type.is_integer() && result_type == &DataType::Float64 {
        macro_rules! exact {
            ($summed:ty) => {
                Some(native(name, result_type, AvgIntegers::<$summed>::default))
            };
        }
        return with_integers_summed!(input_type, exact, None);
    }
    let factor = factor_of(input_type, result_type)?;
    macro_rules! wide {
        ($native:ty) => {{
            let (label, data_type) = (name.to_owned(), result_type.clone());
            let make = move || AvgWide::<$native>::new(label.clone(), data_type.clone(), factor);
            Some(native(name, result_type, make))
        }};
    }
    with_summed!(input_type, result_type, wide, {
        Some(native(name, result_type, AvgFloat::default))
    })
}

/// What `avg` is where its `sums`, exact ones of the same values, and their `counts` are known: one sum beside two columns
/// of states. `None` for types whose sums may be narrower than those of `avg` or that it does not take.
pub fn means(
    name: &str,
    sums: &ArrayRef,
    counts: &Int64Array,
    result_type: &DataType,
) -> Option<Result<ArrayRef>> {
    let counts = counts.values();
    let nulls = not_zero(counts.iter().copied());
    let double =
        |means: Vec<f64>| Ok(Arc::new(Float64Array::new(means.into(), nulls.clone())) as _);
    macro_rules! nearest {
        ($kind:ty) => {{
            let sums = sums.as_primitive::<$kind>().values().iter();
            let nearest = |(sum, count): (&_, &i64)| match count {
                0 => 0.0,
                count => nearest_mean(i128::from(*sum), *count),
            };
            double(sums.zip(counts).map(nearest).collect())
        }};
    }
    Some(match (sums.data_type(), result_type) {
        (DataType::Int64, DataType::Float64) => nearest!(Int64Type),
        (DataType::UInt64, DataType::Float64) => nearest!(UInt64Type),
        (DataType::Float64, DataType::Float64) => {
            let sums = sums.as_primitive::<Float64Type>().values().iter();
            double(
                sums.zip(counts)
                    .map(|(sum, count)| sum / *count as f64)
                    .collect(),
            )
        }
        (DataType::Decimal128(..), DataType::Decimal128(..)) => {
            let factor = factor_of(sums.data_type(), result_type)?;
            let division = Division::<i128>::new(name.to_owned(), result_type.clone(), factor);
            let sums = sums.as_primitive::<Decimal128Type>().values().iter();
            let means = sums
                .zip(counts)
                .map(|(sum, count)| division.mean(*sum, 0, *count));
            let means = means.collect::<Result<Vec<i128>>>();
            means.and_then(|means| column_of(means, nulls, result_type))
        }
        _ => return None,
    })
}

/// What sums are multiplied by to get the result's scale; `None` if the types are not native.
fn factor_of(input: &DataType, result: &DataType) -> Option<i64> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256, Duration};
    match (input, result) {
        (DataType::Float64, DataType::Float64) => Some(1),
        (Duration(from), Duration(to)) => (from == to).then_some(1),
        (Decimal32(_, from), Decimal32(_, to))
        | (Decimal64(_, from), Decimal64(_, to))
        | (Decimal64(_, from) | Decimal128(_, from), Decimal128(_, to))
        | (Decimal256(_, from), Decimal256(_, to)) => {
            let digits = u32::try_from(i16::from(*to) - i16::from(*from)).ok()?;
            10i64.checked_pow(digits)
        }
        _ => None,
    }
}

impl Reduce<f64> for Mean<f64> {
    fn of(values: &[f64]) -> Self {
        Self {
            sum: sum_floats(values),
            count: values.len() as i64,
        }
    }

    #[inline(always)]
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    #[inline(always)]
    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }
}

#[derive(Debug, Default)]
struct AvgFloat {
    means: PerGroup<Mean<f64>>,
}

impl GroupStates for AvgFloat {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        let values = columns[0].as_primitive::<Float64Type>().values();
        rows.fold(values, total, self.means.grow(total));
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        let sums = partial[0].as_primitive::<Float64Type>().values();
        let counts = partial[1].as_primitive::<Int64Type>().values();
        let means = self.means.grow(total);
        rows.for_each_row(|group, row| {
            let (sum, count) = (sums[row], counts[row]);
            means[group].merge(Mean { sum, count });
        });
        Ok(())
    }

    fn pre_aggregate(
        &self,
        columns: &[ArrayRef],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        Ok(Some(by_code.floats(&columns[0])))
    }

    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        let means = self.means.grow(total);
        for ((group, count), &sum) in pre_aggregated.counts().zip(pre_aggregated.sums.floats()) {
            means[group].merge(Mean { sum, count });
        }
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let means = self.means.take(total);
        let sums: Vec<_> = means.iter().map(|mean| mean.sum).collect();
        Ok(vec![Arc::new(Float64Array::from(sums)), counts_of(&means)])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let means = self.means.take(total);
        let values: Vec<_> = means
            .iter()
            .map(|mean| mean.sum / mean.count as f64)
            .collect();
        let nulls = not_zero(means.iter().map(|mean| mean.count));
        Ok(Arc::new(Float64Array::new(values.into(), nulls)))
    }

    fn bytes(&self) -> usize {
        self.means.bytes()
    }
}

/// Exact sums by their counts.
struct Division<W> {
    name: String,
    result_type: DataType,
    limit: Option<W>,
    factor: i64,
}

impl<W: SumWidth> Division<W> {
    fn new(name: String, result_type: DataType, factor: i64) -> Self {
        let limit = limit_of(&result_type);
        Self {
            name,
            result_type,
            limit,
            factor,
        }
    }

    /// The mean of `sum + carry * 2^bits`; 0 of no values.
    fn mean(&self, sum: W, carry: i64, count: i64) -> Result<W> {
        let mean = match count {
            0 => Some(W::default()),
            _ => sum.mean(carry, self.factor, count),
        };
        let fits = |mean: &W| self.limit.is_none_or(|limit| mean.is_within(limit));
        mean.filter(fits).ok_or_else(|| Error::Overflow {
            aggregate: self.name.clone(),
            data_type: self.result_type.to_string(),
            remedy: "cast the argument to DOUBLE".to_owned(),
        })
    }
}

struct AvgWide<T: Summed> {
    division: Division<T::Sum>,
    sums: WideSums<T::Sum>,
    counts: PerGroup<i64>,
}

impl<T: Summed> AvgWide<T> {
    fn new(name: String, result_type: DataType, factor: i64) -> Self {
        Self {
            division: Division::new(name, result_type, factor),
            sums: WideSums::default(),
            counts: PerGroup::default(),
        }
    }
}

impl<T: Summed> GroupStates for AvgWide<T> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.sums.grow(total);
        let values = values_of::<T::Value>(&columns[0])?;
        self.sums.update::<T>(&rows, &values);
        count_rows(self.counts.grow(total), &rows, groups, total);
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        self.sums.grow(total);
        self.sums.merge(&rows, &partial[0], &partial[1]);
        add_counts(self.counts.grow(total), &rows, &partial[2]);
        Ok(())
    }

    fn pre_aggregate(
        &self,
        columns: &[ArrayRef],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        by_code.wide::<T>(&columns[0])
    }

    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        self.sums.grow(total);
        self.sums.add_words(pre_aggregated);
        pre_aggregated.count(self.counts.grow(total));
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let [low, carry] = self.sums.take_partial(total, None);
        Ok(vec![
            low,
            carry,
            Arc::new(Int64Array::from(self.counts.take(total))),
        ])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let (mut low, carry) = self.sums.take(total);
        let counts = self.counts.take(total);
        for (group, (sum, count)) in low.iter_mut().zip(&counts).enumerate() {
            let carry = carry.get(group).copied().unwrap_or_default();
            *sum = self.division.mean(*sum, carry, *count)?;
        }
        let nulls = not_zero(counts.into_iter());
        column_of(T::narrow(low), nulls, &self.division.result_type)
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.counts.bytes()
    }
}
