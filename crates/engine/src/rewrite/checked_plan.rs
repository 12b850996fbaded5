//! The rule that checks integer arithmetic wherever a plan has it.
//!
//! In: a physical plan as the host's planner made it, before all other rules. Out: the same plan with checked expressions in
//! projections, filters, aggregations (keys, arguments, orders, FILTER), sorts, and the filters of hash and nested-loop joins.
//! Invariant: schemas stay. The rule is the first, because the others compare, move and merge expressions: they have to
//! meet the same one everywhere, and what they make of it stays checked.
//! Not here: arguments of window functions, filters of merge joins, and aggregates that the host has turned around, none of
//! which can be exchanged from outside; constants, which never get as far as a physical plan (constants.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;

use super::checked::checked;

/// The rule.
#[derive(Debug)]
pub(super) struct CheckArithmetic;

impl PhysicalOptimizerRule for CheckArithmetic {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match checked_node(&node)? {
                Some(checked) => Transformed::yes(checked),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "check_arithmetic"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A node with checked expressions; `None` if it has nothing to check.
type Checked = Result<Option<Arc<dyn ExecutionPlan>>>;

fn checked_node(node: &Arc<dyn ExecutionPlan>) -> Checked {
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        checked_projection(projection)
    } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
        checked_filter(filter)
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        checked_aggregate(aggregate)
    } else if let Some(sort) = node.downcast_ref::<SortExec>() {
        checked_sort(sort)
    } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        checked_hash_join(join)
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        checked_nested_loop_join(join)
    } else {
        Ok(None)
    }
}

/// Checks the expressions of one node and remembers whether any of them had to change.
struct Checker {
    schema: SchemaRef,
    changed: bool,
}

impl Checker {
    fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            changed: false,
        }
    }

    fn expr(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let checked = checked(Arc::clone(expr), &self.schema)?;
        self.changed |= checked.transformed;
        Ok(checked.data)
    }

    fn sort_key(&mut self, key: &PhysicalSortExpr) -> Result<PhysicalSortExpr> {
        Ok(PhysicalSortExpr {
            expr: self.expr(&key.expr)?,
            options: key.options,
        })
    }

    fn aggregate(
        &mut self,
        aggregate: &Arc<AggregateFunctionExpr>,
    ) -> Result<Arc<AggregateFunctionExpr>> {
        let mut own = Checker::new(Arc::clone(&self.schema));
        let args = aggregate.expressions();
        let args = args.iter().map(|arg| own.expr(arg));
        let args = args.collect::<Result<Vec<_>>>()?;
        let order = aggregate.order_bys().iter().map(|key| own.expr(&key.expr));
        let order = order.collect::<Result<Vec<_>>>()?;
        // The host forgets that it has turned an aggregate around when its expressions are exchanged.
        if !own.changed || aggregate.is_reversed() {
            return Ok(Arc::clone(aggregate));
        }
        match aggregate.with_new_expressions(args, order) {
            Some(checked) => {
                self.changed = true;
                Ok(Arc::new(checked))
            }
            None => Ok(Arc::clone(aggregate)),
        }
    }
}

fn checked_projection(node: &ProjectionExec) -> Checked {
    let mut checker = Checker::new(node.input().schema());
    let mut exprs = Vec::with_capacity(node.expr().len());
    for output in node.expr() {
        exprs.push(ProjectionExpr {
            expr: checker.expr(&output.expr)?,
            alias: output.alias.clone(),
        });
    }
    if !checker.changed {
        return Ok(None);
    }
    let input = Arc::clone(node.input());
    let schema = node.schema();
    let checked = ProjectionExec::try_new_with_schema_metadata(exprs, input, &schema)?;
    Ok(Some(Arc::new(checked)))
}

fn checked_filter(node: &FilterExec) -> Checked {
    let mut checker = Checker::new(node.input().schema());
    let predicate = checker.expr(node.predicate())?;
    if !checker.changed {
        return Ok(None);
    }
    let builder = FilterExecBuilder::from(node).with_predicate(predicate);
    Ok(Some(Arc::new(builder.build()?)))
}

fn checked_aggregate(node: &AggregateExec) -> Checked {
    // Arguments are expressions over the input of the first of two steps, also in the second. The second step's keys are
    // plain columns.
    let mut checker = Checker::new(node.input_schema());
    let keys = node.group_expr();
    let mut exprs = Vec::with_capacity(keys.expr().len());
    for (expr, name) in keys.expr() {
        exprs.push((checker.expr(expr)?, name.clone()));
    }
    let mut aggregates = Vec::with_capacity(node.aggr_expr().len());
    for aggregate in node.aggr_expr() {
        aggregates.push(checker.aggregate(aggregate)?);
    }
    let mut filters = Vec::with_capacity(node.filter_expr().len());
    for filter in node.filter_expr() {
        let filter = filter.as_ref().map(|filter| checker.expr(filter));
        filters.push(filter.transpose()?);
    }
    if !checker.changed {
        return Ok(None);
    }
    let keys = PhysicalGroupBy::new(
        exprs,
        keys.null_expr().to_vec(),
        keys.groups().to_vec(),
        keys.has_grouping_set(),
    );
    let input = Arc::clone(node.input());
    let schema = node.input_schema();
    let checked = AggregateExec::try_new(*node.mode(), keys, aggregates, filters, input, schema)?;
    let checked = checked.with_limit_options(node.limit_options());
    Ok(Some(Arc::new(checked)))
}

fn checked_sort(node: &SortExec) -> Checked {
    let mut checker = Checker::new(node.input().schema());
    let keys = node.expr().iter().map(|key| checker.sort_key(key));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let Some(order) = LexOrdering::new(keys).filter(|_| checker.changed) else {
        return Ok(None);
    };
    let checked = SortExec::new(order, Arc::clone(node.input()))
        .with_preserve_partitioning(node.preserve_partitioning())
        .with_fetch(node.fetch());
    Ok(Some(Arc::new(checked)))
}

fn checked_hash_join(node: &HashJoinExec) -> Checked {
    // Keys that are more than columns are computed by projections below.
    match checked_join_filter(node.filter())? {
        Some(filter) => Ok(Some(Arc::new(
            node.builder().with_filter(Some(filter)).build()?,
        ))),
        None => Ok(None),
    }
}

fn checked_nested_loop_join(node: &NestedLoopJoinExec) -> Checked {
    match checked_join_filter(node.filter())? {
        Some(filter) => {
            let builder = NestedLoopJoinExecBuilder::from(node).with_filter(Some(filter));
            Ok(Some(Arc::new(builder.build()?)))
        }
        None => Ok(None),
    }
}

fn checked_join_filter(filter: Option<&JoinFilter>) -> Result<Option<JoinFilter>> {
    let Some(filter) = filter else {
        return Ok(None);
    };
    let mut checker = Checker::new(Arc::clone(filter.schema()));
    let expr = checker.expr(filter.expression())?;
    if !checker.changed {
        return Ok(None);
    }
    let columns = filter.column_indices().to_vec();
    let schema = Arc::clone(filter.schema());
    Ok(Some(JoinFilter::new(expr, columns, schema)))
}
