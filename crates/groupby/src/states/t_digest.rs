//! approx_percentile_cont(x, p) and approx_median(x): the values of a group while they are few, a t-digest of them beyond.
//!
//! In: floats (DataFusion casts others). Out: the same type, NULL without values.
//! Partial: a list of values and a list of centroids per group, the latter as means and weights in turn.
//! Invariant: a group with at most as many values as a digest has centroids is exact. So are the least and the greatest
//! of any group, which are centroids of their own. No centroid is the mean of infinities or NaN and other values. A
//! centroid covers at
//! most one step of a scale that is fine at both ends (`reach`), so that a digest has at most twice as many as steps.
//! Not here: exact percentiles (`quantile`), values with weights.
//! Source: T. Dunning and O. Ertl, Computing Extremely Accurate Quantiles Using t-Digests (2019), the merging digest.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Int64Type};

use super::fixed::values_of;
use super::native::native;
use super::number::{Float, Number};
use super::quantile::{Parts, Quantile, at, between, exact};
use super::rows::Rows;
use super::values_by_group::{ByGroup, ValuesByGroup};
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;
use crate::keys::GroupId;

/// Fewer values are not worth condensing.
const VALUES_MIN: usize = 256 << 10;

/// About the value that a `fraction` of a column of `input_type` lies below, from digests of `size` centroids; `None` if it is not
/// native.
pub fn approximate_percentile(
    name: &str,
    fraction: f64,
    size: usize,
    input_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    assert!((0.0..=1.0).contains(&fraction), "a fraction of {fraction}");
    of(name, (&[fraction], Parts::One), size, input_type)
}

/// Several quantiles of a column of `input_type`, as a struct, from all values or from digests of so many centroids; `None` if
/// it is not native.
pub fn quantiles(
    name: &str,
    all: &[Quantile],
    digest: Option<usize>,
    input_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let Some(size) = digest else {
        return exact(name, (all, Parts::Struct), input_type);
    };
    let fractions: Vec<f64> = all.iter().map(|quantile| quantile.fraction()).collect();
    of(name, (&fractions, Parts::Struct), size, input_type)
}

fn of(
    name: &str,
    (fractions, parts): (&[f64], Parts),
    size: usize,
    input_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let states = match input_type {
        DataType::Float16 => states::<Float16Type>,
        DataType::Float32 => states::<Float32Type>,
        DataType::Float64 => states::<Float64Type>,
        _ => return None,
    };
    Some(states(name, (fractions, parts), size, input_type))
}

fn states<E: Float>(
    name: &str,
    (fractions, parts): (&[f64], Parts),
    size: usize,
    input_type: &DataType,
) -> Arc<dyn Aggregate> {
    let result_type = parts.result_type(input_type, fractions.len());
    let (data_type, fractions) = (input_type.clone(), fractions.to_vec());
    native(name, &result_type, move || TDigests::<E> {
        data_type: data_type.clone(),
        fractions: fractions.clone(),
        parts,
        size,
        values: ValuesByGroup::new(),
        centroids: ValuesByGroup::new(),
        held_max: 0,
        kept_bytes: 0,
        groups: 0,
        of: PhantomData,
    })
}

/// Neighbouring values.
#[derive(Debug, Clone, Copy)]
struct Centroid {
    mean: f64,
    /// How many values.
    weight: f64,
}

struct TDigests<E: Float> {
    data_type: DataType,
    fractions: Vec<f64>,
    parts: Parts,
    size: usize,
    /// Values that are in no centroid, as words that order as they do.
    values: ValuesByGroup<Int64Type>,
    /// Means and weights in turn; of one list in order.
    centroids: ValuesByGroup<Float64Type>,
    /// As many values and centroids may wait to be condensed.
    held_max: usize,
    /// Bytes of lists that are nobody else's.
    kept_bytes: usize,
    groups: usize,
    of: PhantomData<fn() -> E>,
}

/// What is held of each group.
struct TakenDigests {
    values: ByGroup<i64>,
    centroids: ByGroup<f64>,
}

impl<E: Float> TDigests<E> {
    /// What is held; nothing is left.
    fn take(&mut self, total: usize) -> TakenDigests {
        (self.groups, self.held_max, self.kept_bytes) = (0, 0, 0);
        TakenDigests {
            values: self.values.by_group(total),
            centroids: self.centroids.by_group(total),
        }
    }

    /// Adds lists of values and of centroids.
    fn add(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) {
        self.groups = total.max(self.groups);
        self.values.push_lists(&partial[0], groups);
        self.centroids.push_lists(&partial[1], groups);
    }

    /// Makes digests of groups with many values once many wait; what is left may double until the next time.
    fn condense_if_many(&mut self) -> Result<()> {
        let held = |states: &Self| states.values.held() + states.centroids.held() / 2;
        let digests = self.size.saturating_mul(self.groups);
        if held(self) <= self.held_max.max(VALUES_MIN).max(digests) {
            return Ok(());
        }
        let total = self.groups;
        let partial = self.drain_partial(total)?;
        let ids: Vec<_> = (0..total as u32).map(GroupId).collect();
        self.add(&partial, Groups::Ids(&ids), total);
        self.held_max = 2 * held(self);
        self.kept_bytes = (self.values.held() + self.centroids.held()) * size_of::<f64>();
        Ok(())
    }
}

impl TakenDigests {
    /// True if no group has more than `size` values, and none a digest.
    fn is_exact(&self, size: usize) -> bool {
        self.centroids.values.is_empty() && self.values.groups().all(|group| group.len() <= size)
    }

    /// The same with digests of all groups that have more than `size` values.
    fn condensed(mut self, size: usize) -> Self {
        let mut values = Vec::new();
        let mut centroids = Vec::new();
        let mut ends = (vec![0], vec![0]);
        let mut merged = Vec::new();
        let places: Vec<_> = self.values.groups().zip(self.centroids.groups()).collect();
        for (of_values, of_centroids) in places {
            let waiting = &mut self.values.values[of_values];
            let held = &self.centroids.values[of_centroids];
            match held.is_empty() && waiting.len() <= size {
                true => values.extend_from_slice(waiting),
                false => {
                    merge(waiting, held, &mut merged);
                    condense(&merged, size, &mut centroids);
                }
            }
            ends.0.push(values.len());
            ends.1.push(centroids.len());
        }
        Self {
            values: ByGroup {
                starts: ends.0,
                values,
            },
            centroids: ByGroup {
                starts: ends.1,
                values: centroids,
            },
        }
    }
}

/// All values and centroids of a group in order, into `merged`.
fn merge(values: &mut [i64], centroids: &[f64], merged: &mut Vec<Centroid>) {
    values.sort_unstable();
    let pairs = centroids.chunks_exact(2);
    let mut held: Vec<_> = pairs.map(|pair| Centroid::new(pair[0], pair[1])).collect();
    // One list or few, each in order.
    held.sort_by_key(|centroid| Float64Type::word(centroid.mean));
    merged.clear();
    merged.reserve(held.len() + values.len());
    let one = |word: &i64| Centroid::new(Float64Type::value(*word), 1.0);
    let mut below = 0;
    for centroid in held {
        let word = Float64Type::word(centroid.mean);
        let next = below
            + values[below..]
                .iter()
                .take_while(|one| **one < word)
                .count();
        merged.extend(values[below..next].iter().map(one));
        merged.push(centroid);
        below = next;
    }
    merged.extend(values[below..].iter().map(one));
}

/// A centroid that begins at the fraction `from` of all values may reach up to this fraction: a step of 1 / `size` further on a
/// scale of square roots.
fn reach(from: f64, size: usize) -> f64 {
    let scaled = match from < 0.5 {
        true => (from / 2.0).sqrt(),
        false => 1.0 - ((1.0 - from) / 2.0).sqrt(),
    };
    let end = (scaled + 1.0 / size as f64).min(1.0);
    match end < 0.5 {
        true => 2.0 * end * end,
        false => 1.0 - 2.0 * (1.0 - end) * (1.0 - end),
    }
}

/// Appends the digest of `merged`, which are in order, to `centroids`.
fn condense(merged: &[Centroid], size: usize, centroids: &mut Vec<f64>) {
    let count: f64 = merged.iter().map(|centroid| centroid.weight).sum();
    let mut below = 0.0;
    let mut at = 0;
    while at < merged.len() {
        let first = at;
        // The least and the greatest stay alone.
        let is_end = first == 0 || first == merged.len() - 1;
        let limit = reach(below / count, size) * count;
        below += merged[at].weight;
        at += 1;
        while !is_end && at < merged.len() - 1 && below + merged[at].weight <= limit {
            if !merged[first].mixes_with(merged[at]) {
                break;
            }
            below += merged[at].weight;
            at += 1;
        }
        let centroid = mean(&merged[first..at]);
        centroids.extend([centroid.mean, centroid.weight]);
    }
}

impl Centroid {
    fn new(mean: f64, weight: f64) -> Self {
        Self { mean, weight }
    }

    /// True if both have a mean.
    fn mixes_with(self, other: Self) -> bool {
        let same = Float64Type::word(self.mean) == Float64Type::word(other.mean);
        same || self.mean.is_finite() && other.mean.is_finite()
    }
}

/// One centroid for neighbouring ones.
fn mean(of: &[Centroid]) -> Centroid {
    let (low, high) = (of[0].mean, of[of.len() - 1].mean);
    let weight = of.iter().map(|centroid| centroid.weight).sum();
    if low == high || !low.is_finite() {
        return Centroid { mean: low, weight };
    }
    let sum: f64 = of.iter().map(|one| one.mean * one.weight).sum();
    let mean = match sum.is_finite() {
        true => (sum / weight).clamp(low, high),
        // The sum of the greatest floats is none.
        false => low / 2.0 + high / 2.0,
    };
    Centroid { mean, weight }
}

/// What a `fraction` of the values in `merged`, which are in order, lies below. A centroid lies at the middle of its places.
fn estimate(merged: &[Centroid], fraction: f64) -> f64 {
    let count: f64 = merged.iter().map(|centroid| centroid.weight).sum();
    let wanted = fraction * (count - 1.0);
    let mut below = 0.0;
    let mut last: Option<(f64, f64)> = None;
    for centroid in merged {
        let place = below + (centroid.weight - 1.0) / 2.0;
        if place >= wanted {
            return match last {
                Some((low_place, low)) if place > wanted => {
                    let weight = (wanted - low_place) / (place - low_place);
                    between(low, centroid.mean, weight)
                }
                _ => centroid.mean,
            };
        }
        below += centroid.weight;
        last = Some((place, centroid.mean));
    }
    last.expect("a group with values").1
}

impl<E: Float> GroupStates for TDigests<E> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        let values = values_of::<E::Native>(&columns[0])?;
        self.groups = total.max(self.groups);
        let word = |value| Float64Type::word(E::wide(value));
        self.values.push(&values, &rows, groups, word);
        self.condense_if_many()
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.add(partial, groups, total);
        self.condense_if_many()
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let mut held = self.take(total);
        if !held.is_exact(self.size) {
            held = held.condensed(self.size);
        }
        let values = held.values.into_lists::<Int64Type>()?;
        Ok(vec![values, held.centroids.into_lists::<Float64Type>()?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let TakenDigests {
            mut values,
            centroids,
        } = self.take(total);
        let places: Vec<_> = values.groups().zip(centroids.groups()).collect();
        let has_values = places.iter();
        let has_values =
            has_values.map(|(values, centroids)| !(values.is_empty() && centroids.is_empty()));
        let has_values = has_values.collect();
        let mut merged = Vec::new();
        let mut found = vec![Vec::with_capacity(places.len()); self.fractions.len()];
        for (of_values, of_centroids) in places {
            let waiting = &mut values.values[of_values];
            let held = &centroids.values[of_centroids];
            if !held.is_empty() {
                merge(waiting, held, &mut merged);
            }
            for (fraction, found) in self.fractions.iter().zip(&mut found) {
                found.push(match (waiting.is_empty(), held.is_empty()) {
                    (true, true) => E::Native::default(),
                    (false, true) => {
                        E::narrow(at::<Float64Type>(waiting, Quantile::Fraction(*fraction)))
                    }
                    _ => E::narrow(estimate(&merged, *fraction)),
                });
            }
        }
        self.parts
            .result::<E::Native>(found, has_values, &self.data_type)
    }

    fn bytes(&self) -> usize {
        let gathered = self.values.bytes(self.groups) + self.centroids.bytes(self.groups);
        gathered + self.kept_bytes
    }

    fn appended_bytes(&self) -> usize {
        self.bytes()
    }
}
