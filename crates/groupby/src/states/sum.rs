//! sum(x): integers, decimals, durations and months exactly, floats in Float64.
//!
//! In: the column as DataFusion coerced it, integers of fewer bits also as they are. Out: DataFusion's result type, NULL without values.
//! Invariant: a result that does not fit its type is an error; a sum that only passes such values
//! on its way is none, in whatever order states are merged.
//! Not here: intervals of days and smaller units (DataFusion's own states run for them), sums of distinct values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type, IntervalUnit, i256};

use super::fixed::{column_of, values_of};
use super::fold::Reduce;
use super::native::native;
use super::per_group::PerGroup;
use super::rows::Rows;
use super::validity::Validity;
use super::wide::{
    Fewer, NarrowDecimals, SumWidth, Summed, WideSums, limit_of, with_integers_summed, with_summed,
};
use super::{Aggregate, CodeSums, GroupStates, Groups, PreAggregated, PreAggregator};
use crate::error::{Error, Result};

/// `sum` of a column of `input_type`; `None` if it is not native.
pub fn sum(
    name: &str,
    input_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    if !sums_to(input_type, result_type) {
        return None;
    }
    macro_rules! wide {
        ($native:ty) => {{
            let (label, data_type) = (name.to_owned(), result_type.clone());
            let make = move || SumWide::<$native>::new(label.clone(), data_type.clone());
            Some(native(name, result_type, make))
        }};
    }
    with_summed!(input_type, result_type, wide, {
        Some(native(name, result_type, SumFloat::default))
    })
}

/// True if the result has the input's scale, and its width or a wider one.
fn sums_to(input: &DataType, result: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256, Duration, Interval};
    use DataType::{Int8, Int16, Int32, UInt8, UInt16, UInt32};
    match (input, result) {
        (Int8 | Int16 | Int32, DataType::Int64) | (UInt8 | UInt16 | UInt32, DataType::UInt64) => {
            true
        }
        (DataType::Int64 | DataType::UInt64 | DataType::Float64, _) => input == result,
        (Duration(_) | Interval(IntervalUnit::YearMonth), _) => input == result,
        (Decimal32(_, from), Decimal32(_, to))
        | (Decimal64(_, from), Decimal64(_, to))
        | (Decimal64(_, from) | Decimal128(_, from), Decimal128(_, to))
        | (Decimal256(_, from), Decimal256(_, to)) => from == to,
        _ => false,
    }
}

struct SumWide<T: Summed> {
    name: String,
    result_type: DataType,
    limit: Option<T::Sum>,
    sums: WideSums<T::Sum>,
    seen: Validity,
}

impl<T: Summed> SumWide<T> {
    fn new(name: String, result_type: DataType) -> Self {
        let limit = limit_of(&result_type);
        Self {
            name,
            result_type,
            limit,
            sums: WideSums::default(),
            seen: Validity::default(),
        }
    }
}

impl<T: Summed> GroupStates for SumWide<T> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.sums.grow(total);
        self.seen.note(&rows, total);
        let values = values_of::<T::Value>(&columns[0])?;
        self.sums.update::<T>(&rows, &values);
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(&partial[..1], None, groups);
        self.sums.grow(total);
        self.seen.note(&rows, total);
        self.sums.merge(&rows, &partial[0], &partial[1]);
        Ok(())
    }

    fn pre_aggregate(
        &self,
        columns: &[ArrayRef],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        by_code.wide::<T>(&columns[0])
    }

    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        let rows = pre_aggregated.rows();
        self.sums.grow(total);
        self.seen.note(&rows, total);
        self.sums.add_words(pre_aggregated);
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let nulls = self.seen.take(total);
        Ok(self.sums.take_partial(total, nulls).into())
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let nulls = self.seen.take(total);
        let (low, carry) = self.sums.take(total);
        let fits = self
            .limit
            .is_none_or(|limit| low.iter().all(|sum| sum.is_within(limit)));
        if !fits || !carry.is_empty() {
            return Err(overflow(&self.name, &self.result_type));
        }
        column_of(T::narrow(low), nulls, &self.result_type)
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.seen.bytes()
    }
}

fn overflow(name: &str, result_type: &DataType) -> Error {
    let remedy = match result_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => {
            format!("cast the argument to DECIMAL(76, {scale})")
        }
        DataType::Decimal256(..) => "cast the argument to DOUBLE".to_owned(),
        DataType::Duration(_) => {
            "sum a coarser unit, or sum it as BIGINT cast to DECIMAL".to_owned()
        }
        _ => "cast the argument to DECIMAL(38, 0)".to_owned(),
    };
    Error::Overflow {
        aggregate: name.to_owned(),
        data_type: result_type.to_string(),
        remedy,
    }
}

/// The sum of a column, in as many lanes as keep the adders busy.
pub(super) fn sum_floats(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    rest.iter().chain(&lanes).sum()
}

impl Reduce<f64> for f64 {
    fn of(values: &[f64]) -> f64 {
        sum_floats(values)
    }

    #[inline(always)]
    fn add(&mut self, value: f64) {
        *self += value;
    }

    #[inline(always)]
    fn merge(&mut self, other: f64) {
        *self += other;
    }
}

#[derive(Debug, Default)]
struct SumFloat {
    sums: PerGroup<f64>,
    seen: Validity,
}

impl GroupStates for SumFloat {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.seen.note(&rows, total);
        let values = columns[0].as_primitive::<Float64Type>().values();
        rows.fold(values, total, self.sums.grow(total));
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.update(partial, None, groups, total)
    }

    fn pre_aggregate(
        &self,
        columns: &[ArrayRef],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        Ok(Some(by_code.floats(&columns[0])))
    }

    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        let rows = pre_aggregated.rows();
        self.seen.note(&rows, total);
        let sums = self.sums.grow(total);
        rows.for_each(pre_aggregated.sums.floats(), |group, sum| {
            sums[group] += sum
        });
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.drain_final(total)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let nulls = self.seen.take(total);
        let sums = self.sums.take(total);
        Ok(Arc::new(Float64Array::new(sums.into(), nulls)))
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.seen.bytes()
    }
}
