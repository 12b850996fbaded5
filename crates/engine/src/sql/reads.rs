//! What a statement keeps of what it reads, and which table it changes.
//!
//! In: one statement. Out: whether it keeps anything; the name of a table that has to be there before it.
//! Invariant: in doubt it keeps something, so that nobody may write to what it has read.
//! Not here: what it reads.

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    FromTable, Ident, ObjectName, SetExpr, Statement, TableFactor, TableObject, TableWithJoins,
};

use super::statement::{self, Request};

/// True of a query, its plan, a copy of its rows to a file: when it is over, nothing of its tables is needed.
pub fn only_reads(text: &str) -> bool {
    match statement::parse(text) {
        Ok(Request::DataFusion(request)) => keeps_nothing(&request.statement),
        Ok(Request::SetVariable { .. } | Request::Prepare { .. }) => false,
        // Nothing runs.
        Ok(_) | Err(_) => true,
    }
}

/// Whether a statement is a query that makes no table, which another one can have as a part of itself.
pub(crate) fn is_query(statement: &DataFusionStatement) -> bool {
    match statement {
        DataFusionStatement::Statement(statement) => match statement.as_ref() {
            Statement::Query(query) => !makes_table(&query.body),
            _ => false,
        },
        _ => false,
    }
}

/// Whether nothing of a statement's tables is needed when it is over.
pub(crate) fn keeps_nothing(statement: &DataFusionStatement) -> bool {
    match statement {
        DataFusionStatement::Statement(statement) => match statement.as_ref() {
            Statement::Query(query) => !makes_table(&query.body),
            Statement::Explain { .. } | Statement::ExplainTable { .. } => true,
            _ => false,
        },
        DataFusionStatement::CopyTo(_) => true,
        DataFusionStatement::Explain(explain) => keeps_nothing(&explain.statement),
        DataFusionStatement::CreateExternalTable(_) | DataFusionStatement::Reset(_) => false,
    }
}

/// `SELECT … INTO t`
fn makes_table(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_some(),
        SetExpr::Query(query) => makes_table(&query.body),
        SetExpr::SetOperation { left, right, .. } => makes_table(left) || makes_table(right),
        _ => false,
    }
}

/// The name of the table whose rows a statement changes, or that it makes without a query or removes: no data of others has it.
pub(crate) fn changed_table(statement: &DataFusionStatement) -> Option<String> {
    let DataFusionStatement::Statement(statement) = statement else {
        return None;
    };
    let name = match statement.as_ref() {
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => name,
            _ => return None,
        },
        Statement::Update(update) => name_of(&update.table)?,
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            name_of(from.first()?)?
        }
        Statement::CreateTable(table) if table.query.is_none() => &table.name,
        Statement::Drop { names, .. } => names.first()?,
        _ => return None,
    };
    let ident: &Ident = name.0.last()?.as_ident()?;
    Some(match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    })
}

fn name_of(table: &TableWithJoins) -> Option<&ObjectName> {
    match &table.relation {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}
