//! States of `avg`, `median` and `percentile_cont` over dates, times and intervals.
//!
//! In: such values. Out: a date's middle is a TIMESTAMP, all others keep their type. The mean of intervals is their sum by their
//! number, of a part of a month 30 days being one.
//! Invariant: computed in integers of the result's unit; halves of a unit are rounded away from zero.
//! Not here: grouped averages and medians of dates and times, which are composed (optimizer/fixes/grouping/composed.rs).

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::types::IntervalMonthDayNanoType;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalUnit,
};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{HashMap, Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use grouse_groupby::states::{Quantile, RoundedMean};

use crate::functions::aggregates::overflow::overflow;
use crate::functions::scalar::interval_of_parts;

/// The type of intervals.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The type of a sum of parts.
const SUM: DataType = DataType::Decimal128(38, 0);

/// The values of a group or frame as integers, in the order of its rows.
#[derive(Debug)]
pub(super) struct Middle {
    quantile: Quantile,
    is_distinct: bool,
    result: DataType,
    values: VecDeque<i64>,
}

impl Middle {
    /// Of `values` that have the `result` type, or are cast to it.
    pub(super) fn new(quantile: Quantile, is_distinct: bool, result: DataType) -> Self {
        Self {
            quantile,
            is_distinct,
            result,
            values: VecDeque::new(),
        }
    }

    /// The columns of its state.
    pub(super) fn state_fields(args: &StateFieldsArgs) -> Vec<FieldRef> {
        let values = Field::new_list_field(DataType::Int64, true);
        let name = format_state_name(args.name, "values");
        vec![Field::new_list(name, values, true).into()]
    }

    fn integers(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(cast(&cast(values, &self.result)?, &DataType::Int64)?)
    }

    fn middle(&self) -> Option<i64> {
        let mut values: Vec<i64> = self.values.iter().copied().collect();
        values.sort_unstable();
        if self.is_distinct {
            values.dedup();
        }
        let fraction = match self.quantile {
            Quantile::Median => 0.5,
            Quantile::Fraction(fraction) => fraction,
            Quantile::FractionFromTop(fraction) => 1.0 - fraction,
        };
        let place = fraction * values.len().checked_sub(1)? as f64;
        let low = *values.get(place.floor() as usize)?;
        let high = *values.get(place.ceil() as usize)?;
        let distance = i128::from(high) - i128::from(low);
        let part = distance as f64 * place.fract();
        let below = i128::from(low) + part.floor() as i128;
        let is_above = part.fract() > 0.5 || part.fract() == 0.5 && below >= 0;
        i64::try_from(below + i128::from(is_above)).ok()
    }
}

impl Accumulator for Middle {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let integers = self.integers(&columns[0])?;
        let integers = integers.as_primitive::<Int64Type>();
        self.values.extend(integers.iter().flatten());
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        // Rows leave a frame in the order in which they came.
        let left = columns[0].len() - columns[0].logical_null_count();
        self.values.drain(..left.min(self.values.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            let values = values.as_primitive::<Int64Type>();
            self.values.extend(values.iter().flatten());
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = Int64Array::from_iter_values(std::mem::take(&mut self.values));
        let values = SingleRowListArrayBuilder::new(Arc::new(values));
        Ok(vec![values.build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::Int64(self.middle()).cast_to(&self.result)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<i64>()
    }
}

/// The mean of intervals, in months, days and nanoseconds, or of dates and times, which have one part.
#[derive(Debug)]
pub(super) struct TemporalMean {
    aggregate: String,
    result: DataType,
    sums: [i128; 3],
    count: i64,
    /// How often each value is there, if it counts once.
    distinct: Option<HashMap<[i64; 3], u64>>,
}

impl TemporalMean {
    pub(super) fn new(args: &AccumulatorArgs) -> Self {
        Self {
            aggregate: args.name.to_owned(),
            result: args.return_type().clone(),
            sums: [0; 3],
            count: 0,
            distinct: args.is_distinct.then(HashMap::default),
        }
    }

    /// The columns of its state.
    pub(super) fn state_fields(args: &StateFieldsArgs) -> Vec<FieldRef> {
        let field = |part, of| Field::new(format_state_name(args.name, part), of, true).into();
        let sums = ["months", "days", "nanos"].map(|part| field(part, SUM));
        let count = field("count", DataType::Int64);
        sums.into_iter().chain([count]).collect()
    }

    fn parts(&self, values: &ArrayRef) -> Result<Vec<[i64; 3]>> {
        let values = cast(values, &self.result)?;
        if let Some(intervals) = values.as_primitive_opt::<IntervalMonthDayNanoType>() {
            let parts = intervals.iter().flatten();
            let parts = parts.map(|one| [one.months.into(), one.days.into(), one.nanoseconds]);
            return Ok(parts.collect());
        }
        let integers = cast(&values, &DataType::Int64)?;
        let integers = integers.as_primitive::<Int64Type>().iter().flatten();
        Ok(integers.map(|integer| [integer, 0, 0]).collect())
    }

    fn add(&mut self, parts: [i64; 3], times: i64) {
        for (sum, part) in self.sums.iter_mut().zip(parts) {
            *sum += i128::from(part) * i128::from(times);
        }
        self.count += times;
    }

    fn mean(&self) -> Option<ScalarValue> {
        let count = self.count;
        if self.result == INTERVAL {
            let [months, days, nanos] = self.sums;
            let share = |sum: i128| sum as f64 / count as f64;
            let nanos = nanos.mean(0, 1, count)?;
            let mean = interval_of_parts(share(months), share(days), nanos)?;
            return Some(ScalarValue::IntervalMonthDayNano(Some(mean)));
        }
        let mean = i64::try_from(self.sums[0].mean(0, 1, count)?).ok()?;
        ScalarValue::Int64(Some(mean)).cast_to(&self.result).ok()
    }
}

impl Accumulator for TemporalMean {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for parts in self.parts(&columns[0])? {
            let is_new = self.distinct.as_mut().is_none_or(|counts| {
                let count = counts.entry(parts).or_insert(0);
                *count += 1;
                *count == 1
            });
            if is_new {
                self.add(parts, 1);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for parts in self.parts(&columns[0])? {
            let is_last = self.distinct.as_mut().is_none_or(|counts| {
                let count = counts.entry(parts).or_insert(1);
                *count -= 1;
                *count == 0
            });
            if is_last {
                self.add(parts, -1);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (sum, column) in self.sums.iter_mut().zip(states) {
            let sums = column.as_primitive::<Decimal128Type>().iter().flatten();
            *sum += sums.sum::<i128>();
        }
        let counts = states[3].as_primitive::<Int64Type>().iter().flatten();
        self.count += counts.sum::<i64>();
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if self.distinct.is_some() {
            return not_impl_err!("avg of DISTINCT intervals beside other aggregates");
        }
        let sums = self
            .sums
            .map(|sum| ScalarValue::Decimal128(Some(sum), 38, 0));
        let count = ScalarValue::Int64(Some(self.count));
        Ok(sums.into_iter().chain([count]).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.count {
            0 => ScalarValue::try_new_null(&self.result),
            _ => self
                .mean()
                .ok_or_else(|| overflow(&self.aggregate, &self.result)),
        }
    }

    fn size(&self) -> usize {
        let counts = self.distinct.as_ref().map_or(0, HashMap::capacity);
        size_of_val(self) + counts * size_of::<([i64; 3], u64)>()
    }
}
