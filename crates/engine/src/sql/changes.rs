//! Which rows DELETE and UPDATE are about.
//!
//! In: the plan of a statement. Out: for one that changes rows, the query that counts those that its condition holds for; what is
//! wrong with the new values.
//! Invariant: a statement that holds for no row changes none. DataFusion looks for the condition in the optimized plan: of one
//! that can never hold nothing is left there, and it would change all rows.
//! Not here: conditions with subqueries, of which DataFusion finds nothing either (planned/ refuses them).

pub(in crate::sql) mod leading_with;
pub(in crate::sql) mod assigned_lists;
pub(in crate::sql) mod constraints;
pub(crate) mod free_names;
pub(crate) mod changed_rows;
pub(crate) mod alterations;
pub(crate) mod tables_alike;
mod kept_constraints;
pub(crate) mod returning;
pub(crate) mod inserted_rows;
pub(crate) mod merged_rows;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, WriteOp, cast, col, lit};

/// The name of the column with the number of rows, as DataFusion has it.
const COUNT: &str = "count";

/// The query that counts the rows that a statement changes, if it changes rows.
pub(crate) fn matching(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Dml(change) = plan else {
        return Ok(None);
    };
    if !matches!(change.op, WriteOp::Delete | WriteOp::Update) {
        return Ok(None);
    }
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(Arc::clone(&change.input)));
    let counted = rows.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64)).alias(COUNT)])?;
    let number = cast(col(COUNT), DataType::UInt64).alias(COUNT);
    Ok(Some(counted.project(vec![number])?.build()?))
}

/// Tells what is wrong with the values of a statement that changes no row.
pub(crate) fn check(plan: &LogicalPlan, state: &SessionState) -> Result<()> {
    let analyzer = state.analyzer();
    analyzer.execute_and_check(plan.clone(), state.config_options(), |_, _| {})?;
    Ok(())
}
