//! `uniq(x, ...)`, for one argument also as `approx_distinct(x)` or `approx_count_distinct(x)`: the approximate number of
//! distinct values; and `uniq_exact(x, ...)`, the exact one.
//!
//! In: one or more arguments of any type that can be grouped by. Out: a count.
//! Invariant: a row with a NULL argument does not count; several arguments count as one tuple. Up to 6,144 values are
//! counted one by one (two of them look alike with probability 2^-31), more with a standard error of 0.57 %.
//! `uniq_exact` is `count(DISTINCT ...)`.
//! Not here: the sketches (`grouse_groupby::states::uniq`).

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, not_impl_err, plan_err};
use datafusion::functions::core::named_struct;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Expr, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
    lit,
};
use grouse_groupby::states;

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::to_datafusion::{StatesOf, state_fields, types_of};

/// The approximate count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Uniq {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
}

impl Uniq {
    pub(in crate::functions) fn new() -> Self {
        Self {
            name: "uniq",
            aliases: Vec::new(),
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }

    /// The same under DataFusion's name and DuckDB's, with their one argument.
    pub(in crate::functions) fn approx_distinct() -> Self {
        Self {
            name: "approx_distinct",
            aliases: vec!["approx_count_distinct".to_string()],
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

fn sketches(args: &AccumulatorArgs) -> Result<StatesOf> {
    StatesOf::new(states::uniq(args.name, &types_of(args.expr_fields)), args)
}

impl AggregateUDFImpl for Uniq {
    function_methods!();

    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        if arg_types.is_empty() {
            return plan_err!(
                "{} takes one or more arguments, e.g. {}(x)",
                self.name,
                self.name
            );
        }
        Ok(DataType::UInt64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::UInt64(Some(0)))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(sketches(&args)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        state_fields(states::uniq(args.name, &types_of(args.input_fields)), &args)
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(sketches(&args)?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// The exact count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct UniqExact {
    signature: Signature,
}

impl UniqExact {
    pub(in crate::functions) fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

/// The arguments of `uniq_exact(x)` as those of `count(DISTINCT x)`; a window gets no rewrite, and no tuples.
fn distinct_args<'a>(args: AccumulatorArgs<'a>) -> Result<AccumulatorArgs<'a>> {
    if args.exprs.len() > 1 {
        return not_impl_err!(
            "uniq_exact over a window takes one argument, e.g. a struct of several"
        );
    }
    Ok(AccumulatorArgs {
        is_distinct: true,
        ..args
    })
}

impl AggregateUDFImpl for UniqExact {
    function_methods!("uniq_exact");

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        if arg_types.is_empty() {
            return plan_err!("uniq_exact takes one or more arguments, e.g. uniq_exact(x)");
        }
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        count_udaf().accumulator(distinct_args(args)?)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        count_udaf().create_sliding_accumulator(distinct_args(args)?)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        count_udaf().state_fields(StateFieldsArgs {
            is_distinct: true,
            ..args
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|aggregate, _| Ok(count_distinct(aggregate))))
    }
}

/// `uniq_exact(x)` as `count(DISTINCT x)`, and of several arguments as the count of tuples without NULL.
fn count_distinct(aggregate: AggregateFunction) -> Expr {
    let mut params = aggregate.params;
    if params.args.len() > 1 {
        let has_all = params
            .args
            .iter()
            .map(|arg| arg.clone().is_not_null())
            .chain(params.filter.take().map(|filter| *filter))
            .reduce(Expr::and);
        params.filter = has_all.map(Box::new);
        let fields = params.args.into_iter().enumerate();
        let tuple = fields
            .flat_map(|(index, arg)| [lit(format!("c{index}")), arg])
            .collect();
        params.args = vec![named_struct().call(tuple)];
    }
    params.distinct = true;
    params.order_by = Vec::new();
    Expr::AggregateFunction(AggregateFunction {
        func: count_udaf(),
        params,
    })
}
