//! Clauses that DataFusion does not plan, as clauses that it does.
//!
//! In: a parsed statement. Out: the same question. FROM first is SELECT *, PREWHERE is WHERE, `WITH ROLLUP` and its kind
//! are grouping sets, FETCH, TOP and percentages are LIMIT or a window. Named windows stand where they are used, `^` is
//! power.
//! Invariant: what is left of a clause here is what planned/ judges; nothing is dropped that changes an answer.
//! Not here: tokens that the parser does not take (token_forms.rs); samples (samples.rs); conveniences of the select list.

mod groupings;
mod json_tables;
mod laterals;
mod row_limits;
mod sources;
mod unnested;
mod windows;

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart, OrderByExpr,
    OrderByOptions, Query, Select, SelectItem, Statement as SqlStatement, Visit, Visitor,
    VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::error::{Error, Result};
use crate::sql::ast::{cast, position_of, select_of};
use crate::sql::walk::{done, flow, visit};
pub(crate) use laterals::LATERAL_TABLE;
pub(super) use unnested::{SERIES, with_columns};

/// Rewrites all clauses of a statement that have another form.
pub(crate) fn rewrite(statement: &mut DataFusionStatement) -> Result<()> {
    done(visit(statement, &mut Rewriting))
}

struct Rewriting;

impl VisitorMut for Rewriting {
    type Break = Error;

    /// Tables and views of a session are gone with it, so TEMPORARY says nothing.
    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<Error> {
        match statement {
            SqlStatement::CreateTable(table) => table.temporary = false,
            SqlStatement::CreateView(view) => view.temporary = false,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        sources::select_from_first(&mut query.body);
        let rewritten = sources::wrap_recursive(query)
            .and_then(|()| row_limits::top_as_fetch(query))
            .and_then(|()| row_limits::order_by_all(query))
            .and_then(|()| windows::use_named(query))
            .and_then(|()| groupings::totals_last(query))
            .and_then(|()| row_limits::limit(query));
        flow(rewritten)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        sources::prewhere(select);
        let tables = json_tables::elements(&mut select.from);
        if let Err(error) = tables.and_then(|()| laterals::mark(&mut select.from)) {
            return ControlFlow::Break(error);
        }
        laterals::join_laterals(&mut select.from);
        unnested::unnest(&mut select.from);
        flow(windows::within(select).and_then(|_| groupings::sets(select)))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::BinaryOp {
            left,
            op: BinaryOperator::PGExp,
            right,
        } = expr
        {
            let sides = [left, right].map(|side| double(side.as_ref().clone()));
            *expr = call("power", sides.to_vec());
        }
        if let Expr::Function(function) = expr
            && let Some(counted) = windows::within_frame(function)
        {
            *expr = counted;
        }
        ControlFlow::Continue(())
    }
}

/// A clause that has no other form here; `near` is where it or its query stands.
fn refused(message: impl Into<String>, near: Span) -> Error {
    Error::UnsupportedClause {
        message: message.into(),
        position: position_of(near.start),
    }
}

/// A call of a function with plain arguments.
fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(name, args))
}

fn function(name: &str, args: Vec<Expr>) -> Function {
    let args = args.into_iter();
    Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args
                .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
                .collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

fn double(expr: Expr) -> Expr {
    cast(expr, DataType::Double(ExactNumberInfo::None))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

/// A key of ORDER BY in ascending order.
fn ascending(expr: Expr) -> OrderByExpr {
    OrderByExpr {
        expr,
        options: OrderByOptions {
            asc: None,
            nulls_first: None,
        },
        with_fill: None,
    }
}

/// The expression of the item of a select list that an ordinal or an alias stands for, else the expression itself.
fn meant(expr: &Expr, projection: &[SelectItem]) -> Option<Expr> {
    if let Some(ordinal) = ordinal(expr) {
        let before = projection.get(..ordinal)?;
        return match (before.iter().any(is_wildcard), before.last()?) {
            (false, SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                Some(expr.clone())
            }
            _ => None,
        };
    }
    let Expr::Identifier(name) = expr else {
        return Some(expr.clone());
    };
    let named = projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if same(alias, name) => Some(expr.clone()),
        _ => None,
    });
    Some(named.unwrap_or_else(|| expr.clone()))
}

/// The place that `2` in ORDER BY or GROUP BY means.
fn ordinal(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => value.value.to_string().parse().ok(),
        _ => None,
    }
}

fn same(one: &Ident, other: &Ident) -> bool {
    match (one.quote_style, other.quote_style) {
        (Some(_), Some(_)) => one.value == other.value,
        _ => one.value.eq_ignore_ascii_case(&other.value),
    }
}

/// Whether an item of a select list may be several columns.
pub(super) fn is_wildcard(item: &SelectItem) -> bool {
    match item {
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        SelectItem::UnnamedExpr(expr)
        | SelectItem::ExprWithAlias { expr, .. }
        | SelectItem::ExprWithAliases { expr, .. } => expr.visit(&mut Many).is_break(),
    }
}

/// Stops at a call that may make several columns.
struct Many;

impl Visitor for Many {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let many = |function: &Function| {
            let name = function.name.to_string().to_lowercase();
            matches!(name.as_str(), "columns" | "unnest")
        };
        match expr {
            Expr::Function(function) if many(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
