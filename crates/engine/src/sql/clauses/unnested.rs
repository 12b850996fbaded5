//! Lists and series in FROM: `unnest(l)`, whose column is `unnest`, and `range(a.x)` of columns of the tables before it.
//!
//! In: the FROM of a SELECT. Out: the same tables as calls of `unnest` with the names of their columns.
//! Invariant: a name that is given stays; a series of literals stays the table that yields it row by row.
//! Not here: `unnest` in the list of columns; LATERAL queries (laterals.rs); WITH ORDINALITY (ordinality.rs).

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins,
};

use crate::sql::ast::{call, written_struct};
use crate::sql::walk::{Walk, first};

/// Functions that yield a series as a list, and as a table.
pub(in crate::sql) const SERIES: [&str; 2] = ["range", "generate_series"];

/// Writes the tables of FROM so.
pub(super) fn unnest(from: &mut [TableWithJoins]) {
    for (place, item) in from.iter_mut().enumerate() {
        rewrite(&mut item.relation, place == 0);
        for join in &mut item.joins {
            rewrite(&mut join.relation, false);
        }
    }
}

fn rewrite(factor: &mut TableFactor, is_first: bool) {
    if let Some((series, alias)) = series_of_columns(factor, is_first) {
        *factor = TableFactor::UNNEST {
            alias: Some(alias),
            array_exprs: vec![series],
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
        return;
    }
    if let TableFactor::UNNEST {
        alias, array_exprs, ..
    } = factor
        && let [unnested] = array_exprs.as_slice()
    {
        *alias = match written_struct(unnested) {
            Some(fields) => Some(with_columns(alias.take(), &fields)),
            None => Some(with_columns(alias.take(), &["unnest"])),
        };
    }
}

/// The alias with names for the columns that it does not name.
pub(in crate::sql) fn with_columns<N: AsRef<str>>(
    alias: Option<TableAlias>,
    names: &[N],
) -> TableAlias {
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(names[0].as_ref()),
        columns: Vec::new(),
        at: None,
    });
    let rest = names.iter().skip(alias.columns.len());
    let rest = rest.map(|name| TableAliasColumnDef {
        name: Ident::new(name.as_ref()),
        data_type: None,
    });
    alias.columns.extend(rest.collect::<Vec<_>>());
    alias
}

/// A series whose bounds are columns of other tables, as a list; alone in FROM a name is perhaps a macro's.
fn series_of_columns(factor: &TableFactor, is_first: bool) -> Option<(Expr, TableAlias)> {
    let (name, args, alias) = match factor {
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            with_ordinality: false,
            ..
        } => (name, &args.args, alias),
        TableFactor::Function {
            name, args, alias, ..
        } => (name, args, alias),
        _ => return None,
    };
    let [name] = name.0.as_slice() else {
        return None;
    };
    let name = name.as_ident()?.value.to_lowercase();
    let name = *SERIES.iter().find(|series| **series == name)?;
    let values = args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let values = values.collect::<Option<Vec<Expr>>>()?;
    let is_column = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(_) => true,
        Expr::Identifier(_) => !is_first,
        _ => false,
    };
    let has_column = |value: &Expr| value.clone().walk(&mut first(is_column)).is_break();
    if !values.iter().any(has_column) {
        return None;
    }
    let alias = with_columns(alias.clone(), &[name]);
    Some((call(name, values), alias))
}
