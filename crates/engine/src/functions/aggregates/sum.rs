//! `sum`, exact where DataFusion's wraps.
//!
//! In: DataFusion's own signature, types, names and statistics. Out: accumulators that keep every carry, and an
//! [`Overflow`](crate::error::Error::Overflow) where the result does not fit its type.
//! Invariant: an integer, decimal or duration total is right or an error. Floats of one group or frame are added up in their
//! order; all others, and intervals of days and smaller units, are DataFusion's.
//! Not here: DataFusion's rewrite of `sum(a + c)` into `sum(a) + c * count(a)`. It can overflow where the query does not,
//! and it makes `SELECT sum(a + 1), sum(a + 2), count(a)` fail to plan. A sum that does not offer it switches it off.
//! Ours is `shared_sums.rs`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Decimal128Type, DecimalType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs, Volatility,
};
use grouse_groupby::keys::decoded;
use grouse_groupby::states::{self, Aggregate};

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::to_datafusion::{StatesOf, state_fields};
use crate::functions::aggregates::total_states::{Outcome, accumulator};
use crate::functions::aggregates::totals_in_order::running_sum;
use crate::functions::taken_by;

/// The exact `sum`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Sum {
    signature: Signature,
}

impl Sum {
    pub(in crate::functions) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

/// The sums that are exact; `None` of those that are DataFusion's.
fn exact(name: &str, arguments: &[FieldRef], result_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    match result_type {
        DataType::Float64 => None,
        exact => states::sum(name, arguments.first()?.data_type(), exact),
    }
}

/// Doubles each of which counts, so that the order of the rows is that of the additions.
pub(super) fn is_of_doubles(args: &AccumulatorArgs) -> bool {
    *args.expr_fields[0].data_type() == DataType::Float64 && !args.is_distinct
}

impl AggregateUDFImpl for Sum {
    function_methods!("sum");

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
        match accumulator(Outcome::Sum, &args, args.return_type()) {
            Some(exact) => Ok(exact),
            None if is_of_doubles(&args) => Ok(running_sum()),
            None => sum_udaf().accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match accumulator(Outcome::Sum, &args, args.return_type()) {
            Some(exact) => Ok(exact),
            None => sum_udaf().create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match exact(args.name, args.input_fields, args.return_type()) {
            exact @ Some(_) if !args.is_distinct => state_fields(exact, &args),
            _ => sum_udaf().state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match exact(args.name, args.expr_fields, args.return_type()) {
            None => sum_udaf().create_groups_accumulator(args),
            exact => Ok(Box::new(StatesOf::new(exact, &args)?)),
        }
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
