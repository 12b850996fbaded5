//! Numbers that a quantile orders, as integers: one comparison decides, and equal bits are equal values.
//!
//! In: a float or a decimal. Out: an integer that orders as it does, and back.
//! Invariant: all NaN become one integer, the greatest; -0.0 comes before 0.0.
//! Not here: which of the values is wanted (`quantile`).

use arrow::array::{ArrowNativeTypeOp, ArrowPrimitiveType};
use arrow::datatypes::{ArrowNativeType, Decimal32Type, Decimal64Type, Decimal128Type};
use arrow::datatypes::{Decimal256Type, Float16Type, Float32Type, Float64Type};
use arrow::datatypes::{Int16Type, Int32Type, Int64Type};

/// The integer that stands for a value of `E`.
pub(super) type Word<E> = <<E as Number>::Words as ArrowPrimitiveType>::Native;

/// A type of values that have an order.
pub(super) trait Number: ArrowPrimitiveType {
    /// The type of the integers.
    type Words: ArrowPrimitiveType<Native: Ord>;

    /// The integer that orders as `value` does.
    fn word(value: Self::Native) -> Word<Self>;

    /// The value of an integer.
    fn value(word: Word<Self>) -> Self::Native;

    /// The mean of two values, `low` being no greater; decimals are cut towards zero, as DataFusion does.
    fn between(low: Self::Native, high: Self::Native) -> Self::Native;
}

/// A number that can lie anywhere between two others.
pub(super) trait Float: Number {
    /// The value as a float of 64 bits.
    fn wide(value: Self::Native) -> f64;

    /// The nearest value.
    fn narrow(value: f64) -> Self::Native;
}

macro_rules! float {
    ($float:ty, $words:ty, $unsigned:ty) => {
        impl Number for $float {
            type Words = $words;

            #[inline]
            fn word(value: Self::Native) -> Word<Self> {
                type Signed = Word<$float>;
                match value.is_nan() {
                    true => Signed::MAX,
                    false => turned(value.to_bits() as Signed),
                }
            }

            #[inline]
            fn value(word: Word<Self>) -> Self::Native {
                Self::Native::from_bits(turned(word) as $unsigned)
            }

            fn between(low: Self::Native, high: Self::Native) -> Self::Native {
                let two = Self::Native::usize_as(2);
                let sum = low + high;
                match sum.is_finite() {
                    true => sum / two,
                    // Half of each fits where their sum does not.
                    false => low / two + high / two,
                }
            }
        }
    };
}

/// Negative floats have their greatest bits at the least value: all but the sign are flipped. Its own inverse.
trait Turned: Copy {
    fn turned(self) -> Self;
}

#[inline]
fn turned<N: Turned>(bits: N) -> N {
    bits.turned()
}

macro_rules! turned {
    ($($signed:ty),*) => {
        $(impl Turned for $signed {
            #[inline]
            fn turned(self) -> Self {
                self ^ ((self >> (Self::BITS - 1)) & Self::MAX)
            }
        })*
    };
}

turned!(i16, i32, i64);
float!(Float16Type, Int16Type, u16);
float!(Float32Type, Int32Type, u32);
float!(Float64Type, Int64Type, u64);

impl Float for Float16Type {
    fn wide(value: Self::Native) -> f64 {
        value.to_f64()
    }

    fn narrow(value: f64) -> Self::Native {
        Self::Native::from_f64(value)
    }
}

impl Float for Float32Type {
    fn wide(value: f32) -> f64 {
        value.into()
    }

    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl Float for Float64Type {
    fn wide(value: f64) -> f64 {
        value
    }

    fn narrow(value: f64) -> f64 {
        value
    }
}

macro_rules! decimal {
    ($($decimal:ty),*) => {
        $(impl Number for $decimal {
            type Words = Self;

            #[inline]
            fn word(value: Self::Native) -> Word<Self> {
                value
            }

            #[inline]
            fn value(word: Word<Self>) -> Self::Native {
                word
            }

            fn between(low: Self::Native, high: Self::Native) -> Self::Native {
                let two = Self::Native::usize_as(2);
                if let Ok(sum) = low.add_checked(high) {
                    return sum.div_wrapping(two);
                }
                // Both have the same sign, else their sum fits.
                let rest = low.mod_wrapping(two).add_wrapping(high.mod_wrapping(two));
                let halves = low.div_wrapping(two).add_wrapping(high.div_wrapping(two));
                halves.add_wrapping(rest.div_wrapping(two))
            }
        })*
    };
}

decimal!(Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_order_as_floats_do() {
        let floats = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -1.0,
            -f64::MIN_POSITIVE / 2.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        let words = floats.map(Float64Type::word);
        assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
        for (word, float) in words.into_iter().zip(floats) {
            let back = Float64Type::value(word);
            assert!(back.to_bits() == float.to_bits() || back.is_nan() && float.is_nan());
        }
        assert_eq!(Float64Type::word(-f64::NAN), Float64Type::word(f64::NAN));
        let narrow =
            [-2.0, -0.0, 0.0, 2.0].map(|float| Float16Type::word(Float16Type::narrow(float)));
        assert!(narrow.is_sorted_by(|a, b| a < b), "{narrow:?}");
    }

    #[test]
    fn means_of_large_values_fit() {
        assert_eq!(Float64Type::between(f64::MAX, f64::MAX), f64::MAX);
        assert_eq!(Float64Type::between(1.0, f64::INFINITY), f64::INFINITY);
        assert!(Float64Type::between(f64::NEG_INFINITY, f64::INFINITY).is_nan());
        assert_eq!(Decimal32Type::between(i32::MAX, i32::MAX), i32::MAX);
        assert_eq!(Decimal32Type::between(i32::MIN, i32::MIN), i32::MIN);
        assert_eq!(Decimal32Type::between(i32::MAX - 1, i32::MAX), i32::MAX - 1);
        assert_eq!(Decimal32Type::between(-2, -1), -1);
    }
}
