//! Common tables before INSERT, UPDATE, DELETE and MERGE: `WITH n AS (…) UPDATE t SET v = n.v FROM n`.
//!
//! In: a parsed statement, which is such a query for the parser. Out: the statement, with the common tables in each of its queries.
//! Invariant: the table that is changed is none of them.
//! Not here: what the statements do.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    FromTable, Ident, Query, SetExpr, Statement as SqlStatement, TableAlias, TableFactor,
    VisitorMut, With,
};

use crate::error::{Error, Result};
use crate::sql::ast::{around, parse_query};
use crate::sql::fixes::inner_values::set_apart_within;
use crate::sql::walk::{Walk, done, flow};

/// Moves the common tables of a statement that writes into its queries.
pub(in crate::sql) fn move_inside(statement: &mut DataFusionStatement) -> Result<()> {
    match statement {
        DataFusionStatement::Statement(statement) => in_statement(statement),
        DataFusionStatement::Explain(explain) => move_inside(&mut explain.statement),
        _ => Ok(()),
    }
}

fn in_statement(statement: &mut SqlStatement) -> Result<()> {
    if let SqlStatement::Explain { statement, .. } = statement {
        return in_statement(statement);
    }
    let SqlStatement::Query(query) = statement else {
        return Ok(());
    };
    let Query {
        with: Some(with),
        body,
        ..
    } = query.as_mut()
    else {
        return Ok(());
    };
    let (SetExpr::Insert(inner)
    | SetExpr::Update(inner)
    | SetExpr::Delete(inner)
    | SetExpr::Merge(inner)) = body.as_mut()
    else {
        return Ok(());
    };
    for table in &mut with.cte_tables {
        set_apart_within(&mut table.query)?;
    }
    let (mut inner, with) = (inner.clone(), with.clone());
    if let Some(changed) = changed_table(&inner)
        && named(&with, changed).is_some()
    {
        return Err(Error::UnsupportedClause {
            message: format!(
                "a table of WITH as the one that is changed; give '{changed}' in WITH another name"
            ),
            position: None,
        });
    }
    done(inner.walk(&mut CommonTables { with, queries: 0 }))?;
    *statement = inner;
    Ok(())
}

/// The name of the table that is changed, if it stands where tables that are read do.
fn changed_table(statement: &SqlStatement) -> Option<&Ident> {
    match statement {
        SqlStatement::Update(update) => only_name(&update.table.relation),
        SqlStatement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            only_name(&from.first()?.relation)
        }
        SqlStatement::Merge(merge) => only_name(&merge.table),
        _ => None,
    }
}

/// The name of a table, if it has one part.
fn only_name(table: &TableFactor) -> Option<&Ident> {
    match table {
        TableFactor::Table {
            name, args: None, ..
        } => match name.0.as_slice() {
            [only] => only.as_ident(),
            _ => None,
        },
        _ => None,
    }
}

/// The common table of this name, if there is one.
fn named<'a>(with: &'a With, name: &Ident) -> Option<&'a Ident> {
    let mut tables = with.cte_tables.iter().map(|cte| &cte.alias.name);
    tables.find(|table| match (table.quote_style, name.quote_style) {
        (None, None) => table.value.eq_ignore_ascii_case(&name.value),
        (Some(_), None) => table.value == name.value.to_lowercase(),
        (None, Some(_)) => table.value.to_lowercase() == name.value,
        (Some(_), Some(_)) => table.value == name.value,
    })
}

struct CommonTables {
    with: With,
    /// The queries around the place.
    queries: usize,
}

impl VisitorMut for CommonTables {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if self.queries == 0 {
            if query.with.is_some() {
                *query = around(query.clone());
            }
            query.with = Some(self.with.clone());
        }
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    /// A common table that the statement itself names is a query of it, which is visited next.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        let Some(name) = only_name(factor).filter(|name| named(&self.with, name).is_some()) else {
            return ControlFlow::Continue(());
        };
        let (name, written) = (name.clone(), factor.clone());
        flow(
            parse_query(&format!("SELECT * FROM {name}")).map(|subquery| {
                let alias = match written {
                    TableFactor::Table { alias, .. } => alias,
                    _ => None,
                };
                let alias = alias.unwrap_or(TableAlias {
                    explicit: true,
                    name,
                    columns: Vec::new(),
                    at: None,
                });
                *factor = TableFactor::Derived {
                    lateral: false,
                    subquery,
                    alias: Some(alias),
                    sample: None,
                };
            }),
        )
    }
}
