//! Fixes of DataFusion: plans it gets wrong, and SQL it does not plan.
//!
//! In: plans and expressions. Out: the same with the meaning that SQL gives them, or in a form that DataFusion gets right.
//! Invariant: a fix changes no plan that DataFusion gets right, and goes when DataFusion's own tests cover its case.
//! Not here: in which order (passes.rs); our operator's rule; statements in another form (sql/); functions whose version in DataFusion is wrong (functions/).

pub(super) mod around;
pub(super) mod types;
pub(super) mod failing;
pub(super) mod grouping;
pub(super) mod orders;
pub(super) mod joins;
pub(super) mod json_values;
pub(super) mod meanings;
pub(super) mod text_parts;
pub(super) mod list_items;
pub(super) mod fields_in_place;
pub(crate) mod equal_values;
pub(super) mod null_structs;
pub(super) mod in_lists;
pub(super) mod read_once;
pub(super) mod nullable_scalars;
pub(super) mod unnested;
pub(super) mod set_all;
mod kinds;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, WriteOp};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::runtime::options::{GroupByOperator, SessionOptions};

pub(super) use kinds::kinds;
pub use set_all::count_equal_rows;
pub use types::long_literals::keep_long_literals;

/// The planner of execution: DataFusion's, which also plans nodes of ours.
pub fn query_planner() -> Arc<dyn QueryPlanner + Send + Sync> {
    Arc::new(read_once::SharedTablePlanner)
}

/// Of DELETE and UPDATE DataFusion hands the conditions to the table as they stand in the plan. No part of one may have
/// become a column of a projection below it.
pub(super) fn but_for_changes(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Dml(change) if matches!(change.op, WriteOp::Delete | WriteOp::Update) => {
            Ok(Transformed::no(plan))
        }
        _ => datafusion.rewrite(plan, config),
    }
}

/// Fixes every plan from the leaves up, those in subqueries too.
fn each_plan(
    plan: LogicalPlan,
    mut fix: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let mut changed = false;
    let plan = plan.transform_up_with_subqueries(|plan| {
        let plan = fix(plan)?;
        changed |= plan.transformed;
        // A type that has changed below is one of the plans above as well.
        match changed {
            true => Ok(Transformed::yes(plan.data.recompute_schema()?)),
            false => Ok(plan),
        }
    })?;
    Ok(plan.data)
}

/// Fixes every part of a plan's expressions, which keep their names; the columns of grouping sets stay.
fn each_named(
    plan: LogicalPlan,
    mut fix: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    named(plan, |expr| expr.transform_up(&mut fix))
}

/// Fixes a plan's expressions, which keep their names; the columns of grouping sets stay.
fn named(
    plan: LogicalPlan,
    mut fix: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        if matches!(expr, Expr::GroupingSet(_)) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        Ok(fix(expr)?.update_data(|expr| name.restore(expr)))
    })
}

/// Fixes parts of the expressions of a window, from the leaves up.
fn in_windows(
    plan: LogicalPlan,
    fix: fn(Expr) -> Transformed<Expr>,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Window(_) => each_named(plan, |part| Ok(fix(part))),
        _ => Ok(Transformed::no(plan)),
    }
}

/// True where DataFusion's operator groups.
fn is_datafusion(config: &dyn OptimizerConfig) -> bool {
    let options = SessionOptions::of(&config.options());
    options.group_by_operator == GroupByOperator::DataFusion
}

/// What `rewritten` makes of an aggregation for our operator; the plan itself where that is nothing, or it is another.
pub(crate) fn for_our_operator(
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
    rewritten: impl FnOnce(&Aggregate) -> Result<Option<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let found = match &plan {
        LogicalPlan::Aggregate(aggregate) if !is_datafusion(config) => rewritten(aggregate)?,
        _ => None,
    };
    Ok(found.map_or_else(|| Transformed::no(plan), Transformed::yes))
}

/// An aggregate without the name that the query gives it.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => &alias.expr,
        other => other,
    }
}

/// Aggregates for a projection to be made of, each once.
#[derive(Default)]
pub(crate) struct AggregatesBelow(Vec<Expr>);

impl AggregatesBelow {
    /// The column of `expr`.
    pub fn column(&mut self, expr: Expr) -> Expr {
        let known = self.0.iter().find(|known| bare(known) == bare(&expr));
        let (relation, name) = known.unwrap_or(&expr).qualified_name();
        if known.is_none() {
            self.0.push(expr);
        }
        Expr::Column(Column::new(relation, name))
    }
}

/// An aggregation with other aggregates, `below`, under a projection in which `columns`, made of them, have the names of
/// its own. `None` where two columns below would have one name: casts do not show in names.
pub(crate) fn under_names(
    aggregate: &Aggregate,
    AggregatesBelow(below): AggregatesBelow,
    columns: Vec<Expr>,
) -> Result<Option<LogicalPlan>> {
    let keys = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let fields: Vec<_> = aggregate.schema.iter().collect();
    let (keys, names) = fields.split_at(keys);
    let names_below = below.iter().map(|expr| expr.qualified_name().1);
    let mut names_below = names_below.chain(keys.iter().map(|(_, key)| key.name().clone()));
    let mut known = HashSet::new();
    if !names_below.all(|name| known.insert(name)) {
        return Ok(None);
    }
    let keys = keys.iter().map(|field| Expr::Column(Column::from(*field)));
    let named = columns.into_iter().zip(names);
    let named =
        named.map(|(column, (of, field))| column.alias_qualified(of.cloned(), field.name()));
    let (input, keys_below) = (Arc::clone(&aggregate.input), aggregate.group_expr.clone());
    let outputs = keys.chain(named).collect();
    let below = LogicalPlan::Aggregate(Aggregate::try_new(input, keys_below, below)?);
    let outputs = Projection::try_new(outputs, Arc::new(below))?;
    Ok(Some(LogicalPlan::Projection(outputs)))
}
