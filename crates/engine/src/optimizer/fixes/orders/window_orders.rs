//! Windows in their own order: DataFusion sorts once for `ORDER BY i` and `ORDER BY i DESC` and reverses a frame instead.
//!
//! In: a plan with windows. Out: the same plan, in which only aggregates that bear it are reversed: `list(i) OVER (ORDER BY i DESC)`
//! over rows that come by `i` begins with the last. Aggregates that are not told of DISTINCT see each row once.
//! Invariant: names and values of columns stay.
//! Not here: what becomes of the aggregate (functions/aggregates/recomputed.rs, functions/aggregates/distinct_rows.rs); window functions, which know
//! whether they are reversed.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan, WindowFunctionDefinition};

use crate::functions::{in_order, of_distinct_rows};
use crate::optimizer::fixes::in_windows;

/// The rule, which comes last: no other one shall look for the aggregates that it puts away.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    in_windows(plan, ordered)
}

fn ordered(mut part: Expr) -> Transformed<Expr> {
    if let Expr::WindowFunction(window) = &mut part
        && let WindowFunctionDefinition::AggregateUDF(function) = &mut window.fun
    {
        let distinct = window.params.distinct.then(|| of_distinct_rows(function));
        let distinct = distinct.flatten();
        let mut changed = distinct.is_some();
        if let Some(distinct) = distinct {
            *function = distinct;
        }
        if let Some(forward) = in_order(function, &window.params.window_frame) {
            *function = Arc::new(forward);
            changed = true;
        }
        return Transformed::new_transformed(part, changed);
    }
    Transformed::no(part)
}
