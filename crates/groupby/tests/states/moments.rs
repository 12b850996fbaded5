//! Variance, covariance and regression against plain loops over the values of a group.
//!
//! In: as in the suite, with and without NaN and infinities. Out: results that agree to nine digits.
//! Invariant: what the twin says is exactly 0, NaN, infinite or NULL is so in every way to spread rows.
//! Not here: the ways themselves (`states.rs`).

use grouse_groupby::states::{Relation, Spread, covariance, variance};

use super::*;

/// Digits that two orders of adding may differ by, as a share of the result or of its scale.
const TOLERANCE: f64 = 1e-9;

/// A result, and the size of the terms that it is a difference of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub value: Option<f64>,
    pub scale: f64,
}

impl From<Option<f64>> for Expected {
    fn from(value: Option<f64>) -> Self {
        Self { value, scale: 0.0 }
    }
}

impl Expected {
    fn agrees(&self, found: Option<f64>) -> bool {
        match (found, self.value) {
            (Some(found), Some(value)) if value.is_nan() => found.is_nan(),
            (Some(found), Some(value)) if value.is_infinite() => found == value,
            (Some(found), Some(value)) => {
                (found - value).abs() <= TOLERANCE * value.abs().max(self.scale)
            }
            (found, value) => found == value,
        }
    }
}

pub(super) fn check_close(
    aggregate: &dyn Aggregate,
    input: &Input,
    batch_rows: usize,
    expected: impl Fn(&[usize]) -> Expected,
) {
    let floats = |column: &ArrayRef| -> Vec<Option<f64>> {
        assert_eq!(column.data_type(), &aggregate.result_type());
        let column = cast(column, &DataType::Float64).unwrap();
        column.as_primitive::<types::Float64Type>().iter().collect()
    };
    let live = input.live_rows();
    for path in [Path::Direct, Path::Partial, Path::Mixed] {
        let (keys, column) = run(aggregate, input, batch_rows, path).unwrap();
        assert_eq!(keys.len(), live.len());
        for (key, found) in keys.iter().zip(floats(&column)) {
            let expected = expected(&live[key]);
            assert!(
                expected.agrees(found),
                "{aggregate:?}, {path:?}: {found:?} instead of {expected:?}"
            );
        }
    }
    let one = input.in_one_group();
    let expected = expected(&one.live_rows().remove(&0).unwrap_or_default());
    for result in run_one_group(aggregate, &one, batch_rows) {
        let found = floats(&result.unwrap())[0];
        assert!(
            expected.agrees(found),
            "{aggregate:?}: {found:?} instead of {expected:?}"
        );
    }
}

/// Floats, of which some are neither finite nor numbers where `odd` is true.
fn floats(words: impl Iterator<Item = Option<i64>>, odd: bool) -> ArrayRef {
    let words: Vec<_> = words.collect();
    if odd {
        return column(&words, &DataType::Float64);
    }
    let tenth = |word: i64| word as f64 / 10.0;
    primitive::<types::Float64Type>(words.into_iter(), &DataType::Float64, tenth)
}

fn picked(column: &ArrayRef, rows: &[usize]) -> Vec<f64> {
    let values = column.as_primitive::<types::Float64Type>();
    rows.iter().map(|row| values.value(*row)).collect()
}

/// Mean, and sum of squared distances from it.
fn moments(values: &[f64]) -> (f64, f64) {
    if values
        .iter()
        .all(|value| *value == values[0] && value.is_finite())
    {
        return (values.first().copied().unwrap_or(0.0), 0.0);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    match mean.is_finite() {
        true => (
            mean,
            values.iter().map(|value| (value - mean).powi(2)).sum(),
        ),
        false => (mean, f64::NAN),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn variances((rows, filtered, batch_rows) in table(), odd in any::<bool>()) {
        use Spread::*;
        let values = floats(rows.iter().map(|row| row.0), odd);
        let input = input(&rows, filtered, vec![Arc::clone(&values)]);
        for spread in [VariancePopulation, VarianceSample, DeviationPopulation, DeviationSample] {
            let aggregate = variance("spread", spread, &DataType::Float64).unwrap();
            check_close(&*aggregate, &input, batch_rows, |rows| {
                let (_, squares) = moments(&picked(&values, rows));
                let population = matches!(spread, VariancePopulation | DeviationPopulation);
                let divisor = rows.len() as f64 - if population { 0.0 } else { 1.0 };
                let root = matches!(spread, DeviationPopulation | DeviationSample);
                let value = squares / divisor;
                (divisor > 0.0).then(|| if root { value.sqrt() } else { value }).into()
            });
        }
    }

    #[test]
    fn covariances((rows, filtered, batch_rows) in table(), odd in any::<bool>()) {
        let ys = floats(rows.iter().map(|row| row.0), odd);
        // Some rows on a line, some not.
        let other = |row: &Row| match row.1?.rem_euclid(3) {
            0 => row.0,
            _ => row.1,
        };
        let xs = floats(rows.iter().map(other), odd);
        let input = input(&rows, filtered, vec![Arc::clone(&ys), Arc::clone(&xs)]);
        let types = [DataType::Float64, DataType::Float64];
        for relation in RELATIONS {
            let aggregate = covariance("relation", relation, &types).unwrap();
            check_close(&*aggregate, &input, batch_rows, |rows| {
                related(relation, &picked(&ys, rows), &picked(&xs, rows))
            });
        }
    }
}

use Relation::*;

const RELATIONS: [Relation; 12] = [
    CovariancePopulation,
    CovarianceSample,
    Correlation,
    Slope,
    Intercept,
    Determination,
    Count,
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
];

/// The twin of `covariance`.
fn related(relation: Relation, ys: &[f64], xs: &[f64]) -> Expected {
    let count = ys.len() as f64;
    let ((mean_y, squares_y), (mean_x, squares_x)) = (moments(ys), moments(xs));
    let (root_y, root_x) = (squares_y.sqrt(), squares_x.sqrt());
    let apart = ys.iter().zip(xs);
    let products: f64 = apart.map(|(y, x)| (y - mean_y) * (x - mean_x)).sum();
    let finite = mean_y.is_finite() && mean_x.is_finite();
    let products = if finite { products } else { f64::NAN };
    let line = count > 1.0 && squares_x != 0.0;
    let slope = products / squares_x;
    let (known, value, scale) = match relation {
        CovariancePopulation => (true, products / count, root_y * root_x / count),
        CovarianceSample => (
            count > 1.0,
            products / (count - 1.0),
            root_y * root_x / (count - 1.0),
        ),
        Correlation if mean_y.is_nan() && mean_x.is_nan() => (true, f64::NAN, 0.0),
        Correlation => (
            line && squares_y != 0.0 && !mean_y.is_nan() && !mean_x.is_nan(),
            products / root_y / root_x,
            1.0,
        ),
        Slope => (line, slope, root_y / root_x),
        Intercept => (
            line,
            mean_y - slope * mean_x,
            // Both means are off by a share of their values, which may be far from a mean near zero.
            mean_y.abs() + root_y + root_y / root_x * (mean_x.abs() + root_x),
        ),
        // A line explains all of a y that is constant.
        Determination if squares_y == 0.0 => (line, 1.0, 0.0),
        Determination => (line, (products / root_y / root_x).powi(2), 1.0),
        Count => return Some(count).into(),
        MeanX => (true, mean_x, root_x),
        MeanY => (true, mean_y, root_y),
        SquaresX => (true, squares_x, 0.0),
        SquaresY => (true, squares_y, 0.0),
        Products => (true, products, root_y * root_x),
    };
    Expected {
        value: (known && count > 0.0).then_some(value),
        scale: if scale.is_finite() { scale } else { 0.0 },
    }
}

/// Numbers far from zero, of which a sum of squares would keep no digit.
#[test]
fn far_from_zero_variances_keep_their_digits() {
    let offset = 1e8;
    let words: Vec<_> = (0..9_000i64).map(|row| Some(row % 3)).collect();
    let far = |word: i64| offset + word as f64;
    let values = primitive::<types::Float64Type>(words.into_iter(), &DataType::Float64, far);
    let input = Input {
        columns: vec![values],
        filter: None,
        groups: (0..9_000).map(|row| row / 3 % 2).collect(),
    };
    let aggregate = variance("var_pop", Spread::VariancePopulation, &DataType::Float64).unwrap();
    for batch_rows in [1_000, 4_500] {
        check_close(&*aggregate, &input, batch_rows, |_| Some(2.0 / 3.0).into());
    }
}

/// One value of a group lies far from the others, or is of another magnitude.
#[test]
fn a_far_value_does_not_swallow_the_others() {
    for (far, near) in [(1e9, 0.1), (0.0, 0.1), (0.0, 1e152), (-1e152, 1.0)] {
        let words: Vec<_> = (0..9_000i64).map(|row| Some(row / 2)).collect();
        let value = |word: i64| {
            if word == 0 {
                far
            } else {
                near + word as f64 * near / 1e6
            }
        };
        let values = primitive::<types::Float64Type>(words.into_iter(), &DataType::Float64, value);
        let input = Input {
            columns: vec![Arc::clone(&values)],
            filter: None,
            groups: (0..9_000).map(|row| row % 2).collect(),
        };
        let aggregate = variance("var", Spread::VariancePopulation, &DataType::Float64).unwrap();
        check_close(&*aggregate, &input, 4_500, |rows| {
            let (_, squares) = moments(&picked(&values, rows));
            Some(squares / rows.len() as f64).into()
        });
    }
}

#[test]
fn equal_values_have_no_variance() {
    let values = primitive::<types::Float64Type>(
        vec![Some(1); 10_000].into_iter(),
        &DataType::Float64,
        |_| 0.1,
    );
    let input = Input {
        columns: vec![values],
        filter: None,
        groups: (0..10_000).map(|row| row % 7).collect(),
    };
    let aggregate = variance("stddev", Spread::DeviationSample, &DataType::Float64).unwrap();
    for batch_rows in [777, 5_000] {
        check_close(&*aggregate, &input, batch_rows, |_| Some(0.0).into());
    }
}

#[test]
fn only_floats_have_native_moments() {
    assert!(variance("var", Spread::VarianceSample, &DataType::Int64).is_none());
    let types = [DataType::Float64, DataType::Int64];
    assert!(covariance("corr", Relation::Correlation, &types).is_none());
    assert!(covariance("corr", Relation::Correlation, &types[..1]).is_none());
}
