//! The states of exact totals that rows may leave: one running total, the total of distinct values.
//!
//! In: argument columns or partial totals. Out: what an aggregate makes of totals (their sum, their mean), or partial
//! totals as `grouse_groupby`'s `sum` and `avg` have them.
//! Invariant: nothing is lost between update, merge, retract and evaluate; only `evaluate` can find an overflow. In windows
//! they are asked after each row, which they answer in a fraction of the time that states of groups take.
//! Not here: totals of groups (to_datafusion.rs); which state a query needs, see `sum.rs` and `avg.rs`.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Int64Type, IntervalUnit, IntervalYearMonthType, TimeUnit, UInt64Type,
};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{HashMap, Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use crate::functions::aggregates::overflow::overflow;
use crate::functions::aggregates::total::{Number, Summable, Total};

/// What an aggregate makes of a total that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The total itself.
    Sum,
    /// The total over the number of values: of integers the nearest double, of decimals with the digits of the result, of
    /// durations in whole units.
    Mean,
}

/// The accumulator of one group or frame, of values of the type `summed`, that of the argument or a wider one of its width;
/// `None` where their sums are DataFusion's.
pub(super) fn accumulator(
    outcome: Outcome,
    args: &AccumulatorArgs,
    summed: &DataType,
) -> Option<Box<dyn Accumulator>> {
    macro_rules! of {
        ($of:ty) => {{
            let target = SumTarget::<$of>::new(outcome, args, summed);
            match args.is_distinct {
                true => Box::new(Distinct::new(target)),
                false => Box::new(Running::new(target)),
            }
        }};
    }
    Some(match summed {
        DataType::Int64 => of!(Int64Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Decimal32(..) => of!(Decimal32Type),
        DataType::Decimal64(..) => of!(Decimal64Type),
        DataType::Decimal128(..) => of!(Decimal128Type),
        DataType::Decimal256(..) => of!(Decimal256Type),
        DataType::Duration(TimeUnit::Second) => of!(DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => of!(DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => of!(DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => of!(DurationNanosecondType),
        DataType::Interval(IntervalUnit::YearMonth) => of!(IntervalYearMonthType),
        _ => return None,
    })
}

/// What is summed, and to what: the aggregate's name, for errors, and both types.
#[derive(Debug)]
struct SumTarget<T> {
    outcome: Outcome,
    aggregate: String,
    summed: DataType,
    result: DataType,
    of: PhantomData<fn(T)>,
}

impl<T: Summable> SumTarget<T> {
    fn new(outcome: Outcome, args: &AccumulatorArgs, summed: &DataType) -> Self {
        Self {
            outcome,
            aggregate: args.name.to_string(),
            summed: summed.clone(),
            result: args.return_type().clone(),
            of: PhantomData,
        }
    }

    /// The result of a total; NULL if it is empty.
    fn scalar(&self, total: Total<Number<T>>) -> Result<ScalarValue> {
        if total.values() == 0 {
            return ScalarValue::try_new_null(&self.result);
        }
        let value = match self.outcome {
            Outcome::Sum => total.exact(),
            Outcome::Mean => match T::mean(total) {
                Some(mean) => return Ok(ScalarValue::Float64(Some(mean))),
                None => self.factor().and_then(|factor| total.rounded_mean(factor)),
            },
        };
        let value = value.and_then(|value| T::Native::try_from(value).ok());
        match value.filter(|value| T::fits(*value, &self.result)) {
            Some(value) => ScalarValue::new_primitive::<T>(Some(value), &self.result),
            None => Err(overflow(&self.aggregate, &self.result)),
        }
    }

    /// What a mean has more digits for than its values.
    fn factor(&self) -> Option<i64> {
        let digits = match (&self.summed, &self.result) {
            (DataType::Decimal128(_, from), DataType::Decimal128(_, to))
            | (DataType::Decimal256(_, from), DataType::Decimal256(_, to)) => {
                to.checked_sub(*from)?
            }
            _ => 0,
        };
        10_i64.checked_pow(u32::try_from(digits).ok()?)
    }

    fn size(&self) -> usize {
        self.aggregate.capacity()
    }
}

/// One total, which rows enter and, in a sliding window, leave.
#[derive(Debug)]
struct Running<T: Summable> {
    target: SumTarget<T>,
    total: Total<Number<T>>,
}

impl<T: Summable> Running<T> {
    fn new(target: SumTarget<T>) -> Self {
        Self {
            target,
            total: Total::ZERO,
        }
    }
}

impl<T: Summable> Accumulator for Running<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut total = self.total;
        each_valid(values[0].as_primitive::<T>(), |value| {
            total.add(value.into())
        });
        self.total = total;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(values[0].as_primitive::<T>(), |value| {
            self.total.retract(value.into());
        });
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let low = states[0].as_primitive::<T::Sum>();
        let wraps = states[1].as_primitive::<Int64Type>().values();
        let counts = states
            .get(2)
            .map(|of| of.as_primitive::<Int64Type>().values());
        for row in (0..low.len()).filter(|row| low.is_valid(*row)) {
            let values = counts.map_or(1, |counts| counts[row]);
            self.total.merge(low.value(row), wraps[row], values);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (low, wraps, values) = self.total.parts();
        let low = (values > 0).then_some(low);
        let mut state = vec![
            ScalarValue::new_primitive::<T::Sum>(low, &T::SUM)?,
            ScalarValue::Int64(Some(wraps)),
        ];
        if self.target.outcome == Outcome::Mean {
            state.push(ScalarValue::Int64(Some(values)));
        }
        Ok(state)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.target.scalar(self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.target.size()
    }
}

/// The total of the distinct values, each with its count, so that rows can leave a sliding window.
#[derive(Debug)]
struct Distinct<T: Summable> {
    target: SumTarget<T>,
    counts: HashMap<T::Native, u64>,
    total: Total<Number<T>>,
}

impl<T: Summable> Distinct<T> {
    fn new(target: SumTarget<T>) -> Self {
        Self {
            target,
            counts: HashMap::default(),
            total: Total::ZERO,
        }
    }

    fn insert(&mut self, value: T::Native) {
        let count = self.counts.entry(value).or_insert(0);
        if *count == 0 {
            self.total.add(value.into());
        }
        *count += 1;
    }

    fn remove(&mut self, value: T::Native) {
        let Some(count) = self.counts.get_mut(&value) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&value);
            self.total.retract(value.into());
        }
    }
}

impl<T: Summable> Accumulator for Distinct<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(values[0].as_primitive::<T>(), |value| self.insert(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(values[0].as_primitive::<T>(), |value| self.remove(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            each_valid(list.as_primitive::<T>(), |value| self.insert(value));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = PrimitiveArray::<T>::from_iter_values(self.counts.keys().copied());
        let values = values.with_data_type(self.target.summed.clone());
        let values = SingleRowListArrayBuilder::new(Arc::new(values));
        Ok(vec![values.build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.target.scalar(self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.target.size()
            + self.counts.capacity() * (size_of::<(T::Native, u64)>() + 1)
    }
}

/// Calls `take` with each value that is not NULL.
fn each_valid<T>(values: &PrimitiveArray<T>, mut take: impl FnMut(T::Native))
where
    T: Summable,
{
    if values.null_count() == 0 {
        values.values().iter().for_each(|value| take(*value));
    } else {
        values.iter().flatten().for_each(take);
    }
}
