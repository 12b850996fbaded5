//! median(x) and percentile_cont(x, p): exact, from all values of a group; several of the same values as a struct.
//!
//! In: floats, for the median decimals, too (DataFusion casts others). Out: the same type, NULL without values.
//! Partial: a list per group; the lists of a batch share one buffer.
//! Invariant: values meet their group when they are drained (`values_by_group`). All NaN are one value and the greatest,
//! -0.0 comes before 0.0.
//! Not here: distinct values, approximations (`t_digest`).

use std::hash::{Hash, Hasher};
use std::iter::repeat_n;
use std::mem;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, Float16Type, Float32Type, Float64Type};
use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};

use super::fixed::{column_of, values_of};
use super::native::native;
use super::number::{Float, Number, Word};
use super::rows::Rows;
use super::struct_columns::{in_struct, struct_of};
use super::values_by_group::ValuesByGroup;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// The middle value of a column of `input_type`, or the mean of both; `None` if it is not native.
pub fn median(name: &str, input_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    macro_rules! decimal {
        ($decimal:ty) => {
            Some(of::<$decimal>(
                name,
                input_type,
                Parts::One,
                vec![Box::new(middle::<$decimal>)],
            ))
        };
    }
    match input_type {
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        _ => exact(name, (&[Quantile::Median], Parts::One), input_type),
    }
}

/// A quantile of a column of `input_type`, interpolated; `None` if it is not native.
pub fn percentile(
    name: &str,
    quantile: Quantile,
    input_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let fraction = quantile.fraction();
    assert!((0.0..=1.0).contains(&fraction), "a fraction of {fraction}");
    exact(name, (&[quantile], Parts::One), input_type)
}

/// What is asked of a group's values. A fraction is a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantile {
    /// The middle one, or the mean of both.
    Median,
    /// What a fraction of them lies below, interpolated.
    Fraction(f64),
    /// The same of the values in descending order.
    FractionFromTop(f64),
}

impl Eq for Quantile {}

impl Hash for Quantile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        // Equal fractions have equal bits, but for two zeros.
        (self.fraction() + 0.0).to_bits().hash(state);
    }
}

impl Quantile {
    fn pick<E: Float>(self) -> Pick<E> {
        match self {
            Self::Median => Box::new(middle::<E>),
            Self::Fraction(_) | Self::FractionFromTop(_) => {
                Box::new(move |values| at::<E>(values, self))
            }
        }
    }

    /// The fraction of the values that lies below.
    pub fn fraction(self) -> f64 {
        match self {
            Self::Median => 0.5,
            Self::Fraction(fraction) => fraction,
            Self::FractionFromTop(fraction) => 1.0 - fraction,
        }
    }
}

/// Quantiles of a column of floats; `None` if it is another one.
pub(super) fn exact(
    name: &str,
    (all, parts): (&[Quantile], Parts),
    input_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    macro_rules! float {
        ($float:ty) => {{
            let picks = all.iter().map(|one| one.pick::<$float>());
            Some(of::<$float>(name, input_type, parts, picks.collect()))
        }};
    }
    match input_type {
        DataType::Float16 => float!(Float16Type),
        DataType::Float32 => float!(Float32Type),
        DataType::Float64 => float!(Float64Type),
        _ => None,
    }
}

/// An aggregate whose results `picks` find among a group's values, of which there is at least one.
fn of<E: Number>(
    name: &str,
    input_type: &DataType,
    parts: Parts,
    picks: Vec<Pick<E>>,
) -> Arc<dyn Aggregate> {
    let result_type = parts.result_type(input_type, picks.len());
    let (picks, data_type) = (Arc::new(picks), input_type.clone());
    native(name, &result_type, move || Values::<E> {
        data_type: data_type.clone(),
        parts,
        picks: Arc::clone(&picks),
        values: ValuesByGroup::new(),
        groups: 0,
    })
}

/// Whether a result is a column or a struct of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    One,
    Struct,
}

impl Parts {
    /// The type of so many values of this type.
    pub(super) fn result_type(self, data_type: &DataType, parts: usize) -> DataType {
        match self {
            Self::One => data_type.clone(),
            Self::Struct => struct_of(repeat_n(data_type, parts)),
        }
    }

    /// The result, NULL where there are no values, of values picked for each part.
    pub(super) fn result<N: ArrowNativeType>(
        self,
        picked: Vec<Vec<N>>,
        has_values: BooleanBuffer,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let nulls = NullBuffer::new(has_values);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let parts = picked.into_iter();
        let parts = parts.map(|values| column_of(values, nulls.clone(), data_type));
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        match self {
            Self::One => Ok(parts.swap_remove(0)),
            Self::Struct => in_struct(parts),
        }
    }
}

type Pick<E> = Box<dyn Fn(&mut [Word<E>]) -> <E as ArrowPrimitiveType>::Native + Send + Sync>;

fn middle<E: Number>(values: &mut [Word<E>]) -> E::Native {
    let odd = values.len() % 2 == 1;
    let (below, high, _) = values.select_nth_unstable(values.len() / 2);
    match below.iter().max() {
        Some(low) if !odd => E::between(E::value(*low), E::value(*high)),
        _ => E::value(*high),
    }
}

/// The quantile of `values`, at least one, interpolated.
pub(super) fn at<E: Float>(values: &mut [Word<E>], quantile: Quantile) -> E::Native {
    let last = values.len() - 1;
    let (fraction, is_from_top) = match quantile {
        Quantile::Median => (0.5, false),
        Quantile::Fraction(fraction) => (fraction, false),
        Quantile::FractionFromTop(fraction) => (fraction, true),
    };
    // Not `1 - fraction` of them: the difference is rounded, and so would be the place.
    let position = fraction * last as f64;
    let whole = position.floor() as usize;
    let place = if is_from_top { last - whole } else { whole };
    let (below, near, above) = values.select_nth_unstable(place);
    let next = match is_from_top {
        true => below.iter().max(),
        false => above.iter().min(),
    };
    match next {
        Some(next) if position.fract() > 0.0 => {
            let (near, next) = (E::value(*near), E::value(*next));
            E::narrow(between(E::wide(near), E::wide(next), position.fract()))
        }
        _ => E::value(*near),
    }
}

/// A quantile of some values, interpolated; `None` without values.
pub fn quantile_of(values: &[f64], quantile: Quantile) -> Option<f64> {
    let words = values.iter().map(|value| Float64Type::word(*value));
    let mut words: Vec<_> = words.collect();
    (!words.is_empty()).then(|| at::<Float64Type>(&mut words, quantile))
}

/// What lies a `weight` of the way from `low` to `high`, of which either may be the greater.
pub(super) fn between(low: f64, high: f64, weight: f64) -> f64 {
    match low == high {
        // Two infinities have no difference.
        true => low,
        false if (high - low).is_finite() => low + (high - low) * weight,
        // Parts of each fit where their distance does not.
        false => low * (1.0 - weight) + high * weight,
    }
}

struct Values<E: Number> {
    data_type: DataType,
    parts: Parts,
    picks: Arc<Vec<Pick<E>>>,
    values: ValuesByGroup<E::Words>,
    groups: usize,
}

impl<E: Number> GroupStates for Values<E> {
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
        self.values.push(&values, &rows, groups, E::word);
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.groups = total.max(self.groups);
        self.values.push_lists(&partial[0], groups);
        Ok(())
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        self.groups = 0;
        let values = self.values.by_group(total);
        Ok(vec![values.into_lists::<E::Words>()?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.groups = 0;
        let mut values = self.values.by_group(total);
        let groups: Vec<_> = values.groups().collect();
        let has_values = groups.iter().map(|group| !group.is_empty()).collect();
        let picked = self.picks.iter().map(|pick| {
            let groups = groups.iter().map(|group| match group.is_empty() {
                true => E::Native::default(),
                false => pick(&mut values.values[group.clone()]),
            });
            groups.collect()
        });
        let picked = picked.collect();
        self.parts
            .result::<E::Native>(picked, has_values, &self.data_type)
    }

    fn bytes(&self) -> usize {
        self.values.bytes(self.groups)
    }

    fn appended_bytes(&self) -> usize {
        self.bytes()
    }
}
