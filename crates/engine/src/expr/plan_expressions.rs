//! Expressions of physical nodes, exchanged one by one.
//!
//! In: a node and what to make of an expression over a schema; an expression and what to make of its columns. Out: the same node
//! with other expressions, in projections, filters, aggregations (keys, arguments, orders, FILTER), sorts, and the filters of
//! hash and nested-loop joins; the same expression over other columns.
//! Invariant: schemas stay.
//! Not here: arguments of window functions, filters of merge joins, and aggregates that DataFusion has turned around, none of
//! which can be exchanged from outside. Constants never get as far as a physical plan (constants.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;

/// What becomes of an expression over columns of a schema.
pub(crate) type Exchange<'a> =
    &'a dyn Fn(Arc<dyn PhysicalExpr>, &Schema) -> Result<Transformed<Arc<dyn PhysicalExpr>>>;

/// A node with other expressions; `None` if none of them changes.
type Exchanged = Result<Option<Arc<dyn ExecutionPlan>>>;

/// The expression with others in place of its columns.
pub(crate) fn with_columns(
    expr: Arc<dyn PhysicalExpr>,
    other: impl Fn(&Column) -> Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let exchanged = expr.transform_up(|part| {
        Ok(match part.downcast_ref::<Column>() {
            Some(column) => Transformed::yes(other(column)),
            None => Transformed::no(part),
        })
    });
    exchanged.data()
}

/// The node with what `exchange` makes of its expressions.
pub(crate) fn exchanged(
    node: Arc<dyn ExecutionPlan>,
    exchange: Exchange<'_>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    Ok(match in_node(&node, exchange)? {
        Some(exchanged) => Transformed::yes(exchanged),
        None => Transformed::no(node),
    })
}

fn in_node(node: &Arc<dyn ExecutionPlan>, exchange: Exchange<'_>) -> Exchanged {
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        in_projection(projection, exchange)
    } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
        in_filter(filter, exchange)
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        in_aggregate(aggregate, exchange, exchange)
    } else if let Some(sort) = node.downcast_ref::<SortExec>() {
        in_sort(sort, exchange)
    } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        in_hash_join(join, exchange)
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        in_nested_loop_join(join, exchange)
    } else {
        Ok(None)
    }
}

/// Exchanges the expressions of one node and remembers whether any of them has changed.
struct Exchanger<'a> {
    exchange: Exchange<'a>,
    schema: SchemaRef,
    changed: bool,
}

impl<'a> Exchanger<'a> {
    fn new(exchange: Exchange<'a>, schema: SchemaRef) -> Self {
        Self {
            exchange,
            schema,
            changed: false,
        }
    }

    fn expr(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let exchanged = (self.exchange)(Arc::clone(expr), &self.schema)?;
        self.changed |= exchanged.transformed;
        Ok(exchanged.data)
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
        let mut own = Exchanger::new(self.exchange, Arc::clone(&self.schema));
        let args = aggregate.expressions();
        let args = args.iter().map(|arg| own.expr(arg));
        let args = args.collect::<Result<Vec<_>>>()?;
        let order = aggregate.order_bys().iter().map(|key| own.expr(&key.expr));
        let order = order.collect::<Result<Vec<_>>>()?;
        // DataFusion forgets that it has turned an aggregate around when its expressions are exchanged.
        if !own.changed || aggregate.is_reversed() {
            return Ok(Arc::clone(aggregate));
        }
        match aggregate.with_new_expressions(args, order) {
            Some(exchanged) => {
                self.changed = true;
                Ok(Arc::new(exchanged))
            }
            None => Ok(Arc::clone(aggregate)),
        }
    }
}

fn in_projection(node: &ProjectionExec, exchange: Exchange<'_>) -> Exchanged {
    let mut own = Exchanger::new(exchange, node.input().schema());
    let mut exprs = Vec::with_capacity(node.expr().len());
    for output in node.expr() {
        exprs.push(ProjectionExpr {
            expr: own.expr(&output.expr)?,
            alias: output.alias.clone(),
        });
    }
    if !own.changed {
        return Ok(None);
    }
    let input = Arc::clone(node.input());
    let schema = node.schema();
    let exchanged = ProjectionExec::try_new_with_schema_metadata(exprs, input, &schema)?;
    Ok(Some(Arc::new(exchanged)))
}

fn in_filter(node: &FilterExec, exchange: Exchange<'_>) -> Exchanged {
    let mut own = Exchanger::new(exchange, node.input().schema());
    let predicate = own.expr(node.predicate())?;
    if !own.changed {
        return Ok(None);
    }
    let builder = FilterExecBuilder::from(node).with_predicate(predicate);
    Ok(Some(Arc::new(builder.build()?)))
}

/// An aggregation with what `keys` makes of its keys and `others` of all else.
pub(crate) fn in_aggregate(
    node: &AggregateExec,
    keys: Exchange<'_>,
    others: Exchange<'_>,
) -> Exchanged {
    // Arguments are expressions over the input of the first of two steps, also in the second. The second step's keys are
    // plain columns.
    let mut own_keys = Exchanger::new(keys, node.input_schema());
    let mut own = Exchanger::new(others, node.input_schema());
    let keys = node.group_expr();
    let mut exprs = Vec::with_capacity(keys.expr().len());
    for (expr, name) in keys.expr() {
        exprs.push((own_keys.expr(expr)?, name.clone()));
    }
    let mut aggregates = Vec::with_capacity(node.aggr_expr().len());
    for aggregate in node.aggr_expr() {
        aggregates.push(own.aggregate(aggregate)?);
    }
    let mut filters = Vec::with_capacity(node.filter_expr().len());
    for filter in node.filter_expr() {
        let filter = filter.as_ref().map(|filter| own.expr(filter));
        filters.push(filter.transpose()?);
    }
    if !own_keys.changed && !own.changed {
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
    let exchanged = AggregateExec::try_new(*node.mode(), keys, aggregates, filters, input, schema)?;
    let exchanged = exchanged.with_limit_options(node.limit_options());
    Ok(Some(Arc::new(exchanged)))
}

fn in_sort(node: &SortExec, exchange: Exchange<'_>) -> Exchanged {
    let mut own = Exchanger::new(exchange, node.input().schema());
    let keys = node.expr().iter().map(|key| own.sort_key(key));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let Some(order) = LexOrdering::new(keys).filter(|_| own.changed) else {
        return Ok(None);
    };
    let exchanged = SortExec::new(order, Arc::clone(node.input()))
        .with_preserve_partitioning(node.preserve_partitioning())
        .with_fetch(node.fetch());
    Ok(Some(Arc::new(exchanged)))
}

fn in_hash_join(node: &HashJoinExec, exchange: Exchange<'_>) -> Exchanged {
    // Keys that are more than columns are computed by projections below.
    match join_filter(node.filter(), exchange)? {
        Some(filter) => Ok(Some(Arc::new(
            node.builder().with_filter(Some(filter)).build()?,
        ))),
        None => Ok(None),
    }
}

fn in_nested_loop_join(node: &NestedLoopJoinExec, exchange: Exchange<'_>) -> Exchanged {
    match join_filter(node.filter(), exchange)? {
        Some(filter) => {
            let builder = NestedLoopJoinExecBuilder::from(node).with_filter(Some(filter));
            Ok(Some(Arc::new(builder.build()?)))
        }
        None => Ok(None),
    }
}

fn join_filter(filter: Option<&JoinFilter>, exchange: Exchange<'_>) -> Result<Option<JoinFilter>> {
    let Some(filter) = filter else {
        return Ok(None);
    };
    let mut own = Exchanger::new(exchange, Arc::clone(filter.schema()));
    let expr = own.expr(filter.expression())?;
    if !own.changed {
        return Ok(None);
    }
    let columns = filter.column_indices().to_vec();
    let schema = Arc::clone(filter.schema());
    Ok(Some(JoinFilter::new(expr, columns, schema)))
}
