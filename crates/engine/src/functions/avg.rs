//! `avg`, of integers exact where DataFusion's adds up doubles.
//!
//! In: DataFusion's own types and names. Out: accumulators of integers that divide once, an exact total by its number of
//! values; DataFusion's accumulators of all else.
//! Invariant: of integers the result is the double nearest to the mean, however the rows come, plain, grouped, distinct
//! or over a window; equal values average to themselves.
//! Averages of dates and times are composed while the query is planned (optimizer/fixes/composed.rs), as their medians are.
//! Not here: decimals and durations, of which DataFusion's totals are exact; floats.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{Result, not_impl_err};
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
use super::total_states::{Distinct, Mean, PerGroup, Running, Target, state_fields};

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

/// Builds `$state::<T, Mean>::new(target)` for the integers that `$args` average, or `$other` for other values.
macro_rules! for_integers {
    ($args:expr, $state:ident, $other:expr) => {
        match $args.expr_fields[0].data_type() {
            summed @ DataType::Int64 => Ok(Box::new($state::<Int64Type, Mean>::new(Target::new(
                &$args, summed,
            )))),
            summed @ DataType::UInt64 => Ok(Box::new($state::<UInt64Type, Mean>::new(
                Target::new(&$args, summed),
            ))),
            _ => $other,
        }
    };
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
            [of] if temporal_median(decoded(of)).is_some() => Ok(vec![decoded(of).clone()]),
            types => taken_by(&avg_udaf(), types, "numbers, dates, times and durations"),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match temporal_median(&arg_types[0]) {
            Some(middle) => Ok(middle),
            None => avg_udaf().return_type(arg_types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if temporal_median(args.expr_fields[0].data_type()).is_some() {
            return not_impl_err!("avg of dates and times over a window");
        }
        if args.is_distinct {
            for_integers!(args, Distinct, avg_udaf().accumulator(args))
        } else {
            for_integers!(args, Running, avg_udaf().accumulator(args))
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if temporal_median(args.expr_fields[0].data_type()).is_some() {
            return not_impl_err!("avg of dates and times over a window");
        }
        if args.is_distinct {
            for_integers!(args, Distinct, avg_udaf().create_sliding_accumulator(args))
        } else {
            for_integers!(args, Running, avg_udaf().create_sliding_accumulator(args))
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let summed = args.input_fields[0].data_type();
        if !matches!(summed, DataType::Int64 | DataType::UInt64) {
            return avg_udaf().state_fields(args);
        }
        if args.is_distinct {
            let name = format_state_name(args.name, "avg distinct");
            let value = Field::new_list_field(summed.clone(), true);
            return Ok(vec![Arc::new(Field::new_list(name, value, false))]);
        }
        Ok(state_fields(args.name, "sum", summed))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        avg_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        for_integers!(args, PerGroup, avg_udaf().create_groups_accumulator(args))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        None
    }
}
