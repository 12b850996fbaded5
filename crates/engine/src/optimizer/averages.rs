//! An average beside the sum or the count of the same column: the one by the other, instead of a sum and a count of its own.
//!
//! In: a logical plan with `sum(x), avg(x)` over integers, floats or decimals, or with `count(x), avg(x)` where no sum can be
//! too large. Out: `sum(x)` and `count(x)`, which is `count(*)` where x has no NULL, below a projection in which `mean`
//! divides.
//! Invariant: names, types and values stay. A sum that does not fit is the error that the query has in any case.
//! Not here: DISTINCT; plans for DataFusion's operator.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use grouse_groupby::states::means;

use crate::error::to_host;
use crate::functions::{exact_sum, is_exact_avg, is_exact_sum};
use crate::optimizer::fixes::{Below, bare, for_our_operator, under_names};

/// Decimals of so many digits have sums of ten more.
const DIGITS_MAX: u8 = 28;

/// Integers whose sum fits 64 bits, of fewer than 2^32 rows. Where nobody asks for the sum, only the first of them share:
/// of fewer than 2^47 rows.
const NARROW: [DataType; 6] = [
    DataType::Int8,
    DataType::Int16,
    DataType::UInt8,
    DataType::UInt16,
    DataType::Int32,
    DataType::UInt32,
];
const SHORT: usize = 4;

/// The rule, twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedAverages {
    /// Of aggregates as they are written, in which equal arguments are known as such: averages whose sum cannot fail.
    AsWritten,
    /// Of those that are needed: a sum that somebody wants may fail, one that nobody wants may not.
    AsNeeded,
}

impl OptimizerRule for SharedAverages {
    fn name(&self) -> &str {
        match self {
            Self::AsWritten => "shared_averages_as_written",
            Self::AsNeeded => "shared_averages_as_needed",
        }
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        for_our_operator(plan, config, |aggregate| shared(aggregate, *self))
    }
}

/// `avg(x) FILTER (WHERE filter)` beside the sum of the same values.
struct Average {
    sum: AggregateFunction,
    count: AggregateFunction,
    mean: Mean,
}

impl Average {
    fn of(expr: &Expr, aggregate: &Aggregate, rule: SharedAverages) -> Result<Option<Self>> {
        let input = aggregate.input.schema();
        let Expr::AggregateFunction(average) = bare(expr) else {
            return Ok(None);
        };
        let params = &average.params;
        let is_plain = !params.distinct && params.order_by.is_empty();
        let [argument] = params.args.as_slice() else {
            return Ok(None);
        };
        if !is_exact_avg(&average.func) || !is_plain || expr.is_volatile() {
            return Ok(None);
        }
        let fits_wide = fits(argument, input, &NARROW)?;
        let may_fail = rule == SharedAverages::AsNeeded;
        if !is_shared(&argument.get_type(input)?) || !(fits_wide || may_fail) {
            return Ok(None);
        }
        let count = counted(average, argument, input)?;
        let mut others = aggregate.aggr_expr.iter().filter_map(function);
        let is_its = |sum: &&AggregateFunction| is_exact_sum(&sum.func) && sum.params == *params;
        let sum = match others.clone().find(is_its) {
            Some(sum) => sum.clone(),
            None if others.any(|other| *other == count)
                && fits(argument, input, &NARROW[..SHORT])? =>
            {
                let func = Arc::new(exact_sum());
                let params = params.clone();
                AggregateFunction { func, params }
            }
            None => return Ok(None),
        };
        let mean = Mean::new(expr, expr.get_type(input)?);
        Ok(Some(Self { sum, count, mean }))
    }
}

fn function(expr: &Expr) -> Option<&AggregateFunction> {
    match bare(expr) {
        Expr::AggregateFunction(function) => Some(function),
        _ => None,
    }
}

/// Types of which [`means`] knows the average.
fn is_shared(kind: &DataType) -> bool {
    use DataType::{Decimal128, Float64, Int64, UInt64};
    matches!(kind, Int64 | UInt64 | Float64 | Decimal128(..))
}

/// True of values whose sum fits its type: floats, decimals of fewer than 10^10 rows, integers that were of these types.
fn fits(argument: &Expr, input: &DFSchema, integers: &[DataType]) -> Result<bool> {
    use DataType::{Decimal128, Float64};
    let narrow = match argument {
        Expr::Cast(Cast { expr, .. }) => expr.get_type(input)?,
        other => other.get_type(input)?,
    };
    Ok(match argument.get_type(input)? {
        Float64 => true,
        Decimal128(digits, _) => digits <= DIGITS_MAX,
        _ => integers.contains(&narrow),
    })
}

/// The number of values that `average` is of.
fn counted(
    average: &AggregateFunction,
    argument: &Expr,
    input: &DFSchema,
) -> Result<AggregateFunction> {
    let mut count = match count_all().unalias() {
        Expr::AggregateFunction(count) => count,
        other => return internal_err!("count(*) is {other}"),
    };
    if argument.nullable(input)? {
        // What makes a value wider makes none NULL.
        let value = match argument {
            Expr::Cast(Cast { expr, .. }) => expr.as_ref(),
            other => other,
        };
        count.params.args = vec![value.clone()];
    }
    count.params.filter.clone_from(&average.params.filter);
    Ok(count)
}

/// The plan in which averages share; `None` where none does, or names would collide.
fn shared(aggregate: &Aggregate, rule: SharedAverages) -> Result<Option<LogicalPlan>> {
    let all = &aggregate.aggr_expr;
    let averages = all.iter().map(|expr| Average::of(expr, aggregate, rule));
    let averages: Vec<Option<Average>> = averages.collect::<Result<_>>()?;
    if averages.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut below = Below::default();
    // What the query has itself keeps its name.
    let others = all
        .iter()
        .zip(&averages)
        .filter(|(_, average)| average.is_none());
    others.for_each(|(expr, _)| drop(below.column(expr.clone())));
    let above = all
        .iter()
        .zip(averages)
        .map(|(expr, average)| match average {
            None => below.column(expr.clone()),
            Some(Average { sum, count, mean }) => {
                let sum = below.column(Expr::AggregateFunction(sum));
                let count = below.column(Expr::AggregateFunction(count));
                ScalarUDF::new_from_impl(mean).call(vec![sum, count])
            }
        });
    let above = above.collect();
    under_names(aggregate, below, above)
}

/// `mean(sum(x), count(x))`: the average of x.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mean {
    signature: Signature,
    /// As the query has it, for the error.
    aggregate: String,
    result_type: DataType,
}

impl Mean {
    fn new(average: &Expr, result_type: DataType) -> Self {
        Self {
            signature: Signature::any(2, Volatility::Immutable),
            aggregate: bare(average).human_display().to_string(),
            result_type,
        }
    }
}

impl ScalarUDFImpl for Mean {
    fn name(&self) -> &str {
        "mean"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.result_type.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let [sums, counts] = columns.as_slice() else {
            return internal_err!("mean takes two");
        };
        let counts = counts.as_primitive::<Int64Type>();
        match means(&self.aggregate, sums, counts, &self.result_type) {
            Some(means) => Ok(ColumnarValue::Array(means.map_err(to_host)?)),
            None => internal_err!("no mean of {}", sums.data_type()),
        }
    }
}
