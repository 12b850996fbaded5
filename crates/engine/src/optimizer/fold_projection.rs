//! The projection below an aggregation, computed by the aggregation itself.
//!
//! In: an `AggregateExec` over a `ProjectionExec`, as subqueries and views leave them. Out: the same over a projection that only
//! says which columns are read, as scans and filters take it up, with the other's expressions as keys and arguments.
//! Invariant: what is more than a column stands for a whole key, argument or FILTER, where the operator finds equal ones, and
//! never for a part of one. So nothing is computed more often, but for keys that become codes, beside arguments that are the
//! same.
//! Not here: what becomes of the expressions (exec/compiled_aggregation.rs): a CASE of literals becomes codes there.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::expr::plan_expressions::with_columns;

type Expr = Arc<dyn PhysicalExpr>;

/// The aggregation over no more than columns; `None` where it is so already, or cannot be.
pub(crate) fn folded(node: &AggregateExec) -> Result<Option<AggregateExec>> {
    let Some(projection) = node.input().downcast_ref::<ProjectionExec>() else {
        return Ok(None);
    };
    if projection
        .expr()
        .iter()
        .all(|output| output.expr.is::<Column>())
    {
        return Ok(None);
    }
    let (below, input) = ProjectedExpressions::of(projection)?;
    let schema = input.schema();
    let (Some(keys), Some(aggregates), Some(filters)) = (
        below.keys(node)?,
        below.aggregates(node, &schema)?,
        below.filters(node)?,
    ) else {
        return Ok(None);
    };
    let input = Arc::new(input);
    let folded = AggregateExec::try_new(*node.mode(), keys, aggregates, filters, input, schema)?;
    let folded = folded.with_limit_options(node.limit_options());
    Ok((folded.schema() == node.schema()).then_some(folded))
}

/// A projection's expressions, over the columns that it reads.
struct ProjectedExpressions(Vec<Expr>);

impl ProjectedExpressions {
    /// And the projection that leaves these.
    fn of(projection: &ProjectionExec) -> Result<(ProjectedExpressions, ProjectionExec)> {
        let exprs = projection.expr().iter().map(|output| &output.expr);
        let columns: BTreeSet<usize> = exprs
            .clone()
            .flat_map(collect_columns)
            .map(|column| column.index())
            .collect();
        let columns: Vec<usize> = columns.into_iter().collect();
        let schema = projection.input().schema();
        let column = |index: usize, place: usize| -> Expr {
            Arc::new(Column::new(schema.field(index).name(), place))
        };
        let read = columns.iter().map(|&index| {
            let alias = schema.field(index).name().clone();
            ProjectionExpr::new(column(index, index), alias)
        });
        let read = ProjectionExec::try_new(read, Arc::clone(projection.input()))?;
        let over_them = exprs.map(|expr| {
            with_columns(Arc::clone(expr), |of| {
                let place = columns.binary_search(&of.index());
                column(of.index(), place.unwrap_or_default())
            })
        });
        Ok((
            ProjectedExpressions(over_them.collect::<Result<_>>()?),
            read,
        ))
    }

    fn keys(&self, node: &AggregateExec) -> Result<Option<PhysicalGroupBy>> {
        let keys = node.group_expr();
        let exprs = keys.expr().iter();
        let exprs = exprs.map(|(key, name)| Ok(self.whole(key)?.map(|key| (key, name.clone()))));
        let exprs = exprs.collect::<Result<Option<Vec<_>>>>()?;
        Ok(exprs.map(|exprs| {
            let (nulls, sets) = (keys.null_expr().to_vec(), keys.groups().to_vec());
            PhysicalGroupBy::new(exprs, nulls, sets, keys.has_grouping_set())
        }))
    }

    fn aggregates(
        &self,
        node: &AggregateExec,
        schema: &SchemaRef,
    ) -> Result<Option<Vec<Arc<AggregateFunctionExpr>>>> {
        let aggregates = node.aggr_expr().iter();
        let aggregates = aggregates.map(|aggregate| self.aggregate(aggregate, schema));
        aggregates.collect()
    }

    /// Made anew: DataFusion's way to exchange arguments keeps the types of the columns that were.
    fn aggregate(
        &self,
        aggregate: &AggregateFunctionExpr,
        schema: &SchemaRef,
    ) -> Result<Option<Arc<AggregateFunctionExpr>>> {
        let arguments = aggregate.expressions();
        let arguments = arguments.iter().map(|argument| self.whole(argument));
        let Some(arguments) = arguments.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        // What orders rows is compared with the order of the input, which is one of columns.
        let order = aggregate.order_bys().iter().map(|key| {
            let expr = self.part(Arc::clone(&key.expr))?;
            Ok(expr.map(|expr| PhysicalSortExpr::new(expr, key.options)))
        });
        let Some(order) = order.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        let function = Arc::new(aggregate.fun().clone());
        let mut builder = AggregateExprBuilder::new(function, arguments)
            .schema(Arc::clone(schema))
            .alias(aggregate.name())
            .order_by(order)
            .with_distinct(aggregate.is_distinct())
            .with_ignore_nulls(aggregate.ignore_nulls())
            .with_reversed(aggregate.is_reversed());
        if let Some(name) = aggregate.human_display() {
            builder = builder.human_display(name);
        }
        if let Some(alias) = aggregate.human_display_alias() {
            builder = builder.human_display_alias(alias);
        }
        Ok(Some(Arc::new(builder.build()?)))
    }

    fn filters(&self, node: &AggregateExec) -> Result<Option<Vec<Option<Expr>>>> {
        let filters = node.filter_expr().iter();
        let filters = filters.map(|filter| match filter {
            Some(filter) => Ok(self.whole(filter)?.map(Some)),
            None => Ok(Some(None)),
        });
        filters.collect()
    }

    /// An expression of its own, which may be any of the projection's.
    fn whole(&self, expr: &Expr) -> Result<Option<Expr>> {
        match expr.downcast_ref::<Column>() {
            Some(column) => {
                let projected = &self.0[column.index()];
                Ok((!is_volatile(projected)).then(|| Arc::clone(projected)))
            }
            None => self.part(Arc::clone(expr)),
        }
    }

    /// One whose columns are columns below, too.
    fn part(&self, expr: Expr) -> Result<Option<Expr>> {
        let below = |column: &Column| &self.0[column.index()];
        if !collect_columns(&expr)
            .iter()
            .all(|column| below(column).is::<Column>())
        {
            return Ok(None);
        }
        with_columns(expr, |column| Arc::clone(below(column))).map(Some)
    }
}
