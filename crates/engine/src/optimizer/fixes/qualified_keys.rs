//! Names the relation of a join key's columns.
//!
//! In: a logical plan. Out: the same plan, in which each column of a join's keys has the relation that its side gives it.
//! Invariant: a column is the same one as before. DataFusion takes parts of structs out of a key as columns without a
//! relation, pushes them below an alias, which gives them one, and then looks for the name that the key had before.
//! Not here: conditions of a join that are no keys, which it plans by place.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr_rewriter::normalize_col;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule.
#[derive(Debug)]
pub(in crate::optimizer) struct QualifiedKeys;

impl OptimizerRule for QualifiedKeys {
    fn name(&self) -> &str {
        "qualified_join_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = plan else {
            return Ok(Transformed::no(plan));
        };
        let is_plain = |key: &Expr| key.column_refs().iter().any(|name| name.relation.is_none());
        if !join.on.iter().any(|(a, b)| is_plain(a) || is_plain(b)) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let on = join.on.iter().map(|(left, right)| {
            let left = normalize_col(left.clone(), &join.left)?;
            Ok((left, normalize_col(right.clone(), &join.right)?))
        });
        let on = on.collect::<Result<Vec<_>>>()?;
        Ok(Transformed::yes(LogicalPlan::Join(Join { on, ..join })))
    }
}
