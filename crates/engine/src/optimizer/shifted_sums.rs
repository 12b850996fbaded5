//! Sums of one column with different constants added: one sum and one count instead.
//!
//! In: a logical plan with `sum(x + 1), sum(x + 2), …` over signed integers of up to 32 bits, unsigned ones of up to 16. Out: `sum(x)` and `count(x)` below a
//! projection in which `shifted_sum` adds the constant once per row that was counted.
//! Invariant: names and types stay, and so does the error of a total that does not fit, which names the aggregate as it was
//! written. `x + 1` cannot overflow, so nothing is lost where it is not computed; nor can `sum(x)`, of fewer than 2^32 rows.
//! Not here: wider integers and decimals, whose `x + 1` may be an error; floats, whose sums would differ in their last digits;
//! plans for DataFusion's operator.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, ColumnarValue, Expr, ExprFunctionExt, ExprSchemable, LogicalPlan,
    Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::functions::{is_exact_sum, overflow};
use crate::optimizer::fixes::{Below, bare, for_our_operator, under_names};

/// The greatest constant, so that it and 32 bits together fit 64.
const CONSTANT_MAX: i64 = 1 << 62;

/// The rule.
#[derive(Debug)]
pub(crate) struct ShiftedSums;

impl OptimizerRule for ShiftedSums {
    fn name(&self) -> &str {
        "shifted_sums"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        for_our_operator(plan, config, shared)
    }
}

/// `sum(CAST(value AS BIGINT) + constant) FILTER (WHERE filter)`.
struct Sum<'a> {
    /// The sum without the constant.
    plain: AggregateFunction,
    value: &'a Expr,
    constant: i64,
}

impl<'a> Sum<'a> {
    fn of(expr: &'a Expr, input: &DFSchema) -> Result<Option<Self>> {
        let Expr::AggregateFunction(function) = bare(expr) else {
            return Ok(None);
        };
        let params = &function.params;
        let [argument] = params.args.as_slice() else {
            return Ok(None);
        };
        if !is_exact_sum(&function.func) || params.distinct || !params.order_by.is_empty() {
            return Ok(None);
        }
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
        if !narrow || !is_long || !fits || expr.is_volatile() {
            return Ok(None);
        }
        let mut plain = function.clone();
        plain.params.args = vec![widened.clone()];
        Ok(Some(Self {
            plain,
            value,
            constant,
        }))
    }

    /// `count(value)` of the same rows.
    fn count(&self) -> Result<Expr> {
        let counted = count(self.value.clone());
        match &self.plain.params.filter {
            Some(filter) => counted.filter(filter.as_ref().clone()).build(),
            None => Ok(counted),
        }
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
fn shared(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let input = aggregate.input.schema();
    let sums = aggregate.aggr_expr.iter().map(|expr| Sum::of(expr, input));
    let sums: Vec<Option<Sum<'_>>> = sums.collect::<Result<_>>()?;
    let is_shared = |sum: &&Sum<'_>| {
        let known = sums.iter().flatten();
        let mut others = known.filter(|other| other.constant != sum.constant);
        others.any(|other| other.plain == sum.plain)
    };
    if !sums.iter().flatten().any(|sum| is_shared(&sum)) {
        return Ok(None);
    }
    let mut below = Below::default();
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
                shifted.call(vec![plain, below.column(sum.count()?), lit(constant)])
            }
        });
    }
    under_names(aggregate, below, above)
}

/// `shifted_sum(sum(x), count(x), constant)`: the sum of `x + constant`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShiftedSum {
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
    fn name(&self) -> &str {
        "shifted_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

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
