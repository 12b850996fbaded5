//! The ORDER BY of a subquery whose rows are grouped, or numbered by a window.
//!
//! In: a logical plan, in which sorts of subqueries stay for the LIMIT above them. Out: the same plan without those that
//! only a grouping reads; aggregates that depend on the order of rows, and window functions without an ORDER BY, have it as theirs.
//! Invariant: a sort with a number of rows to fetch stays, and so does one below other nodes.
//! Not here: sorts below joins and DISTINCT, which DataFusion drops.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Expr, Limit, LogicalPlan, Projection, Sort, SortExpr, SubqueryAlias, Window,
    WindowFrameUnits,
};

use crate::optimizer::fixes::bare;

/// Aggregates whose results the order of rows decides.
const ORDERED: [&str; 4] = ["array_agg", "string_agg", "first_value", "last_value"];

/// Window functions that number or choose rows in the order in which they come.
const BY_PLACE: [&str; 7] = [
    "row_number",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// The rule: DataFusion would group in the order of the sort, which takes all rows in one stream first, or forget it.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(mut groups) if is_sorted(&groups.input) => {
            if groups.aggr_expr.iter().any(|expr| is_ordered(bare(expr))) {
                return ordered_groups(&groups).map(Transformed::yes);
            }
            groups.input = Arc::new(unsorted(&groups.input)?);
            Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
        }
        LogicalPlan::Window(window)
            if is_sorted(&window.input)
                && window.window_expr.iter().any(|expr| by_place(bare(expr))) =>
        {
            ordered_window(&window).map(Transformed::yes)
        }
        plan => Ok(Transformed::no(plan)),
    }
}

fn is_ordered(expr: &Expr) -> bool {
    match expr {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            ORDERED.contains(&func.name()) && params.order_by.is_empty() && !params.distinct
        }
        _ => false,
    }
}

/// True of a window function without an order for which the order of rows matters: one of places, or one with a frame of rows.
fn by_place(expr: &Expr) -> bool {
    match expr {
        Expr::WindowFunction(function) if function.params.order_by.is_empty() => {
            // What a frame leaves out stands behind the name.
            let name = function.fun.name().split(' ').next().unwrap_or_default();
            let frame = &function.params.window_frame;
            let is_bounded = frame.units == WindowFrameUnits::Rows
                && !(frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded());
            BY_PLACE.contains(&name) || ORDERED.contains(&name) || is_bounded
        }
        _ => false,
    }
}

fn ordered_groups(groups: &Aggregate) -> Result<LogicalPlan> {
    let (input, keys) = sorted_by(&groups.input)?;
    let aggregates = groups.aggr_expr.iter().map(|expr| match bare(expr) {
        Expr::AggregateFunction(function) if is_ordered(bare(expr)) => {
            let mut function = function.clone();
            function.params.order_by = keys.clone();
            Expr::AggregateFunction(function).alias(expr.schema_name().to_string())
        }
        _ => expr.clone(),
    });
    let ordered = Aggregate::try_new_with_schema(
        Arc::new(input),
        groups.group_expr.clone(),
        aggregates.collect(),
        Arc::clone(&groups.schema),
    )?;
    Ok(LogicalPlan::Aggregate(ordered))
}

fn ordered_window(window: &Window) -> Result<LogicalPlan> {
    let (input, keys) = sorted_by(&window.input)?;
    let functions = window.window_expr.iter().map(|expr| match bare(expr) {
        Expr::WindowFunction(function) if by_place(bare(expr)) => {
            let mut function: Box<WindowFunction> = function.clone();
            function.params.order_by = keys.clone();
            let (of, name) = expr.qualified_name();
            Expr::WindowFunction(function).alias_qualified(of, name)
        }
        _ => expr.clone(),
    });
    let ordered = Window::try_new(functions.collect(), Arc::new(input))?;
    let outputs = window.schema.iter().map(Column::from).map(Expr::Column);
    let outputs = Projection::try_new(outputs.collect(), Arc::new(LogicalPlan::Window(ordered)))?;
    Ok(LogicalPlan::Projection(outputs))
}

/// A grouping whose aggregates have the order of the sort below it as theirs, if one of them depends on it. Also that of a sort
/// whose first rows LIMIT takes, for plans that lose it.
pub(in crate::optimizer::fixes) fn with_own_order(
    groups: &Aggregate,
) -> Result<Option<LogicalPlan>> {
    let mut aggregates = groups.aggr_expr.iter();
    let depends = aggregates.any(|expr| is_ordered(bare(expr)));
    match depends && is_sorted_or_cut(&groups.input) {
        true => ordered_groups(groups).map(Some),
        false => Ok(None),
    }
}

/// A sorted plan without a sort that no LIMIT needs, and what it is sorted by in columns of its own, which may be more than it had.
fn sorted_by(plan: &LogicalPlan) -> Result<(LogicalPlan, Vec<SortExpr>)> {
    match plan {
        LogicalPlan::Sort(Sort { expr, input, .. }) => {
            with_keys(columns_of(input), expr, Arc::clone(input))
        }
        LogicalPlan::Limit(limit) => match limit.input.as_ref() {
            LogicalPlan::Sort(sort) => {
                with_keys(columns_of(plan), &sort.expr, Arc::new(plan.clone()))
            }
            // It takes the same rows below these.
            above @ (LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_)) => {
                let inputs = above.inputs().into_iter().map(|input| {
                    LogicalPlan::Limit(Limit {
                        input: Arc::new(input.clone()),
                        ..limit.clone()
                    })
                });
                let inputs = inputs.collect();
                sorted_by(&above.with_new_exprs(above.expressions(), inputs)?)
            }
            _ => Ok((plan.clone(), Vec::new())),
        },
        LogicalPlan::Projection(above) => {
            let (input, keys) = sorted_by(&above.input)?;
            with_keys(above.expr.clone(), &keys, Arc::new(input))
        }
        LogicalPlan::SubqueryAlias(above) => {
            let (input, keys) = sorted_by(&above.input)?;
            let named = SubqueryAlias::try_new(Arc::new(input), above.alias.clone())?;
            let keys = keys.into_iter().map(|key| {
                let name = key.expr.qualified_name().1;
                let column = Column::new(Some(above.alias.clone()), name);
                key.with_expr(Expr::Column(column))
            });
            let keys = keys.collect();
            Ok((LogicalPlan::SubqueryAlias(named), keys))
        }
        plan => Ok((plan.clone(), Vec::new())),
    }
}

fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    let columns = plan.schema().iter().map(Column::from);
    columns.map(Expr::Column).collect()
}

/// A projection that also has the keys; those among its columns are these.
fn with_keys(
    mut columns: Vec<Expr>,
    keys: &[SortExpr],
    input: Arc<LogicalPlan>,
) -> Result<(LogicalPlan, Vec<SortExpr>)> {
    let mut above = Vec::with_capacity(keys.len());
    for (number, key) in keys.iter().enumerate() {
        let known = columns.iter().find(|column| bare(column) == &key.expr);
        let column = match known {
            Some(column) => {
                let (of, name) = column.qualified_name();
                Expr::Column(Column::new(of, name))
            }
            None => {
                let name = format!("order {number}");
                columns.push(key.expr.clone().alias(&name));
                Expr::Column(Column::from_name(name))
            }
        };
        above.push(key.with_expr(column));
    }
    let projection = Projection::try_new(columns, input)?;
    Ok((LogicalPlan::Projection(projection), above))
}

fn unsorted(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => unsorted(&sort.input),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs().into_iter().map(unsorted);
            let inputs = inputs.collect::<Result<_>>()?;
            plan.with_new_exprs(plan.expressions(), inputs)
        }
        plan => Ok(plan.clone()),
    }
}

fn is_sorted_or_cut(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(limit) => is_sorted(&limit.input),
        LogicalPlan::Projection(above) => is_sorted_or_cut(&above.input),
        LogicalPlan::SubqueryAlias(above) => is_sorted_or_cut(&above.input),
        plan => is_sorted(plan),
    }
}

fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Projection(above) => is_sorted(&above.input),
        LogicalPlan::SubqueryAlias(above) => is_sorted(&above.input),
        _ => false,
    }
}
