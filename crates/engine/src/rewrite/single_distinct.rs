//! The host's two-step plan for one DISTINCT argument: held back where it would sum sums, offered what it overlooks.
//!
//! In: a plan on its way through the host's `single_distinct_aggregation_to_group_by`. Out: what that rule makes of
//! it, the plan unchanged, or the plan with the names of its aggregates moved to a projection: a `count(DISTINCT x)`
//! that a rewrite put in the place of `uniq_exact(x)` carries that name, and the host looks for bare aggregates. Beside a
//! DISTINCT our operator also has `count(y)` as a sum of ones, which the host takes: the counts of y per x add up.
//! Invariant: an integer, decimal or duration sum is finished once. The two-step plan of
//! `sum(x), count(DISTINCT y)` sums x per y first: a sum per y may not fit its type where the whole sum does.
//! Not here: the same plan without such a sum, which is the host's.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, Projection, lit, when,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::options::{GroupByOperator, SessionOptions};

/// The host's rule with the exception above.
pub(super) fn rewrite(
    host: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Aggregate(aggregate) if has_exact_sum(aggregate)? => Ok(Transformed::no(plan)),
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_named_distinct) => {
            Ok(Transformed::yes(names_on_top(aggregate, &[])?))
        }
        LogicalPlan::Aggregate(aggregate) if counts_beside_distinct(aggregate) => {
            let options = config.options();
            let ours = SessionOptions::of(&options).group_by_operator != GroupByOperator::Host;
            match config.function_registry().filter(|_| ours) {
                Some(functions) => {
                    let ones = ones(aggregate, &functions.udaf("sum")?)?;
                    Ok(Transformed::yes(names_on_top(aggregate, &ones)?))
                }
                None => host.rewrite(plan, config),
            }
        }
        _ => host.rewrite(plan, config),
    }
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

/// True for counts beside DISTINCT counts of one argument, and least and greatest values perhaps.
fn counts_beside_distinct(aggregate: &Aggregate) -> bool {
    let mut distinct = Vec::new();
    let mut counts = 0;
    for expr in &aggregate.aggr_expr {
        let Expr::AggregateFunction(function) = expr else {
            return false;
        };
        let params = &function.params;
        match (function.func.name(), params.distinct) {
            ("count", true) => distinct.push(&params.args),
            ("count", false) => counts += 1,
            ("min" | "max", _) => {}
            _ => return false,
        }
        if params.filter.is_some() || !params.order_by.is_empty() {
            return false;
        }
    }
    let one_argument = distinct
        .iter()
        .all(|args| args.len() == 1 && *args == distinct[0]);
    let sets = matches!(aggregate.group_expr.first(), Some(Expr::GroupingSet(_)));
    counts > 0 && !distinct.is_empty() && one_argument && !sets
}

/// Each plain count of the aggregation and the sum of ones that it is.
fn ones(aggregate: &Aggregate, sum: &Arc<AggregateUDF>) -> Result<Vec<(Expr, Expr)>> {
    let mut ones = Vec::new();
    for expr in &aggregate.aggr_expr {
        if let Expr::AggregateFunction(function) = expr
            && function.func.name() == "count"
            && !function.params.distinct
        {
            let mut counted = None;
            for argument in &function.params.args {
                if argument.nullable(aggregate.input.schema())? {
                    let is_there = argument.clone().is_not_null();
                    counted = Some(match counted {
                        Some(others) => Expr::and(others, is_there),
                        None => is_there,
                    });
                }
            }
            let one = match counted {
                Some(counted) => when(counted, lit(1i64)).otherwise(lit(0i64))?,
                None => lit(1i64),
            };
            ones.push((expr.clone(), sum.call(vec![one])));
        }
    }
    Ok(ones)
}

/// The aggregation with bare aggregates, each once, below a projection that gives them their names. `ones` are counts with
/// sums to take their place.
fn names_on_top(aggregate: &Aggregate, ones: &[(Expr, Expr)]) -> Result<LogicalPlan> {
    let keys = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let fields: Vec<_> = aggregate.schema.iter().collect();
    let mut outputs: Vec<Expr> = fields[..keys]
        .iter()
        .map(|field| Expr::Column(Column::from(*field)))
        .collect();
    let mut bare: Vec<Expr> = Vec::new();
    for (expr, (qualifier, field)) in aggregate.aggr_expr.iter().zip(&fields[keys..]) {
        let count = expr.clone().unalias();
        let sum = ones.iter().find(|(replaced, _)| *replaced == count);
        let expr = sum.map_or(count, |(_, sum)| sum.clone());
        let name = expr.schema_name().to_string();
        let mut column = Expr::Column(Column::new_unqualified(name));
        if sum.is_some() {
            // Of no rows the count is 0, the sum NULL.
            column = coalesce(vec![column, lit(0i64)]);
        }
        outputs.push(column.alias_qualified(qualifier.cloned(), field.name()));
        if !bare.contains(&expr) {
            bare.push(expr);
        }
    }
    let below = Aggregate::try_new(
        Arc::clone(&aggregate.input),
        aggregate.group_expr.clone(),
        bare,
    )?;
    let below = Arc::new(LogicalPlan::Aggregate(below));
    Ok(LogicalPlan::Projection(Projection::try_new(
        outputs, below,
    )?))
}

fn has_exact_sum(aggregate: &Aggregate) -> Result<bool> {
    for expr in &aggregate.aggr_expr {
        if let Expr::AggregateFunction(function) = expr
            && function.func.name() == "sum"
            && !function.params.distinct
            && !function.params.args.iter().all(is_bit)
            && !expr.get_type(aggregate.input.schema())?.is_floating()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True for 0, 1 and a choice of them, whose sums are counts.
fn is_bit(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(0 | 1)), _) => true,
        Expr::Case(case) => {
            let chosen = case.when_then_expr.iter().map(|(_, then)| then);
            chosen.chain(&case.else_expr).all(|chosen| is_bit(chosen))
        }
        _ => false,
    }
}
