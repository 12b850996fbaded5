//! Row numbers, ranks and counts as BIGINT, so that a greater number can be taken from them.
//!
//! In: a call of an aggregate or a window function, while DataFusion plans it. Out: the same call, cast to BIGINT where DataFusion
//! counts without a sign: `row_number() OVER () - 2` is -1 and no overflow. `regr_r2` over a window is composed as it is in
//! groupings (composed.rs).
//! Invariant: names stay, as DataFusion names a cast as what it casts; no count comes near the end of BIGINT.
//! Not here: functions of lists (functions/arithmetic/signed.rs); columns of type BIGINT UNSIGNED.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr,
};
use datafusion::logical_expr::{Cast, Expr, WindowFunctionDefinition, lit};

use crate::functions::over_no_rows;
use crate::optimizer::fixes::grouping::composed::determination;

/// Aggregates that count.
const AGGREGATES: [&str; 4] = ["uniq", "uniq_exact", "approx_distinct", "regr_count"];

/// Windows that number rows.
const WINDOWS: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];

/// The planner of such calls.
#[derive(Debug)]
pub(in crate::optimizer) struct SignedCounts;

impl ExprPlanner for SignedCounts {
    fn plan_aggregate(&self, expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        if !AGGREGATES.contains(&expr.func.name()) {
            return Ok(PlannerResult::Original(expr));
        }
        let call = AggregateFunction::new_udf(
            expr.func,
            expr.args,
            expr.distinct,
            expr.filter,
            expr.order_by,
            expr.null_treatment,
        );
        Ok(PlannerResult::Planned(signed(Expr::AggregateFunction(
            call,
        ))))
    }

    fn plan_window(&self, expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        let name = expr.func_def.name().to_string();
        let counts = match &expr.func_def {
            WindowFunctionDefinition::AggregateUDF(_) => AGGREGATES.contains(&name.as_str()),
            WindowFunctionDefinition::WindowUDF(_) => WINDOWS.contains(&name.as_str()),
        };
        Ok(if counts {
            let mut expr = expr;
            match expr.func_def.clone() {
                WindowFunctionDefinition::AggregateUDF(function) => {
                    let whole = call(expr.clone()).schema_name().to_string();
                    let function = Arc::new(over_no_rows(function));
                    expr.func_def = WindowFunctionDefinition::AggregateUDF(function);
                    let counted = coalesce(vec![call(expr), lit(0u64)]);
                    PlannerResult::Planned(signed(counted).alias(whole))
                }
                WindowFunctionDefinition::WindowUDF(_) => {
                    PlannerResult::Planned(signed(call(expr)))
                }
            }
        } else if name == "regr_r2" {
            let whole = call(expr.clone()).schema_name().to_string();
            let part = |function| {
                let mut part = expr.clone();
                part.func_def = WindowFunctionDefinition::AggregateUDF(function);
                call(part)
            };
            PlannerResult::Planned(determination(part).alias(whole))
        } else {
            PlannerResult::Original(expr)
        })
    }
}

fn signed(call: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(call), DataType::Int64))
}

/// The call as it is.
pub(in crate::optimizer::fixes) fn call(expr: RawWindowExpr) -> Expr {
    Expr::WindowFunction(Box::new(WindowFunction {
        fun: expr.func_def,
        params: WindowFunctionParams {
            args: expr.args,
            partition_by: expr.partition_by,
            order_by: expr.order_by,
            window_frame: expr.window_frame,
            filter: expr.filter,
            null_treatment: expr.null_treatment,
            distinct: expr.distinct,
        },
    }))
}
