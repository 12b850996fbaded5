//! Aliases used again: `SELECT a + 1 AS b, b * 2 FROM t WHERE b > 3`.
//!
//! In: a SELECT, the columns of its FROM. Out: the SELECT with the expression in the place of its alias.
//! Invariant: a column of that name wins over an alias; an expression that would be computed twice with two results is
//! refused.
//! Not here: aliases in HAVING, QUALIFY, ORDER BY and, but for those of numbers, in GROUP BY, which DataFusion resolves; aliases
//! within subqueries.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, GroupByExpr, Ident, OneOrManyWithParens, Select, SelectItem,
    Subscript, UnaryOperator, Value, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{column_name, function_name, quoted, text};
use crate::sql::expand::{Catalog, Column, Scope};
use crate::sql::short_forms::accessed;
use crate::sql::walk::{Walk, each};

/// `SELECT 2 AS z … GROUP BY z` has one group. DataFusion puts 2 in the place of `z`, and then takes it for the second column.
pub(in crate::sql) fn keys_of_numbers(select: &mut Select, scope: &Scope<'_>) {
    let numbers = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if is_number(expr) => Some((alias, expr)),
        _ => None,
    });
    let numbers: Vec<_> = numbers.collect();
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
        return;
    };
    let mut columns = None;
    for key in keys {
        let Expr::Identifier(name) = &*key else {
            continue;
        };
        let same = |alias: &Ident| alias.value.eq_ignore_ascii_case(&name.value);
        let Some((_, number)) = numbers.iter().find(|(alias, _)| same(alias)) else {
            continue;
        };
        let columns = columns.get_or_insert_with(|| scope.columns_from(&select.from));
        if columns
            .as_ref()
            .is_ok_and(|columns| is_free(&name.value, columns))
        {
            // A key that is the same for all rows, and no number.
            *key = Expr::IsNull(Box::new((*number).clone()));
        }
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_number(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_number(expr),
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    }
}

/// Whether no column and no table has a name.
fn is_free(name: &str, columns: &[Column]) -> bool {
    !columns.iter().any(|column| {
        let table = column.table.last();
        column.has_name(name) || table.is_some_and(|table| table.eq_ignore_ascii_case(name))
    })
}

pub(in crate::sql) fn expand(select: &mut Select, scope: &Scope<'_>) -> Result<()> {
    if !uses_aliases(select) {
        return Ok(());
    }
    // What is wrong with FROM is DataFusion's to tell.
    let Ok(columns) = scope.columns_from(&select.from) else {
        return Ok(());
    };
    let mut known: HashMap<String, Expr> = HashMap::new();
    for item in &mut select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                substitute(expr, &known, scope.catalog)?;
                let name = alias.value.to_lowercase();
                if !is_itself(expr, alias) && is_free(&name, &columns) {
                    check_size(expr, &name)?;
                    known.entry(name).or_insert_with(|| expr.clone());
                }
            }
            SelectItem::UnnamedExpr(expr) => {
                let name = column_name(expr).map(|name| name.value.clone());
                let written = name.unwrap_or_else(|| expr.to_string());
                if substitute(expr, &known, scope.catalog)? {
                    *item = SelectItem::ExprWithAlias {
                        expr: expr.clone(),
                        alias: quoted(&written),
                    };
                }
            }
            _ => {}
        }
    }
    for condition in [&mut select.selection, &mut select.prewhere]
        .into_iter()
        .flatten()
    {
        let used = used_names(condition);
        for name in used {
            if let Some(expr) = known.get(&name) {
                check_condition(&name, expr, scope.catalog)?;
            }
        }
        substitute(condition, &known, scope.catalog)?;
    }
    Ok(())
}

/// Parts of an expression that stands in the place of its alias.
const PARTS_MAX: usize = 10_000;

/// Refuses an alias of so many parts: of `a + a AS b, b + b AS c` each has twice those of the one before.
fn check_size(expr: &mut Expr, name: &str) -> Result<()> {
    let mut parts = 0;
    let ControlFlow::Continue(()) = expr.walk(&mut each(|_| parts += 1));
    match parts > PARTS_MAX {
        true => Err(Error::unsupported(format!(
            "the alias '{name}' is made of {parts} parts with the aliases that it uses; select those in a subquery"
        ))),
        false => Ok(()),
    }
}

/// Whether an alias is the name that its column has anyway.
pub(in crate::sql) fn is_itself(expr: &Expr, alias: &Ident) -> bool {
    column_name(expr).is_some_and(|name| name.value.eq_ignore_ascii_case(&alias.value))
}

/// Whether an item behind an alias, or WHERE, has a name that the alias may be.
fn uses_aliases(select: &mut Select) -> bool {
    let mut aliases: Vec<String> = Vec::new();
    for item in &mut select.projection {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = alias.value.to_lowercase();
                let is_new = !is_itself(expr, alias);
                (expr, is_new.then_some(name))
            }
            SelectItem::UnnamedExpr(expr) => (expr, None),
            _ => continue,
        };
        if !aliases.is_empty() && used_names(expr).iter().any(|name| aliases.contains(name)) {
            return true;
        }
        aliases.extend(alias);
    }
    let conditions = [&mut select.selection, &mut select.prewhere];
    !aliases.is_empty()
        && conditions.into_iter().flatten().any(|condition| {
            used_names(condition)
                .iter()
                .any(|name| aliases.contains(name))
        })
}

/// Names that stand alone or before a dot, in lower case.
fn used_names(expr: &mut Expr) -> Vec<String> {
    let mut names = Vec::new();
    let ControlFlow::Continue(()) = expr.walk_outside_queries(&mut each(|expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(&*name),
            Expr::CompoundIdentifier(parts) => parts.first(),
            _ => None,
        };
        names.extend(name.map(|name| name.value.to_lowercase()));
    }));
    names
}

fn check_condition(name: &str, expr: &Expr, catalog: &dyn Catalog) -> Result<()> {
    let mut calls = CallSearch {
        is_wanted: |function: &Function, name: &str| {
            function.over.is_some() || catalog.is_aggregate(name)
        },
    };
    match expr.clone().walk_outside_queries(&mut calls) {
        ControlFlow::Break(function) => Err(Error::planning(format!(
            "WHERE cannot use '{name}', which is {function} of many rows; write HAVING or QUALIFY"
        ))),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Stops at a call of a function that is wanted, with its name.
struct CallSearch<F> {
    is_wanted: F,
}

impl<F: Fn(&Function, &str) -> bool> VisitorMut for CallSearch<F> {
    type Break = String;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<String> {
        match expr {
            Expr::Function(function) => match function_name(function) {
                Some(name) if (self.is_wanted)(function, &name) => ControlFlow::Break(name),
                _ => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Puts expressions in the places of their aliases; whether there was one.
fn substitute(
    expr: &mut Expr,
    known: &HashMap<String, Expr>,
    catalog: &dyn Catalog,
) -> Result<bool> {
    if known.is_empty() {
        return Ok(false);
    }
    let mut substitution = Substitution {
        known,
        catalog,
        hidden: Vec::new(),
        changed: false,
    };
    match expr.walk_outside_queries(&mut substitution) {
        ControlFlow::Continue(()) => Ok(substitution.changed),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Substitution<'a> {
    known: &'a HashMap<String, Expr>,
    catalog: &'a dyn Catalog,
    /// Parameters of the lambdas around.
    hidden: Vec<String>,
    changed: bool,
}

impl Substitution<'_> {
    fn find(&self, name: &Ident) -> Result<Option<Expr>> {
        let name = name.value.to_lowercase();
        if self.hidden.contains(&name) {
            return Ok(None);
        }
        let Some(expr) = self.known.get(&name) else {
            return Ok(None);
        };
        let mut calls = CallSearch {
            is_wanted: |_: &Function, name: &str| self.catalog.is_volatile(name),
        };
        match expr.clone().walk(&mut calls) {
            ControlFlow::Break(function) => Err(Error::unsupported(format!(
                "the alias '{name}' is used again, and {function} would give another value; select it in a subquery"
            ))),
            ControlFlow::Continue(()) => Ok(Some(Expr::Nested(Box::new(expr.clone())))),
        }
    }

    fn replaced(&self, expr: &Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::Identifier(name) => self.find(name),
            Expr::CompoundIdentifier(parts) => {
                let Some((first, fields)) = parts.split_first() else {
                    return Ok(None);
                };
                let field = |name: &Ident| {
                    AccessExpr::Subscript(Subscript::Index {
                        index: text(&name.value),
                    })
                };
                Ok(self.find(first)?.map(|root| Expr::CompoundFieldAccess {
                    root: Box::new(root),
                    access_chain: fields.iter().map(field).collect(),
                }))
            }
            Expr::CompoundFieldAccess { root, access_chain } => match root.as_ref() {
                Expr::Identifier(name) => Ok(self
                    .find(name)?
                    .map(|root| accessed(root, access_chain.clone()))),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

pub(crate) fn parameters(
    names: &OneOrManyWithParens<datafusion::sql::sqlparser::ast::LambdaFunctionParameter>,
) -> Vec<String> {
    names
        .iter()
        .map(|parameter| parameter.name.value.to_lowercase())
        .collect()
}

impl VisitorMut for Substitution<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Lambda(lambda) = expr {
            self.hidden.extend(parameters(&lambda.params));
        }
        match self.replaced(expr) {
            Ok(Some(found)) => {
                *expr = found;
                self.changed = true;
            }
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Lambda(lambda) = expr {
            let count = parameters(&lambda.params).len();
            self.hidden
                .truncate(self.hidden.len().saturating_sub(count));
        }
        ControlFlow::Continue(())
    }
}
