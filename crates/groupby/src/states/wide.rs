//! Sums that cannot overflow: native width per group plus a carry that exists once it is needed.
//!
//! In: integers and decimals. Out: (low, carry) with sum = low + carry * 2^bits, which has one
//! such form only: a sum fits the native width exactly if its carry is 0.
//! Invariant: wrap-around is counted, never lost, so overflow is judged on the final sum alone.
//! Not here: floats, NULLs, what a result type can hold.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Int64Array};
use arrow::array::{PrimitiveArray, types};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, Int64Type, IntervalUnit, i256};

use super::PreAggregated;
use super::fold::Fold;
use super::lanes::add_up;
use super::rows::Rows;
use crate::keys::GroupId;

/// Values of one chunk, so that sums of 32-bit halves stay within 64 bits.
const CHUNK_ROWS: usize = 1 << 30;

/// A sum that is divided by a number of values.
pub trait RoundedMean: Sized {
    /// `sum * factor / count`, halves rounded away from zero, of the sum `self + carry * 2^bits`; none if it needs more than
    /// the native width.
    fn mean(self, carry: i64, factor: i64, count: i64) -> Option<Self>;
}

/// The native width of a sum.
pub(super) trait SumWidth: ArrowNativeTypeOp + ArrowNativeType + RoundedMean {
    /// Carries a low part between tables.
    type Carrier: ArrowPrimitiveType<Native = Self>;

    /// The type of a low part between tables.
    const CARRIER: DataType;

    /// Wrapping sum and what it has to be corrected by, in units of 2^bits.
    fn add(self, other: Self) -> (Self, i64);

    /// True if the value lies strictly between `-limit` and `limit`.
    fn is_within(self, limit: Self) -> bool;

    /// A number that has at least as many bits as the value without its sign has; all bits where
    /// those are more than 64.
    fn magnitude(self) -> u64;

    /// The value, of a `magnitude` below 2^63.
    fn word(self) -> i64;

    /// A value that came from `word`s; where there are no negative ones it is none.
    fn of_word(word: i64) -> Self;

    /// The sum of a column.
    #[inline]
    fn sum<T: Copy>(values: &[T], widen: impl Fn(T) -> Self) -> (Self, i64) {
        sum_each(values, widen)
    }

    /// 10^exponent.
    fn ten_to(exponent: u8) -> Self {
        Self::usize_as(10).pow_wrapping(u32::from(exponent))
    }
}

/// A number that is divided.
pub trait Nearest: Sized {
    /// The nearest integer to the quotient, of two the one away from zero; none by zero, and where it needs more bits.
    fn nearest(self, by: Self) -> Option<Self>;
}

impl Nearest for i128 {
    #[inline]
    fn nearest(self, by: Self) -> Option<Self> {
        let (whole, rest) = (self.checked_div(by)?, self % by);
        // The distance to the next number, away from zero.
        match rest.unsigned_abs() >= by.unsigned_abs() - rest.unsigned_abs() {
            true if (self < 0) != (by < 0) => whole.checked_sub(1),
            true => whole.checked_add(1),
            false => Some(whole),
        }
    }
}

impl Nearest for i256 {
    fn nearest(self, by: Self) -> Option<Self> {
        let (whole, rest) = (self.checked_div(by)?, self.checked_rem(by)?);
        let (rest, size) = (rest.checked_abs()?, by.checked_abs()?);
        match rest >= size - rest {
            true if self.is_negative() != by.is_negative() => whole.checked_sub(i256::ONE),
            true => whole.checked_add(i256::ONE),
            false => Some(whole),
        }
    }
}

/// A sum that is carried on from value to value.
#[inline]
fn sum_each<T: Copy, W: SumWidth>(values: &[T], widen: impl Fn(T) -> W) -> (W, i64) {
    let mut sum = (W::default(), 0);
    for value in values {
        let (low, carry) = sum.0.add(widen(*value));
        sum = (low, sum.1 + carry);
    }
    sum
}

/// Sum of 64-bit words without overflow: 32-bit halves add up in vector registers.
#[inline]
fn sum_words<T: Copy>(values: &[T], word: impl Fn(T) -> u64) -> u128 {
    let mut sum = 0;
    for chunk in values.chunks(CHUNK_ROWS) {
        let (mut low, mut high) = (0u64, 0u64);
        for value in chunk {
            let word = word(*value);
            low += word & u64::from(u32::MAX);
            high += word >> 32;
        }
        sum += u128::from(low) + (u128::from(high) << 32);
    }
    sum
}

impl SumWidth for i64 {
    type Carrier = types::Int64Type;
    const CARRIER: DataType = DataType::Int64;

    #[inline]
    fn add(self, other: Self) -> (Self, i64) {
        let (low, wrapped) = self.overflowing_add(other);
        (
            low,
            if wrapped {
                1 - 2 * i64::from(other < 0)
            } else {
                0
            },
        )
    }

    #[inline(always)]
    fn magnitude(self) -> u64 {
        (self ^ (self >> 63)) as u64
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self
    }

    #[inline(always)]
    fn of_word(word: i64) -> Self {
        word
    }

    fn is_within(self, limit: Self) -> bool {
        -limit < self && self < limit
    }

    #[inline]
    fn sum<T: Copy>(values: &[T], widen: impl Fn(T) -> Self) -> (Self, i64) {
        // Flipping the sign bit adds 2^63 to each value.
        let shifted = sum_words(values, |value| widen(value) as u64 ^ (1 << 63));
        let sum = shifted.wrapping_sub((values.len() as u128) << 63) as i128;
        let low = sum as i64;
        (low, ((sum - i128::from(low)) >> 64) as i64)
    }
}

impl RoundedMean for i64 {
    fn mean(self, carry: i64, factor: i64, count: i64) -> Option<Self> {
        if let (0, Some(scaled)) = (carry, self.checked_mul(factor)) {
            let (quotient, rest) = (scaled / count, (scaled % count).abs());
            return Some(match rest >= count - rest {
                true => quotient + scaled.signum(),
                false => quotient,
            });
        }
        let sum = i128::from(self) + (i128::from(carry) << 64);
        i64::try_from(sum.checked_mul(factor.into())?.nearest(count.into())?).ok()
    }
}

impl SumWidth for u64 {
    type Carrier = types::UInt64Type;
    const CARRIER: DataType = DataType::UInt64;

    #[inline]
    fn add(self, other: Self) -> (Self, i64) {
        let (low, wrapped) = self.overflowing_add(other);
        (low, i64::from(wrapped))
    }

    #[inline(always)]
    fn magnitude(self) -> u64 {
        self
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self as i64
    }

    #[inline(always)]
    fn of_word(word: i64) -> Self {
        word as u64
    }

    fn is_within(self, limit: Self) -> bool {
        self < limit
    }

    #[inline]
    fn sum<T: Copy>(values: &[T], widen: impl Fn(T) -> Self) -> (Self, i64) {
        let sum = sum_words(values, widen);
        (sum as u64, (sum >> 64) as i64)
    }
}

impl RoundedMean for u64 {
    fn mean(self, carry: i64, factor: i64, count: i64) -> Option<Self> {
        let sum = i128::from(self) + (i128::from(carry) << 64);
        u64::try_from(sum.checked_mul(factor.into())?.nearest(count.into())?).ok()
    }
}

impl SumWidth for i128 {
    type Carrier = types::Decimal128Type;
    const CARRIER: DataType = DataType::Decimal128(38, 0);

    #[inline]
    fn add(self, other: Self) -> (Self, i64) {
        let (low, wrapped) = self.overflowing_add(other);
        (
            low,
            if wrapped {
                1 - 2 * i64::from(other < 0)
            } else {
                0
            },
        )
    }

    #[inline(always)]
    fn magnitude(self) -> u64 {
        let bits = (self ^ (self >> 127)) as u128;
        // The high word spoils all bits at once.
        bits as u64 | u64::from(bits >> 64 != 0).wrapping_neg()
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self as i64
    }

    #[inline(always)]
    fn of_word(word: i64) -> Self {
        word.into()
    }

    fn is_within(self, limit: Self) -> bool {
        -limit < self && self < limit
    }

    #[inline]
    fn sum<T: Copy>(values: &[T], widen: impl Fn(T) -> Self) -> (Self, i64) {
        if magnitudes(values, &widen) >> 63 != 0 {
            return sum_each(values, widen);
        }
        let (low, carry) = i64::sum(values, |value| widen(value).word());
        (Self::from(low) + (Self::from(carry) << 64), 0)
    }
}

impl RoundedMean for i128 {
    fn mean(self, carry: i64, factor: i64, count: i64) -> Option<Self> {
        match (carry, self.checked_mul(factor.into())) {
            (0, Some(scaled)) => scaled.nearest(count.into()),
            _ => {
                let wraps = i256::from_parts(0, carry.into());
                let sum = i256::from_i128(self).checked_add(wraps)?;
                let scaled = sum.checked_mul(i256::from_i128(factor.into()))?;
                scaled.nearest(i256::from_i128(count.into()))?.to_i128()
            }
        }
    }
}

impl SumWidth for i256 {
    type Carrier = types::Decimal256Type;
    const CARRIER: DataType = DataType::Decimal256(76, 0);

    #[inline]
    fn add(self, other: Self) -> (Self, i64) {
        let low = self.wrapping_add(other);
        let is_negative = other < i256::ZERO;
        (
            low,
            if is_negative != (low < self) {
                1 - 2 * i64::from(is_negative)
            } else {
                0
            },
        )
    }

    fn magnitude(self) -> u64 {
        let fits = self.to_i128().map(SumWidth::magnitude);
        fits.unwrap_or(u64::MAX)
    }

    fn word(self) -> i64 {
        self.as_i128() as i64
    }

    fn of_word(word: i64) -> Self {
        Self::from_i128(word.into())
    }

    fn is_within(self, limit: Self) -> bool {
        -limit < self && self < limit
    }
}

impl RoundedMean for i256 {
    fn mean(self, carry: i64, factor: i64, count: i64) -> Option<Self> {
        let scaled = self.checked_mul(i256::from_i128(factor.into()))?;
        scaled
            .nearest(i256::from_i128(count.into()))
            .filter(|_| carry == 0)
    }
}

/// Bits of values that may be added up in 64 bits, as many as a batch has rows.
const NARROW_BITS: u32 = 47;
const NARROW_ROWS_MAX: usize = 1 << (63 - NARROW_BITS);

/// True if sums of these values, as `word`s, fit 64 bits in any order.
pub(super) fn are_narrow<T: Copy, W: SumWidth>(values: &[T], widen: impl Fn(T) -> W) -> bool {
    fit_a_word(values.len(), bits_of(values, widen))
}

/// The same of so many values of so many bits.
pub(super) fn fit_a_word(values: usize, bits: u32) -> bool {
    values <= NARROW_ROWS_MAX && bits <= NARROW_BITS
}

/// Bits of the largest magnitude, or those of the type where it has few.
#[inline(always)]
pub(super) fn bits_of<T: Copy, W: SumWidth>(values: &[T], widen: impl Fn(T) -> W) -> u32 {
    let of_type = size_of::<T>() as u32 * 8;
    match of_type <= NARROW_BITS {
        true => of_type,
        false => u64::BITS - magnitudes(values, widen).leading_zeros(),
    }
}

/// A number that has at least as many bits as the magnitude of each value.
#[inline(always)]
fn magnitudes<T: Copy, W: SumWidth>(values: &[T], widen: impl Fn(T) -> W) -> u64 {
    let both = |all, value: &T| all | widen(*value).magnitude();
    values.iter().fold(0, both)
}

/// One sum per group.
#[derive(Debug, Default)]
pub(super) struct WideSums<W> {
    low: Vec<W>,
    /// Empty until the first overflow.
    carry: Vec<i64>,
}

impl<W: SumWidth> WideSums<W> {
    /// Sums for groups `0..total`, new ones 0.
    pub(super) fn grow(&mut self, total: usize) {
        self.low.resize(total.max(self.low.len()), W::default());
    }

    /// Adds each live value to its group's sum.
    #[inline]
    pub(super) fn update<T: Summed<Sum = W>>(&mut self, rows: &Rows<'_>, values: &[T::Value]) {
        let total = self.low.len();
        rows.fold(values, total, Summing::<T>(self.parts()));
    }

    /// Adds pre-aggregated sums in words to those of their groups.
    pub(super) fn add_words(&mut self, pre_aggregated: PreAggregated<'_>) {
        let mut parts = self.parts();
        for (group, sum) in pre_aggregated
            .groups
            .iter()
            .zip(pre_aggregated.sums.words())
        {
            parts.merge(group.0 as usize, W::of_word(*sum), 0);
        }
    }

    #[inline]
    fn parts(&mut self) -> WideParts<'_, W> {
        WideParts {
            low: &mut self.low,
            carry: &mut self.carry,
        }
    }

    /// Adds partial sums, as `take_partial` gave them.
    pub(super) fn merge(&mut self, rows: &Rows<'_>, low: &ArrayRef, carry: &ArrayRef) {
        let low = low.as_primitive::<W::Carrier>().values();
        let carry: &[i64] = carry.as_primitive::<Int64Type>().values();
        if carry.iter().all(|carry| *carry == 0) {
            self.update::<Same<W>>(rows, low);
        } else {
            let mut parts = self.parts();
            rows.for_each_row(|group, row| parts.merge(group, low[row], carry[row]));
        }
    }

    /// Low parts and carries of `total` groups; no carries if all are 0. None are left.
    pub(super) fn take(&mut self, total: usize) -> (Vec<W>, Vec<i64>) {
        let Self { mut low, mut carry } = std::mem::take(self);
        low.resize(total, W::default());
        if carry.iter().all(|carry| *carry == 0) {
            carry = Vec::new();
        } else {
            carry.resize(total, 0);
        }
        (low, carry)
    }

    /// Low parts and carries of `total` groups as columns. None are left.
    pub(super) fn take_partial(
        &mut self,
        total: usize,
        nulls: Option<NullBuffer>,
    ) -> [ArrayRef; 2] {
        let (low, mut carry) = self.take(total);
        carry.resize(total, 0);
        let low = PrimitiveArray::<W::Carrier>::new(ScalarBuffer::from(low), nulls);
        [
            Arc::new(low.with_data_type(W::CARRIER)),
            Arc::new(Int64Array::from(carry)),
        ]
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.low.capacity() * size_of::<W>() + self.carry.capacity() * size_of::<i64>()
    }
}

/// The sums of all groups, low parts and carries.
struct WideParts<'a, W> {
    low: &'a mut [W],
    carry: &'a mut Vec<i64>,
}

impl<W: SumWidth> WideParts<'_, W> {
    #[inline]
    fn merge(&mut self, group: usize, low: W, carry: i64) {
        let (new, wrapped) = self.low[group].add(low);
        self.low[group] = new;
        if wrapped + carry != 0 {
            add_carry(self.carry, self.low.len(), group, wrapped + carry);
        }
    }
}

/// Values that are summed as `T` says.
struct Summing<'a, T: Summed>(WideParts<'a, T::Sum>);

impl<T: Summed> Fold<T::Value> for Summing<'_, T> {
    fn column(&mut self, values: &[T::Value]) {
        let (low, carry) = T::Sum::sum(values, T::widen);
        self.0.merge(0, low, carry);
    }

    #[inline]
    fn add(&mut self, group: usize, value: T::Value) {
        self.0.merge(group, T::widen(value), 0);
    }

    #[inline]
    fn few(&mut self, ids: &[GroupId], values: &[T::Value], total: usize) {
        let add = |sum: &mut i64, value| *sum += T::widen(value).word();
        add_up(ids, values, total, add, |group, sum| {
            self.0.merge(group, T::Sum::of_word(sum), 0);
        });
    }

    #[inline]
    fn fits_lanes(values: &[T::Value]) -> bool {
        are_narrow(values, T::widen)
    }
}

/// Adds to the carry of a group; there is one for each of `total` groups from the first on.
#[cold]
#[inline(never)]
pub(super) fn add_carry(carries: &mut Vec<i64>, total: usize, group: usize, carry: i64) {
    carries.resize(total.max(carries.len()), 0);
    carries[group] = carries[group].wrapping_add(carry);
}

/// Values whose sum is wide.
pub(super) trait Summed: 'static {
    /// A value as its column has it.
    type Value: ArrowNativeType;

    /// The width of the sum.
    type Sum: SumWidth;

    /// The width of the result.
    type Output: ArrowNativeType;

    /// A value in the sum's width.
    fn widen(value: Self::Value) -> Self::Sum;

    /// Sums that fit, in the result's width.
    fn narrow(sums: Vec<Self::Sum>) -> ScalarBuffer<Self::Output>;
}

/// Decimals of 128 bits whose column came in 64.
pub(super) struct NarrowDecimals;

/// Sums themselves.
struct Same<W>(PhantomData<W>);

impl<W: SumWidth> Summed for Same<W> {
    type Value = W;
    type Sum = W;
    type Output = W;

    #[inline(always)]
    fn widen(value: W) -> W {
        value
    }

    fn narrow(sums: Vec<W>) -> ScalarBuffer<W> {
        ScalarBuffer::from(sums)
    }
}

/// Integers of fewer bits than their sum.
pub(super) struct Fewer<T>(PhantomData<T>);

macro_rules! summed {
    ($($summed:ty: $value:ty => $sum:ty),*) => {$(
        impl Summed for $summed {
            type Value = $value;
            type Sum = $sum;
            type Output = $sum;

            #[inline(always)]
            fn widen(value: $value) -> $sum {
                value.into()
            }

            fn narrow(sums: Vec<$sum>) -> ScalarBuffer<$sum> {
                ScalarBuffer::from(sums)
            }
        }
    )*};
}

summed!(i64: i64 => i64, u64: u64 => u64, i128: i128 => i128, i256: i256 => i256, NarrowDecimals: i64 => i128);
summed!(Fewer<i8>: i8 => i64, Fewer<i16>: i16 => i64, Fewer<i32>: i32 => i64);
summed!(Fewer<u8>: u8 => u64, Fewer<u16>: u16 => u64, Fewer<u32>: u32 => u64);

impl Summed for i32 {
    type Value = i32;
    type Sum = i64;
    type Output = i32;

    #[inline(always)]
    fn widen(value: i32) -> i64 {
        value.into()
    }

    fn narrow(sums: Vec<i64>) -> ScalarBuffer<i32> {
        sums.into_iter().map(|sum| sum as i32).collect()
    }
}

/// The bound that values of a type lie below; none for types that hold what sums of their values do.
pub(super) fn limit_of<W: SumWidth>(data_type: &DataType) -> Option<W> {
    match data_type {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision, _) => Some(W::ten_to(*precision)),
        // Their sums have 64 bits.
        DataType::Interval(IntervalUnit::YearMonth) => Some(W::usize_as(1 << 31)),
        _ => None,
    }
}

/// `$visit!(summed)` for the types of a column and a result whose sum is wide, `$other` for others.
macro_rules! with_summed {
    ($data_type:expr, $result_type:expr, $visit:ident, $other:expr) => {
        match ($data_type, $result_type) {
            (DataType::Decimal64(..), DataType::Decimal128(..)) => $visit!(NarrowDecimals),
            (
                DataType::Decimal32(..)
                | DataType::Interval(arrow::datatypes::IntervalUnit::YearMonth),
                _,
            ) => {
                $visit!(i32)
            }
            (DataType::Decimal64(..) | DataType::Duration(_), _) => $visit!(i64),
            (DataType::Decimal128(..), _) => $visit!(i128),
            (DataType::Decimal256(..), _) => $visit!(i256),
            (integer, _) => with_integers_summed!(integer, $visit, $other),
        }
    };
}
pub(super) use with_summed;

/// The same of integers.
macro_rules! with_integers_summed {
    ($data_type:expr, $visit:ident, $other:expr) => {
        match $data_type {
            DataType::Int8 => $visit!(Fewer<i8>),
            DataType::Int16 => $visit!(Fewer<i16>),
            DataType::Int32 => $visit!(Fewer<i32>),
            DataType::Int64 => $visit!(i64),
            DataType::UInt8 => $visit!(Fewer<u8>),
            DataType::UInt16 => $visit!(Fewer<u16>),
            DataType::UInt32 => $visit!(Fewer<u32>),
            DataType::UInt64 => $visit!(u64),
            _ => $other,
        }
    };
}
pub(super) use with_integers_summed;

#[cfg(test)]
mod tests {
    use super::*;

    fn exact<W: SumWidth + Into<i128>>(sum: (W, i64)) -> i128 {
        sum.0.into() + (i128::from(sum.1) << 64)
    }

    #[test]
    fn column_sums_are_wide() {
        let values = [i64::MAX, i64::MAX, 5, i64::MIN, -7, i64::MAX];
        for end in 0..=values.len() {
            let expected: i128 = values[..end].iter().map(|v| i128::from(*v)).sum();
            assert_eq!(exact(i64::sum(&values[..end], |v| v)), expected);
        }
        for wide in [0, 1 << 63, -1 << 100] {
            let values = values.map(|value| i128::from(value) + wide);
            assert_eq!(i128::sum(&values, |v| v), (values.iter().sum(), 0));
        }
        let values = [u64::MAX, 3, u64::MAX, u64::MAX];
        let expected: i128 = values.iter().map(|v| i128::from(*v)).sum();
        assert_eq!(exact(u64::sum(&values, |v| v)), expected);
    }

    #[test]
    fn wraps_are_counted_in_both_directions() {
        assert_eq!(i64::MAX.add(1), (i64::MIN, 1));
        assert_eq!(i64::MIN.add(-1), (i64::MAX, -1));
        assert_eq!(u64::MAX.add(2), (1, 1));
        assert_eq!(i128::MIN.add(-1), (i128::MAX, -1));
        assert_eq!(i128::MAX.add(i128::MAX), (-2, 1));
        assert_eq!(i256::MAX.add(i256::ONE), (i256::MIN, 1));
        assert_eq!(i256::MIN.add(i256::MIN), (i256::ZERO, -1));
        assert_eq!(i256::ONE.add(i256::MINUS_ONE), (i256::ZERO, 0));
    }

    #[test]
    fn means_of_wrapped_sums() {
        assert_eq!(i64::mean(0, 1, 1, 4), Some(1 << 62));
        assert_eq!(i64::mean(0, 1, 1, 1), None);
        assert_eq!(i64::mean(-7, 0, 1, 2), Some(-4));
        assert_eq!(i64::mean(-4, 0, 1, 3), Some(-1));
        assert_eq!(i64::mean(5, 0, 10, 3), Some(17));
        assert_eq!(i64::mean(i64::MAX, 0, 10_000, 20_000), Some(1 << 62));
        assert_eq!(i128::mean(0, 1, 1, 4), Some(1 << 126));
        assert_eq!(i128::mean(0, -1, 10_000, 20_000), Some(i128::MIN));
        assert_eq!(i128::mean(0, 1, 1, 1), None);
        assert_eq!(i128::mean(-5, 0, 1, 2), Some(-3));
        assert_eq!(i128::mean(0, 1, 1, 3), Some((1 << 126) / 3 * 4 + 1));
        assert_eq!(
            i256::from_i128(-5).mean(0, 10, 4),
            Some(i256::from_i128(-13))
        );
        assert_eq!(i256::mean(i256::MAX, 0, 10, 1), None);
    }
}
