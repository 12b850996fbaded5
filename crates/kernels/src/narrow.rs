//! Arithmetic of 128-bit values that fit 64 bits: one multiplication instead of three, and nothing that can overflow.
//!
//! In: columns of 128 or 64 bits, single values of 128. Out: exact results, or none if a value is wider than 64 bits.
//! Invariant: a result is exact; whether all values fit is looked at once per column, not per row.
//! Not here: types, scales, NULLs (a wide value under one counts, too).

/// One side of an operation.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    /// A value of 128 bits per row.
    Wide(&'a [i128]),
    /// A value of 64 bits per row.
    Narrow(&'a [i64]),
    /// A value of 64 bits per row and the same one for all: their sum.
    Moved {
        /// The rows' values.
        narrow: &'a [i64],
        /// True if the rows' values are taken away.
        is_negated: bool,
        /// The one for all.
        by: i64,
    },
    /// The same value for all rows.
    Value(i128),
}

/// `a * b` of each row; `None` if a value is wider than 64 bits, or if there is no column, or two of unequal lengths.
pub fn product(a: Operand<'_>, b: Operand<'_>) -> Option<Vec<i128>> {
    combined(a, b, |a, b| i128::from(a) * i128::from(b))
}

/// `a * scale_a + b * scale_b` of each row; `None` as in [`product`].
///
/// # Panics
/// If a scale is beyond 10^18 on either side of 0: the sum could then overflow.
pub fn sum(a: Operand<'_>, scale_a: i64, b: Operand<'_>, scale_b: i64) -> Option<Vec<i128>> {
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

/// A value that may be of 64 bits.
trait Narrow: Copy {
    /// 0 for one that is.
    fn beyond(self) -> i64;

    /// Its low word.
    fn word(self) -> i64;
}

impl Narrow for i128 {
    /// The high word repeats the sign.
    #[inline(always)]
    fn beyond(self) -> i64 {
        (self >> 64) as i64 ^ (self as i64) >> 63
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self as i64
    }
}

impl Narrow for i64 {
    #[inline(always)]
    fn beyond(self) -> i64 {
        0
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self
    }
}

/// A word that is moved: `number - word` is the complement of `!number + word`, and no complement is too wide.
#[derive(Clone, Copy)]
struct Moved {
    word: i64,
    by: i64,
    complement: i64,
}

impl Moved {
    fn all(words: &[i64], is_negated: bool, by: i64) -> impl Iterator<Item = Moved> {
        let complement = -i64::from(is_negated);
        words.iter().map(move |&word| Moved {
            word,
            by: by ^ complement,
            complement,
        })
    }

    #[inline(always)]
    fn sum(self) -> i64 {
        self.by.wrapping_add(self.word)
    }
}

impl Narrow for Moved {
    /// The sum's sign is neither the word's nor the number's.
    #[inline(always)]
    fn beyond(self) -> i64 {
        ((self.sum() ^ self.word) & (self.sum() ^ self.by)) >> 63
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self.sum() ^ self.complement
    }
}

#[inline(always)]
fn combined(a: Operand<'_>, b: Operand<'_>, each: impl Fn(i64, i64) -> i128) -> Option<Vec<i128>> {
    match a {
        Operand::Wide(a) => with_column(a.len(), a.iter().copied(), b, each),
        Operand::Narrow(a) => with_column(a.len(), a.iter().copied(), b, each),
        Operand::Moved {
            narrow: words,
            is_negated,
            by,
        } => with_column(words.len(), Moved::all(words, is_negated, by), b, each),
        Operand::Value(a) => {
            let a = word_of(a)?;
            match b {
                Operand::Wide(b) => each_row(b.iter().map(|&b| (a, b)), each),
                Operand::Narrow(b) => each_row(b.iter().map(|&b| (a, b)), each),
                Operand::Moved {
                    narrow: words,
                    is_negated,
                    by,
                } => each_row(Moved::all(words, is_negated, by).map(|b| (a, b)), each),
                Operand::Value(_) => None,
            }
        }
    }
}

#[inline(always)]
fn with_column(
    rows: usize,
    a: impl Iterator<Item = impl Narrow>,
    b: Operand<'_>,
    each: impl Fn(i64, i64) -> i128,
) -> Option<Vec<i128>> {
    match b {
        Operand::Wide(b) if b.len() == rows => each_row(a.zip(b.iter().copied()), each),
        Operand::Narrow(b) if b.len() == rows => each_row(a.zip(b.iter().copied()), each),
        Operand::Moved {
            narrow: words,
            is_negated,
            by,
        } if words.len() == rows => each_row(a.zip(Moved::all(words, is_negated, by)), each),
        Operand::Value(b) => {
            let b = word_of(b)?;
            each_row(a.map(|a| (a, b)), each)
        }
        Operand::Wide(_) | Operand::Narrow(_) | Operand::Moved { .. } => None,
    }
}

fn word_of(value: i128) -> Option<i64> {
    i64::try_from(value).ok()
}

#[inline(always)]
fn each_row(
    rows: impl Iterator<Item = (impl Narrow, impl Narrow)>,
    each: impl Fn(i64, i64) -> i128,
) -> Option<Vec<i128>> {
    let mut wide = 0;
    let rows = rows.map(|(a, b)| {
        wide |= a.beyond() | b.beyond();
        each(a.word(), b.word())
    });
    let out: Vec<i128> = rows.collect();
    (wide == 0).then_some(out)
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

    fn moved(words: &[i64], is_negated: bool, by: i64) -> Operand<'_> {
        Operand::Moved {
            narrow: words,
            is_negated,
            by,
        }
    }

    #[test]
    fn equal_the_naive_ones() {
        for length in [0, 1, 7, VALUES.len()] {
            let narrow: Vec<i128> = VALUES[..length.min(7)].to_vec();
            let some: Vec<i128> = VALUES[..length].iter().rev().copied().collect();
            for a in [&narrow, &some] {
                for b in VALUES {
                    let (column, words) = (vec![b; a.len()], vec![b as i64; a.len()]);
                    let narrowed: Vec<i64> = a.iter().map(|&a| a as i64).collect();
                    for sides in [
                        (Operand::Wide(a), Operand::Wide(&column)),
                        (Operand::Wide(a), Operand::Narrow(&words)),
                        (Operand::Narrow(&narrowed), Operand::Wide(&column)),
                        (Operand::Narrow(&narrowed), Operand::Narrow(&words)),
                        (
                            Operand::Narrow(&narrowed),
                            Operand::Narrow(&words[..a.len() / 2]),
                        ),
                        (Operand::Wide(a), Operand::Value(b)),
                        (Operand::Value(b), Operand::Wide(a)),
                        (Operand::Narrow(&narrowed), Operand::Value(b)),
                        (Operand::Value(b), Operand::Narrow(&narrowed)),
                        (Operand::Value(b), Operand::Value(b)),
                        (Operand::Wide(a), moved(&words, false, 100)),
                        (moved(&narrowed, true, b as i64), Operand::Wide(a)),
                        (moved(&narrowed, false, b as i64), moved(&words, true, -1)),
                        (Operand::Narrow(&narrowed), moved(&words, true, i64::MIN)),
                        (
                            Operand::Narrow(&narrowed),
                            moved(&words[..a.len() / 2], true, 1),
                        ),
                        (Operand::Value(b), moved(&narrowed, true, 100)),
                        (moved(&narrowed, false, -100), Operand::Value(b)),
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
