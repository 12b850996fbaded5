//! Aggregates that DuckDB has and DataFusion does not: `product`, `kahan_sum`, `favg`, `skewness`, `kurtosis`, `entropy`,
//! `histogram`, `mad`, and `percentile_disc` over windows.
//!
//! In: values; NULLs do not count. Out: a number, a value, a list of values or a map.
//! Invariant: merged states give what one state of all rows gives, but for the last digits of floats.
//! Not here: aggregates that others stand for (standing.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Literal;
use grouse_groupby::keys::decoded;

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::frequent::Counts;
use crate::functions::aggregates::moments::{Compensated, Fold, Moments, Product};

/// A power of two by which differences of any two numbers, and differences of these, fit.
const HEADROOM: f64 = 4.0;

/// Which statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Statistic {
    Product,
    CompensatedSum,
    CompensatedMean,
    Skewness,
    Kurtosis,
    KurtosisPopulation,
    Entropy,
    Histogram,
    Deviation,
    Quantile,
}

/// An aggregate of this file.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Statistics {
    name: &'static str,
    statistic: Statistic,
    signature: Signature,
}

/// All aggregates of this file.
pub(in crate::functions) fn functions() -> Vec<AggregateUDF> {
    let all = [
        ("product", Statistic::Product),
        ("fsum", Statistic::CompensatedSum),
        ("kahan_sum", Statistic::CompensatedSum),
        ("sumkahan", Statistic::CompensatedSum),
        ("favg", Statistic::CompensatedMean),
        ("skewness", Statistic::Skewness),
        ("kurtosis", Statistic::Kurtosis),
        ("kurtosis_pop", Statistic::KurtosisPopulation),
        ("entropy", Statistic::Entropy),
        ("histogram", Statistic::Histogram),
        ("mad", Statistic::Deviation),
    ];
    let function = |(name, statistic)| {
        let arguments = if statistic == Statistic::Quantile {
            2
        } else {
            1
        };
        AggregateUDF::from(Statistics {
            name,
            statistic,
            signature: match statistic.is_of_floats() {
                true => Signature::exact(vec![DataType::Float64], Volatility::Immutable),
                false => Signature::any(arguments, Volatility::Immutable),
            },
        })
    };
    all.map(function).into()
}

/// True of `product`.
pub(crate) fn is_product(function: &AggregateUDF) -> bool {
    let known = function.inner().downcast_ref::<Statistics>();
    known.is_some_and(|known| known.statistic == Statistic::Product)
}

/// `percentile_disc` over a window.
pub(in crate::functions) fn quantile() -> AggregateUDF {
    AggregateUDF::from(Statistics {
        name: "percentile_disc",
        statistic: Statistic::Quantile,
        signature: Signature::any(2, Volatility::Immutable),
    })
}

impl Statistic {
    /// True if it is a number made of numbers.
    fn is_of_floats(self) -> bool {
        matches!(
            self,
            Statistic::Product
                | Statistic::CompensatedSum
                | Statistic::CompensatedMean
                | Statistic::Skewness
                | Statistic::Kurtosis
                | Statistic::KurtosisPopulation
                | Statistic::Deviation
        )
    }

    /// What numbers are added up in, where that is all it takes.
    fn fold(self) -> Option<Box<dyn Fold>> {
        match self {
            Statistic::Product => Some(Box::new(Product::default())),
            Statistic::CompensatedSum => Some(Box::new(Compensated::sum())),
            Statistic::CompensatedMean => Some(Box::new(Compensated::mean())),
            Statistic::Skewness => Some(Box::new(Moments::skewness())),
            Statistic::Kurtosis => Some(Box::new(Moments::kurtosis())),
            Statistic::KurtosisPopulation => Some(Box::new(Moments::kurtosis_population())),
            _ => None,
        }
    }

    fn result_type(self, value_type: &DataType) -> DataType {
        match self {
            Statistic::Quantile => decoded(value_type).clone(),
            Statistic::Histogram => histogram_type(decoded(value_type)),
            _ => DataType::Float64,
        }
    }
}

fn histogram_type(value_type: &DataType) -> DataType {
    let entries = vec![
        Field::new("key", value_type.clone(), false),
        Field::new("value", DataType::UInt64, true),
    ];
    let entries = Field::new("entries", DataType::Struct(entries.into()), false);
    DataType::Map(Arc::new(entries), false)
}

impl Statistics {
    /// The fraction of a quantile, counted from the end that the order or a minus says.
    fn fraction(&self, args: &AccumulatorArgs) -> Result<f64> {
        if self.statistic != Statistic::Quantile {
            return Ok(0.0);
        }
        let literal = args
            .exprs
            .get(1)
            .and_then(|fraction| fraction.downcast_ref::<Literal>());
        let fraction = literal.map(|literal| literal.value().cast_to(&DataType::Float64));
        let fraction = match fraction.transpose()? {
            Some(ScalarValue::Float64(Some(fraction))) if (-1.0..=1.0).contains(&fraction) => {
                fraction
            }
            _ => {
                return plan_err!(
                    "{} takes a share between 0 and 1 as its second argument, e.g. {0}(x, 0.5)",
                    self.name
                );
            }
        };
        let is_descending = args
            .order_bys
            .first()
            .is_some_and(|key| key.options.descending);
        // DataFusion turns an order around that it would like to share with another aggregate.
        Ok(if is_descending != args.is_reversed {
            -fraction
        } else {
            fraction
        })
    }

    fn value_counts(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value_type = args.exprs[0].data_type(args.schema)?;
        Ok(Box::new(ValueCounts {
            counts: Counts::of(&value_type),
            statistic: self.statistic,
            is_distinct: args.is_distinct,
            fraction: self.fraction(args)?,
            value_type: decoded(&value_type).clone(),
        }))
    }
}

impl AggregateUDFImpl for Statistics {
    function_methods!();

    fn name(&self) -> &str {
        self.name
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.statistic.result_type(&types[0]))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.statistic.fold() {
            Some(fold) if !args.is_distinct => Ok(Box::new(Folded(fold))),
            _ => self.value_counts(&args),
        }
    }

    /// Values leave a window as they came, which counts allow and sums of floats do not.
    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.value_counts(&args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name, data_type: &DataType| {
            let items = Arc::new(Field::new_list_field(data_type.clone(), true));
            let name = format_state_name(args.name, name);
            Arc::new(Field::new(name, DataType::List(items), true))
        };
        if self.statistic.fold().is_some() && !args.is_distinct {
            return Ok(vec![list("numbers", &DataType::Float64)]);
        }
        Ok(vec![
            list("values", decoded(args.input_fields[0].data_type())),
            list("counts", &DataType::Int64),
        ])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn supports_within_group_clause(&self) -> bool {
        self.statistic == Statistic::Quantile
    }
}

/// Numbers that are added up as they come.
#[derive(Debug)]
struct Folded(Box<dyn Fold>);

impl Accumulator for Folded {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let numbers = cast(&values[0], &DataType::Float64)?;
        for number in numbers.as_primitive::<Float64Type>().iter().flatten() {
            self.0.add(number);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_list::<i32>().iter().flatten() {
            self.0.merge(state.as_primitive::<Float64Type>().values());
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let numbers = self.0.state().into_iter().map(ScalarValue::from);
        let numbers: Vec<ScalarValue> = numbers.collect();
        let list = ScalarValue::new_list(&numbers, &DataType::Float64, true);
        Ok(vec![ScalarValue::List(list)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        finished(self.0.as_ref())
    }

    fn size(&self) -> usize {
        size_of_val(self) + size_of::<Moments>()
    }
}

/// Counts the rows of each value.
#[derive(Debug)]
struct ValueCounts {
    counts: Counts,
    statistic: Statistic,
    is_distinct: bool,
    fraction: f64,
    value_type: DataType,
}

impl ValueCounts {
    /// The values from the least on with how often each counts.
    fn counted(&self) -> Vec<(&ScalarValue, i64)> {
        let mut all = self.counts.sorted();
        if self.is_distinct {
            all.iter_mut().for_each(|(_, count)| *count = 1);
        }
        all
    }

    fn quantile(&self) -> Result<ScalarValue> {
        let counted = self.counted();
        let rows: i64 = counted.iter().map(|(_, count)| count).sum();
        let place = place(self.fraction.abs(), rows);
        let place = if self.fraction.is_sign_negative() {
            rows - 1 - place
        } else {
            place
        };
        match at(&counted, place) {
            Some(value) => Ok(value.clone()),
            None => ScalarValue::try_new_null(&self.value_type),
        }
    }

    fn histogram(&self) -> Result<ScalarValue> {
        let DataType::Map(entries, _) = histogram_type(&self.value_type) else {
            return exec_err!("a histogram is a map");
        };
        let counted = self.counted();
        if counted.is_empty() {
            return ScalarValue::try_new_null(&histogram_type(&self.value_type));
        }
        let DataType::Struct(fields) = entries.data_type() else {
            return exec_err!("a map has entries");
        };
        let keys = ScalarValue::iter_to_array(counted.iter().map(|(value, _)| (*value).clone()))?;
        let counts = counted
            .iter()
            .map(|(_, count)| ScalarValue::UInt64(Some(*count as u64)));
        let counts = ScalarValue::iter_to_array(counts)?;
        let columns = vec![cast(&keys, fields[0].data_type())?, counts];
        let structs =
            datafusion::arrow::array::StructArray::try_new(fields.clone(), columns, None)?;
        let offsets = datafusion::arrow::buffer::OffsetBuffer::from_lengths([structs.len()]);
        let map =
            datafusion::arrow::array::MapArray::try_new(entries, offsets, structs, None, false)?;
        Ok(ScalarValue::Map(Arc::new(map)))
    }

    /// Bits that a value takes on average: 0 where there is none.
    fn entropy(&self) -> f64 {
        let counted = self.counted();
        let rows: i64 = counted.iter().map(|(_, count)| count).sum();
        let bits = counted.iter().map(|(_, count)| {
            let share = *count as f64 / rows as f64;
            share * share.log2()
        });
        // Of one value it is 0 and not -0.
        (0.0 - bits.sum::<f64>()).max(0.0)
    }

    /// The median of the distances from the median.
    fn deviation(&self) -> Result<Option<f64>> {
        let counted = self.counted();
        let mut numbers = Vec::with_capacity(counted.len());
        for (value, count) in counted {
            if let ScalarValue::Float64(Some(number)) = value.cast_to(&DataType::Float64)? {
                numbers.push((number, count));
            }
        }
        let deviation = median_distance(numbers.clone());
        if deviation.is_none_or(f64::is_finite) {
            return Ok(deviation);
        }
        // Numbers of both signs may be farther apart than the greatest one.
        let scaled = |(number, _): &mut (f64, i64)| *number /= HEADROOM;
        numbers.iter_mut().for_each(scaled);
        Ok(median_distance(numbers).map(|deviation| deviation * HEADROOM))
    }

    fn folded(&self, mut fold: Box<dyn Fold>) -> Result<ScalarValue> {
        for (value, count) in self.counted() {
            if let ScalarValue::Float64(Some(number)) = value.cast_to(&DataType::Float64)? {
                (0..count).for_each(|_| fold.add(number));
            }
        }
        finished(fold.as_ref())
    }
}

/// The result of numbers that were added up; an error where it has to be finite and is not.
fn finished(fold: &dyn Fold) -> Result<ScalarValue> {
    let result = fold.result();
    match result.is_some_and(|result| !result.is_finite()) && fold.must_be_finite() {
        true => exec_err!("the powers of the numbers are beyond the range of DOUBLE"),
        false => Ok(ScalarValue::Float64(result)),
    }
}

/// The median of the distances from the median, of sorted numbers.
fn median_distance(mut numbers: Vec<(f64, i64)>) -> Option<f64> {
    let middle = median(&numbers)?;
    let distance = |(number, _): &mut (f64, i64)| *number = (*number - middle).abs();
    numbers.iter_mut().for_each(distance);
    numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    median(&numbers)
}

fn median(numbers: &[(f64, i64)]) -> Option<f64> {
    let rows: i64 = numbers.iter().map(|(_, count)| count).sum();
    if rows == 0 {
        return None;
    }
    let (low, high) = (at(numbers, (rows - 1) / 2)?, at(numbers, rows / 2)?);
    Some(low + (high - low) / 2.0)
}

/// The value in the row of this number.
fn at<T: Copy>(counted: &[(T, i64)], place: i64) -> Option<T> {
    let mut before = 0;
    let found = counted.iter().find(|(_, count)| {
        before += count;
        place < before
    });
    found.map(|(value, _)| *value)
}

/// The row of a quantile that is one of the values: the first at which so many have come.
fn place(fraction: f64, rows: i64) -> i64 {
    let after = (rows as f64 - fraction * rows as f64).floor() as i64;
    (rows - after).max(1) - 1
}

impl Accumulator for ValueCounts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.counts.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.counts.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.counts.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.counts.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match (self.statistic, self.statistic.fold()) {
            (_, Some(fold)) => self.folded(fold),
            (Statistic::Quantile, _) => self.quantile(),
            (Statistic::Histogram, _) => self.histogram(),
            (Statistic::Deviation, _) => Ok(ScalarValue::Float64(self.deviation()?)),
            _ => Ok(ScalarValue::Float64(Some(self.entropy()))),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.size()
    }
}
