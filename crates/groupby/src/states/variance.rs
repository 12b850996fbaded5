//! Variance and standard deviation, of a sample or of a population.
//!
//! In: a Float64 column (DataFusion casts others). Out: Float64; NULL without values, of a sample also with one.
//! Invariant: count, mean and squared distances from the mean are kept, never sums of squares, whose difference loses all
//! digits where the mean is large. Equal values have a variance of exactly 0, however they were merged.
//! Not here: two columns (`covariance`), distinct values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};

use super::fold::Reduce;
use super::lanes::add_up;
use super::native::native;
use super::per_group::PerGroup;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;
use crate::keys::GroupId;

/// What is said of how far values lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Mean squared distance from the mean.
    VariancePopulation,
    /// The same, of which the values are a sample: one fewer in the divisor.
    VarianceSample,
    /// Root of the population's variance.
    DeviationPopulation,
    /// Root of the sample's variance.
    DeviationSample,
}

/// The `spread` of a column of `input_type`; `None` if it is not native.
pub fn variance(name: &str, spread: Spread, input_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    let make = move || Variance {
        spread,
        moments: PerGroup::default(),
    };
    (*input_type == DataType::Float64).then(|| native(name, &DataType::Float64, make))
}

/// How many values, their mean, and the sum of their squared distances from it, side by side.
///
/// The count is a float: exact up to 2^53, and it only divides.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Reduce<f64> for Moments {
    #[inline]
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = other;
            return;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        let share = other.count / count;
        // Equal means stay what they are, to the last bit.
        self.mean += apart * share;
        self.squares += other.squares + apart * apart * self.count * share;
        self.count = count;
    }

    /// The moments of a column, in two passes without a division per value.
    fn of(values: &[f64]) -> Self {
        let Some(first) = values.first() else {
            return Self::default();
        };
        let count = values.len() as f64;
        // From the first value on: the mean of equal values is that value.
        let mean = first + lanes([values], |[value]| [value - first])[0] / count;
        let [apart, squares] = lanes([values], |[value]| {
            let apart = value - mean;
            [apart, apart * apart]
        });
        Self {
            count,
            mean,
            // What the rounded mean is off by.
            squares: squares - apart * apart / count,
        }
    }

    /// In two passes without a division per value. Tried and rejected: one pass over distances from the first value, which
    /// loses digits where that one lies far from the others.
    fn few(all: &mut [Self], ids: &[GroupId], values: &[f64]) {
        let total = all.len();
        let mut batch = vec![Self::default(); total];
        let merge = |group: usize, lane: FromFirst| batch[group].merge(lane.mean());
        add_up(ids, values, total, FromFirst::add, merge);
        let pairs = ids.iter().zip(values);
        let apart = pairs.map(|(id, value)| value - batch[id.0 as usize].mean);
        let apart: Vec<f64> = apart.collect();
        let add = |[sum, squares]: &mut [f64; 2], apart: f64| {
            *sum += apart;
            *squares += apart * apart;
        };
        let mut sums = vec![[0.0; 2]; total];
        let fold = |group: usize, [sum, squares]: [f64; 2]| {
            sums[group][0] += sum;
            sums[group][1] += squares;
        };
        add_up(ids, &apart, total, add, fold);
        for ((own, mut of_batch), [sum, squares]) in all.iter_mut().zip(batch).zip(sums) {
            if of_batch.count > 0.0 {
                // Less what the rounded mean is off by.
                of_batch.squares = squares - sum * (sum / of_batch.count);
            }
            own.merge(of_batch);
        }
    }
}

/// How many values and their mean, by their distances from the first of them: the mean of equal values is that value.
#[derive(Debug, Clone, Copy, Default)]
struct FromFirst {
    first: f64,
    count: f64,
    sum: f64,
}

impl FromFirst {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        if self.count == 0.0 {
            self.first = value;
        }
        self.sum += value - self.first;
        self.count += 1.0;
    }

    fn mean(self) -> Moments {
        match self.count == 0.0 {
            true => Moments::default(),
            false => Moments {
                count: self.count,
                mean: self.first + self.sum / self.count,
                squares: 0.0,
            },
        }
    }
}

/// Sums of what `of` gives for each row, in as many lanes as keep the adders busy.
#[inline]
pub(super) fn lanes<const COLUMNS: usize, const SUMS: usize>(
    columns: [&[f64]; COLUMNS],
    of: impl Fn([f64; COLUMNS]) -> [f64; SUMS],
) -> [f64; SUMS] {
    const LANES: usize = 8;
    let split = columns.map(|column| column.as_chunks::<LANES>());
    let mut sums = [[0.0; LANES]; SUMS];
    for at in 0..split[0].0.len() {
        let chunks = split.map(|(chunks, _)| &chunks[at]);
        for lane in 0..LANES {
            let terms = of(chunks.map(|chunk| chunk[lane]));
            for (sum, term) in sums.iter_mut().zip(terms) {
                sum[lane] += term;
            }
        }
    }
    let mut totals = sums.map(|lanes| lanes.iter().sum());
    for row in 0..split[0].1.len() {
        let terms = of(split.map(|(_, rest)| rest[row]));
        for (total, term) in totals.iter_mut().zip(terms) {
            *total += term;
        }
    }
    totals
}

struct Variance {
    spread: Spread,
    moments: PerGroup<Moments>,
}

impl GroupStates for Variance {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        let values = columns[0].as_primitive::<Float64Type>().values();
        rows.fold(values, total, self.moments.grow(total));
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        let part = |at: usize| partial[at].as_primitive::<Float64Type>().values();
        let (counts, means, squares) = (part(0), part(1), part(2));
        let moments = self.moments.grow(total);
        rows.for_each_row(|group, row| {
            moments[group].merge(Moments {
                count: counts[row],
                mean: means[row],
                squares: squares[row],
            });
        });
        Ok(())
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let moments = self.moments.take(total);
        let part = |of: fn(&Moments) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(moments.iter().map(of)))
        };
        Ok(vec![
            part(|moments| moments.count),
            part(|moments| moments.mean),
            part(|moments| moments.squares),
        ])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        use Spread::{DeviationPopulation, DeviationSample, VariancePopulation, VarianceSample};
        let moments = self.moments.take(total);
        let (fewer, root): (f64, fn(f64) -> f64) = match self.spread {
            VariancePopulation => (0.0, std::convert::identity),
            VarianceSample => (1.0, std::convert::identity),
            DeviationPopulation => (0.0, f64::sqrt),
            DeviationSample => (1.0, f64::sqrt),
        };
        let spread = |moments: &Moments| {
            let divisor = moments.count - fewer;
            (divisor > 0.0).then(|| root(moments.squares / divisor))
        };
        Ok(Arc::new(
            moments.iter().map(spread).collect::<Float64Array>(),
        ))
    }

    fn bytes(&self) -> usize {
        self.moments.bytes()
    }
}
