//! Casts and subqueries that show in names, for statements in which they tell columns apart.
//!
//! In: a statement in which two columns have one name. Out: the statement with each cast, each AT TIME ZONE and each subquery
//! under its text as its name: `sum(x)` beside `sum(CAST(x AS DOUBLE))`. To DataFusion all subqueries have one name, too.
//! Invariant: equal casts have equal names, however they are written, so GROUP BY and SELECT still agree; values stay.
//! Not here: names that are there twice for other reasons (repeated_names.rs).

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value, VisitorMut,
};

use crate::functions::AS_WRITTEN;
use crate::sql::naming::repeated_names::zoned;
use crate::sql::walk::{Walk, each_up, visit};

/// Names all casts and subqueries; false if there is none without a name.
pub fn name_casts(statement: &mut Statement) -> bool {
    let mut naming = CastNames {
        has_named: false,
        is_named: 0,
    };
    let ControlFlow::Continue(()) = visit(statement, &mut naming);
    naming.has_named
}

struct CastNames {
    has_named: bool,
    /// How many names are around the expression that is being visited: inside there is nothing to do.
    is_named: usize,
}

impl VisitorMut for CastNames {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.is_named += usize::from(named(expr).is_some());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        // ANY and ALL want a subquery as it is; the comparison is named.
        if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expr
            && let Some(subquery) = unnamed(right)
        {
            **right = subquery;
        }
        if named(expr).is_some() {
            self.is_named -= 1;
        } else if self.is_named == 0
            && let Some(text) = text_of(expr)
        {
            *expr = naming(expr.clone(), text);
            self.has_named = true;
        }
        ControlFlow::Continue(())
    }
}

/// The text of a cast or a subquery, without names within.
fn text_of(expr: &Expr) -> Option<String> {
    let unnamed = |expr: &Expr| {
        let mut expr = expr.clone();
        let ControlFlow::Continue(()) = expr.walk(&mut each_up(|expr| {
            if let Some(text) = named(expr) {
                *expr = Expr::Identifier(Ident::new(text));
            }
        }));
        expr
    };
    match expr {
        Expr::Cast {
            kind,
            expr,
            data_type,
            ..
        } => {
            let name = match kind {
                CastKind::TryCast | CastKind::SafeCast => "TRY_CAST",
                CastKind::Cast | CastKind::DoubleColon => "CAST",
            };
            Some(format!("{name}({} AS {data_type})", unnamed(expr)))
        }
        Expr::Exists { .. }
        | Expr::InSubquery { .. }
        | Expr::Subquery(_)
        | Expr::TypedString(_) => Some(unnamed(expr).to_string()),
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. }
            if matches!(right.as_ref(), Expr::Subquery(_)) =>
        {
            Some(unnamed(expr).to_string())
        }
        Expr::Function(function) => {
            let [value, zone] = zoned(function)?;
            Some(format!("{} AT TIME ZONE {zone}", unnamed(&value)))
        }
        _ => None,
    }
}

/// What is under a name.
fn unnamed(expr: &Expr) -> Option<Expr> {
    named(expr)?;
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))) => Some(inner.clone()),
        _ => None,
    }
}

/// The name, if the expression is one under its text.
fn named(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let is_ours = function.name.0.last()?.as_ident()?.value == AS_WRITTEN;
    match list.args.as_slice() {
        [
            _,
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(text))),
        ] if is_ours => text.value.clone().into_string(),
        _ => None,
    }
}

fn naming(expr: Expr, text: String) -> Expr {
    let text = Expr::value(Value::SingleQuotedString(text));
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(AS_WRITTEN)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument(expr), argument(text)],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
