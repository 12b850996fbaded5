//! What window functions read and is another value each time becomes a column below them.
//!
//! In: a logical plan. Out: the same plan, in which arguments, keys and FILTER of window functions that call `random()` and its
//! like are columns of a projection: DataFusion evaluates a key once to sort by it and once more to find where partitions begin,
//! and fails where no column is left that it could sort.
//! Invariant: equal expressions of one node are one column, since its functions share their keys.
//! Not here: keys of ORDER BY, which are evaluated once.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Window};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule.
#[derive(Debug)]
pub(in crate::optimizer) struct VolatileWindows;

impl OptimizerRule for VolatileWindows {
    fn name(&self) -> &str {
        "volatile_windows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Window(window) if window.window_expr.iter().any(Expr::is_volatile) => {
                read_columns(&window).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn read_columns(window: &Window) -> Result<LogicalPlan> {
    let mut below = Vec::new();
    let mut functions = Vec::with_capacity(window.window_expr.len());
    for function in &window.window_expr {
        let (of, name) = function.qualified_name();
        let read = function.clone().transform_down(|part| {
            Ok(match part {
                Expr::WindowFunction(function) => {
                    Transformed::yes(Expr::WindowFunction(with_columns(function, &mut below)))
                }
                other => Transformed::no(other),
            })
        })?;
        functions.push(read.data.unalias().alias_qualified(of, name));
    }
    let kept = window.input.schema().iter().map(Column::from);
    let kept = kept.map(Expr::Column);
    let named = below.iter().enumerate();
    let named = named.map(|(number, expr): (usize, &Expr)| expr.clone().alias(name_of(number)));
    let columns = kept.chain(named).collect();
    let input = Projection::try_new(columns, Arc::clone(&window.input))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    let above = LogicalPlan::Window(Window::try_new(functions, input)?);
    let outputs = window.schema.iter().map(Column::from).map(Expr::Column);
    let outputs = Projection::try_new(outputs.collect(), Arc::new(above))?;
    Ok(LogicalPlan::Projection(outputs))
}

fn name_of(number: usize) -> String {
    format!("volatile {number}")
}

fn with_columns(mut function: Box<WindowFunction>, below: &mut Vec<Expr>) -> Box<WindowFunction> {
    let WindowFunctionParams {
        args,
        partition_by,
        order_by,
        filter,
        ..
    } = &mut function.params;
    let keys = order_by.iter_mut().map(|key| &mut key.expr);
    let filter = filter.iter_mut().map(AsMut::as_mut);
    let parts = args
        .iter_mut()
        .chain(partition_by)
        .chain(keys)
        .chain(filter);
    for part in parts.filter(|part| part.is_volatile()) {
        let known = below.iter().position(|expr| expr == part);
        let number = known.unwrap_or_else(|| {
            below.push(part.clone());
            below.len() - 1
        });
        *part = Expr::Column(Column::from_name(name_of(number)));
    }
    function
}
