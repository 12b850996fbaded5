//! DataFusion's two-step plan for one DISTINCT argument: held back where there are other aggregates, offered what it overlooks.
//!
//! In: a plan on its way through DataFusion's `single_distinct_aggregation_to_group_by`. Out: what that rule makes of
//! it, with the user's name for the argument; the plan unchanged; or the plan with the names of its aggregates moved to a
//! projection. A `count(DISTINCT x)` in the place of `uniq_exact(x)` carries that name, and DataFusion looks for bare ones.
//! Invariant: an integer, decimal or duration sum is finished once. The two-step plan of `sum(x), count(DISTINCT y)`
//! sums x per y first: a sum per y may not fit its type where the whole sum does.
//! Not here: DISTINCT beside other aggregates in our operator, which keeps their states per key and not per pair of key
//! and y (exec/distinct_groupings.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::aggregate::native::arguments_per_field;
use crate::optimizer::fixes::{AggregatesBelow, is_datafusion, under_names};

/// DataFusion's rule with the exception above.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Aggregate(aggregate)
            if has_exact_sum(aggregate)?
                || has_many_arguments(aggregate)
                || (has_others(aggregate) || has_struct(aggregate)) && !is_datafusion(config) =>
        {
            Ok(Transformed::no(plan))
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_named_distinct) => {
            Ok(match names_on_top(aggregate)? {
                Some(named) => Transformed::yes(named),
                None => Transformed::no(plan),
            })
        }
        _ => {
            let rewritten = datafusion.rewrite(plan, config)?;
            match rewritten.transformed {
                true => rewritten.map_data(as_written),
                false => Ok(rewritten),
            }
        }
    }
}

/// What DataFusion calls the values of the DISTINCT argument.
const DISTINCT_VALUES: &str = "alias1";

/// The two steps with the name that the query has for the distinct values: an error of an aggregate says `sum(DISTINCT x)`.
fn as_written(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = &plan else {
        return Ok(plan);
    };
    let LogicalPlan::Aggregate(outer) = projection.input.as_ref() else {
        return Ok(plan);
    };
    let LogicalPlan::Aggregate(inner) = outer.input.as_ref() else {
        return Ok(plan);
    };
    let Some((Expr::Alias(values), keys)) = inner.group_expr.split_last() else {
        return Ok(plan);
    };
    let name = format!("DISTINCT {}", values.expr.human_display());
    let is_taken = |field: &Arc<Field>| *field.name() == name;
    if values.name != DISTINCT_VALUES || inner.schema.fields().iter().any(is_taken) {
        return Ok(plan);
    }
    let values = values.expr.as_ref().clone().alias(&name);
    let keys = keys.iter().cloned().chain([values]).collect();
    let inner = Aggregate::try_new(Arc::clone(&inner.input), keys, inner.aggr_expr.clone())?;
    let aggregates = outer.aggr_expr.iter().cloned();
    let aggregates = aggregates.map(|expr| of_values(expr, &name));
    let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
    let inner = Arc::new(LogicalPlan::Aggregate(inner));
    let keys = outer.group_expr.clone();
    let outer = Aggregate::try_new(inner, keys, aggregates)?;
    let columns = projection.expr.iter().zip(outer.schema.columns());
    let columns = columns.map(|(expr, column)| {
        let (relation, name) = expr.qualified_name();
        Expr::Column(column).alias_qualified(relation, name)
    });
    let columns = columns.collect();
    let outer = Arc::new(LogicalPlan::Aggregate(outer));
    Ok(LogicalPlan::Projection(Projection::try_new(
        columns, outer,
    )?))
}

/// The aggregate over the distinct values under their new name.
fn of_values(aggregate: Expr, name: &str) -> Result<Expr> {
    let renamed = aggregate.transform(|part| match &part {
        Expr::Column(column) if column.relation.is_none() && column.name == DISTINCT_VALUES => {
            let values = Column::new_unqualified(name);
            Ok(Transformed::yes(Expr::Column(values)))
        }
        _ => Ok(Transformed::no(part)),
    });
    Ok(renamed?.data)
}

fn is_named_distinct(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => match alias.expr.as_ref() {
            Expr::AggregateFunction(function) => function.params.distinct,
            _ => false,
        },
        _ => false,
    }
}

/// The aggregation with bare aggregates, each once, below a projection that gives them their names.
fn names_on_top(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let mut below = AggregatesBelow::default();
    let named = aggregate.aggr_expr.iter();
    let columns = named.map(|expr| below.column(expr.clone().unalias()));
    let columns = columns.collect();
    under_names(aggregate, below, columns)
}

fn has_others(aggregate: &Aggregate) -> bool {
    let mut aggregates = aggregate.aggr_expr.iter();
    aggregates.any(|expr| match expr.clone().unalias() {
        Expr::AggregateFunction(function) => !function.params.distinct,
        _ => true,
    })
}

/// True of `corr(DISTINCT x, x)`, whose arguments DataFusion takes for one.
fn has_many_arguments(aggregate: &Aggregate) -> bool {
    let mut aggregates = aggregate.aggr_expr.iter();
    aggregates.any(|expr| match expr.clone().unalias() {
        Expr::AggregateFunction(function) => {
            function.params.distinct && function.params.args.len() > 1
        }
        _ => false,
    })
}

/// True of `count(DISTINCT (a, b))`, whose fields are columns of a pair but would be one value of a key.
fn has_struct(aggregate: &Aggregate) -> bool {
    let is_made = |argument: &Expr| match argument {
        Expr::ScalarFunction(made) => arguments_per_field(&made.func).is_some(),
        _ => false,
    };
    let mut aggregates = aggregate.aggr_expr.iter();
    aggregates.any(|expr| match expr.clone().unalias() {
        Expr::AggregateFunction(function) => function.params.args.iter().any(is_made),
        _ => false,
    })
}

fn has_exact_sum(aggregate: &Aggregate) -> Result<bool> {
    for expr in &aggregate.aggr_expr {
        if let Expr::AggregateFunction(function) = expr
            && function.func.name() == "sum"
            && !function.params.distinct
            && !expr.get_type(aggregate.input.schema())?.is_floating()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
