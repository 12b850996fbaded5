//! Strings of a group put together in several orders: `string_agg(x, ',' ORDER BY a), string_agg(y, ',' ORDER BY b)`.
//!
//! In: a parsed statement. Out: where one SELECT has two such orders, lists in these orders, put together as strings.
//! Invariant: NULLs are left out, and of nothing but NULLs the text is NULL, as in string_agg.
//! Not here: one order in a SELECT, in which DataFusion sorts its input.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    Select, VisitorMut,
};

use crate::sql::ast::{call, function_name, literal_text, object, text};
use crate::sql::walk::{Walk, visit};

/// Names of the aggregate.
const NAMES: [&str; 3] = ["string_agg", "group_concat", "listagg"];

/// Puts lists in their place where they stand in two orders.
pub fn order_strings(statement: &mut Statement) {
    let ControlFlow::Continue(()) = visit(statement, &mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut orders = Orders::default();
        select.walk_outside_queries(&mut orders)?;
        match orders.found.len() {
            0 | 1 => ControlFlow::Continue(()),
            _ => {
                orders.replaces = true;
                select.walk_outside_queries(&mut orders)
            }
        }
    }
}

/// The orders of a SELECT.
#[derive(Default)]
struct Orders {
    found: BTreeSet<String>,
    replaces: bool,
}

impl VisitorMut for Orders {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some((order, list)) = as_list(expr) {
            self.found.insert(order);
            if self.replaces {
                *expr = list;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The order of such an aggregate, and what it is as a list.
fn as_list(expr: &Expr) -> Option<(String, Expr)> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let is_plain = function.over.is_none() && function.within_group.is_empty();
    if !is_plain || !NAMES.contains(&function_name(function)?.as_str()) {
        return None;
    }
    let FunctionArguments::List(arguments) = &function.args else {
        return None;
    };
    let [FunctionArgumentClause::OrderBy(order)] = arguments.clauses.as_slice() else {
        return None;
    };
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    let mut values = arguments.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    let value = values.next()??;
    let separator = match values.next() {
        None => ",",
        Some(separator) => literal_text(separator?)?,
    };
    let list = Expr::Function(listed(function, value)?);
    let joined = call("array_to_string", vec![list, text(separator)]);
    Some((order.join(", "), joined))
}

/// `array_agg(x ORDER BY k) FILTER (WHERE x IS NOT NULL)`
fn listed(function: &Function, value: &Expr) -> Option<Function> {
    let mut listed = function.clone();
    listed.name = object("array_agg".into());
    let FunctionArguments::List(arguments) = &mut listed.args else {
        return None;
    };
    arguments.args.truncate(1);
    let is_there = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone()))));
    listed.filter = Some(Box::new(match listed.filter.take() {
        None => is_there,
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter)),
            op: datafusion::sql::sqlparser::ast::BinaryOperator::And,
            right: Box::new(is_there),
        },
    }));
    Some(listed)
}
