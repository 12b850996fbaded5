//! median(x) and percentile_cont(x, p): exact, from all values of a group.
//!
//! In: floats, for the median decimals, too (the host casts others). Out: the same type, NULL without values.
//! Partial: a list per group; the lists of a batch share one buffer.
//! Invariant: values meet their group when they are drained (`gathered`). All NaN are one value and the greatest,
//! -0.0 comes before 0.0.
//! Not here: distinct values, approximations (`digest`).

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow::datatypes::{Float16Type, Float32Type, Float64Type};

use super::element::{Element, Float, Word};
use super::fixed::{column_of, values_of};
use super::gathered::Gathered;
use super::native::native;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// What a share between two values is rounded down to, as the host does.
const SHARE_STEPS: f64 = 1e6;

/// The middle value of a column of `input_type`, or the mean of both; `None` if it is not native.
pub fn median(name: &str, input_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    match input_type {
        DataType::Float16 => of::<Float16Type>(name, input_type, middle::<Float16Type>),
        DataType::Float32 => of::<Float32Type>(name, input_type, middle::<Float32Type>),
        DataType::Float64 => of::<Float64Type>(name, input_type, middle::<Float64Type>),
        DataType::Decimal32(..) => of::<Decimal32Type>(name, input_type, middle::<Decimal32Type>),
        DataType::Decimal64(..) => of::<Decimal64Type>(name, input_type, middle::<Decimal64Type>),
        DataType::Decimal128(..) => {
            of::<Decimal128Type>(name, input_type, middle::<Decimal128Type>)
        }
        DataType::Decimal256(..) => {
            of::<Decimal256Type>(name, input_type, middle::<Decimal256Type>)
        }
        _ => None,
    }
}

/// The value that a `share` of a column of `input_type` lies below, interpolated; `None` if it is not native.
pub fn percentile(name: &str, share: f64, input_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    assert!((0.0..=1.0).contains(&share), "a share of {share}");
    macro_rules! float {
        ($float:ty) => {
            of::<$float>(name, input_type, move |values| at::<$float>(values, share))
        };
    }
    match input_type {
        DataType::Float16 => float!(Float16Type),
        DataType::Float32 => float!(Float32Type),
        DataType::Float64 => float!(Float64Type),
        _ => None,
    }
}

/// An aggregate whose result `pick` finds among a group's values, of which there is at least one.
fn of<E: Element>(
    name: &str,
    input_type: &DataType,
    pick: impl Fn(&mut [Word<E>]) -> E::Native + Send + Sync + 'static,
) -> Option<Arc<dyn Aggregate>> {
    let pick: Pick<E> = Arc::new(pick);
    let data_type = input_type.clone();
    Some(native(name, input_type, move || Values::<E> {
        data_type: data_type.clone(),
        pick: Arc::clone(&pick),
        gathered: Gathered::new(),
        groups: 0,
    }))
}

type Pick<E> =
    Arc<dyn Fn(&mut [Word<E>]) -> <E as ArrowPrimitiveType>::Native + Send + Sync + 'static>;

fn middle<E: Element>(values: &mut [Word<E>]) -> E::Native {
    let odd = values.len() % 2 == 1;
    let (below, high, _) = values.select_nth_unstable(values.len() / 2);
    match below.iter().max() {
        Some(low) if !odd => E::between(E::value(*low), E::value(*high)),
        _ => E::value(*high),
    }
}

/// What a `share` of `values`, at least one, lies below, interpolated.
pub(super) fn at<E: Float>(values: &mut [Word<E>], share: f64) -> E::Native {
    let position = share * (values.len() - 1) as f64;
    let (_, low, above) = values.select_nth_unstable(position.floor() as usize);
    let low = E::value(*low);
    let high = match above.iter().min() {
        Some(high) if position.fract() > 0.0 => E::value(*high),
        _ => return low,
    };
    let weight = (position.fract() * SHARE_STEPS).floor() / SHARE_STEPS;
    E::narrow(between(E::wide(low), E::wide(high), weight))
}

/// What lies a `weight` of the way from `low` to `high`.
pub(super) fn between(low: f64, high: f64, weight: f64) -> f64 {
    match low == high {
        // Two infinities have no difference.
        true => low,
        false => low + (high - low) * weight,
    }
}

struct Values<E: Element> {
    data_type: DataType,
    pick: Pick<E>,
    gathered: Gathered<E::Words>,
    groups: usize,
}

impl<E: Element> GroupStates for Values<E> {
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
        self.gathered.push(&values, &rows, groups, E::word);
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.groups = total.max(self.groups);
        self.gathered.push_lists(&partial[0], groups);
        Ok(())
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        self.groups = 0;
        let values = self.gathered.by_group(total);
        Ok(vec![values.into_lists::<E::Words>()?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.groups = 0;
        let mut values = self.gathered.by_group(total);
        let groups: Vec<_> = values.groups().collect();
        let has_values = groups.iter().map(|group| !group.is_empty());
        let nulls = NullBuffer::new(has_values.collect::<BooleanBuffer>());
        let picked = groups.into_iter().map(|group| match group.is_empty() {
            true => E::Native::default(),
            false => (self.pick)(&mut values.values[group]),
        });
        let picked: Vec<_> = picked.collect();
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        column_of(picked, nulls, &self.data_type)
    }

    fn bytes(&self) -> usize {
        self.gathered.bytes(self.groups)
    }

    fn appended_bytes(&self) -> usize {
        self.bytes()
    }
}
