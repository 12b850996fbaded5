//! The name of a table as a value: `SELECT emp FROM emp` is the whole row, a struct.
//!
//! In: a SELECT, the columns of its FROM. Out: the SELECT with the columns of the table in place of its name.
//! Invariant: a column of that name comes first; so does a parameter of a lambda. The name of a series or a list in FROM is its
//! value.
//! Not here: names of tables in HAVING and ORDER BY, where aliases of items stand. Nor rows that an outer join may leave out,
//! which would be NULL and not a struct of NULLs.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Join, JoinOperator, Select, SelectItem, TableFactor, TableWithJoins,
    VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{self, call, factors, quoted, text, written_struct};
use crate::sql::clauses::SERIES;
use crate::sql::expand::{Column, Scope};
use crate::sql::walk::{Walk, each_up};

pub(super) fn expand(select: &mut Select, scope: &Scope<'_>) -> Result<()> {
    let tables: Vec<(String, OuterJoinSide)> = select.from.iter().flat_map(tables_of).collect();
    let mut names = BareNames {
        tables: tables.iter().map(|(table, _)| table.clone()).collect(),
        ..BareNames::default()
    };
    for expr in values_of(select) {
        let ControlFlow::Continue(()) = expr.walk(&mut names);
    }
    let is_named = |(table, _): &&(String, OuterJoinSide)| {
        names.used.contains(table) && !names.parameters.contains(table)
    };
    let wanted: Vec<_> = tables.iter().filter(is_named).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    // What is wrong with FROM is DataFusion's to tell.
    let Ok(columns) = scope.columns_from(&select.from) else {
        return Ok(());
    };
    for (table, side) in wanted {
        if columns.iter().any(|column| column.has_name(table)) {
            continue;
        }
        let value = value_of(table, &select.from, &columns);
        if value.is_none() && *side == OuterJoinSide::MayBeNull {
            return Err(Error::unsupported(format!(
                "the whole row of '{table}', which an outer join may leave out; write its columns"
            )));
        }
        let row = value.unwrap_or_else(|| row_of(table, &columns));
        put(select, table, &row);
    }
    Ok(())
}

/// Whether an outer join may have no row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OuterJoinSide {
    Kept,
    MayBeNull,
}

/// The tables of FROM under the names that they have there.
fn tables_of(from: &TableWithJoins) -> Vec<(String, OuterJoinSide)> {
    let mut tables = vec![(name_of(&from.relation), OuterJoinSide::Kept)];
    for Join {
        relation,
        join_operator,
        ..
    } in &from.joins
    {
        let (left, right) = match join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {
                (OuterJoinSide::Kept, OuterJoinSide::MayBeNull)
            }
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => {
                (OuterJoinSide::MayBeNull, OuterJoinSide::Kept)
            }
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                (OuterJoinSide::Kept, OuterJoinSide::Kept)
            }
            _ => (OuterJoinSide::MayBeNull, OuterJoinSide::MayBeNull),
        };
        if left == OuterJoinSide::MayBeNull {
            tables.iter_mut().for_each(|(_, side)| *side = left);
        }
        tables.push((name_of(relation), right));
    }
    let named = tables.into_iter();
    named
        .filter_map(|(name, side)| Some((name?.to_lowercase(), side)))
        .collect()
}

fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.value.clone()),
            None => Some(name.0.last()?.as_ident()?.value.clone()),
        },
        TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => {
            Some(alias.as_ref()?.name.value.clone())
        }
        _ => None,
    }
}

/// The expressions in which the name of a table may stand for its row.
fn values_of(select: &mut Select) -> Vec<&mut Expr> {
    let items = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    items.chain(&mut select.selection).collect()
}

/// The column of a series or a list in FROM.
fn value_of(table: &str, from: &[TableWithJoins], columns: &[Column]) -> Option<Expr> {
    let is_named = |factor: &&TableFactor| {
        name_of(factor).is_some_and(|name| name.eq_ignore_ascii_case(table))
    };
    let gives_values = match factors(from).find(is_named)? {
        TableFactor::Table { name, args, .. } => {
            let called = args.as_ref().and_then(|_| ast::name_of(name));
            called.is_some_and(|name| SERIES.contains(&name.as_str()))
        }
        TableFactor::UNNEST { array_exprs, .. } => array_exprs
            .iter()
            .all(|list| written_struct(list).is_none()),
        _ => false,
    };
    let mut own = columns_of(table, columns);
    match (own.next(), own.next()) {
        (Some(column), None) if gives_values => Some(column.expr()),
        _ => None,
    }
}

fn columns_of<'a>(table: &str, columns: &'a [Column]) -> impl Iterator<Item = &'a Column> {
    columns.iter().filter(move |column| {
        let name = column.table.last();
        name.is_some_and(|name| name.eq_ignore_ascii_case(table))
    })
}

fn row_of(table: &str, columns: &[Column]) -> Expr {
    let own = columns_of(table, columns);
    let fields = own.flat_map(|column| [text(column.name()), column.expr()]);
    call("named_struct", fields.collect())
}

/// Puts the row in place of the name; an item that is nothing else keeps the name.
fn put(select: &mut Select, table: &str, row: &Expr) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
            && name.value.eq_ignore_ascii_case(table)
        {
            *item = SelectItem::ExprWithAlias {
                alias: quoted(&name.value),
                expr: row.clone(),
            };
        }
    }
    // In a query within, the name may be another's.
    let mut put = each_up(|expr| {
        if let Expr::Identifier(name) = expr
            && name.value.eq_ignore_ascii_case(table)
        {
            *expr = row.clone();
        }
    });
    for expr in values_of(select) {
        let ControlFlow::Continue(()) = expr.walk_outside_queries(&mut put);
    }
}

/// Names without a table, and those of parameters of lambdas.
#[derive(Default)]
struct BareNames {
    tables: BTreeSet<String>,
    used: BTreeSet<String>,
    parameters: BTreeSet<String>,
}

impl VisitorMut for BareNames {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Identifier(name) => {
                self.used.insert(name.value.to_lowercase());
            }
            // The column of a table, and what is in it.
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let (Expr::Identifier(table), Some(AccessExpr::Dot(Expr::Identifier(column)))) =
                    (root.as_ref(), access_chain.first())
                    && self.tables.contains(&table.value.to_lowercase())
                {
                    **root = Expr::CompoundIdentifier(vec![table.clone(), column.clone()]);
                    access_chain.remove(0);
                }
            }
            Expr::Lambda(lambda) => {
                let names = lambda.params.iter();
                let names = names.map(|parameter| parameter.name.value.to_lowercase());
                self.parameters.extend(names);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
