//! avg(x) of integers: the double nearest to the exact mean.
//!
//! In: the column. Out: Float64, NULL without values.
//! Invariant: sums are exact, and they are divided once, so that rows may come in any order.
//! Not here: averages of distinct values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, PrimitiveArray};
use arrow::datatypes::Int64Type;

use super::fixed::values_of;
use super::fold::Fold;
use super::lanes::add_up;
use super::mean::{Mean, counts_of, not_zero};
use super::per_group::PerGroup;
use super::rows::Rows;
use super::wide::{SumWidth, Summed, add_carry, are_narrow};
use super::{CodeSums, GroupStates, Groups, PreAggregated, PreAggregator};
use crate::error::Result;
use crate::keys::GroupId;

/// Doubles hold all integers below.
const EXACT_END: u128 = 1 << f64::MANTISSA_DIGITS;

/// The double nearest to `sum / count`, ties to even; `count` is at least 1.
pub fn nearest_mean(sum: i128, count: i64) -> f64 {
    let (magnitude, divisor) = (sum.unsigned_abs(), u128::from(count.unsigned_abs()));
    let mean = if magnitude < EXACT_END && divisor < EXACT_END {
        magnitude as f64 / divisor as f64
    } else {
        // 64 bits of the quotient at least, of which the last says whether anything follows: rounded once.
        let shift = magnitude.leading_zeros();
        let scaled = magnitude << shift;
        let follows = u128::from(!scaled.is_multiple_of(divisor));
        ((scaled / divisor) | follows) as f64 * 0.5f64.powi(shift as i32)
    };
    if sum < 0 { -mean } else { mean }
}

pub(super) struct AvgIntegers<T: Summed> {
    means: PerGroup<Mean<T::Sum>>,
    /// What the sums lack, in units of 2^64; empty until the first overflow.
    carry: Vec<i64>,
}

impl<T: Summed> Default for AvgIntegers<T> {
    fn default() -> Self {
        Self {
            means: PerGroup::default(),
            carry: Vec::new(),
        }
    }
}

/// The groups' sums, which are exact, and counts.
struct ExactMeans<'a, S> {
    means: &'a mut [Mean<S>],
    carries: &'a mut Vec<i64>,
}

impl<S: SumWidth> ExactMeans<'_, S> {
    #[inline]
    fn merge(&mut self, group: usize, part: Mean<S>, carry: i64) {
        let mean = &mut self.means[group];
        let (sum, wrapped) = mean.sum.add(part.sum);
        mean.sum = sum;
        mean.count += part.count;
        if wrapped + carry != 0 {
            add_carry(self.carries, self.means.len(), group, wrapped + carry);
        }
    }
}

/// Values that are summed as `T` says.
struct SummingMeans<'a, T: Summed>(ExactMeans<'a, T::Sum>);

impl<T: Summed> Fold<T::Value> for SummingMeans<'_, T> {
    fn column(&mut self, values: &[T::Value]) {
        let (sum, carry) = T::Sum::sum(values, T::widen);
        let count = values.len() as i64;
        self.0.merge(0, Mean { sum, count }, carry);
    }

    #[inline]
    fn add(&mut self, group: usize, value: T::Value) {
        let sum = T::widen(value);
        self.0.merge(group, Mean { sum, count: 1 }, 0);
    }

    #[inline]
    fn few(&mut self, ids: &[GroupId], values: &[T::Value], total: usize) {
        let add = |part: &mut Mean<i64>, value| {
            part.sum += T::widen(value).word();
            part.count += 1;
        };
        add_up(ids, values, total, add, |group, Mean { sum, count }| {
            let sum = T::Sum::of_word(sum);
            self.0.merge(group, Mean { sum, count }, 0);
        });
    }

    #[inline]
    fn fits_lanes(values: &[T::Value]) -> bool {
        are_narrow(values, T::widen)
    }
}

impl<T: Summed> AvgIntegers<T> {
    /// The means of `total` groups at least.
    fn grow(&mut self, total: usize) -> ExactMeans<'_, T::Sum> {
        ExactMeans {
            means: self.means.grow(total),
            carries: &mut self.carry,
        }
    }

    /// The carry of each of `total` groups. None are left.
    fn take_carries(&mut self, total: usize) -> Vec<i64> {
        let mut carry = std::mem::take(&mut self.carry);
        carry.resize(total, 0);
        carry
    }
}

impl<T: Summed<Sum: Into<i128>>> GroupStates for AvgIntegers<T> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        let values = &*values_of::<T::Value>(&columns[0])?;
        rows.fold(values, total, SummingMeans::<T>(self.grow(total)));
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        let sums = partial[0]
            .as_primitive::<<T::Sum as SumWidth>::Carrier>()
            .values();
        let carry = partial[1].as_primitive::<Int64Type>().values();
        let counts = partial[2].as_primitive::<Int64Type>().values();
        let mut means = self.grow(total);
        rows.for_each_row(|group, row| {
            let (sum, count) = (sums[row], counts[row]);
            means.merge(group, Mean { sum, count }, carry[row]);
        });
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
        let mut means = self.grow(total);
        for ((group, count), &sum) in pre_aggregated.counts().zip(pre_aggregated.sums.words()) {
            let sum = T::Sum::of_word(sum);
            means.merge(group, Mean { sum, count }, 0);
        }
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let means = self.means.take(total);
        let sums = means.iter().map(|mean| mean.sum);
        Ok(vec![
            Arc::new(PrimitiveArray::<<T::Sum as SumWidth>::Carrier>::from_iter_values(sums)),
            Arc::new(Int64Array::from(self.take_carries(total))),
            counts_of(&means),
        ])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let means = self.means.take(total);
        let carries = self.take_carries(total);
        let nulls = not_zero(means.iter().map(|mean| mean.count));
        let means = means.iter().zip(carries).map(|(mean, carry)| {
            let sum = mean.sum.into() + (i128::from(carry) << 64);
            nearest_mean(sum, mean.count.max(1))
        });
        let means: Vec<_> = means.collect();
        Ok(Arc::new(Float64Array::new(means.into(), nulls)))
    }

    fn bytes(&self) -> usize {
        self.means.bytes() + self.carry.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_the_nearest_doubles() {
        // (sum, count, mean): ties to even, sums and counts that no double holds, 2^127.
        let odd = (1i128 << 53) + 1;
        let cases = [
            (0, 7, 0.0),
            (-7, 2, -3.5),
            (1, 3, 1.0 / 3.0),
            (odd, 1, 9_007_199_254_740_992.0),
            (odd + 2, 1, 9_007_199_254_740_996.0),
            (2 * odd + 1, 2, 9_007_199_254_740_994.0),
            (odd * 1_000_003, 1_000_003, 9_007_199_254_740_992.0),
            (odd * 1_000_003 + 1, 1_000_003, 9_007_199_254_740_994.0),
            (-odd * 3 - 1, 3, -9_007_199_254_740_994.0),
            (odd, i64::MAX, 0.000_976_562_500_000_000_2),
            (i128::MIN, 1, -(2f64.powi(127))),
            (i128::MIN, i64::MAX, -(2f64.powi(64))),
            (141 * 98_100_620_957_197, 141, 98_100_620_957_197.0),
            (i128::from(i64::MAX) * 3, 3, 9_223_372_036_854_775_807.0),
        ];
        for (sum, count, mean) in cases {
            assert_eq!(nearest_mean(sum, count), mean, "{sum} / {count}");
        }
    }
}
