//! What window functions read and is another value each time, or has AND and OR of conditions that can fail, becomes a column below.
//!
//! In: a logical plan. Out: the same plan, in which such arguments, keys and FILTER of window functions are columns of a
//! projection. A projection computes conditions for the rows that need them (short_circuit.rs). DataFusion evaluates a key once
//! to sort by it and once more to find where partitions begin. It fails where no column is left that it could sort.
//! Invariant: equal expressions of one node are one column, since its functions share their keys.
//! Not here: keys of ORDER BY, which are evaluated once.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, Projection, Window};

use crate::optimizer::fixes::failing::fallible::can_fail;

/// The rule.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Window(window) => {
            let schema = window.input.schema();
            let moves = |expr: &Expr| has_to_move(expr, schema);
            match window.window_expr.iter().any(moves) {
                true => read_columns(&window).map(Transformed::yes),
                false => Ok(Transformed::no(LogicalPlan::Window(window))),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}

/// True of what is volatile, or computes AND and OR of conditions that can fail.
fn has_to_move(expr: &Expr, schema: &DFSchema) -> bool {
    let is_guarded = |part: &Expr| {
        let joins = |op| matches!(op, Operator::And | Operator::Or);
        let is_condition = matches!(part, Expr::BinaryExpr(BinaryExpr { op, .. }) if joins(*op));
        Ok(is_condition && can_fail(part, schema))
    };
    expr.is_volatile() || expr.exists(is_guarded).unwrap_or(false)
}

fn read_columns(window: &Window) -> Result<LogicalPlan> {
    let mut below = Vec::new();
    let mut functions = Vec::with_capacity(window.window_expr.len());
    for function in &window.window_expr {
        let (of, name) = function.qualified_name();
        let read = function.clone().transform_down(|part| {
            Ok(match part {
                Expr::WindowFunction(function) => {
                    let schema = window.input.schema();
                    let function = with_columns(function, &mut below, schema);
                    Transformed::yes(Expr::WindowFunction(function))
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
    format!("read by a window {number}")
}

fn with_columns(
    mut function: Box<WindowFunction>,
    below: &mut Vec<Expr>,
    schema: &DFSchema,
) -> Box<WindowFunction> {
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
    for part in parts.filter(|part| has_to_move(part, schema)) {
        let known = below.iter().position(|expr| expr == part);
        let number = known.unwrap_or_else(|| {
            below.push(part.clone());
            below.len() - 1
        });
        *part = Expr::Column(Column::from_name(name_of(number)));
    }
    function
}
