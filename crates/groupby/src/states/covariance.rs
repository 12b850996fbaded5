//! Covariance, correlation and linear regression of two columns, y and x.
//!
//! In: two Float64 columns (DataFusion casts others); rows where either is NULL do not count. Out: Float64, or UInt64
//! for the count. NULL without rows, and where there is nothing to divide by: one row of a sample, equal x or y.
//! Invariant: means and distances from them are kept, never sums of products, whose difference loses all digits where the
//! means are large. A mean is infinite or NaN exactly if its column's sum is, so that no order of rows matters.
//! Not here: one column (`variance`), distinct values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Float64Type};

use super::native::native;
use super::per_group::PerGroup;
use super::rows::Rows;
use super::variance::lanes;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// What is said of two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Mean product of the distances from the means.
    CovariancePopulation,
    /// The same, of which the rows are a sample: one fewer in the divisor.
    CovarianceSample,
    /// Pearson's coefficient.
    Correlation,
    /// Slope of the line that fits best.
    Slope,
    /// Where that line meets x = 0.
    Intercept,
    /// Share of the variance of y that the line explains.
    Determination,
    /// Rows that count.
    Count,
    /// Mean of x.
    MeanX,
    /// Mean of y.
    MeanY,
    /// Sum of squared distances of x from its mean.
    SquaresX,
    /// Sum of squared distances of y from its mean.
    SquaresY,
    /// Sum of the products of both distances.
    Products,
}

/// The `relation` of two columns of `input_types`; `None` if it is not native.
pub fn covariance(
    name: &str,
    relation: Relation,
    input_types: &[DataType],
) -> Option<Arc<dyn Aggregate>> {
    let result_type = match relation {
        Relation::Count => DataType::UInt64,
        _ => DataType::Float64,
    };
    let make = move || Covariance {
        relation,
        moments: PerGroup::default(),
    };
    let known = *input_types == [DataType::Float64, DataType::Float64];
    known.then(|| native(name, &result_type, make))
}

/// Distances of one column from its mean.
#[derive(Debug, Clone, Copy, Default)]
struct Axis {
    mean: f64,
    squares: f64,
}

impl Axis {
    /// Takes in the value that is the `count`th; gives its distance from the mean before and after.
    #[inline]
    fn add(&mut self, value: f64, count: f64) -> (f64, f64) {
        let before = value - self.mean;
        if before.is_finite() {
            self.mean += before / count;
        } else {
            // The mean of an infinity and of whatever follows, where a difference would be NaN.
            self.mean = self.mean * ((count - 1.0) / count) + value / count;
        }
        let after = value - self.mean;
        self.squares += before * after;
        (before, after)
    }

    /// Takes in an axis of `other_count` rows; gives the distance between the means.
    #[inline]
    fn merge(&mut self, count: f64, other: Self, other_count: f64) -> f64 {
        let apart = other.mean - self.mean;
        let share = other_count / (count + other_count);
        if apart.is_finite() {
            // Equal means stay what they are, to the last bit.
            self.mean += apart * share;
        } else {
            self.mean = self.mean * (1.0 - share) + other.mean * share;
        }
        self.squares += other.squares + apart * apart * (count * share);
        apart
    }
}

/// Both columns of the rows of one group. The count is a float: exact up to 2^53, and it only divides.
#[derive(Debug, Clone, Copy, Default)]
struct CoMoments {
    count: f64,
    y: Axis,
    x: Axis,
    products: f64,
}

impl CoMoments {
    #[inline]
    fn add(&mut self, y: f64, x: f64) {
        self.count += 1.0;
        let (_, apart_y) = self.y.add(y, self.count);
        let (apart_x, _) = self.x.add(x, self.count);
        self.products += apart_x * apart_y;
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
        let apart_y = self.y.merge(self.count, other.y, other.count);
        let apart_x = self.x.merge(self.count, other.x, other.count);
        let count = self.count + other.count;
        self.products += other.products + apart_y * apart_x * (self.count * other.count / count);
        self.count = count;
    }

    /// The co-moments of two whole columns, in two passes without a division per row.
    fn of(ys: &[f64], xs: &[f64]) -> Self {
        let (Some(first_y), Some(first_x)) = (ys.first(), xs.first()) else {
            return Self::default();
        };
        let count = ys.len() as f64;
        // From the first row on: the mean of equal values is that value.
        let [y, x] = lanes([ys, xs], |[y, x]| [y - first_y, x - first_x]);
        let (mean_y, mean_x) = (first_y + y / count, first_x + x / count);
        if !mean_y.is_finite() || !mean_x.is_finite() {
            let mut moments = Self::default();
            ys.iter().zip(xs).for_each(|(y, x)| moments.add(*y, *x));
            return moments;
        }
        let [y, x, squares_y, squares_x, products] = lanes([ys, xs], |[y, x]| {
            let (y, x) = (y - mean_y, x - mean_x);
            [y, x, y * y, x * x, y * x]
        });
        // Less what the rounded means are off by.
        let axis = |mean, apart: f64, squares: f64| Axis {
            mean,
            squares: squares - apart * apart / count,
        };
        Self {
            count,
            y: axis(mean_y, y, squares_y),
            x: axis(mean_x, x, squares_x),
            products: products - y * x / count,
        }
    }

    /// What `relation` says of these rows; `None` for NULL.
    fn say(&self, relation: Relation) -> Option<f64> {
        use Relation::*;
        let Self { count, y, x, .. } = *self;
        // Products with what is not finite depend on the order of rows.
        let products = match y.mean.is_finite() && x.mean.is_finite() {
            true => self.products,
            false => f64::NAN,
        };
        let (value, known) = match relation {
            CovariancePopulation => (products / count, true),
            CovarianceSample => (products / (count - 1.0), count > 1.0),
            Correlation if y.mean.is_nan() && x.mean.is_nan() => (f64::NAN, true),
            Correlation => {
                let known = !y.mean.is_nan() && !x.mean.is_nan() && y.squares != 0.0;
                let value = products / y.squares.sqrt() / x.squares.sqrt();
                (value, known && count > 1.0 && x.squares != 0.0)
            }
            Slope => (products / x.squares, count > 1.0 && x.squares != 0.0),
            Intercept => (
                y.mean - products / x.squares * x.mean,
                count > 1.0 && x.squares != 0.0,
            ),
            // A line explains all of a y that is constant.
            Determination if y.squares == 0.0 => (1.0, count > 1.0 && x.squares != 0.0),
            Determination => (
                (products / x.squares) * (products / y.squares),
                count > 1.0 && x.squares != 0.0,
            ),
            Count => return Some(count),
            MeanX => (x.mean, true),
            MeanY => (y.mean, true),
            SquaresX => (x.squares, true),
            SquaresY => (y.squares, true),
            Products => (products, true),
        };
        (known && count > 0.0).then_some(value)
    }
}

struct Covariance {
    relation: Relation,
    moments: PerGroup<CoMoments>,
}

impl GroupStates for Covariance {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        let ys = columns[0].as_primitive::<Float64Type>().values();
        let xs = columns[1].as_primitive::<Float64Type>().values();
        let moments = self.moments.grow(total);
        if rows.is_whole_column() {
            moments[0].merge(CoMoments::of(ys, xs));
        } else {
            rows.for_each_row(|group, row| moments[group].add(ys[row], xs[row]));
        }
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&[], None, groups);
        let part = |at: usize| partial[at].as_primitive::<Float64Type>().values();
        let (counts, products) = (part(0), part(5));
        let (means_y, squares_y, means_x, squares_x) = (part(1), part(2), part(3), part(4));
        let moments = self.moments.grow(total);
        rows.for_each_row(|group, row| {
            moments[group].merge(CoMoments {
                count: counts[row],
                y: Axis {
                    mean: means_y[row],
                    squares: squares_y[row],
                },
                x: Axis {
                    mean: means_x[row],
                    squares: squares_x[row],
                },
                products: products[row],
            });
        });
        Ok(())
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let moments = self.moments.take(total);
        let parts: [fn(&CoMoments) -> f64; 6] = [
            |moments| moments.count,
            |moments| moments.y.mean,
            |moments| moments.y.squares,
            |moments| moments.x.mean,
            |moments| moments.x.squares,
            |moments| moments.products,
        ];
        let part =
            |of| -> ArrayRef { Arc::new(Float64Array::from_iter_values(moments.iter().map(of))) };
        Ok(parts.into_iter().map(part).collect())
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let moments = self.moments.take(total);
        if self.relation == Relation::Count {
            let counts = moments.iter().map(|moments| moments.count as u64);
            return Ok(Arc::new(UInt64Array::from_iter_values(counts)));
        }
        let said = moments.iter().map(|moments| moments.say(self.relation));
        Ok(Arc::new(said.collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.moments.bytes()
    }
}
