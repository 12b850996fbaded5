//! `INSERT INTO t BY NAME query`: values go to the columns of their names.
//!
//! In: the call that table_forms.rs puts around the query. Out: INSERT with a list of columns.
//! Invariant: a column of the query that the table does not have is an error, which DataFusion tells.
//! Not here: UNION BY NAME, which DataFusion plans.

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{Insert, Query, SetExpr, Statement as SqlStatement};

use crate::error::Result;
use crate::sql::ast::{around, object, quoted};
use crate::sql::expand::{Catalog, Column, Scope, arguments_of};
use crate::sql::tokens::table_forms::BY_NAME;

pub(super) fn expand(statement: &mut SqlStatement, scope: &Scope<'_>) -> Result<()> {
    let SqlStatement::Insert(insert) = statement else {
        return Ok(());
    };
    if let Some(query) = named_query(insert) {
        let columns = scope.columns(query.clone())?;
        name_columns(insert, query, &columns);
    }
    Ok(())
}

/// The same of an INSERT whose query is expanded later.
pub(super) fn expand_before(statement: &mut SqlStatement, catalog: &dyn Catalog) -> Result<()> {
    let SqlStatement::Insert(insert) = statement else {
        return Ok(());
    };
    let Some(query) = named_query(insert) else {
        return Ok(());
    };
    let expanded = SqlStatement::Query(Box::new(query.clone()));
    let mut expanded = DataFusionStatement::Statement(Box::new(expanded));
    super::expand(&mut expanded, catalog)?;
    if let DataFusionStatement::Statement(expanded) = expanded
        && let SqlStatement::Query(expanded) = *expanded
    {
        let columns = catalog.columns(*expanded)?;
        name_columns(insert, query, &columns);
    }
    Ok(())
}

/// The query whose columns are named, if an INSERT has one.
fn named_query(insert: &Insert) -> Option<Query> {
    let source = insert.source.as_ref()?;
    let SetExpr::Select(select) = source.body.as_ref() else {
        return None;
    };
    let [table] = select.from.as_slice() else {
        return None;
    };
    let queries = arguments_of(&table.relation, BY_NAME)?;
    let mut query = queries.first().copied()?.clone();
    if let Some(with) = &source.with {
        if query.with.is_some() {
            query = around(query);
        }
        query.with = Some(with.clone());
    }
    Some(query)
}

fn name_columns(insert: &mut Insert, query: Query, columns: &[Column]) {
    let names = columns.iter().map(|column| object(quoted(column.name())));
    insert.columns = names.collect();
    insert.source = Some(Box::new(query));
}
