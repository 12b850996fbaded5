//! Arithmetic of 128-bit values that fit 64 bits: one multiplication instead of three, and nothing that can overflow.
//!
//! In: columns or single values of 128 bits. Out: exact results, or none if a value is wider than 64 bits.
//! Invariant: a result is exact; whether all values fit is looked at once per column, not per row.
//! Not here: types, scales, NULLs (a wide value under one counts, too).

/// One side of an operation.
#[derive(Debug, Clone, Copy)]
pub enum Side<'a, T = i128> {
    /// A value per row.
    Column(&'a [T]),
    /// The same value for all rows.
    Value(T),
}

/// `a * b` of each row; `None` if a value is wider than 64 bits, or if there is no column, or two of unequal lengths.
pub fn product(a: Side<'_>, b: Side<'_>) -> Option<Vec<i128>> {
    combined(a, b, |a, b| i128::from(a) * i128::from(b))
}

/// `a * scale_a + b * scale_b` of each row; `None` as in [`product`].
///
/// # Panics
/// If a scale is beyond 10^18 on either side of 0: the sum could then overflow.
pub fn sum(a: Side<'_>, scale_a: i64, b: Side<'_>, scale_b: i64) -> Option<Vec<i128>> {
    for scale in [scale_a, scale_b] {
        assert!(
            scale.unsigned_abs() <= 10u64.pow(18),
            "a scale of a decimal of 64 bits"
        );
    }
    let (scale_a, scale_b) = (i128::from(scale_a), i128::from(scale_b));
    combined(a, b, |a, b| {
        i128::from(a) * scale_a + i128::from(b) * scale_b
    })
}

#[inline(always)]
fn combined(a: Side<'_>, b: Side<'_>, each: impl Fn(i64, i64) -> i128) -> Option<Vec<i128>> {
    let is_wide = |side| matches!(side, Side::Value(value) if beyond(value) != 0);
    if is_wide(a) || is_wide(b) {
        return None;
    }
    match (a, b) {
        (Side::Column(a), Side::Column(b)) if a.len() == b.len() => {
            each_row(a.iter().copied().zip(b.iter().copied()), each)
        }
        (Side::Column(a), Side::Value(b)) => each_row(a.iter().map(|&a| (a, b)), each),
        (Side::Value(a), Side::Column(b)) => each_row(b.iter().map(|&b| (a, b)), each),
        (Side::Column(_), Side::Column(_)) | (Side::Value(_), Side::Value(_)) => None,
    }
}

#[inline(always)]
fn each_row(
    rows: impl Iterator<Item = (i128, i128)>,
    each: impl Fn(i64, i64) -> i128,
) -> Option<Vec<i128>> {
    let mut wide = 0;
    let rows = rows.map(|(a, b)| {
        wide |= beyond(a) | beyond(b);
        each(a as i64, b as i64)
    });
    let out: Vec<i128> = rows.collect();
    (wide == 0).then_some(out)
}

/// 0 for values of 64 bits: their high word repeats the sign.
#[inline(always)]
fn beyond(value: i128) -> i64 {
    (value >> 64) as i64 ^ (value as i64) >> 63
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    const VALUES: [i128; 11] = [
        0,
        1,
        -1,
        999_999_999_999_999,
        -999_999_999_999_999,
        i64::MAX as i128,
        i64::MIN as i128,
        i64::MAX as i128 + 1,
        i64::MIN as i128 - 1,
        i128::MAX,
        i128::MIN,
    ];

    #[test]
    fn equal_the_naive_ones() {
        for length in [0, 1, 7, VALUES.len()] {
            let narrow: Vec<i128> = VALUES[..length.min(7)].to_vec();
            let some: Vec<i128> = VALUES[..length].iter().rev().copied().collect();
            for a in [&narrow, &some] {
                for b in VALUES {
                    for sides in [
                        (Side::Column(a), Side::Column(&vec![b; a.len()])),
                        (Side::Column(a), Side::Value(b)),
                        (Side::Value(b), Side::Column(a)),
                        (Side::Value(b), Side::Value(b)),
                    ] {
                        let (a, b) = sides;
                        assert_eq!(product(a, b), naive::narrow_product(a, b), "{a:?} {b:?}");
                        for (left, right) in [(1, 1), (1, -1), (100, 10i64.pow(18)), (-7, 0)] {
                            let found = sum(a, left, b, right);
                            assert_eq!(found, naive::narrow_sum(a, left, b, right), "{a:?} {b:?}");
                        }
                    }
                }
            }
        }
    }
}
