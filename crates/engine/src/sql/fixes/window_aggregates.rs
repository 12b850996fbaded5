//! Forms of windows that DataFusion does not plan.
//!
//! In: a parsed statement. Out: the same statement, in which `array_agg(x ORDER BY y) OVER (PARTITION BY k)` is ordered by
//! its window, over all rows of the partition. Integers are no places in that order. Frames have `INTERVAL '1' DAY` for
//! `INTERVAL 1 DAY`, and QUALIFY has a window function where only the list of columns has one.
//! Invariant: where the window has an order or a frame of its own the two orders would be different, which is an error.
//! Not here: ORDER BY in aggregates of groups, which DataFusion plans.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Interval, OrderByExpr, Select,
    SelectItem, Value, VisitorMut, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowType,
};

use crate::error::{Error, Result};
use crate::sql::ast::{parse_expr, text};
use crate::sql::naming::headers::text_of;
use crate::sql::walk::{Walk, done, first, flow, visit};

/// Writes each such form as one that DataFusion plans.
pub fn order_windows(statement: &mut Statement) -> Result<()> {
    done(visit(statement, &mut Ordering))
}

struct Ordering;

impl VisitorMut for Ordering {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(qualify_by_window(select))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expr {
            drop_constant_orders(function);
        }
        match expr {
            Expr::Function(function) if function.over.is_some() => {
                quote_intervals(function);
                order_window(function)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// DataFusion looks for windows in the list of columns when these have become columns already.
fn qualify_by_window(select: &mut Select) -> Result<()> {
    let of_item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_window(expr),
        _ => false,
    };
    if let Some(condition) = &mut select.qualify
        && !has_window(condition)
        && select.projection.iter().any(of_item)
    {
        *condition = Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(condition.clone()))),
            op: BinaryOperator::And,
            right: Box::new(parse_expr("row_number() OVER () > 0")?),
        };
    }
    Ok(())
}

pub(in crate::sql) fn has_window(expr: &Expr) -> bool {
    let is_window = |expr: &Expr| matches!(expr, Expr::Function(call) if call.over.is_some());
    expr.clone().walk(&mut first(is_window)).is_break()
}

/// An integer in the ORDER BY of an aggregate is a constant; to DataFusion it is the place of a column of the input.
fn drop_constant_orders(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    let is_number = |expr: &Expr| matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)));
    list.clauses.retain_mut(|clause| match clause {
        FunctionArgumentClause::OrderBy(order) => {
            order.retain(|key| !is_number(&key.expr));
            !order.is_empty()
        }
        _ => true,
    });
}

/// `INTERVAL 1 DAY` in a frame as `INTERVAL '1' DAY`.
fn quote_intervals(function: &mut Function) {
    let Some(WindowType::WindowSpec(window)) = &mut function.over else {
        return;
    };
    let Some(frame) = &mut window.window_frame else {
        return;
    };
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()] {
        if let Some(WindowFrameBound::Preceding(Some(by)) | WindowFrameBound::Following(Some(by))) =
            bound
            && let Expr::Interval(Interval { value, .. }) = by.as_mut()
            && let Expr::Value(number) = value.as_ref()
            && let Value::Number(number, _) = &number.value
        {
            **value = text(number);
        }
    }
}

/// Whether a call with DISTINCT is ordered by its first argument; one without by anything.
fn orders_distinct(list: &FunctionArgumentList, order: &[OrderByExpr]) -> bool {
    if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) {
        return true;
    }
    match (list.args.first(), order) {
        (Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))), [key]) => key.expr == *value,
        _ => false,
    }
}

fn order_window(function: &mut Function) -> ControlFlow<Error> {
    let text = text_of(&Expr::Function(function.clone()));
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
            if !orders_distinct(list, &window.order_by) {
                return ControlFlow::Break(Error::unsupported(format!(
                    "{text}: with DISTINCT, ORDER BY takes the first argument"
                )));
            }
            window.window_frame = Some(WindowFrame {
                units: WindowFrameUnits::Rows,
                start_bound: WindowFrameBound::Preceding(None),
                end_bound: Some(WindowFrameBound::Following(None)),
            });
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(Error::unsupported(format!(
            "{text}: ORDER BY in the arguments of an aggregate over a window stands alone, without ORDER BY, frame or \
                 window name in OVER"
        ))),
    }
}
