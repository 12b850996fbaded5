//! The projection below an aggregation, computed by the aggregation itself.
//!
//! In: an `AggregateExec` over a `ProjectionExec`, as subqueries and views leave them. Out: the same over the projection's input,
//! with the projection's expressions as keys and arguments.
//! Invariant: nothing is computed more often: what is more than a column stands for a whole key, argument or FILTER, where the
//! operator finds equal ones, and never for a part of one.
//! Not here: what becomes of the expressions (exec/program.rs): a CASE of literals becomes codes there.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::projection::ProjectionExec;

type Expr = Arc<dyn PhysicalExpr>;

/// The aggregation over the input of the projection below it; `None` where it cannot stand there.
pub(crate) fn folded(node: &AggregateExec) -> Result<Option<AggregateExec>> {
    let Some(projection) = node.input().downcast_ref::<ProjectionExec>() else {
        return Ok(None);
    };
    let below = Below(projection);
    let (Some(keys), Some(aggregates), Some(filters)) = (
        below.keys(node)?,
        below.aggregates(node)?,
        below.filters(node)?,
    ) else {
        return Ok(None);
    };
    let input = Arc::clone(projection.input());
    let schema = input.schema();
    let folded = AggregateExec::try_new(*node.mode(), keys, aggregates, filters, input, schema)?;
    let folded = folded.with_limit_options(node.limit_options());
    Ok((folded.schema() == node.schema()).then_some(folded))
}

/// Expressions over a projection, as those over its input.
struct Below<'a>(&'a ProjectionExec);

impl Below<'_> {
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

    fn aggregates(&self, node: &AggregateExec) -> Result<Option<Vec<Arc<AggregateFunctionExpr>>>> {
        let aggregates = node.aggr_expr().iter();
        aggregates
            .map(|aggregate| self.aggregate(aggregate))
            .collect()
    }

    fn aggregate(
        &self,
        aggregate: &AggregateFunctionExpr,
    ) -> Result<Option<Arc<AggregateFunctionExpr>>> {
        // The host forgets that it has turned an aggregate around when its expressions are exchanged.
        if aggregate.is_reversed() {
            return Ok(None);
        }
        let arguments = aggregate.expressions();
        let arguments = arguments.iter().map(|argument| self.whole(argument));
        let Some(arguments) = arguments.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        // What orders rows is compared with the order of the input, which is one of columns.
        let orders = aggregate.order_bys().iter();
        let orders = orders.map(|order| self.part(Arc::clone(&order.expr)));
        let Some(orders) = orders.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        Ok(aggregate
            .with_new_expressions(arguments, orders)
            .map(Arc::new))
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
                let projected = &self.0.expr()[column.index()].expr;
                Ok((!is_volatile(projected)).then(|| Arc::clone(projected)))
            }
            None => self.part(Arc::clone(expr)),
        }
    }

    /// One whose columns are columns below, too.
    fn part(&self, expr: Expr) -> Result<Option<Expr>> {
        let below = |column: &Column| &self.0.expr()[column.index()].expr;
        if !collect_columns(&expr)
            .iter()
            .all(|column| below(column).is::<Column>())
        {
            return Ok(None);
        }
        let exchanged = expr.transform_up(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => Transformed::yes(Arc::clone(below(column))),
                None => Transformed::no(part),
            })
        });
        exchanged.data().map(Some)
    }
}
