//! Quotients and remainders of a column by one divisor: multiplications and shifts instead of a division per row.
//!
//! In: words of 64 bits, signed or not, and the divisor. Out: for each word what `/` and `%` give.
//! Invariant: exact for all words and divisors (Granlund and Montgomery's reciprocals, rounded up). Words below 2^31 take
//! products of 32 bits, which vectors have; whether all are below is looked at once per column, not per row.
//! Not here: types, NULLs (what lies under one is divided, too), divisors 0 and -1, whose results may be errors.

/// Bits of the words that products of 32 bits divide.
const NARROW_BITS: u32 = 31;

/// A word that is divided.
pub trait DividedWord: Copy + Eq {
    /// The words as those without a sign, bit by bit.
    fn bits(self) -> u64;
    /// The inverse of [`Self::bits`].
    fn of_bits(bits: u64) -> Self;
    /// All ones where the word is below 0, else 0.
    fn sign(self) -> u64;
    /// [`Divisor::quotients`], compiled with this crate's optimisation.
    fn quotients(values: &[Self], by: Divisor<Self>) -> Vec<Self>;
    /// [`Divisor::remainders`], likewise.
    fn remainders(values: &[Self], by: Divisor<Self>) -> Vec<Self>;
}

macro_rules! words {
    ($($word:ty, $sign:expr;)*) => {$(
        impl DividedWord for $word {
            #[inline(always)]
            fn bits(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> $word {
                bits as $word
            }

            #[inline(always)]
            fn sign(self) -> u64 {
                $sign(self)
            }

            fn quotients(values: &[$word], by: Divisor<$word>) -> Vec<$word> {
                quotients(values, by)
            }

            fn remainders(values: &[$word], by: Divisor<$word>) -> Vec<$word> {
                remainders(values, by)
            }
        }
    )*};
}

words! {
    u64, |_| 0;
    i64, |word: i64| (word >> 63) as u64;
}

/// A word of fewer bits.
pub trait LowBits: Copy {
    /// The low bits of each word, compiled with this crate's optimisation.
    fn of_words(words: &[u64]) -> Vec<Self>;
}

macro_rules! low_bits {
    ($($of:ty)*) => {$(
        impl LowBits for $of {
            fn of_words(words: &[u64]) -> Vec<$of> {
                words.iter().map(|&word| word as $of).collect()
            }
        }
    )*};
}

low_bits!(u8 u16 u32);

/// A divisor with its reciprocals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Divisor<T> {
    divisor: T,
    size: u64,
    /// Of 65 bits without the highest, which is 1, and the two shifts around it.
    wide: (u64, u32, u32),
    /// Of 32 bits, and the shift after it.
    narrow: (u32, u32),
}

impl<T: DividedWord> Divisor<T> {
    /// `None` for 0 and for -1, whose quotient of the least word would overflow.
    pub fn new(divisor: T) -> Option<Divisor<T>> {
        let size = with_sign(divisor.bits(), divisor.sign());
        if size == 0 || (size == 1 && divisor.sign() != 0) {
            return None;
        }
        // The least power of two that is no less: 0 to 64.
        let log = 64 - (size - 1).leading_zeros();
        let rest = (1u128 << log) - u128::from(size);
        let wide = ((rest << 64) / u128::from(size)) as u64 + 1;
        let narrow = match u32::try_from(size) {
            Ok(size) if size < 1 << NARROW_BITS => {
                let reciprocal = (1u64 << (NARROW_BITS + log)).div_ceil(size.into());
                (reciprocal as u32, NARROW_BITS + log)
            }
            // Beyond all of those words.
            _ => (0, 0),
        };
        Some(Divisor {
            divisor,
            size,
            wide: (wide, log.min(1), log.saturating_sub(1)),
            narrow,
        })
    }

    /// `value / divisor` of each, rounded towards 0.
    pub fn quotients(&self, values: &[T]) -> Vec<T> {
        T::quotients(values, *self)
    }

    /// `value % divisor` of each, with the sign of the value.
    pub fn remainders(&self, values: &[T]) -> Vec<T> {
        T::remainders(values, *self)
    }

    /// The quotient and the rest of a word below 2^31.
    #[inline(always)]
    fn of_narrow(&self, word: u32) -> (u64, u64) {
        let (reciprocal, shift) = self.narrow;
        let quotient = (u64::from(word) * u64::from(reciprocal)) >> shift;
        // Where the divisor is beyond these words the quotient is 0, and its lower half does not matter.
        let product = u64::from(quotient as u32) * u64::from(self.size as u32);
        (quotient, u64::from(word) - product)
    }

    /// The quotient of words without a sign.
    #[inline(always)]
    fn of_size(&self, size: u64) -> u64 {
        let (reciprocal, before, after) = self.wide;
        let high = ((u128::from(size) * u128::from(reciprocal)) >> 64) as u64;
        (high + ((size - high) >> before)) >> after
    }
}

#[inline(always)]
fn quotients<T: DividedWord>(values: &[T], by: Divisor<T>) -> Vec<T> {
    let sign = by.divisor.sign();
    match are_narrow(values) {
        true => each(values, |value| {
            let (quotient, _) = by.of_narrow(value.bits() as u32);
            T::of_bits(with_sign(quotient, sign))
        }),
        false => each(values, |value| {
            let quotient = by.of_size(with_sign(value.bits(), value.sign()));
            T::of_bits(with_sign(quotient, value.sign() ^ sign))
        }),
    }
}

#[inline(always)]
fn remainders<T: DividedWord>(values: &[T], by: Divisor<T>) -> Vec<T> {
    match are_narrow(values) {
        true => each(values, |value| {
            T::of_bits(by.of_narrow(value.bits() as u32).1)
        }),
        false => each(values, |value| {
            let size = with_sign(value.bits(), value.sign());
            let rest = size - by.of_size(size).wrapping_mul(by.size);
            T::of_bits(with_sign(rest, value.sign()))
        }),
    }
}

/// `word` or, where `sign` is all ones, `-word`.
#[inline(always)]
fn with_sign(word: u64, sign: u64) -> u64 {
    (word ^ sign).wrapping_sub(sign)
}

fn are_narrow<T: DividedWord>(values: &[T]) -> bool {
    let all = values.iter().fold(0, |all, value| all | value.bits());
    all >> NARROW_BITS == 0
}

#[inline(always)]
fn each<T: DividedWord>(values: &[T], result: impl Fn(T) -> T) -> Vec<T> {
    values.iter().map(|&value| result(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    /// Neighbours of powers of two and of ten, and of the divisor's multiples.
    fn interesting() -> Vec<u64> {
        let powers = (0..64).map(|bits| 1u64 << bits);
        let tens = (0..20).map(|zeros| 10u64.pow(zeros));
        let odd = [3, 7, 60, 86_400, 641, 6_700_417, 0x5555_5555_5555_5555];
        let mut words: Vec<u64> = powers.chain(tens).chain(odd).collect();
        words.extend(words.clone().iter().flat_map(|word| {
            let negative = word.wrapping_neg();
            [
                word - 1,
                word + 1,
                negative,
                negative - 1,
                negative.wrapping_add(1),
            ]
        }));
        words.sort_unstable();
        words.dedup();
        words
    }

    /// A kernel, and its twin for one word.
    type Both<T> = (fn(&Divisor<T>, &[T]) -> Vec<T>, fn(T, T) -> T);

    fn check<T: DividedWord + std::fmt::Debug>(kernels: [Both<T>; 2], overflows: fn(T) -> bool) {
        let words: Vec<T> = interesting().into_iter().map(T::of_bits).collect();
        let narrow = words.iter().filter(|word| word.bits() < 1 << NARROW_BITS);
        let narrow: Vec<T> = narrow.copied().collect();
        for &by in words.iter().step_by(if cfg!(miri) { 17 } else { 1 }) {
            let Some(divisor) = Divisor::new(by) else {
                assert!(overflows(by), "{by:?}");
                continue;
            };
            let near = |times: u64| by.bits().wrapping_mul(times);
            let near: Vec<T> = [
                1,
                2,
                3,
                1000,
                (1 << 31) / by.bits().max(1),
                u64::MAX / by.bits(),
            ]
            .into_iter()
            .flat_map(|times| {
                let at = near(times);
                [at, at.wrapping_sub(1), at.wrapping_add(1)]
            })
            .map(T::of_bits)
            .collect();
            for values in [&words, &narrow, &near, &Vec::new()] {
                for (kernel, naive) in kernels {
                    let expected: Vec<T> = values.iter().map(|&word| naive(word, by)).collect();
                    assert_eq!(kernel(&divisor, values), expected, "{by:?}");
                }
            }
        }
    }

    #[test]
    fn low_bits_are_what_is_left_of_a_division() {
        let words = interesting();
        let left = |bits: u32| {
            words
                .iter()
                .map(move |&word| naive::remainder(word, 1 << bits))
        };
        assert!(left(8).eq(u8::of_words(&words).into_iter().map(u64::from)));
        assert!(left(16).eq(u16::of_words(&words).into_iter().map(u64::from)));
        assert!(left(32).eq(u32::of_words(&words).into_iter().map(u64::from)));
    }

    #[test]
    fn equal_the_naive_ones() {
        let unsigned: [Both<u64>; 2] = [
            (Divisor::quotients, naive::quotient),
            (Divisor::remainders, naive::remainder),
        ];
        check(unsigned, |by| by == 0);
        let signed: [Both<i64>; 2] = [
            (Divisor::quotients, naive::quotient),
            (Divisor::remainders, naive::remainder),
        ];
        check(signed, |by| by == 0 || by == -1);
    }
}
