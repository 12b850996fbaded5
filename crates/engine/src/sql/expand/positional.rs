//! POSITIONAL JOIN: rows of two tables side by side, the first with the first.
//!
//! In: `GLOBAL CROSS JOIN`, which table_forms.rs puts for it. Out: a full join of row numbers, which `*` does not show.
//! Invariant: the numbers count rows as they are read; the session runs such a statement in one partition and refuses it
//! where a table has several, whose order nobody knows.
//! Not here: that check (session/mod.rs).

use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Select, TableAlias, TableFactor, TableWithJoins,
};

use crate::error::{Error, Result};
use crate::sql::ast::{derived, parse_expr, parse_query, quoted};
use crate::sql::expand::hidden;
use crate::sql::expand::pivot::set_alias;

/// Whether a join is a positional one.
pub(super) fn is_positional(join: &Join) -> bool {
    join.global && matches!(join.join_operator, JoinOperator::CrossJoin(_))
}

pub(super) fn expand(select: &mut Select) -> Result<()> {
    let mut names = Vec::new();
    for table in &mut select.from {
        if table.joins.iter().any(is_positional) {
            if !table.joins.iter().all(is_positional) {
                return Err(Error::unsupported(
                    "POSITIONAL JOIN beside other joins; put it into a subquery",
                ));
            }
            join(table, &mut names)?;
        }
    }
    if !names.is_empty() {
        hidden::hide(select, &names, None);
    }
    Ok(())
}

fn join(table: &mut TableWithJoins, names: &mut Vec<String>) -> Result<()> {
    let first = hidden::name_of(hidden::ROW, names.len());
    table.relation = numbered(&table.relation, &first)?;
    let mut before = quoted(&first).to_string();
    names.push(first);
    for join in &mut table.joins {
        let name = hidden::name_of(hidden::ROW, names.len());
        join.relation = numbered(&join.relation, &name)?;
        join.global = false;
        let own = quoted(&name).to_string();
        let condition = parse_expr(&format!("{before} = {own}"))?;
        join.join_operator = JoinOperator::FullOuter(JoinConstraint::On(condition));
        before = format!("coalesce({before}, {own})");
        names.push(name);
    }
    Ok(())
}

/// A table with the numbers of its rows.
fn numbered(factor: &TableFactor, name: &str) -> Result<TableFactor> {
    let query = format!(
        "SELECT *, row_number() OVER () AS {} FROM {factor}",
        quoted(name)
    );
    let mut numbered = derived(parse_query(&query)?, None);
    set_alias(&mut numbered, alias_of(factor));
    Ok(numbered)
}

/// The name that a table goes by.
pub(super) fn alias_of(factor: &TableFactor) -> Option<TableAlias> {
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(TableAlias {
            columns: Vec::new(),
            ..alias.clone()
        }),
        TableFactor::Table { name, .. } => {
            let name = name.0.last()?.as_ident()?.clone();
            Some(TableAlias {
                explicit: true,
                name,
                columns: Vec::new(),
                at: None,
            })
        }
        _ => None,
    }
}
