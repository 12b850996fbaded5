//! Keeps the ORDER BY below an OFFSET.
//!
//! In: a logical plan, and a physical plan before DataFusion removes and moves sorts. Out: OFFSET directly above the sort; in
//! the physical plan a node that skips rows in the order that it needs.
//! Invariant: which rows an OFFSET leaves out is decided by the order that the query gives them. DataFusion keeps a sort with a
//! number of rows to fetch; one without, below a limit that only skips, it drops, or puts one that stands above in its place.
//! Not here: LIMIT, which becomes a part of the sort.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::logical_plan::{Limit, Projection, SubqueryAlias};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties,
};

use crate::expr::plan_nodes::{node_methods, only_input};

use crate::wire::{PortableNode, WireReader, WireValue};

/// The rule for logical plans: a projection or a name between OFFSET and the sort comes after both.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Limit(limit) = &plan else {
        return Ok(Transformed::no(plan));
    };
    if limit.skip.is_none() {
        return Ok(Transformed::no(plan));
    }
    let over = |input: &Arc<LogicalPlan>| {
        Arc::new(LogicalPlan::Limit(Limit {
            input: Arc::clone(input),
            ..limit.clone()
        }))
    };
    Ok(Transformed::yes(match limit.input.as_ref() {
        LogicalPlan::Projection(above)
            if !above.expr.iter().any(Expr::is_volatile) && is_sorted(&above.input) =>
        {
            let input = over(&above.input);
            let (exprs, schema) = (above.expr.clone(), Arc::clone(&above.schema));
            let above = Projection::try_new_with_schema(exprs, input, schema)?;
            LogicalPlan::Projection(above)
        }
        LogicalPlan::SubqueryAlias(above) if is_sorted(&above.input) => {
            let above = SubqueryAlias::try_new(over(&above.input), above.alias.clone())?;
            LogicalPlan::SubqueryAlias(above)
        }
        _ => return Ok(Transformed::no(plan)),
    }))
}

fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(above) => is_sorted(&above.input),
        LogicalPlan::SubqueryAlias(above) => is_sorted(&above.input),
        _ => false,
    }
}

/// The rule for physical plans.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|plan| {
        let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() else {
            return Ok(Transformed::no(plan));
        };
        if limit.fetch().is_some() {
            return Ok(Transformed::no(plan));
        }
        let sort = limit.input().downcast_ref::<SortExec>();
        let skipping = SkipExec::new(
            Arc::clone(limit.input()),
            limit.skip(),
            sort.map(|sort| sort.expr().clone()),
        );
        Ok(Transformed::yes(Arc::new(skipping) as _))
    })
    .data()
}

/// Leaves out the first rows, in an order that it needs.
#[derive(Debug)]
pub(in crate::optimizer) struct SkipExec {
    input: Arc<dyn ExecutionPlan>,
    skip: usize,
    order: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
}

impl SkipExec {
    fn new(input: Arc<dyn ExecutionPlan>, skip: usize, order: Option<LexOrdering>) -> Self {
        let limit = GlobalLimitExec::new(Arc::clone(&input), skip, None);
        SkipExec {
            properties: Arc::clone(limit.properties()),
            input,
            skip,
            order,
        }
    }
}

impl DisplayAs for SkipExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (format, &self.order) {
            (DisplayFormatType::TreeRender, _) => write!(f, "skip={}", self.skip),
            (_, Some(order)) => write!(f, "SkipExec: skip={}, order=[{order}]", self.skip),
            (_, None) => write!(f, "SkipExec: skip={}", self.skip),
        }
    }
}

impl ExecutionPlan for SkipExec {
    node_methods!(with_new_children, no_expressions, properties, input);

    fn name(&self) -> &'static str {
        "SkipExec"
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from)]
    }

    /// It does, but then DataFusion would put a sort above it below it.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(SkipExec::new(
            only_input(self.name(), children)?,
            self.skip,
            self.order.clone(),
        )))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        GlobalLimitExec::new(Arc::clone(&self.input), self.skip, None).execute(partition, context)
    }
}

impl PortableNode for SkipExec {
    const KIND: &'static str = "skip";

    fn apart(&self) -> Result<Vec<WireValue>> {
        let schema = self.input.schema();
        let keys = self.order.iter().flat_map(|order| order.iter());
        let keys = keys.map(|key| {
            WireValue::List(vec![
                WireValue::Expression(Arc::clone(&key.expr), Arc::clone(&schema)),
                key.options.descending.into(),
                key.options.nulls_first.into(),
            ])
        });
        Ok(vec![self.skip.into(), WireValue::List(keys.collect())])
    }

    fn whole(
        children: Vec<Arc<dyn ExecutionPlan>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("SkipExec has one input");
        };
        let skip = values.count()?;
        let keys = values.each(|values| {
            let mut key = WireReader::new(values.list()?);
            let expr = key.expression()?;
            let options = SortOptions {
                descending: key.flag()?,
                nulls_first: key.flag()?,
            };
            Ok(PhysicalSortExpr { expr, options })
        })?;
        Ok(Arc::new(SkipExec::new(input, skip, LexOrdering::new(keys))))
    }
}
