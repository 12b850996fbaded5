//! `unnest(list) WITH ORDINALITY` and `generate_series(1, n) WITH ORDINALITY`: items and their places.
//!
//! In: a table of FROM. Out: a query of the items beside their places from 1 on, in the table's place.
//! Invariant: columns are named as the table's alias says, without one as PostgreSQL names them: by the function, and `ordinality`.
//! Not here: other functions in FROM, whose rows have no order to count (planned/ refuses them).

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, TableAlias, TableFactor,
};

use crate::error::Result;
use crate::sql::ast::{call, name_of, parse_query};
use crate::sql::clauses::with_columns;

/// Functions whose lists have their rows.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// Puts the query in the place of such a table.
pub(super) fn number_rows(factor: &mut TableFactor) -> Result<()> {
    let found = match factor {
        TableFactor::UNNEST {
            array_exprs,
            with_ordinality: true,
            with_offset: false,
            alias,
            ..
        } => Some((array_exprs.clone(), "unnest".to_owned(), alias.take())),
        TableFactor::Table {
            name,
            args: Some(args),
            with_ordinality: true,
            alias,
            ..
        } => {
            series(&name_of(name), &args.args).map(|(list, name)| (vec![list], name, alias.take()))
        }
        TableFactor::Function {
            name,
            args,
            with_ordinality: true,
            alias,
            ..
        } => series(&name_of(name), args).map(|(list, name)| (vec![list], name, alias.take())),
        _ => None,
    };
    if let Some((lists, name, alias)) = found {
        *factor = numbered(&lists, &name, alias)?;
    }
    Ok(())
}

/// The list that a series is, and its name.
fn series(name: &Option<String>, args: &[FunctionArg]) -> Option<(Expr, String)> {
    let name = name.as_deref().filter(|name| SERIES.contains(name))?;
    let args = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    Some((call(name, args.collect::<Option<_>>()?), name.to_owned()))
}

fn numbered(lists: &[Expr], name: &str, alias: Option<TableAlias>) -> Result<TableFactor> {
    let mut names: Vec<String> = match lists {
        [_] => vec![name.to_owned()],
        lists => (1..=lists.len()).map(|at| format!("{name}_{at}")).collect(),
    };
    let items = lists.iter().map(|list| format!("unnest({list})"));
    let items: Vec<String> = items.collect();
    let lengths: Vec<String> = lists.iter().map(|list| format!("len({list})")).collect();
    let length = match lengths.as_slice() {
        [length] => length.clone(),
        lengths => format!("greatest({})", lengths.join(", ")),
    };
    let query = format!(
        "SELECT {}, unnest(range(1, {length} + 1))",
        items.join(", ")
    );
    names.push("ordinality".to_owned());
    Ok(TableFactor::Derived {
        lateral: true,
        subquery: parse_query(&query)?,
        alias: Some(with_columns(alias, &names)),
        sample: None,
    })
}
