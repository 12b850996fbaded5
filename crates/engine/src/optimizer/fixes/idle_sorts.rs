//! Drops the ORDER BY of a subquery whose rows are grouped.
//!
//! In: a logical plan, in which sorts of subqueries stay for the LIMIT above them. Out: the same plan without those that
//! only a grouping reads.
//! Invariant: a sort with a number of rows to fetch stays, and so does one below other nodes.
//! Not here: sorts below joins and DISTINCT, which DataFusion drops.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule: DataFusion would group in the order of the sort, which takes all rows in one stream first.
#[derive(Debug)]
pub(super) struct DropSortBelowGroups;

impl OptimizerRule for DropSortBelowGroups {
    fn name(&self) -> &str {
        "drop_sort_below_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Aggregate(mut groups) if is_sorted(&groups.input) => {
                groups.input = Arc::new(unsorted(&groups.input)?);
                Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

fn unsorted(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => unsorted(&sort.input),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs().into_iter().map(unsorted);
            let inputs = inputs.collect::<Result<_>>()?;
            plan.with_new_exprs(plan.expressions(), inputs)
        }
        plan => Ok(plan.clone()),
    }
}

fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Projection(above) => is_sorted(&above.input),
        LogicalPlan::SubqueryAlias(above) => is_sorted(&above.input),
        _ => false,
    }
}
