//! Named windows where they are used, as their definitions: `sum(x) OVER w … WINDOW w AS (…)`.
//!
//! In: a query. Out: the query with the definition in the place of each name, also in QUALIFY and ORDER BY, where
//! DataFusion takes a named window for none. `OVER (w ORDER BY x)` is `w` with an order.
//! Invariant: a name that no WINDOW defines stays, for planned/ to refuse. Frames that DataFusion does not take,
//! or counts wrongly over, are in other forms here, too.
//! Not here: what a window contains (planned/).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query,
    Select, SelectItem, VisitorMut, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};

use super::{refused, same, select_of};
use crate::error::{Error, Result};
use crate::sql::ast::{function_name, number, parse_expr, plain_arguments, position_of};
use crate::sql::fixes::exclusions::is_mark;
use crate::sql::walk::{Walk, done};

/// More rows than there are.
const FAR_ROWS: i64 = 1 << 50;

/// Puts definitions in the places of names, also in the order of a query.
pub(super) fn use_named(query: &mut Query) -> Result<()> {
    let Some(select) = select_of(query) else {
        return Ok(());
    };
    let Some(mut naming) = within(select)? else {
        return Ok(());
    };
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        for key in keys {
            done(key.expr.walk_outside_queries(&mut naming))?;
        }
    }
    Ok(())
}

/// Puts definitions in the places of names in a SELECT; its windows, if it has any.
pub(super) fn within(select: &mut Select) -> Result<Option<WindowNames>> {
    let definitions = std::mem::take(&mut select.named_window);
    if definitions.is_empty() {
        return Ok(None);
    }
    let mut naming = WindowNames {
        windows: definitions_of(&definitions)?,
    };
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr)
            | SelectItem::ExprWithAlias { expr, .. }
            | SelectItem::ExprWithAliases { expr, .. } => {
                done(expr.walk_outside_queries(&mut naming))?
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {}
        }
    }
    if let Some(expr) = &mut select.qualify {
        done(expr.walk_outside_queries(&mut naming))?;
    }
    if let Some(Distinct::On(exprs)) = &mut select.distinct {
        for expr in exprs {
            done(expr.walk_outside_queries(&mut naming))?;
        }
    }
    Ok(Some(naming))
}

/// A function over a frame that DataFusion does not take as it is: the frame is changed, or another expression is the function.
pub(super) fn within_frame(function: &mut Function) -> Option<Expr> {
    let Some(WindowType::WindowSpec(window)) = &mut function.over else {
        return None;
    };
    let frame = window.window_frame.as_mut()?;
    write_empty_frame(frame);
    let is_count = matches!(
        function_name(function).as_deref(),
        Some("count" | "count_if")
    );
    match is_count {
        true => bounded_count(function),
        false => None,
    }
}

/// A frame that ends before it begins has no rows; DataFusion takes it for a mistake.
fn write_empty_frame(frame: &mut WindowFrame) {
    use WindowFrameBound::{Following, Preceding};
    let rows = |bound: &Option<Box<Expr>>| bound.as_deref().and_then(super::ordinal);
    let is_empty = match (&frame.start_bound, &frame.end_bound) {
        (Preceding(from), Some(Preceding(to))) => {
            rows(from).zip(rows(to)).is_some_and(|(from, to)| from < to)
        }
        (Following(from), Some(Following(to))) => {
            rows(from).zip(rows(to)).is_some_and(|(from, to)| from > to)
        }
        _ => false,
    };
    let far = |rows| Preceding(Some(Box::new(number(rows))));
    if is_empty {
        // So far before any row there is none.
        *frame = WindowFrame {
            units: WindowFrameUnits::Rows,
            start_bound: far(FAR_ROWS + 1),
            end_bound: Some(far(FAR_ROWS)),
        };
    }
}

/// A count over a frame from the first row on that ends before the current one. DataFusion counts NULL as long as such a frame is
/// empty, of one with two bounds 0. A bound of a RANGE has the type of its key; there the count is a sum.
fn bounded_count(function: &mut Function) -> Option<Expr> {
    use WindowFrameBound::Preceding;
    let Some(WindowType::WindowSpec(window)) = &mut function.over else {
        return None;
    };
    let frame = window.window_frame.as_mut()?;
    let is_growing = matches!(
        (&frame.start_bound, &frame.end_bound),
        (Preceding(None), Some(Preceding(Some(_))))
    );
    if !is_growing {
        return None;
    }
    if frame.units != WindowFrameUnits::Range {
        frame.start_bound = Preceding(Some(Box::new(number(FAR_ROWS))));
        return None;
    }
    let is_counted = match function_name(function)?.as_str() {
        "count_if" => plain_arguments(function)?.first()?.to_string(),
        _ => match plain_arguments(function) {
            Some(arguments) => match arguments.first() {
                Some(argument) => format!("({argument}) IS NOT NULL"),
                None => "TRUE".to_string(),
            },
            None if function.args.to_string() == "(*)" => "TRUE".to_string(),
            None => return None,
        },
    };
    let text = format!("sum(CASE WHEN {is_counted} THEN 1 ELSE 0 END)");
    let Ok(Expr::Function(mut sum)) = parse_expr(&text) else {
        return None;
    };
    sum.over = function.over.take();
    sum.filter = function.filter.take();
    parse_expr(&format!("coalesce(CAST({sum} AS BIGINT), 0)")).ok()
}

/// Each window with what it takes from the windows before it.
fn definitions_of(definitions: &[NamedWindowDefinition]) -> Result<Vec<(Ident, WindowSpec)>> {
    let mut windows: Vec<(Ident, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, definition) in definitions {
        if windows.iter().any(|(other, _)| same(other, name)) {
            let message = format!("window '{}' is defined twice", name.value);
            return Err(Error::Planning {
                message,
                position: position_of(name.span.start),
            });
        }
        let window = match definition {
            NamedWindowExpr::NamedWindow(base) => found(&windows, base)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => complete(&windows, spec)?,
        };
        windows.push((name.clone(), window));
    }
    Ok(windows)
}

fn found<'a>(windows: &'a [(Ident, WindowSpec)], name: &Ident) -> Result<&'a WindowSpec> {
    let window = windows.iter().find(|(other, _)| same(other, name));
    window
        .map(|(_, window)| window)
        .ok_or_else(|| Error::Planning {
            message: format!("window '{}' is not defined", name.value),
            position: position_of(name.span.start),
        })
}

/// A window that begins with the name of another has that one's partitions, and its order where it has one. What its frame leaves out
/// is marked among the partitions.
fn complete(windows: &[(Ident, WindowSpec)], spec: &WindowSpec) -> Result<WindowSpec> {
    let Some(name) = &spec.window_name else {
        return Ok(spec.clone());
    };
    let base = found(windows, name)?;
    let clash = !spec.partition_by.iter().all(is_mark)
        || (!base.order_by.is_empty() && !spec.order_by.is_empty())
        || base.window_frame.is_some();
    if clash {
        let message = format!(
            "a window on '{0}' that changes the partitions, the order or the frame of '{0}'; write it out",
            name.value
        );
        return Err(refused(message, name.span));
    }
    Ok(WindowSpec {
        window_name: None,
        partition_by: [base.partition_by.clone(), spec.partition_by.clone()].concat(),
        order_by: match spec.order_by.is_empty() {
            true => base.order_by.clone(),
            false => spec.order_by.clone(),
        },
        window_frame: spec.window_frame.clone(),
    })
}

/// The windows of a SELECT.
pub(super) struct WindowNames {
    windows: Vec<(Ident, WindowSpec)>,
}

impl VisitorMut for WindowNames {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let window = match &function.over {
            Some(WindowType::NamedWindow(name)) => found(&self.windows, name).cloned(),
            Some(WindowType::WindowSpec(spec)) => complete(&self.windows, spec),
            None => return ControlFlow::Continue(()),
        };
        match window {
            Ok(window) => {
                function.over = Some(WindowType::WindowSpec(window));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}
