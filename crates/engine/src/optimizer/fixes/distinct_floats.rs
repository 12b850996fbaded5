//! DISTINCT floats: -0.0 is 0.0, and all NaN are one value, as in our keys.
//!
//! In: a logical plan. Out: the same plan; a float that an aggregate takes with DISTINCT, or that `uniq_exact` takes,
//! passes through a function that gives equal values equal bits, also within lists and structs.
//! Invariant: the names of the aggregates stay; other types are not touched. It runs after the host has made a GROUP BY
//! of a single DISTINCT, whose keys need no such function.
//! The host's sets of distinct values compare bits.
//! Not here: keys; `uniq`, which hashes equal floats alike by itself.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, SortExpr, Volatility, WindowFunctionDefinition,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use grouse_groupby::keys::row::{canonical_floats, has_floats};

use super::each_named;
use crate::exec::to_host;

static CANONICAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Canonical::new())));

/// The rule.
#[derive(Debug)]
pub(super) struct DistinctFloats;

impl OptimizerRule for DistinctFloats {
    fn name(&self) -> &str {
        "distinct_floats"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let schema = match &plan {
            LogicalPlan::Aggregate(aggregate) => Arc::clone(aggregate.input.schema()),
            LogicalPlan::Window(window) => Arc::clone(window.input.schema()),
            _ => return Ok(Transformed::no(plan)),
        };
        each_named(plan, |part| mend(part, &schema))
    }
}

fn mend(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if params.distinct || func.name() == "uniq_exact" =>
        {
            canonical(&mut params.args, &mut params.order_by, schema)?
        }
        Expr::WindowFunction(window) => {
            let WindowFunction { fun, params } = window.as_mut();
            match fun {
                WindowFunctionDefinition::AggregateUDF(func)
                    if params.distinct || func.name() == "uniq_exact" =>
                {
                    canonical(&mut params.args, &mut Vec::new(), schema)?
                }
                _ => false,
            }
        }
        _ => false,
    };
    Ok(match changed {
        true => Transformed::yes(expr),
        false => Transformed::no(expr),
    })
}

/// Wraps the arguments, and the sort keys that are arguments: the host asks for ORDER BY of a DISTINCT aggregate to be one.
fn canonical(args: &mut [Expr], order: &mut [SortExpr], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for arg in args {
        let is_done =
            matches!(arg, Expr::ScalarFunction(call) if call.func.inner().is::<Canonical>());
        if is_done || !has_floats(&arg.get_type(schema)?) {
            continue;
        }
        let wrapped = CANONICAL.call(vec![arg.clone()]);
        for key in order.iter_mut().filter(|key| key.expr == *arg) {
            key.expr = wrapped.clone();
        }
        *arg = wrapped;
        changed = true;
    }
    Ok(changed)
}

/// `canonical(x)`: x with one form for -0.0 and 0.0 and one for all NaN.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    signature: Signature,
}

impl Canonical {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        "canonical"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let column = args.args[0].to_array(rows)?;
        let canonical = canonical_floats(&column).map_err(to_host)?;
        Ok(ColumnarValue::Array(canonical))
    }
}
