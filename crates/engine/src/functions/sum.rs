//! `sum`, exact where DataFusion's wraps.
//!
//! In: DataFusion's own signature, types, names and statistics. Out: accumulators that keep every carry, and an
//! [`Overflow`](crate::error::Error::Overflow) where the result does not fit its type.
//! Invariant: an integer, decimal or duration total is right or an error. Floats and intervals of days and smaller
//! units are DataFusion's.
//! Not here: DataFusion's rewrite of `sum(a + c)` into `sum(a) + c * count(a)`. It can overflow where the query does not,
//! and it makes `SELECT sum(a + 1), sum(a + 2), count(a)` fail to plan; a sum that does not offer it switches it off.
//! Ours is `shifted_sums.rs`.

use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    FieldRef, Int64Type, IntervalUnit, IntervalYearMonthType, TimeUnit, UInt64Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs, Volatility,
};

use grouse_groupby::keys::decoded;

use super::taken_by;
use super::total_states::{self, Distinct, PerGroup, Running, Target, state_fields};

/// The exact `sum`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    signature: Signature,
}

/// Builds `$state::<T, _>::new(target)` for the type that is summed, or `$other` for one that DataFusion sums.
macro_rules! for_summable {
    ($args:expr, $state:ident, $other:expr) => {{
        // DataFusion widens the result's precision, never its width.
        let summed = $args.return_type().clone();
        match &summed {
            DataType::Int64 => Ok(Box::new($state::<Int64Type, total_states::Sum>::new(
                Target::new(&$args, &summed),
            ))),
            DataType::UInt64 => Ok(Box::new($state::<UInt64Type, total_states::Sum>::new(
                Target::new(&$args, &summed),
            ))),
            DataType::Decimal32(..) => Ok(Box::new(
                $state::<Decimal32Type, total_states::Sum>::new(Target::new(&$args, &summed)),
            )),
            DataType::Decimal64(..) => Ok(Box::new(
                $state::<Decimal64Type, total_states::Sum>::new(Target::new(&$args, &summed)),
            )),
            DataType::Decimal128(..) => Ok(Box::new(
                $state::<Decimal128Type, total_states::Sum>::new(Target::new(&$args, &summed)),
            )),
            DataType::Decimal256(..) => Ok(Box::new(
                $state::<Decimal256Type, total_states::Sum>::new(Target::new(&$args, &summed)),
            )),
            DataType::Duration(TimeUnit::Second) => Ok(Box::new($state::<
                DurationSecondType,
                total_states::Sum,
            >::new(Target::new(
                &$args, &summed,
            )))),
            DataType::Duration(TimeUnit::Millisecond) => Ok(Box::new($state::<
                DurationMillisecondType,
                total_states::Sum,
            >::new(
                Target::new(&$args, &summed),
            ))),
            DataType::Duration(TimeUnit::Microsecond) => Ok(Box::new($state::<
                DurationMicrosecondType,
                total_states::Sum,
            >::new(
                Target::new(&$args, &summed),
            ))),
            DataType::Duration(TimeUnit::Nanosecond) => Ok(Box::new($state::<
                DurationNanosecondType,
                total_states::Sum,
            >::new(
                Target::new(&$args, &summed),
            ))),
            DataType::Interval(IntervalUnit::YearMonth) => Ok(Box::new($state::<
                IntervalYearMonthType,
                total_states::Sum,
            >::new(
                Target::new(&$args, &summed),
            ))),
            _ => $other,
        }
    }};
}

impl Sum {
    pub(super) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            // How many are true.
            [of] if matches!(decoded(of), DataType::Boolean | DataType::Null) => {
                Ok(vec![DataType::Int64])
            }
            types => taken_by(&sum_udaf(), types, "numbers, booleans and durations"),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        sum_udaf().return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            for_summable!(args, Distinct, sum_udaf().accumulator(args))
        } else {
            for_summable!(args, Running, sum_udaf().accumulator(args))
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            for_summable!(args, Distinct, sum_udaf().create_sliding_accumulator(args))
        } else {
            for_summable!(args, Running, sum_udaf().create_sliding_accumulator(args))
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct || !is_summable(args.return_type()) {
            return sum_udaf().state_fields(args);
        }
        Ok(state_fields(args.name, "sum", args.return_type()))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        for_summable!(args, PerGroup, sum_udaf().create_groups_accumulator(args))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn documentation(&self) -> Option<&Documentation> {
        None
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        sum_udaf().inner().set_monotonicity(data_type)
    }

    fn value_from_stats(&self, statistics_args: &StatisticsArgs) -> Option<ScalarValue> {
        let sum = sum_udaf().value_from_stats(statistics_args)?;
        // Statistics add up more digits than the type has.
        match &sum {
            ScalarValue::Decimal128(Some(units), digits, scale) => {
                let fits = Decimal128Type::validate_decimal_precision(*units, *digits, *scale);
                fits.is_ok().then_some(sum)
            }
            _ => Some(sum),
        }
    }
}

/// Whether a sum of this result type is ours; the arms of `for_summable!`.
fn is_summable(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int64
            | DataType::UInt64
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..)
            | DataType::Duration(_)
            | DataType::Interval(IntervalUnit::YearMonth)
    )
}
