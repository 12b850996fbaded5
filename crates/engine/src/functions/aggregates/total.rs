//! An exact running total of fixed-width numbers: the type's own width plus a count of wraps, and of values.
//!
//! In: values of one number type, added or taken back in any order. Out: their total, if the type can hold it, and
//! their number.
//! Invariant: `low + wraps * 2^width` is the exact total, so that an overflow that cancels out leaves no trace. Over
//! 64-bit values this is a 128-bit total, over `Decimal128` a 192-bit one, over `Decimal256` a 320-bit one; 2^63 rows
//! cannot overflow `wraps`.
//! Not here: precision limits of decimals, see [`Summable::fits`].

use std::fmt::Debug;
use std::hash::Hash;

use datafusion::arrow::array::{ArrowNativeTypeOp, ArrowPrimitiveType};
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Int64Type, IntervalYearMonthType, UInt64Type,
};
use grouse_groupby::states::{RoundedMean, nearest_mean};

/// A running total that never loses a carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Total<N> {
    low: N,
    wraps: i64,
    values: i64,
}

impl<N: ArrowNativeTypeOp> Total<N> {
    /// The total of nothing.
    pub(super) const ZERO: Self = Self {
        low: N::ZERO,
        wraps: 0,
        values: 0,
    };

    /// Adds `value`.
    #[inline]
    pub(super) fn add(&mut self, value: N) {
        self.values += 1;
        self.shift(value);
    }

    #[inline]
    fn shift(&mut self, value: N) {
        let next = self.low.add_wrapping(value);
        self.wraps += if value.is_ge(N::ZERO) {
            i64::from(next.is_lt(self.low))
        } else {
            -i64::from(next.is_gt(self.low))
        };
        self.low = next;
    }

    /// Takes back `value`, which was added before.
    #[inline]
    pub(super) fn retract(&mut self, value: N) {
        self.values -= 1;
        let next = self.low.sub_wrapping(value);
        self.wraps += if value.is_ge(N::ZERO) {
            -i64::from(next.is_gt(self.low))
        } else {
            i64::from(next.is_lt(self.low))
        };
        self.low = next;
    }

    /// Adds a total by the parts of it that partial states carry.
    #[inline]
    pub(super) fn merge(&mut self, low: N, wraps: i64, values: i64) {
        self.shift(low);
        self.wraps += wraps;
        self.values += values;
    }

    /// The parts that partial states carry: low half, wraps, number of values.
    pub(super) fn parts(self) -> (N, i64, i64) {
        (self.low, self.wraps, self.values)
    }

    /// How many values were added and not taken back.
    pub(super) fn values(self) -> i64 {
        self.values
    }

    /// The total itself, if `N` can hold it.
    pub(super) fn exact(self) -> Option<N> {
        (self.wraps == 0).then_some(self.low)
    }
}

impl<N: ArrowNativeTypeOp + Into<i128>> Total<N> {
    /// The double nearest to the mean of 64-bit values; there is at least one.
    fn mean(self) -> f64 {
        nearest_mean(
            self.low.into() + (i128::from(self.wraps) << 64),
            self.values,
        )
    }
}

impl<N: ArrowNativeTypeOp + RoundedMean> Total<N> {
    /// The mean times `factor` as a number of the type, halves rounded away from zero; there is at least one value.
    pub(super) fn rounded_mean(self, factor: i64) -> Option<N> {
        self.low.mean(self.wraps, factor, self.values)
    }
}

/// A number of a sum.
pub(super) type Number<T> = <<T as Summable>::Sum as ArrowPrimitiveType>::Native;

/// A type whose sums are exact.
pub(super) trait Summable:
    ArrowPrimitiveType<Native: Hash + Eq + Into<Number<Self>> + TryFrom<Number<Self>>> + Debug + Send
{
    /// What values are added up in, as `grouse_groupby` does, whose partial states have this type.
    type Sum: ArrowPrimitiveType<Native: RoundedMean>;

    /// Its type.
    const SUM: DataType;

    /// Whether a total is a value of `data_type`, which is of this type.
    fn fits(_total: Self::Native, _data_type: &DataType) -> bool {
        true
    }

    /// The mean as a double, of integers.
    fn mean(_total: Total<Number<Self>>) -> Option<f64> {
        None
    }
}

macro_rules! summable {
    ($($of:ty),* => $sum:ty: $mean:expr) => {
        $(impl Summable for $of {
            type Sum = $sum;
            const SUM: DataType = <$sum>::DATA_TYPE;

            fn mean(total: Total<Number<Self>>) -> Option<f64> {
                $mean(total)
            }
        })*
    };
}
summable!(Int64Type => Int64Type: |total: Total<i64>| Some(total.mean()));
summable!(UInt64Type => UInt64Type: |total: Total<u64>| Some(total.mean()));
summable!(
    IntervalYearMonthType, DurationSecondType, DurationMillisecondType, DurationMicrosecondType,
    DurationNanosecondType => Int64Type: |_| None
);

macro_rules! summable_decimal {
    ($($decimal:ty => $variant:ident in $sum:ty: $data_type:expr),*) => {
        $(impl Summable for $decimal {
            type Sum = $sum;
            const SUM: DataType = $data_type;

            fn fits(total: Self::Native, data_type: &DataType) -> bool {
                match data_type {
                    DataType::$variant(precision, _) => {
                        <$decimal>::is_valid_decimal_precision(total, *precision)
                    }
                    _ => false,
                }
            }
        })*
    };
}
summable_decimal!(
    Decimal32Type => Decimal32 in Int64Type: DataType::Int64,
    Decimal64Type => Decimal64 in Int64Type: DataType::Int64,
    Decimal128Type => Decimal128 in Decimal128Type: DataType::Decimal128(38, 0),
    Decimal256Type => Decimal256 in Decimal256Type: DataType::Decimal256(76, 0)
);

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::i256;

    #[test]
    fn signed_overflow_that_cancels_out_leaves_no_trace() {
        let mut total = Total::<i64>::ZERO;
        for value in [
            i64::MAX,
            i64::MAX,
            i64::MAX,
            i64::MIN,
            i64::MIN,
            i64::MIN,
            3,
        ] {
            total.add(value);
        }
        assert_eq!(total.exact(), Some(0));
        total.add(i64::MAX);
        total.add(1);
        assert_eq!(total.exact(), None);
        total.retract(i64::MAX);
        assert_eq!(total.exact(), Some(1));
    }

    #[test]
    fn unsigned_carries_count() {
        let mut total = Total::<u64>::ZERO;
        total.add(u64::MAX);
        total.add(2);
        assert_eq!(total.parts(), (1, 1, 2));
        total.retract(2);
        assert_eq!(total.exact(), Some(u64::MAX));
    }

    #[test]
    fn the_widest_decimal_has_carries_too() {
        let mut total = Total::<i256>::ZERO;
        total.add(i256::MIN);
        total.add(i256::MIN);
        assert_eq!(total.exact(), None);
        total.add(i256::MAX);
        total.add(i256::MAX);
        assert_eq!(total.exact(), Some(i256::from_i128(-2)));
        assert!(!Decimal256Type::fits(
            i256::MAX,
            &DataType::Decimal256(76, 0)
        ));
    }

    #[test]
    fn agrees_with_128_bits() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let (mut total, mut twin) = (Total::<i64>::ZERO, 0_i128);
        for _ in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let value = state as i64;
            total.add(value);
            twin += i128::from(value);
            let (low, wraps, _) = total.parts();
            assert_eq!(i128::from(low) + (i128::from(wraps) << 64), twin);
        }
    }
}
