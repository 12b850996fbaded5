//! One key column of a direct table: the values that it has addresses for, and each one's part of the address.
//!
//! In: columns of integers, dates, times, booleans as bytes. Out: the range of their values and its step, the parts of the addresses.
//! Invariant: a range starts at a value of its column and holds every value that was observed, in steps from there. Keys
//! that are multiples of one number, such as beginnings of minutes, have addresses without gaps.
//! Not here: codes of strings (intern.rs), groups (direct.rs, fast_path.rs).

use std::ops::RangeInclusive;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use grouse_kernels::multiples::{self, Step};

use super::Full;

/// Codes that a range which moved may be rounded up by; those of a single column multiply with no other's.
pub(super) const SLACK: u64 = 1 << 12;
pub(super) const SLACK_OF_ONE: u64 = 1 << 20;
/// And by no more than so many times what it moved now.
const SLACK_STEPS: u64 = 64;

/// One key column's range and its factor in the address.
#[derive(Debug, Clone)]
pub(super) struct Dimension {
    pub data_type: DataType,
    range: Option<RangeInclusive<i64>>,
    /// The part of it from the lowest to the highest value that was observed.
    reached: Option<RangeInclusive<i64>>,
    /// All values are this far from each other, or so many times as far.
    step: Step,
    /// Code 0 is NULL once a NULL was seen.
    pub null: bool,
    pub stride: usize,
}

/// What a batch holds in one column.
pub(super) struct Observed {
    pub range: Option<RangeInclusive<i64>>,
    /// The greatest number of which the distances of its values, and the step of the dimension, are multiples.
    pub step: u64,
    pub null: bool,
}

impl Dimension {
    /// No value yet.
    pub(super) fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            range: None,
            reached: None,
            step: Step::ONE,
            null: false,
            stride: 1,
        }
    }

    /// Its codes, that of NULL included once one was seen.
    pub(super) fn codes(&self) -> usize {
        self.codes_of(self.range.as_ref())
    }

    /// The same of the values that were observed.
    pub(super) fn reached_codes(&self) -> usize {
        self.codes_of(self.reached.as_ref())
    }

    fn codes_of(&self, values: Option<&RangeInclusive<i64>>) -> usize {
        let steps =
            |range: &RangeInclusive<i64>| range.end().abs_diff(*range.start()) / self.step.size();
        let values = values.map_or(0, |range| steps(range).saturating_add(1));
        usize::try_from(values)
            .unwrap_or(usize::MAX)
            .saturating_add(usize::from(self.null))
    }

    /// The value of the first code but NULL's.
    pub(super) fn start(&self) -> i64 {
        self.range.as_ref().map_or(0, |range| *range.start())
    }

    /// The distance of a code's value from the next one's.
    pub(super) fn step(&self) -> Step {
        self.step
    }

    /// The value so many codes after the first.
    pub(super) fn value_of(&self, code: usize) -> i64 {
        self.start() + code as i64 * self.step.size() as i64
    }

    /// What an address of the whole table holds of this column, of so many codes.
    pub(super) fn value(&self, address: usize, codes: usize) -> Option<i64> {
        let code = address / self.stride % codes;
        match (self.null, code) {
            (true, 0) => None,
            (null, code) => Some(self.value_of(code - usize::from(null))),
        }
    }

    /// The part of the address that this column gives to a value inside the range.
    pub(super) fn address(&self, value: Option<i64>) -> usize {
        let code = |value: i64| self.step.times((value - self.start()) as u64) as usize;
        let code = value.map_or(0, |value| code(value) + usize::from(self.null));
        code * self.stride
    }

    /// Adds the part of each row's value, all of which are inside the range.
    pub(super) fn add_addresses(&self, column: &ArrayRef, addresses: &mut [u32]) {
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
        let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let (start, null, stride) = (self.start(), u32::from(self.null), self.stride as u32);
        with_integers!(&column.to_data(), values => match (&nulls, self.step) {
            (None, Step::ONE) => {
                // In 32 bits: the range was checked, so only the low bits of the difference matter.
                let base = (start as u32).wrapping_sub(null);
                for (address, &value) in addresses.iter_mut().zip(values) {
                    *address += (value as u32).wrapping_sub(base) * stride;
                }
            }
            (_, step) => {
                for (row, (address, &value)) in addresses.iter_mut().zip(values).enumerate() {
                    if !is_null(row) {
                        let code = step.times((value as i64 - start) as u64) as u32;
                        *address += (code + null) * stride;
                    }
                }
            }
        });
    }

    /// The range and the step of a column's values.
    pub(super) fn observe(&self, column: &ArrayRef) -> Result<Observed, Full> {
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
        let null = nulls.is_some();
        let step = self.own_step();
        let (range, step) = with_integers!(&column.to_data(), values => match &nulls {
            None => ends_and_step(|| values.iter().copied(), |value| value as i64, step),
            Some(nulls) => {
                let valid = || nulls.valid_indices().map(|row| values[row]);
                ends_and_step(valid, |value| value as i64, step)
            }
        });
        let Some((low, high)) = range else {
            return Ok(Observed {
                range: None,
                step,
                null,
            });
        };
        let low = i64::try_from(low).map_err(|_| Full)?;
        let high = i64::try_from(high).map_err(|_| Full)?;
        // Keys at the ends of 64 bits would overflow the range arithmetic.
        let far = i64::MAX / 4;
        if low < -far || high > far {
            return Err(Full);
        }
        Ok(Observed {
            range: Some(low..=high),
            step,
            null,
        })
    }

    /// That of the values so far; 0 of fewer than two, which any other may follow.
    fn own_step(&self) -> u64 {
        match &self.range {
            Some(range) if range.start() < range.end() => self.step.size(),
            _ => 0,
        }
    }

    /// Makes the range hold what was observed. One that moves is rounded up in its direction by at most `slack_max` codes, so
    /// that slowly growing keys do not rebuild the array every batch. True if anything changed.
    pub(super) fn widen(&mut self, observed: &Observed, slack_max: u64) -> bool {
        let mut changed = observed.null && !self.null;
        self.null |= observed.null;
        let Some(seen) = &observed.range else {
            return changed;
        };
        let Some(known) = self.range.clone() else {
            self.range = Some(seen.clone());
            self.step = Step::new(observed.step);
            return true;
        };
        let apart = known.start().abs_diff(*seen.start());
        let step = Step::new(multiples::common(observed.step, std::iter::once(apart)));
        changed |= step != self.step;
        self.step = step;
        let (low, high) = hull(&known, seen).into_inner();
        if (low, high) != (*known.start(), *known.end()) {
            // Sorted keys go on as they did; the ends of others are soon known.
            let beyond = known.start().abs_diff(low).max(high.abs_diff(*known.end()));
            let slack = (high.abs_diff(low) / 2)
                .min(slack_max.saturating_mul(step.size()))
                .min(beyond.saturating_mul(SLACK_STEPS));
            let slack = (slack - slack % step.size()) as i64;
            let low = if low < *known.start() {
                low.saturating_sub(slack)
            } else {
                low
            };
            let high = if high > *known.end() {
                high.saturating_add(slack)
            } else {
                high
            };
            self.range = Some(low..=high);
            changed = true;
        }
        changed
    }

    /// Takes note of how far the range is in use.
    pub(super) fn reach(&mut self, observed: &Observed) {
        if let Some(seen) = &observed.range {
            self.reached = Some(hull(self.reached.as_ref().unwrap_or(seen), seen));
        }
    }

    /// Makes the range hold the values that another table's dimension has observed, and no more.
    pub(super) fn join(&mut self, other: &Dimension) {
        let observed = Observed {
            range: other.reached.clone(),
            step: multiples::common(self.own_step(), std::iter::once(other.own_step())),
            null: other.null,
        };
        self.widen(&observed, 0);
        self.reach(&observed);
    }

    /// True where codes that `self` had are those of `wider` too: only the upper end moved.
    pub(super) fn keeps_codes(&self, wider: &Dimension) -> bool {
        let begins = |dimension: &Dimension| {
            let start = dimension.range.as_ref().map(|range| *range.start());
            (dimension.null, dimension.step, start)
        };
        self.range.is_some() && begins(self) == begins(wider)
    }
}

/// Sets the factors of all columns; the number of addresses.
pub(super) fn lay_out(dimensions: &mut [Dimension]) -> usize {
    let mut slots = 1usize;
    for dimension in dimensions {
        dimension.stride = slots;
        slots = slots.saturating_mul(dimension.codes());
    }
    slots
}

/// The smallest range that has both in it.
fn hull(one: &RangeInclusive<i64>, other: &RangeInclusive<i64>) -> RangeInclusive<i64> {
    *one.start().min(other.start())..=*one.end().max(other.end())
}

/// The ends of some values, and the greatest number of which `step` and their distances are multiples.
fn ends_and_step<T: Copy + Ord + Into<i128>, I: Iterator<Item = T>>(
    values: impl Fn() -> I,
    word: impl Fn(T) -> i64,
    step: u64,
) -> (Option<(i128, i128)>, u64) {
    let (Some(first), Some((low, high))) = (values().next(), ends(values())) else {
        return (None, step);
    };
    let distances = values().map(|value| word(value).abs_diff(word(first)));
    let step = multiples::common(step, distances);
    (Some((low.into(), high.into())), step)
}

/// The least and the largest: vector code, unlike an iterator's `min`.
pub(crate) fn ends<T: Copy + Ord>(mut values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let first = values.next()?;
    Some(values.fold((first, first), |(low, high), value| {
        (low.min(value), high.max(value))
    }))
}
