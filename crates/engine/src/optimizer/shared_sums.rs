//! Aggregates that one sum and one count give: sums of a column with different constants added, an average beside the sum or the
//! count of the same column.
//!
//! In: a logical plan with `sum(x + 1), sum(x + 2), …` over signed integers of up to 32 bits, unsigned ones of up to 16. Or with
//! `sum(x), avg(x)` over integers, floats or decimals, or with `count(x), avg(x)` where no sum can be too large. Out: `sum(x)`
//! and `count(x)`, which is `count(*)` where x has no NULL, below a projection in which `shifted_sum` adds the constant once per
//! row that was counted, and `mean` divides.
//! Invariant: names, types and values stay. A sum that does not fit is the error that the query has in any case, and names the
//! aggregate as it was written. `x + 1` cannot overflow, so nothing is lost where it is not computed.
//! Not here: DISTINCT; wider integers and decimals, whose `x + 1` may be an error; floats, whose shifted sums would differ in
//! their last digits; plans for DataFusion's operator.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use grouse_groupby::states::means;

use crate::error::to_datafusion;
use crate::expr::function_methods::function_methods;
use crate::functions::{exact_sum, is_exact_avg, is_exact_sum, overflow};
use crate::optimizer::fixes::{AggregatesBelow, bare, for_our_operator, under_names};
use crate::wire::portable;

/// The greatest constant, so that it and 32 bits together fit 64; sums of fewer than 2^32 rows do.
const CONSTANT_MAX: i64 = 1 << 62;

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
pub(crate) enum SharedSums {
    /// Of aggregates as they are written, in which equal arguments are known as such: shifted sums, and averages whose sum cannot
    /// fail.
    AsWritten,
    /// Of those that are needed: averages. A sum that somebody wants may fail, one that nobody wants may not.
    AsNeeded,
}

impl OptimizerRule for SharedSums {
    fn name(&self) -> &str {
        match self {
            Self::AsWritten => "shared_sums_as_written",
            Self::AsNeeded => "shared_sums_as_needed",
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
        for_our_operator(plan, config, |aggregate| match self {
            Self::AsWritten => shared(aggregate),
            Self::AsNeeded => averaged(aggregate, *self),
        })
    }
}

/// Shifted sums, then the averages beside what they are made of.
fn shared(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Some(shifted) = shifted(aggregate)? else {
        return averaged(aggregate, SharedSums::AsWritten);
    };
    let shifted = shifted.map_children(|plan| {
        let found = match &plan {
            LogicalPlan::Aggregate(below) => averaged(below, SharedSums::AsWritten)?,
            _ => None,
        };
        Ok(found.map_or_else(|| Transformed::no(plan), Transformed::yes))
    })?;
    Ok(Some(shifted.data))
}

/// An aggregate of one argument, of all rows that its filter leaves, with the argument.
fn plain(expr: &Expr) -> Option<(&AggregateFunction, &Expr)> {
    let function = function(expr)?;
    let params = &function.params;
    let [argument] = params.args.as_slice() else {
        return None;
    };
    let is_plain = !params.distinct && params.order_by.is_empty() && !expr.is_volatile();
    is_plain.then_some((function, argument))
}

/// `sum(CAST(value AS BIGINT) + constant) FILTER (WHERE filter)`.
struct Shifted {
    /// The sum without the constant.
    plain: AggregateFunction,
    count: AggregateFunction,
    constant: i64,
}

impl Shifted {
    fn of(expr: &Expr, input: &DFSchema) -> Result<Option<Self>> {
        let Some((function, argument)) = plain(expr) else {
            return Ok(None);
        };
        let (widened, constant) = parts(argument);
        let Expr::Cast(Cast { expr: value, .. }) = widened else {
            return Ok(None);
        };
        let narrow = matches!(
            value.get_type(input)?,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16
        );
        let is_long = widened.get_type(input)? == DataType::Int64;
        let fits = (-CONSTANT_MAX..=CONSTANT_MAX).contains(&constant);
        if !narrow || !is_long || !fits || !is_exact_sum(&function.func) {
            return Ok(None);
        }
        let mut plain = function.clone();
        plain.params.args = vec![widened.clone()];
        Ok(Some(Self {
            count: counted(function, widened, input)?,
            plain,
            constant,
        }))
    }
}

/// What a constant is added to, and the constant.
fn parts(argument: &Expr) -> (&Expr, i64) {
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = argument {
        match (op, long(left), long(right)) {
            (Operator::Plus, None, Some(constant)) => return (left, constant),
            (Operator::Plus, Some(constant), None) => return (right, constant),
            (Operator::Minus, None, Some(constant)) => return (left, constant.saturating_neg()),
            _ => {}
        }
    }
    (argument, 0)
}

fn long(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        _ => None,
    }
}

/// The plan with one sum for all that differ in the constant; `None` where there are none, or names would collide.
fn shifted(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let input = aggregate.input.schema();
    let sums = aggregate
        .aggr_expr
        .iter()
        .map(|expr| Shifted::of(expr, input));
    let sums: Vec<Option<Shifted>> = sums.collect::<Result<_>>()?;
    let is_shared = |sum: &&Shifted| {
        let known = sums.iter().flatten();
        let mut others = known.filter(|other| other.constant != sum.constant);
        others.any(|other| other.plain == sum.plain)
    };
    if !sums.iter().flatten().any(|sum| is_shared(&sum)) {
        return Ok(None);
    }
    let mut below = AggregatesBelow::default();
    let mut above = Vec::with_capacity(sums.len());
    for (expr, sum) in aggregate.aggr_expr.iter().zip(&sums) {
        let Some(sum) = sum.as_ref().filter(is_shared) else {
            above.push(below.column(expr.clone()));
            continue;
        };
        let plain = below.column(Expr::AggregateFunction(sum.plain.clone()));
        above.push(match sum.constant {
            0 => plain,
            constant => {
                let name = bare(expr).human_display().to_string();
                let shifted = ScalarUDF::new_from_impl(ShiftedSum::new(name));
                shifted.call(vec![
                    plain,
                    below.column(Expr::AggregateFunction(sum.count.clone())),
                    lit(constant),
                ])
            }
        });
    }
    under_names(aggregate, below, above)
}

/// `avg(x) FILTER (WHERE filter)` beside the sum of the same values.
struct Average {
    sum: AggregateFunction,
    count: AggregateFunction,
    mean: MeanFunction,
}

impl Average {
    fn of(expr: &Expr, aggregate: &Aggregate, rule: SharedSums) -> Result<Option<Self>> {
        let input = aggregate.input.schema();
        let Some((average, argument)) = plain(expr) else {
            return Ok(None);
        };
        if !is_exact_avg(&average.func) {
            return Ok(None);
        }
        let params = &average.params;
        let fits_wide = fits(argument, input, &NARROW)?;
        let may_fail = rule == SharedSums::AsNeeded;
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
        let mean = MeanFunction::new(expr, expr.get_type(input)?);
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

/// The number of values that an aggregate is of.
fn counted(of: &AggregateFunction, argument: &Expr, input: &DFSchema) -> Result<AggregateFunction> {
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
    count.params.filter.clone_from(&of.params.filter);
    Ok(count)
}

/// The plan in which averages share; `None` where none does, or names would collide.
fn averaged(aggregate: &Aggregate, rule: SharedSums) -> Result<Option<LogicalPlan>> {
    let all = &aggregate.aggr_expr;
    let averages = all.iter().map(|expr| Average::of(expr, aggregate, rule));
    let averages: Vec<Option<Average>> = averages.collect::<Result<_>>()?;
    if averages.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut below = AggregatesBelow::default();
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
pub(super) struct MeanFunction {
    signature: Signature,
    /// As the query has it, for the error.
    aggregate: String,
    result_type: DataType,
}

impl MeanFunction {
    fn new(average: &Expr, result_type: DataType) -> Self {
        Self {
            signature: Signature::any(2, Volatility::Immutable),
            aggregate: bare(average).human_display().to_string(),
            result_type,
        }
    }
}

impl ScalarUDFImpl for MeanFunction {
    function_methods!("mean");

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
            Some(means) => Ok(ColumnarValue::Array(means.map_err(to_datafusion)?)),
            None => internal_err!("no mean of {}", sums.data_type()),
        }
    }
}

portable!(MeanFunction, "mean", aggregate: text, result_type: data_type;
    signature: Signature::any(2, Volatility::Immutable));

/// `shifted_sum(sum(x), count(x), constant)`: the sum of `x + constant`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ShiftedSum {
    signature: Signature,
    /// As the query has it, for the error.
    aggregate: String,
}

impl ShiftedSum {
    fn new(aggregate: String) -> Self {
        let signature = Signature::exact(vec![DataType::Int64; 3], Volatility::Immutable);
        Self {
            signature,
            aggregate,
        }
    }

    fn shifted(&self, sum: i64, count: i64, constant: i64) -> Result<i64> {
        let shifted = i128::from(sum) + i128::from(constant) * i128::from(count);
        i64::try_from(shifted).map_err(|_| overflow(&self.aggregate, &DataType::Int64))
    }
}

impl ScalarUDFImpl for ShiftedSum {
    function_methods!("shifted_sum");

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args.args.iter();
        let columns = columns.map(|column| column.to_array(args.number_rows));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let [sums, counts, constants] = columns.as_slice() else {
            return internal_err!("shifted_sum takes three");
        };
        let counts = counts.as_primitive::<Int64Type>().values().iter();
        let constants = constants.as_primitive::<Int64Type>().values().iter();
        let rows = sums.as_primitive::<Int64Type>().iter();
        let rows = rows.zip(counts.zip(constants));
        let shifted = rows.map(|(sum, (count, constant))| {
            sum.map(|sum| self.shifted(sum, *count, *constant))
                .transpose()
        });
        let shifted = shifted.collect::<Result<Int64Array>>()?;
        Ok(ColumnarValue::Array(Arc::new(shifted)))
    }
}

portable!(ShiftedSum, "shifted_sum", aggregate: text => ShiftedSum::new);
