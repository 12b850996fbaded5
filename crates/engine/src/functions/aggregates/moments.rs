//! Products, exact sums and central moments of numbers: what `product`, `kahan_sum`, `skewness` and `kurtosis` add up.
//!
//! In: numbers, one at a time; numbers of another state. Out: a number, or none where there are too few.
//! Invariant: merging is associative but for the last digits.
//! Not here: the aggregates (statistics.rs).

use std::fmt::Debug;

/// Numbers that are added up.
pub(super) trait Fold: Debug + Send + Sync {
    /// Takes one number more.
    fn add(&mut self, number: f64);
    /// Takes what another one's `state` says.
    fn merge(&mut self, state: &[f64]);
    /// What has been added up.
    fn state(&self) -> Vec<f64>;
    /// The result.
    fn result(&self) -> Option<f64>;
    /// Whether a result that is not finite is an error.
    fn must_be_finite(&self) -> bool {
        false
    }
}

/// A product, and of how many numbers.
#[derive(Debug)]
pub(super) struct Product {
    product: f64,
    count: f64,
}

impl Default for Product {
    fn default() -> Product {
        Product {
            product: 1.0,
            count: 0.0,
        }
    }
}

impl Fold for Product {
    fn add(&mut self, number: f64) {
        self.merge(&[number, 1.0]);
    }

    fn merge(&mut self, state: &[f64]) {
        if let [product, count] = state {
            self.product *= product;
            self.count += count;
        }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.product, self.count]
    }

    fn result(&self) -> Option<f64> {
        (self.count > 0.0).then_some(self.product)
    }
}

/// A sum beside what its additions have rounded off (Neumaier), and of how many numbers.
#[derive(Debug)]
pub(super) struct Compensated {
    sum: f64,
    lost: f64,
    count: f64,
    is_mean: bool,
}

impl Compensated {
    pub fn sum() -> Compensated {
        Compensated {
            sum: 0.0,
            lost: 0.0,
            count: 0.0,
            is_mean: false,
        }
    }

    pub fn mean() -> Compensated {
        Compensated {
            is_mean: true,
            ..Compensated::sum()
        }
    }
}

impl Fold for Compensated {
    fn add(&mut self, number: f64) {
        self.merge(&[number, 0.0, 1.0]);
    }

    fn merge(&mut self, state: &[f64]) {
        let [number, lost, count] = state else {
            return;
        };
        let sum = self.sum + number;
        if sum.is_finite() {
            self.lost += match self.sum.abs() >= number.abs() {
                true => (self.sum - sum) + number,
                false => (number - sum) + self.sum,
            };
        }
        self.sum = sum;
        self.lost += lost;
        self.count += count;
    }

    fn state(&self) -> Vec<f64> {
        vec![self.sum, self.lost, self.count]
    }

    fn result(&self) -> Option<f64> {
        let sum = self.sum + self.lost;
        let result = if self.is_mean { sum / self.count } else { sum };
        (self.count > 0.0).then_some(result)
    }
}

/// Sums of powers of distances from the mean.
#[derive(Debug, Default, Clone)]
pub(super) struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
    cubes: f64,
    fourths: f64,
    shape: MomentStatistic,
}

/// What is asked of them.
#[derive(Debug, Default, Clone, Copy)]
enum MomentStatistic {
    #[default]
    Skewness,
    Kurtosis,
    KurtosisPopulation,
}

impl Moments {
    /// For the skewness of a sample.
    pub fn skewness() -> Moments {
        Moments::default()
    }

    /// For the excess kurtosis of a sample.
    pub fn kurtosis() -> Moments {
        Moments {
            shape: MomentStatistic::Kurtosis,
            ..Moments::default()
        }
    }

    /// For that of the whole.
    pub fn kurtosis_population() -> Moments {
        Moments {
            shape: MomentStatistic::KurtosisPopulation,
            ..Moments::default()
        }
    }
}

impl Fold for Moments {
    fn add(&mut self, number: f64) {
        self.merge(&[1.0, number, 0.0, 0.0, 0.0]);
    }

    /// The formulas of Pébay (2008) for two sets of numbers.
    fn merge(&mut self, state: &[f64]) {
        let [n_b, mean_b, m2_b, m3_b, m4_b] = *state else {
            return;
        };
        if n_b == 0.0 {
            return;
        }
        let (n_a, m2_a, m3_a, m4_a) = (self.count, self.squares, self.cubes, self.fourths);
        let n = n_a + n_b;
        let delta = mean_b - self.mean;
        let step = delta / n;
        self.fourths = m4_a
            + m4_b
            + delta * step.powi(3) * n_a * n_b * (n_a * n_a - n_a * n_b + n_b * n_b)
            + 6.0 * step * step * (n_a * n_a * m2_b + n_b * n_b * m2_a)
            + 4.0 * step * (n_a * m3_b - n_b * m3_a);
        self.cubes = m3_a
            + m3_b
            + delta * step * step * n_a * n_b * (n_a - n_b)
            + 3.0 * step * (n_a * m2_b - n_b * m2_a);
        self.squares = m2_a + m2_b + delta * step * n_a * n_b;
        self.mean += step * n_b;
        self.count = n;
    }

    fn state(&self) -> Vec<f64> {
        vec![
            self.count,
            self.mean,
            self.squares,
            self.cubes,
            self.fourths,
        ]
    }

    fn result(&self) -> Option<f64> {
        let n = self.count;
        let variance = self.squares / n;
        if variance <= 0.0 {
            return None;
        }
        let fourth = || self.fourths / n / (variance * variance);
        match self.shape {
            MomentStatistic::Skewness => {
                let skewness = self.cubes / n / variance.powf(1.5);
                (n > 2.0).then(|| skewness * (n * (n - 1.0)).sqrt() / (n - 2.0))
            }
            MomentStatistic::Kurtosis => (n > 3.0).then(|| {
                (n - 1.0) * ((n + 1.0) * fourth() - 3.0 * (n - 1.0)) / ((n - 2.0) * (n - 3.0))
            }),
            MomentStatistic::KurtosisPopulation => (n > 1.0).then(|| fourth() - 3.0),
        }
    }

    fn must_be_finite(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_moments_are_those_of_all_numbers() {
        let numbers: Vec<f64> = (0..50).map(|i| f64::from(i * i % 17) + 1000.0).collect();
        let mut all = Moments::kurtosis();
        numbers.iter().for_each(|number| all.add(*number));
        let mut merged = Moments::kurtosis();
        for part in numbers.chunks(7) {
            let mut moments = Moments::kurtosis();
            part.iter().for_each(|number| moments.add(*number));
            merged.merge(&moments.state());
        }
        let (all, merged) = (all.result().unwrap(), merged.result().unwrap());
        assert!((all - merged).abs() < 1e-9, "{all} {merged}");
    }

    #[test]
    fn moments_beyond_doubles_are_no_numbers() {
        let mut moments = Moments::kurtosis();
        for number in [1e308, -1e308, 1e308, 2.0] {
            moments.add(number);
        }
        assert!(moments.result().unwrap().is_nan());
    }

    #[test]
    fn equal_numbers_have_no_shape() {
        let mut moments = Moments::skewness();
        (0..5).for_each(|_| moments.add(1.0));
        assert_eq!(moments.result(), None);
    }
}
