//! ORDER BY in the arguments of an aggregate over a window.
//!
//! In: a parsed statement. Out: the same statement, in which `array_agg(x ORDER BY y) OVER (PARTITION BY k)` is ordered by
//! its window, over all rows of the partition.
//! Invariant: where the window has an order or a frame of its own the two would be different, which is an error.
//! Not here: ORDER BY in aggregates of groups, which DataFusion plans.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArgumentClause, FunctionArguments, VisitorMut, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowType,
};

use crate::error::{Error, Result};
use crate::sql::statement::visit;

/// Moves each such order to the window.
pub fn order_windows(statement: &mut Statement) -> Result<()> {
    match visit(statement, &mut Ordering) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Ordering;

impl VisitorMut for Ordering {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(function) if function.over.is_some() => order_window(function),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn order_window(function: &mut Function) -> ControlFlow<Error> {
    let text = function.to_string();
    let FunctionArguments::List(list) = &mut function.args else {
        return ControlFlow::Continue(());
    };
    let is_order =
        |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    let Some(place) = list.clauses.iter().position(is_order) else {
        return ControlFlow::Continue(());
    };
    match &mut function.over {
        Some(WindowType::WindowSpec(window))
            if window.window_name.is_none()
                && window.order_by.is_empty()
                && window.window_frame.is_none() =>
        {
            if let FunctionArgumentClause::OrderBy(order) = list.clauses.remove(place) {
                window.order_by = order;
            }
            window.window_frame = Some(WindowFrame {
                units: WindowFrameUnits::Rows,
                start_bound: WindowFrameBound::Preceding(None),
                end_bound: Some(WindowFrameBound::Following(None)),
            });
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(Error::Unsupported {
            message: format!(
                "{text}: ORDER BY in the arguments of an aggregate over a window stands alone, without ORDER BY, frame or \
                 window name in OVER"
            ),
        }),
    }
}
