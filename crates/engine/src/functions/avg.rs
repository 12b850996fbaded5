//! `avg`, of integers exact where the host's adds up doubles.
//!
//! In: the host's own types and names. Out: accumulators of integers that divide once, an exact total by its number of
//! values; the host's accumulators of all else.
//! Invariant: of integers the result is the double nearest to the mean, however the rows come, plain, grouped, distinct
//! or over a window; equal values average to themselves.
//! Not here: decimals and durations, of which the host's totals are exact; floats.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::Result;
use datafusion::common::types::{
    NativeType, logical_float64, logical_int8, logical_int16, logical_int32, logical_int64,
    logical_uint8, logical_uint16, logical_uint32, logical_uint64,
};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Coercion, Documentation, GroupsAccumulator, ReversedUDAF,
    Signature, TypeSignature, TypeSignatureClass, Volatility,
};

use super::total_states::{Distinct, Mean, PerGroup, Running, Target, state_fields};

/// The exact `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Avg {
    signature: Signature,
    aliases: Vec<String>,
}

impl Avg {
    pub(super) fn new() -> Self {
        use TypeSignatureClass::{Decimal, Duration, Float, Native};
        let exactly = |class| Coercion::new_exact(class);
        let floats =
            Coercion::new_implicit(Native(logical_float64()), vec![Float], NativeType::Float64);
        let signed = Coercion::new_implicit(
            Native(logical_int64()),
            [logical_int8(), logical_int16(), logical_int32()]
                .map(Native)
                .into(),
            NativeType::Int64,
        );
        let unsigned = Coercion::new_implicit(
            Native(logical_uint64()),
            [logical_uint8(), logical_uint16(), logical_uint32()]
                .map(Native)
                .into(),
            NativeType::UInt64,
        );
        let taken = [
            floats,
            signed,
            unsigned,
            exactly(Decimal),
            exactly(Duration),
        ];
        let taken = taken.map(|argument| TypeSignature::Coercible(vec![argument]));
        Self {
            signature: Signature::one_of(taken.into(), Volatility::Immutable),
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

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        avg_udaf().return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            for_integers!(args, Distinct, avg_udaf().accumulator(args))
        } else {
            for_integers!(args, Running, avg_udaf().accumulator(args))
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
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
