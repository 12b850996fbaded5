//! Fields of a struct of the query around a subquery: `s.v`, where s is a column of a table out there.
//!
//! In: DataFusion's error that it does not plan such a name, and the parsed statement. Out: the statement with `s['v']` in its place;
//! DataFusion can be asked again.
//! Invariant: a name is taken for a field only where DataFusion has found the column, and in no query that has a table of its name.
//! Each change leaves a name less, so that asking again comes to an end.
//! Not here: names of a table, a column and a field (fixes/dotted_fields.rs).

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::common::{Column, DataFusionError};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, Query, Select, SelectItem, Subscript, VisitorMut,
};

use crate::sql::ast::text;
use crate::sql::expand::outer_names::has_table;
use crate::sql::walk::visit;

/// How DataFusion's error begins; the column's name follows.
const REFUSED: &str = "Nested identifiers are not yet supported for OuterReferenceColumn ";

/// Writes accesses for the names that `error` complains about; false if it is about something else.
pub(crate) fn access_fields(statement: &mut Statement, error: &DataFusionError) -> bool {
    let DataFusionError::NotImplemented(message) = error.find_root() else {
        return false;
    };
    let Some(column) = message.strip_prefix(REFUSED) else {
        return false;
    };
    let mut fields = OuterFields {
        column: Column::from_qualified_name(column).name.to_lowercase(),
        hides: Vec::new(),
        changed: false,
    };
    let ControlFlow::Continue(()) = visit(statement, &mut fields);
    fields.changed
}

struct OuterFields {
    /// In lower case.
    column: String,
    /// Whether each query around the place of the walk has a table of that name.
    hides: Vec<bool>,
    changed: bool,
}

impl OuterFields {
    /// How many parts of a name are those of the column.
    fn parts_of_column(&self, parts: &[Ident]) -> Option<usize> {
        let is_column = |part: &Ident| part.value.to_lowercase() == self.column;
        match parts {
            _ if self.hides.contains(&true) => None,
            [column, _, ..] if is_column(column) => Some(1),
            [_, column, _, ..] if is_column(column) => Some(2),
            _ => None,
        }
    }
}

impl VisitorMut for OuterFields {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.hides.push(has_table(&query.body, &self.column));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.hides.pop();
        ControlFlow::Continue(())
    }

    /// A column of a field has the field's name.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(_)) = item
                && let Expr::CompoundIdentifier(parts) = expr
                && self.parts_of_column(parts).is_some()
                && let Some(alias) = parts.last().cloned()
            {
                let expr = expr.clone();
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(number) = self.parts_of_column(parts)
        {
            let fields = parts.split_off(number).into_iter();
            let mut column = std::mem::take(parts);
            let root = match (number, column.pop()) {
                (1, Some(column)) => Expr::Identifier(column),
                (_, last) => {
                    column.extend(last);
                    Expr::CompoundIdentifier(column)
                }
            };
            // As DataFusion has names: in small letters unless they are in quotes.
            let access = |field: Ident| {
                let name = match field.quote_style {
                    Some(_) => field.value,
                    None => field.value.to_lowercase(),
                };
                AccessExpr::Subscript(Subscript::Index { index: text(&name) })
            };
            *expr = Expr::CompoundFieldAccess {
                root: Box::new(root),
                access_chain: fields.map(access).collect(),
            };
            self.changed = true;
        }
        ControlFlow::Continue(())
    }
}
