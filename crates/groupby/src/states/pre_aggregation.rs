//! The loops of per-code pre-aggregation: rows of few codes are counted and added up by code, before any group is looked up.
//!
//! In: the code of each row of a batch, a byte, and columns of values without NULLs. Out: one count or sum per code.
//! Invariant: sums are exact; those of floats are the same numbers in another order.
//! Not here: which keys have few codes (build/pre_aggregation.rs), the groups of codes.
//!
//! Tried and rejected: where 94 % of the rows have one code, its sum as that of all rows less the others': as fast. Extremes by
//! code, so that counts beside them are too: 0.64 to 1.12 of the time.

use std::ops::AddAssign;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Float64Type;

use super::Groups;
use super::fixed::values_of;
use super::lanes::{GROUPS_MAX, LANES, add_up, pays};
use super::rows::Rows;
use super::wide::{SumWidth, Summed, bits_of, fit_a_word};
use crate::error::Result;
use crate::keys::GroupId;

/// Rows of a batch at most: a lane's count and sum share a word.
const ROWS_MAX: usize = LANES << 14;
/// Where the count begins. Below it a lane has room for the sum of twice its rows' values of so many bits.
const COUNT_SHIFT: u32 = 48;
const COUNTED_BITS: u32 = 32;

/// What the values of one aggregate add up to: one sum per code.
#[derive(Debug)]
pub enum CodeSums {
    /// There is nothing but their number.
    None,
    /// Words that have not overflowed.
    Words(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
}

impl CodeSums {
    /// Those of these codes.
    pub(crate) fn of(self, codes: &[u8]) -> Self {
        fn of<T: Copy>(sums: &[T], codes: &[u8]) -> Vec<T> {
            codes.iter().map(|code| sums[usize::from(*code)]).collect()
        }
        match self {
            Self::None => Self::None,
            Self::Words(sums) => Self::Words(of(&sums, codes)),
            Self::Floats(sums) => Self::Floats(of(&sums, codes)),
        }
    }

    pub(super) fn words(&self) -> &[i64] {
        match self {
            Self::Words(sums) => sums,
            Self::None | Self::Floats(_) => unreachable!("what `pre_aggregate` has made are words"),
        }
    }

    pub(super) fn floats(&self) -> &[f64] {
        match self {
            Self::Floats(sums) => sums,
            Self::None | Self::Words(_) => unreachable!("what `pre_aggregate` has made are floats"),
        }
    }
}

/// What groups get of a pre-aggregated batch: one entry per code that it has.
#[derive(Debug, Clone, Copy)]
pub struct PreAggregated<'a> {
    /// What its values add up to.
    pub sums: &'a CodeSums,
    /// Its rows.
    pub counts: &'a [i64],
    /// Its group.
    pub groups: &'a [GroupId],
}

impl<'a> PreAggregated<'a> {
    /// One row per code.
    pub(super) fn rows(&self) -> Rows<'a> {
        Rows::new(&[], None, Groups::Ids(self.groups))
    }

    /// Adds the number of rows of each to its group's.
    pub(super) fn count(&self, counts: &mut [i64]) {
        self.counts()
            .for_each(|(group, count)| counts[group] += count);
    }

    /// Group and number of rows of each.
    pub(super) fn counts(&self) -> impl Iterator<Item = (usize, i64)> {
        let groups = self.groups.iter().map(|group| group.0 as usize);
        groups.zip(self.counts.iter().copied())
    }
}

/// Counts and adds up the rows of one batch by their codes.
#[derive(Debug)]
pub struct PreAggregator<'a> {
    codes: &'a [u8],
    total: usize,
    counts: Option<Vec<i64>>,
}

impl<'a> PreAggregator<'a> {
    /// Most codes.
    pub(crate) const CODES_MAX: usize = GROUPS_MAX;

    /// Rows whose codes are all below `total`.
    ///
    /// # Panics
    /// If there are more than `ROWS_MAX` rows.
    pub(crate) fn new(codes: &'a [u8], total: usize) -> Self {
        assert!(codes.len() <= ROWS_MAX, "more rows than a word counts");
        Self {
            codes,
            total,
            counts: None,
        }
    }

    /// True if it pays for so many rows of `total` codes.
    pub(crate) fn pays(rows: usize, total: usize) -> bool {
        rows <= ROWS_MAX && pays(rows, total)
    }

    /// The rows of each code that has some, and these codes.
    pub(crate) fn present(self) -> (Vec<i64>, Vec<u8>) {
        let counts = self
            .counts
            .unwrap_or_else(|| added(self.codes, self.codes, self.total, |count, _| *count += 1));
        let present = counts.into_iter().zip(0..=u8::MAX);
        present.filter(|(count, _)| *count > 0).unzip()
    }

    /// The sum of each code's values in a column of integers or decimals, if those are not too wide.
    ///
    /// # Panics
    /// If there are not as many values as rows.
    pub(super) fn wide<T: Summed>(&mut self, column: &ArrayRef) -> Result<Option<CodeSums>> {
        Ok(self.wide_sums(&values_of::<T::Value>(column)?, T::widen))
    }

    fn wide_sums<T: Copy, W: SumWidth>(
        &mut self,
        values: &[T],
        widen: impl Fn(T) -> W + Copy,
    ) -> Option<CodeSums> {
        let bits = bits_of(values, widen);
        fit_a_word(values.len(), bits)
            .then(|| CodeSums::Words(self.sums(values, bits, |value| widen(value).word())))
    }

    fn sums<T: Copy>(&mut self, values: &[T], bits: u32, word: impl Fn(T) -> i64) -> Vec<i64> {
        let (codes, total) = (self.codes, self.total);
        assert_eq!(codes.len(), values.len(), "a column of another length");
        if self.counts.is_some() || bits > COUNTED_BITS {
            return added(codes, values, total, |sum: &mut i64, value| {
                *sum += word(value)
            });
        }
        // Counting on the way takes no time.
        let (mut sums, mut counts) = (vec![0; total], vec![0; total]);
        let add = |both: &mut i64, value| *both += (1 << COUNT_SHIFT) + word(value);
        add_up(codes, values, total, add, |code, both| {
            let count = (both + (1 << (COUNT_SHIFT - 1))) >> COUNT_SHIFT;
            counts[code] += count;
            sums[code] += both - (count << COUNT_SHIFT);
        });
        self.counts = Some(counts);
        sums
    }

    /// The sum of each code's values in a column of floats.
    ///
    /// # Panics
    /// If there are not as many values as rows.
    pub(super) fn floats(&self, column: &ArrayRef) -> CodeSums {
        let values = column.as_primitive::<Float64Type>().values();
        let add = |sum: &mut f64, value| *sum += value;
        CodeSums::Floats(added(self.codes, values, self.total, add))
    }
}

/// One sum per code.
#[inline]
fn added<S: Copy + Default + AddAssign, T: Copy>(
    codes: &[u8],
    values: &[T],
    total: usize,
    add: impl Fn(&mut S, T),
) -> Vec<S> {
    let mut sums = vec![S::default(); total];
    add_up(codes, values, total, add, |code, sum| sums[code] += sum);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rows of these codes and values add up to.
    fn twin(codes: &[u8], values: &[i128], total: usize) -> (Vec<i64>, Vec<i64>) {
        let (mut counts, mut sums) = (vec![0; total], vec![0; total]);
        for (code, value) in codes.iter().zip(values) {
            counts[usize::from(*code)] += 1;
            sums[usize::from(*code)] += *value as i64;
        }
        (counts, sums)
    }

    fn check<T: Copy + Into<i128>>(values: &[T], codes: &[u8], total: usize) {
        let wide: Vec<i128> = values.iter().map(|value| (*value).into()).collect();
        let (counts, sums) = twin(codes, &wide, total);
        let mut by_code = PreAggregator::new(codes, total);
        for _ in 0..2 {
            let found = by_code.wide_sums(values, |value| value.into());
            assert_eq!(found.expect("narrow values").words(), sums);
        }
        let (of_present, present) = by_code.present();
        let (expected, codes): (Vec<i64>, Vec<u8>) = counts
            .iter()
            .zip(0..=u8::MAX)
            .filter(|(count, _)| **count > 0)
            .unzip();
        assert_eq!((of_present, present), (expected, codes));
    }

    #[test]
    fn counts_and_sums_equal_the_twins() {
        for (rows, total) in [
            (1024, 1),
            (4099, 7),
            (8192, 256),
            (ROWS_MAX, 256),
            (ROWS_MAX, 2),
        ] {
            let codes = [
                |row: usize, _| row / 3,
                |_, total| total - 1,
                |row, _| row * row,
            ];
            for code in codes {
                let codes: Vec<u8> = (0..rows)
                    .map(|row| (code(row, total) % total) as u8)
                    .collect();
                let ends = |least: i128, most: i128| move |row: usize| [least, most][row / 5 % 2];
                let most: Vec<u32> = vec![u32::MAX; rows];
                let least: Vec<i32> = vec![i32::MIN; rows];
                let small = ends(i8::MIN.into(), i8::MAX.into());
                let small: Vec<i8> = (0..rows).map(|row| small(row) as i8).collect();
                let words = ends(-1 << 32, (1 << 32) - 1);
                let words: Vec<i64> = (0..rows).map(|row| words(row) as i64).collect();
                let long = ends(-1 << 47, (1 << 47) - 1);
                let wide: Vec<i128> = (0..rows).map(long).collect();
                let long: Vec<i64> = wide.iter().map(|value| *value as i64).collect();
                check(&most, &codes, total);
                check(&least, &codes, total);
                check(&small, &codes, total);
                check(&words, &codes, total);
                check(&long, &codes, total);
                check(&wide, &codes, total);
            }
        }
    }

    #[test]
    fn wide_values_are_not_added_up() {
        let codes = [0; 1024];
        let mut values = vec![7i64; 1024];
        values[1000] = 1 << 47;
        assert!(
            PreAggregator::new(&codes, 1)
                .wide_sums(&values, |value| value)
                .is_none()
        );
        assert!(PreAggregator::pays(1024, 1) && PreAggregator::pays(ROWS_MAX, 256));
        assert!(!PreAggregator::pays(1023, 1) && !PreAggregator::pays(ROWS_MAX + 1, 1));
        assert!(!PreAggregator::pays(ROWS_MAX, 257) && !PreAggregator::pays(1024, 65));
    }
}
