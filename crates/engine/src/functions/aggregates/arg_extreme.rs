//! `max_by(x, y)`, also called `arg_max`, and `min_by(x, y)`, also called `arg_min`: the x of the row with the extreme y.
//!
//! In: any x, any y that has an order. Out: one x, NULL where no row qualifies.
//! Invariant: a row whose x or y is NULL does not take part. Of rows with equal y the first one wins. NaN is greater
//! than every number and equal to itself, -0.0 equals 0.0.
//! Not here: `max_by(x, y ORDER BY z)`. The order decides between equal y, which is what `first_value` does, so it is
//! planned as `first_value(x ORDER BY y DESC, z)`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, plan_err};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Expr, GroupsAccumulator, Signature, Volatility,
};
use grouse_groupby::states::{self, Aggregate, Extreme};

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::arg_extreme_rows::WindowRows;
use crate::functions::aggregates::to_datafusion::{StatesOf, state_fields};

/// `max_by` or `min_by`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct ArgExtreme {
    extreme: Extreme,
    aliases: Vec<String>,
    signature: Signature,
}

impl ArgExtreme {
    pub(in crate::functions) fn max_by() -> Self {
        Self::new(Extreme::Max, ["arg_max", "argmax"])
    }

    pub(in crate::functions) fn min_by() -> Self {
        Self::new(Extreme::Min, ["arg_min", "argmin"])
    }

    fn new(extreme: Extreme, aliases: [&str; 2]) -> Self {
        Self {
            extreme,
            aliases: aliases.map(str::to_string).to_vec(),
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    fn aggregate(&self, name: &str, arguments: &[FieldRef]) -> Option<Arc<dyn Aggregate>> {
        let [x, y] = arguments else { return None };
        let (x, y) = (x.data_type(), y.data_type());
        states::arg_extreme(name, self.extreme, x, y, x)
    }

    fn states(&self, args: &AccumulatorArgs) -> Result<StatesOf> {
        StatesOf::new(self.aggregate(args.name, args.expr_fields), args)
    }
}

impl AggregateUDFImpl for ArgExtreme {
    function_methods!();

    fn name(&self) -> &str {
        match self.extreme {
            Extreme::Max => "max_by",
            Extreme::Min => "min_by",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let [x, y] = arg_types else {
            return plan_err!("{} takes two arguments, e.g. {0}(x, y)", self.name());
        };
        if !RowConverter::supports_fields(&[SortField::new(y.clone())]) {
            return plan_err!(
                "{} compares its second argument, and values of type {y} have no order",
                self.name()
            );
        }
        Ok(x.clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(self.states(&args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(WindowRows::new(self.extreme, &args)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let aggregate = self.aggregate(args.name, args.input_fields);
        state_fields(aggregate, &args)
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.states(&args)?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let extreme = self.extreme;
        Some(Box::new(move |aggregate, _| {
            match aggregate.params.order_by.is_empty() {
                true => Ok(Expr::AggregateFunction(aggregate)),
                false => first_by_order(extreme, aggregate),
            }
        }))
    }
}

/// `max_by(x, y ORDER BY z)` as `first_value(x ORDER BY y DESC, z)` over the rows that take part.
fn first_by_order(extreme: Extreme, aggregate: AggregateFunction) -> Result<Expr> {
    let AggregateFunctionParams {
        args,
        filter,
        order_by,
        ..
    } = aggregate.params;
    let Ok([x, y]) = <[Expr; 2]>::try_from(args) else {
        return plan_err!("max_by and min_by take two arguments");
    };
    let takes_part = x.clone().is_not_null().and(y.clone().is_not_null());
    let filter = match filter {
        Some(filter) => filter.and(takes_part),
        None => takes_part,
    };
    let mut order = vec![y.sort(extreme == Extreme::Min, false)];
    order.extend(order_by);
    Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
        first_value_udaf(),
        vec![x],
        false,
        Some(Box::new(filter)),
        order,
        None,
    )))
}
