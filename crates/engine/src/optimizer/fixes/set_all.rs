//! EXCEPT ALL and INTERSECT ALL, which count how often a row is there.
//!
//! In: the semi or anti join that DataFusion plans for a set operation. Out: the same join of rows that carry their number
//! among their equals.
//! Invariant: of m equal rows on the left and n on the right, EXCEPT ALL keeps m - n and INTERSECT ALL the lesser; NULL equals
//! NULL. Where the left side is distinct, the plain join does that.
//! Not here: EXCEPT and INTERSECT without ALL, which DataFusion gets right.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::logical_plan::{Join, Projection, Window};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::each_plan;
use super::unnested::row_number;

/// The column of the number.
const NUMBER: &str = "__number";

/// Counts equal rows in a plan as the planner made it: only set operations have such joins then.
pub fn count_equal_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_plan(plan, counted)
}

fn counted(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let is_set_operation = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull;
    // A view's plan has been here before.
    let is_counted = join.on.iter().any(|(left, _)| is_number(left));
    if !is_set_operation || is_counted || matches!(join.left.as_ref(), LogicalPlan::Distinct(_)) {
        return Ok(Transformed::no(plan));
    }
    let columns = join.schema.columns();
    let left = numbered(&join.left)?;
    let right = numbered(&join.right)?;
    let mut on = join.on.clone();
    let number = |plan: &LogicalPlan| {
        let columns = plan.schema().columns().into_iter();
        columns.last().map(Expr::Column)
    };
    on.extend(number(&left).zip(number(&right)));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        join.filter.clone(),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let columns = columns.into_iter().map(Expr::Column).collect();
    let columns = Projection::try_new(columns, Arc::new(LogicalPlan::Join(join)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(columns)))
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == NUMBER)
}

/// The rows with their numbers among their equals, the last column.
fn numbered(plan: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns: Vec<Column> = plan.schema().columns();
    let number = row_number(columns.into_iter().map(Expr::Column).collect(), Vec::new());
    let window = Window::try_new(vec![number.alias(NUMBER)], Arc::clone(plan))?;
    Ok(LogicalPlan::Window(window))
}
