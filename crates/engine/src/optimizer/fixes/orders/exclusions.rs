//! Frames that leave rows out: `sum(x) OVER (ORDER BY y ROWS … EXCLUDE TIES)`.
//!
//! In: while DataFusion plans it, a call with the mark of EXCLUDE among its partitions; in the end a plan. Out: the call without the
//! mark, whose function says what is left out; a plan in which a window function of ours aggregates the rows left.
//! Invariant: a call that stands for others (`count_if`, `bit_xor`) leaves the same rows out in each; functions that look at no frame
//! stay as they are. Names and types of columns stay.
//! Not here: the functions (functions/aggregates/exclusions.rs).

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::functions_window::planner::WindowFunctionPlanner;
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawWindowExpr};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::functions::{Exclusion, StandingFunctions, excluding, over_left_rows, take_exclusion};
use crate::optimizer::fixes::in_windows;
use crate::optimizer::fixes::types::signed_counts::{SignedCounts, call};

/// The planner of such calls, which asks the others what a call is without EXCLUDE.
#[derive(Debug)]
pub(in crate::optimizer) struct Exclusions;

impl ExprPlanner for Exclusions {
    fn plan_window(&self, mut raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        let Some(exclusion) = take_exclusion(&mut raw.partition_by) else {
            return Ok(PlannerResult::Original(raw));
        };
        let exclusion = match raw.order_by.is_empty() {
            true => exclusion.without_order(),
            false => exclusion,
        };
        let others: [&dyn ExprPlanner; 3] =
            [&SignedCounts, &StandingFunctions, &WindowFunctionPlanner];
        for planner in others {
            raw = match planner.plan_window(raw)? {
                PlannerResult::Planned(expr) => return planned(expr, exclusion),
                PlannerResult::Original(raw) => raw,
            };
        }
        planned(call(raw), exclusion)
    }
}

/// What a call stands for, with frames that leave rows out.
fn planned(expr: Expr, exclusion: Exclusion) -> Result<PlannerResult<RawWindowExpr>> {
    let expr = expr.transform_up(|part| {
        Ok(match part {
            Expr::WindowFunction(mut window) => {
                window.fun = excluding(window.fun, exclusion);
                Transformed::yes(Expr::WindowFunction(window))
            }
            // A name that a planner gave for the call over the whole frame is another's.
            Expr::Alias(Alias { expr, name, .. }) => {
                Transformed::yes(expr.alias(format!("{name} EXCLUDE {}", exclusion.words())))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(PlannerResult::Planned(expr.data))
}

/// The rule. It comes late: other rules shall know the aggregate.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    in_windows(plan, over_left)
}

fn over_left(part: Expr) -> Transformed<Expr> {
    match &part {
        Expr::WindowFunction(window) => match over_left_rows(window) {
            Some(left) => Transformed::yes(Expr::WindowFunction(Box::new(left))),
            None => Transformed::no(part),
        },
        _ => Transformed::no(part),
    }
}
