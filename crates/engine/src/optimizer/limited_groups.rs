//! LIMIT without ORDER BY above a group-by: any groups are as good as others.
//!
//! In: a limit of a physical plan. Out: the same plan, in which the group-by below knows how many groups are wanted.
//! Invariant: between the two are only nodes that give each group a row of its own.
//! Not here: which groups are chosen (grouse-groupby's `FirstGroups`).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::exec::GroupByExec;

/// The limit over a group-by that knows of it; `None` of every other node.
pub(super) fn limited(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (groups, input) = if let Some(limit) = node.downcast_ref::<GlobalLimitExec>() {
        let groups = limit.fetch().map(|rows| rows.saturating_add(limit.skip()));
        (groups, limit.input())
    } else if let Some(limit) = node.downcast_ref::<LocalLimitExec>() {
        // Of each partition at most: the limit above takes no more of all.
        (Some(limit.fetch()), limit.input())
    } else {
        return Ok(None);
    };
    let Some(groups) = groups else {
        return Ok(None);
    };
    match below(input, groups)? {
        Some(input) => replace_children_if_necessary(Arc::clone(node), vec![input]).map(Some),
        None => Ok(None),
    }
}

fn below(node: &Arc<dyn ExecutionPlan>, groups: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(group_by) = node.downcast_ref::<GroupByExec>() {
        let limited = group_by.limited(groups)?;
        return Ok(limited.map(|limited| Arc::new(limited) as Arc<dyn ExecutionPlan>));
    }
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
        return Ok(None);
    };
    match below(projection.input(), groups)? {
        Some(input) => replace_children_if_necessary(Arc::clone(node), vec![input]).map(Some),
        None => Ok(None),
    }
}
