//! `FROM json_each(j)` and `json_tree(j, '$.a')`: the elements of JSON as rows, also of columns of the tables before.
//!
//! In: the FROM of a SELECT. Out: the same tables as queries over `unnest` of a function's list.
//! Invariant: columns that are not named have DuckDB's names, and a table without a name has that of its function.
//! Not here: what the rows are (functions/scalar/json_elements.rs).

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, TableAlias, TableFactor, TableWithJoins,
};

use super::unnested::with_columns;
use crate::error::Result;
use crate::functions::{JSON, JSON_EACH, JSON_ELEMENT, JSON_TREE};
use crate::sql::ast::{derived, name_of, parse_query};
use crate::sql::short_forms::quoted_call;

/// Writes the tables of FROM so.
pub(super) fn elements(from: &mut [TableWithJoins]) -> Result<()> {
    for (place, item) in from.iter_mut().enumerate() {
        rewrite(&mut item.relation, place == 0)?;
        for join in &mut item.joins {
            rewrite(&mut join.relation, false)?;
        }
    }
    Ok(())
}

/// The first table of FROM sees none beside it.
fn rewrite(factor: &mut TableFactor, is_first: bool) -> Result<()> {
    let (name, args, alias) = match factor {
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            with_ordinality: false,
            ..
        } => (&*name, &args.args, &*alias),
        TableFactor::Function {
            name, args, alias, ..
        } => (&*name, &*args, &*alias),
        _ => return Ok(()),
    };
    let called = name_of(name).unwrap_or_default();
    let function = match called.as_str() {
        "json_each" => JSON_EACH,
        "json_tree" => JSON_TREE,
        _ => return Ok(()),
    };
    let values = args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let Some(mut values) = values.collect::<Option<Vec<Expr>>>() else {
        return Ok(());
    };
    let Some(json) = values.first_mut() else {
        return Ok(());
    };
    *json = quoted_call(JSON, vec![json.clone()]);
    let list = quoted_call(function, values);
    let items = JSON_ELEMENT.map(|name| format!("\"element\"['{name}'] AS \"{name}\""));
    let query = format!(
        "SELECT {} FROM unnest({list}) AS \"elements\"(\"element\")",
        items.join(", ")
    );
    let alias = alias.clone().unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(called),
        columns: Vec::new(),
        at: None,
    });
    *factor = derived(parse_query(&query)?, None);
    if let TableFactor::Derived {
        lateral,
        alias: named,
        ..
    } = factor
    {
        *lateral = !is_first;
        *named = Some(with_columns(Some(alias), &JSON_ELEMENT));
    }
    Ok(())
}
