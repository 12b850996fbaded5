//! Whether a statement keeps anything of what it reads.
//!
//! In: the text of one statement. Out: yes or no.
//! Invariant: in doubt it keeps something, so that nobody may write to what it has read.
//! Not here: what it reads.

use datafusion::sql::parser::Statement as HostStatement;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement};

use super::statement::{self, Request};

/// True of a query, its plan, a copy of its rows to a file: when it is over, nothing of its tables is needed.
pub fn only_reads(text: &str) -> bool {
    match statement::parse(text) {
        Ok(Request::Host(request)) => keeps_nothing(&request.statement),
        Ok(Request::SetVariable { .. }) => false,
        // Nothing runs.
        Ok(_) | Err(_) => true,
    }
}

fn keeps_nothing(statement: &HostStatement) -> bool {
    match statement {
        HostStatement::Statement(statement) => match statement.as_ref() {
            Statement::Query(query) => !makes_table(&query.body),
            Statement::Explain { .. } | Statement::ExplainTable { .. } => true,
            _ => false,
        },
        HostStatement::CopyTo(_) => true,
        HostStatement::Explain(explain) => keeps_nothing(&explain.statement),
        HostStatement::CreateExternalTable(_) | HostStatement::Reset(_) => false,
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
