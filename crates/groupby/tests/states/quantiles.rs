//! Medians and percentiles against sorted lists of the values of a group.
//!
//! In: as in the suite, every type of values. Out: equal results; of floats nearly, and NaN whatever its sign.
//! Not here: the ways to spread rows (`states.rs`).

use grouse_groupby::states::{Quantile, approximate_percentile, median, percentile, quantiles};

use super::moments::{Expected, check_close};
use super::*;

/// The values of some rows in order, all NaN at the end.
fn sorted(column: &ArrayRef, rows: &[usize]) -> Vec<f64> {
    let floats = cast(column, &DataType::Float64).unwrap();
    let floats = floats.as_primitive::<types::Float64Type>();
    let mut values: Vec<_> = rows.iter().map(|row| one_nan(floats.value(*row))).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// What lies at `position` of sorted values, interpolated; the digits that the type has not do not count.
fn between(values: &[f64], position: f64, digits: i32) -> Expected {
    let Some(low) = values.get(position.floor() as usize) else {
        return None.into();
    };
    let high = values[position.ceil() as usize];
    let value = match *low == high {
        true => high,
        false if (high - low).is_finite() => low + (high - low) * position.fract(),
        false => low * (1.0 - position.fract()) + high * position.fract(),
    };
    let scale = 10f64.powi(9 - digits) * (low.abs() + high.abs());
    Expected {
        value: Some(value),
        scale: if scale.is_finite() { scale } else { 0.0 },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn medians_and_percentiles_of_floats((rows, filtered, batch_rows) in table(), fraction in 0.0..=1.0) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        let types = [(DataType::Float16, 3), (DataType::Float32, 6), (DataType::Float64, 12)];
        for (data_type, digits) in types {
            let values = column(&words, &data_type);
            let input = input(&rows, filtered, vec![Arc::clone(&values)]);
            let position = |fraction: f64, rows: &[usize]| fraction * (rows.len().max(1) - 1) as f64;
            let aggregate = median("median(x)", &data_type).unwrap();
            check_close(&*aggregate, &input, batch_rows, |rows| {
                let values = sorted(&values, rows);
                match values.get(values.len() / 2) {
                    // Half of each: the sum of the greatest ones is infinite.
                    Some(high) if values.len().is_multiple_of(2) => {
                        let low = values[values.len() / 2 - 1];
                        let value = if low == *high { low } else { low / 2.0 + high / 2.0 };
                        Expected { value: Some(value), ..between(&values, position(0.5, rows), digits) }
                    }
                    middle => middle.copied().into(),
                }
            });
            for fraction in [fraction, 0.0, 0.25, 1.0] {
                let aggregate = percentile("percentile(x)", Quantile::Fraction(fraction), &data_type).unwrap();
                let expected = |rows: &[usize]| {
                    between(&sorted(&values, rows), position(fraction, rows), digits)
                };
                check_close(&*aggregate, &input, batch_rows, expected);
                // Of few values it is exact, and of many the least and the greatest.
                let size = if [0.0, 1.0].contains(&fraction) { 4 } else { 1 << 20 };
                let estimate = approximate_percentile("approximate(x)", fraction, size, &data_type);
                check_close(&*estimate.unwrap(), &input, batch_rows, expected);
            }
        }
    }

    #[test]
    fn medians_of_decimals((rows, filtered, batch_rows) in table()) {
        // No more digits than the narrowest type has.
        let words: Vec<_> = rows.iter().map(|row| row.0.map(|word| word % 100_000_000)).collect();
        let types = [
            DataType::Decimal32(9, 2),
            DataType::Decimal64(18, 2),
            DataType::Decimal128(38, 3),
            DataType::Decimal256(76, 5),
        ];
        for data_type in types {
            let values = column(&words, &data_type);
            let wide = cast(&values, &DataType::Decimal256(76, scale(&data_type))).unwrap();
            let wide = wide.as_primitive::<types::Decimal256Type>().clone();
            let input = input(&rows, filtered, vec![values]);
            let aggregate = median("median(x)", &data_type).unwrap();
            check(&*aggregate, &input, batch_rows, |rows| {
                let mut values: Vec<_> = rows.iter().map(|row| wide.value(*row)).collect();
                values.sort();
                let Some(high) = values.get(values.len() / 2) else { return Ok(None) };
                let low = values[(values.len() - 1) / 2];
                let middle = (low + *high) / i256::from_i128(2);
                let one = PrimitiveArray::<types::Decimal256Type>::from(vec![middle]);
                let one: ArrayRef =
                    Arc::new(one.with_data_type(DataType::Decimal256(76, scale(&data_type))));
                Ok(strings(&one).remove(0))
            });
        }
    }
}

#[test]
fn values_are_counted_until_they_are_drained() {
    let words: Vec<_> = (0..100_000i64).map(Some).collect();
    let ids: Vec<_> = (0..100_000).map(|row| GroupId(row % 10)).collect();
    let values = column(&words, &DataType::Float64);
    let mut states = median("median", &DataType::Float64)
        .unwrap()
        .states()
        .unwrap();
    assert_eq!(states.bytes(), 0);
    states
        .update(&[values], None, Groups::Ids(&ids), 10)
        .unwrap();
    // Value, group, and the place that sorting takes.
    assert!(states.bytes() >= 20 * ids.len(), "{}", states.bytes());
    assert_eq!(states.appended_bytes(), states.bytes());
    let partial = states.drain_partial(10).unwrap();
    assert_eq!(states.bytes(), 0);
    let ids: Vec<_> = (0..10).map(GroupId).collect();
    states.merge(&partial, Groups::Ids(&ids), 10).unwrap();
    assert!(states.bytes() >= 8 * 100_000, "{}", states.bytes());
    let medians = states.drain_final(10).unwrap();
    assert_eq!(strings(&medians)[5], Some("25000 false".to_owned()));
    assert_eq!(states.bytes(), 0);
}

#[test]
fn only_floats_and_decimals_have_native_quantiles() {
    assert!(median("median", &DataType::Int64).is_none());
    assert!(
        percentile(
            "percentile",
            Quantile::Fraction(0.5),
            &DataType::Decimal128(9, 2)
        )
        .is_none()
    );
    assert!(approximate_percentile("approximate", 0.5, 100, &DataType::Int64).is_none());
}

/// The fraction of `sorted` that lies below `value`, at the nearest end of the values that are equal to it.
fn fractions(sorted: &[f64], value: f64) -> (f64, f64) {
    let below = sorted.partition_point(|one| *one < value);
    let not_above = sorted.partition_point(|one| *one <= value);
    (
        below as f64 / sorted.len() as f64,
        not_above as f64 / sorted.len() as f64,
    )
}

#[test]
fn estimates_of_many_values_are_close_however_they_come() {
    const ROWS: usize = 300_000;
    let random = |row: usize| (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    let unit = |row: usize| random(row) as f64 / (1u64 << 53) as f64;
    let series: [(&str, Vec<f64>); 6] = [
        ("even", (0..ROWS).map(unit).collect()),
        ("rising", (0..ROWS).map(|row| row as f64).collect()),
        ("falling", (0..ROWS).map(|row| -(row as f64)).collect()),
        ("skewed", (0..ROWS).map(|row| unit(row).powi(-3)).collect()),
        (
            "few",
            (0..ROWS).map(|row| (random(row) % 7) as f64).collect(),
        ),
        (
            "great",
            (0..ROWS)
                .map(|row| (unit(row) - 0.5) * f64::MAX * 1.9)
                .collect(),
        ),
    ];
    for (name, values) in series {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let column: ArrayRef = Arc::new(PrimitiveArray::<types::Float64Type>::from(values));
        for fraction in [0.0, 0.001, 0.05, 0.5, 0.9, 0.999, 1.0] {
            let aggregate = approximate_percentile("p", fraction, 100, &DataType::Float64).unwrap();
            for merges in [false, true] {
                let mut states = aggregate.states().unwrap();
                for at in (0..ROWS).step_by(20_000) {
                    let batch = [column.slice(at, 20_000)];
                    if merges {
                        let mut part = aggregate.states().unwrap();
                        part.update(&batch, None, Groups::One(20_000), 1).unwrap();
                        let partial = part.drain_partial(1).unwrap();
                        states.merge(&partial, Groups::One(1), 1).unwrap();
                    } else {
                        states.update(&batch, None, Groups::One(20_000), 1).unwrap();
                    }
                    // Digests do not grow with the rows.
                    assert!(states.bytes() < 8 << 20, "{name}: {}", states.bytes());
                }
                let found = states.drain_final(1).unwrap();
                let found = found.as_primitive::<types::Float64Type>().value(0);
                let (low, high) = fractions(&sorted, found);
                let tolerance = 0.02 * (fraction * (1.0 - fraction)).sqrt();
                assert!(
                    low - tolerance <= fraction && fraction <= high + tolerance,
                    "{name}, {fraction}: {found} is at {low} to {high}"
                );
            }
        }
    }
}

#[test]
fn infinities_and_nan_are_not_averaged_with_numbers() {
    let odd = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN];
    let mut values = vec![];
    for (at, odd) in odd.into_iter().enumerate() {
        values.extend(std::iter::repeat_n(odd, 1000));
        values.extend((0..1000).map(|value| (value * 3 + at as i64) as f64));
    }
    let column: ArrayRef = Arc::new(PrimitiveArray::<types::Float64Type>::from(values));
    let result = |fraction| {
        let aggregate = approximate_percentile("p", fraction, 20, &DataType::Float64).unwrap();
        let mut states = aggregate.states().unwrap();
        let mut part = aggregate.states().unwrap();
        part.update(&[Arc::clone(&column)], None, Groups::One(6000), 1)
            .unwrap();
        states
            .merge(&part.drain_partial(1).unwrap(), Groups::One(1), 1)
            .unwrap();
        let found = states.drain_final(1).unwrap();
        found.as_primitive::<types::Float64Type>().value(0)
    };
    assert_eq!(result(0.1), f64::NEG_INFINITY);
    assert!((result(0.4) - 1400.0).abs() < 300.0, "{}", result(0.4));
    assert_eq!(result(0.75), f64::INFINITY);
    assert!(result(0.95).is_nan());
}

#[test]
fn several_quantiles_are_those_of_each_alone() {
    let rows: Vec<_> = (0..5000i64)
        .map(|row| (row % 7 != 0).then_some(row * 37 % 4999))
        .collect();
    // Of the last group all values are NULL.
    let ids: Vec<_> = (0..5000)
        .map(|row| GroupId(if row % 7 == 0 { 3 } else { row % 3 }))
        .collect();
    let values = column(&rows, &DataType::Float32);
    let all = [
        Quantile::Median,
        Quantile::Fraction(0.0),
        Quantile::Fraction(0.9),
        Quantile::Fraction(0.95),
    ];
    let result = |aggregate: Arc<dyn Aggregate>| {
        let (mut part, mut whole) = (aggregate.states().unwrap(), aggregate.states().unwrap());
        part.update(&[Arc::clone(&values)], None, Groups::Ids(&ids), 4)
            .unwrap();
        let partial = part.drain_partial(4).unwrap();
        let groups: Vec<_> = (0..4).map(GroupId).collect();
        whole.merge(&partial, Groups::Ids(&groups), 4).unwrap();
        let result = whole.drain_final(4).unwrap();
        assert_eq!(result.data_type(), &aggregate.result_type());
        result
    };
    for digest in [None, Some(50), Some(5000)] {
        let several = result(quantiles("q", &all, digest, &DataType::Float32).unwrap());
        for (part, quantile) in several.as_struct().columns().iter().zip(all) {
            let fraction = quantile.fraction();
            let alone = match (digest, quantile) {
                (Some(size), _) => approximate_percentile("q", fraction, size, &DataType::Float32),
                (None, Quantile::Median) => median("q", &DataType::Float32),
                (None, quantile) => percentile("q", quantile, &DataType::Float32),
            };
            assert_eq!(part, &result(alone.unwrap()), "{quantile:?}, {digest:?}");
            assert_eq!((part.null_count(), part.is_null(3)), (1, true));
        }
    }
    assert!(quantiles("q", &all, None, &DataType::Decimal128(9, 2)).is_none());
}
