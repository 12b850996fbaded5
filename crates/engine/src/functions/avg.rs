//! `avg`, of integers exact where DataFusion's adds up doubles, of decimals rounded where DataFusion's is cut.
//!
//! In: DataFusion's own types and names. Out: accumulators of integers, decimals and durations that divide once, an exact total
//! by its number of values; DataFusion's accumulators of all else.
//! Invariant: of integers the result is the double nearest to the mean, of decimals and durations the nearest value of the result
//! type, halves away from zero, however the rows come, plain, grouped, distinct or over a window; equal values average to
//! themselves.
//! Averages of dates and times are composed while the query is planned (optimizer/fixes/composed.rs), but for those over windows.
//! Not here: floats.

use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Field, FieldRef, Int64Type, TimeUnit, UInt64Type,
};
use datafusion::common::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};
use grouse_groupby::keys::decoded;

use super::ordered_set::temporal_median;
use super::taken_by;
use super::temporal_states::{self, INTERVAL};
use super::total_states::{Distinct, Mean, PerGroup, RoundedMean, Running, Target, state_fields};

/// The exact `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Avg {
    signature: Signature,
    aliases: Vec<String>,
}

impl Avg {
    pub(super) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: avg_udaf().aliases().to_vec(),
        }
    }
}

/// Builds `$state::<T, O>::new(target)` for the numbers that `$args` average, or `$other` for other values.
macro_rules! for_exact {
    ($args:expr, $state:ident, $other:expr) => {{
        let summed = summed($args.expr_fields[0].data_type());
        macro_rules! state {
            ($of:ty, $mean:ty) => {
                Ok(Box::new($state::<$of, $mean>::new(Target::new(
                    &$args, &summed,
                ))))
            };
        }
        match &summed {
            DataType::Int64 => state!(Int64Type, Mean),
            DataType::UInt64 => state!(UInt64Type, Mean),
            DataType::Decimal128(..) => state!(Decimal128Type, RoundedMean),
            DataType::Decimal256(..) => state!(Decimal256Type, RoundedMean),
            DataType::Duration(TimeUnit::Second) => state!(DurationSecondType, RoundedMean),
            DataType::Duration(TimeUnit::Millisecond) => {
                state!(DurationMillisecondType, RoundedMean)
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                state!(DurationMicrosecondType, RoundedMean)
            }
            DataType::Duration(TimeUnit::Nanosecond) => state!(DurationNanosecondType, RoundedMean),
            _ => $other,
        }
    }};
}

/// Intervals, dates and times.
fn is_in_parts(of: &DataType) -> bool {
    *of == INTERVAL || temporal_median(of).is_some()
}

/// The type of sums of a type's values: decimals with all the digits that they have room for.
fn summed(of: &DataType) -> DataType {
    match of {
        DataType::Decimal128(_, scale) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale),
        DataType::Decimal256(_, scale) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale),
        other => other.clone(),
    }
}

impl AggregateUDFImpl for Avg {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Null] => Ok(vec![DataType::Float64]),
            [of] if decoded(of).is_signed_integer() => Ok(vec![DataType::Int64]),
            [of] if decoded(of).is_unsigned_integer() => Ok(vec![DataType::UInt64]),
            [DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale)] => {
                Ok(vec![DataType::Decimal128(*digits, *scale)])
            }
            [of] if temporal_median(decoded(of)).is_some() => Ok(vec![decoded(of).clone()]),
            [of] if matches!(decoded(of), DataType::Interval(_)) => Ok(vec![INTERVAL]),
            types => taken_by(
                &avg_udaf(),
                types,
                "numbers, dates, times, intervals and durations",
            ),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match temporal_median(&arg_types[0]) {
            Some(middle) => Ok(middle),
            None if arg_types[0] == INTERVAL => Ok(INTERVAL),
            None => avg_udaf().return_type(arg_types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_in_parts(args.expr_fields[0].data_type()) {
            return Ok(Box::new(temporal_states::Mean::new(&args)));
        }
        if args.is_distinct {
            for_exact!(args, Distinct, avg_udaf().accumulator(args))
        } else {
            for_exact!(args, Running, avg_udaf().accumulator(args))
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_in_parts(args.expr_fields[0].data_type()) {
            return Ok(Box::new(temporal_states::Mean::new(&args)));
        }
        if args.is_distinct {
            for_exact!(args, Distinct, avg_udaf().create_sliding_accumulator(args))
        } else {
            for_exact!(args, Running, avg_udaf().create_sliding_accumulator(args))
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if is_in_parts(args.input_fields[0].data_type()) {
            return Ok(temporal_states::Mean::state_fields(&args));
        }
        let summed = summed(args.input_fields[0].data_type());
        if !matches!(
            summed,
            DataType::Int64
                | DataType::UInt64
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::Duration(_)
        ) {
            return avg_udaf().state_fields(args);
        }
        if args.is_distinct {
            let name = format_state_name(args.name, "avg distinct");
            let value = Field::new_list_field(summed, true);
            return Ok(vec![Arc::new(Field::new_list(name, value, false))]);
        }
        Ok(state_fields(args.name, "sum", &summed))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_in_parts(args.expr_fields[0].data_type())
            && avg_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        for_exact!(args, PerGroup, avg_udaf().create_groups_accumulator(args))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        None
    }
}
