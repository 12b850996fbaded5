//! `avg`, of integers exact where DataFusion's adds up doubles, of decimals rounded where DataFusion's is cut.
//!
//! In: DataFusion's own types and names. Out: accumulators of integers, decimals and durations that divide once, an exact total
//! by its number of values; DataFusion's accumulators of all else.
//! Invariant: of integers the result is the double nearest to the mean, of decimals and durations the nearest value of the result
//! type, halves away from zero. That holds however the rows come: plain, grouped, distinct or over a window. Equal values average
//! to themselves. Averages of dates and times are composed while the query is planned (optimizer/fixes/grouping/composed.rs), but
//! for those over windows.
//! Not here: floats, whose means of one group or frame are those of their order (totals_in_order.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};
use grouse_groupby::keys::decoded;
use grouse_groupby::states::{self, Aggregate};

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::ordered_set::temporal_median;
use crate::functions::aggregates::sum::is_of_doubles;
use crate::functions::aggregates::temporal_states::{self, INTERVAL};
use crate::functions::aggregates::to_datafusion::{StatesOf, state_fields};
use crate::functions::aggregates::total_states::{Outcome, accumulator};
use crate::functions::aggregates::totals_in_order::running_mean;
use crate::functions::taken_by;

/// The exact `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Avg {
    signature: Signature,
    aliases: Vec<String>,
}

impl Avg {
    pub(in crate::functions) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: avg_udaf().aliases().to_vec(),
        }
    }
}

/// Intervals, dates and times.
fn is_in_parts(of: &DataType) -> bool {
    *of == INTERVAL || temporal_median(of).is_some()
}

/// The averages that are exact; `None` of those that are DataFusion's.
fn exact(name: &str, arguments: &[FieldRef], result_type: &DataType) -> Option<Arc<dyn Aggregate>> {
    match arguments.first()?.data_type() {
        DataType::Float64 => None,
        exact => states::avg(name, exact, result_type),
    }
}

/// The accumulator of one group or frame, where it is not DataFusion's.
fn own_accumulator(args: &AccumulatorArgs) -> Option<Box<dyn Accumulator>> {
    let of = args.expr_fields[0].data_type();
    match is_in_parts(of) {
        true => Some(Box::new(temporal_states::TemporalMean::new(args))),
        false => accumulator(Outcome::Mean, args, of),
    }
}

impl AggregateUDFImpl for Avg {
    function_methods!("avg");

    fn aliases(&self) -> &[String] {
        &self.aliases
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
        match own_accumulator(&args) {
            Some(own) => Ok(own),
            None if is_of_doubles(&args) => Ok(running_mean()),
            None => avg_udaf().accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match own_accumulator(&args) {
            Some(own) => Ok(own),
            None => avg_udaf().create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let of = args.input_fields[0].data_type();
        if is_in_parts(of) {
            return Ok(temporal_states::TemporalMean::state_fields(&args));
        }
        match exact(args.name, args.input_fields, args.return_type()) {
            None => avg_udaf().state_fields(args),
            Some(_) if args.is_distinct => {
                let name = format_state_name(args.name, "avg distinct");
                let value = Field::new_list_field(of.clone(), true);
                Ok(vec![Arc::new(Field::new_list(name, value, false))])
            }
            exact => state_fields(exact, &args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_in_parts(args.expr_fields[0].data_type())
            && avg_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match exact(args.name, args.expr_fields, args.return_type()) {
            None => avg_udaf().create_groups_accumulator(args),
            exact => Ok(Box::new(StatesOf::new(exact, &args)?)),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        None
    }
}
