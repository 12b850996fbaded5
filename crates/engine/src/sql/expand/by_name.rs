//! `INSERT INTO t BY NAME query`: values go to the columns of their names.
//!
//! In: the call that table_forms.rs puts around the query. Out: INSERT with a list of columns.
//! Invariant: a column of the query that the table does not have is an error, which DataFusion tells.
//! Not here: UNION BY NAME, which DataFusion plans.

use datafusion::sql::sqlparser::ast::{SetExpr, Statement as SqlStatement};

use crate::error::Result;
use crate::sql::ast::{object, quoted};
use crate::sql::expand::{Scope, arguments_of};
use crate::sql::tokens::table_forms::BY_NAME;

pub(super) fn expand(statement: &mut SqlStatement, scope: &Scope<'_>) -> Result<()> {
    let SqlStatement::Insert(insert) = statement else {
        return Ok(());
    };
    let Some(source) = &mut insert.source else {
        return Ok(());
    };
    let query = match source.body.as_ref() {
        SetExpr::Select(select) => match select.from.as_slice() {
            [table] => arguments_of(&table.relation, BY_NAME)
                .and_then(|queries| queries.first().map(|&query| query.clone())),
            _ => None,
        },
        _ => None,
    };
    if let Some(query) = query {
        let columns = scope.columns(query.clone())?;
        insert.columns = columns
            .iter()
            .map(|column| object(quoted(column.name())))
            .collect();
        **source = query;
    }
    Ok(())
}
