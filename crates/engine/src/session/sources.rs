//! Queries that a table is filled from: INSERT … SELECT, CREATE TABLE (…) AS.
//!
//! In: such a statement. Out: the statement over a view of the query where this has VALUES inside.
//! Invariant: VALUES inside a query have the types that they are written with. DataFusion gives them those of the table that
//! is filled, whatever the query makes of them: `INSERT INTO t SELECT x * 2 FROM (VALUES (1.5)) v(x)` was 4 in a table of integers.
//! Not here: VALUES that are the rows themselves, which have the table's types.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::sql::parser::Statement as HostStatement;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement as SqlStatement, VisitorMut};

use super::Session;
use crate::error::Result;
use crate::scan::schema::put_in_statement;
use crate::sql::ast::parse_query;
use crate::sql::walk::Walk;

/// The view's name, which nobody writes.
const SOURCE: &str = "hidden: source";

impl Session {
    /// Plans the source of a statement by itself, if it has VALUES inside.
    pub(super) async fn plan_source(
        &self,
        state: &SessionState,
        statement: &mut HostStatement,
    ) -> Result<()> {
        let Some(source) = source_of(statement) else {
            return Ok(());
        };
        let is_rows = matches!(source.body.as_ref(), SetExpr::Values(_));
        if is_rows || source.walk(&mut Rows).is_continue() {
            return Ok(());
        }
        let query = SqlStatement::Query(Box::new(source.clone()));
        let query = HostStatement::Statement(Box::new(query));
        let plan = self.resolve(state, query).await?;
        let columns = plan.schema().iter().enumerate();
        let columns = columns.map(|(place, field)| {
            Expr::Column(Column::from(field)).alias(format!("column {place}"))
        });
        let columns: Vec<Expr> = columns.collect();
        let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        put_in_statement(SOURCE, Arc::new(ViewTable::new(plan, None)));
        *source = *parse_query(&format!("SELECT * FROM \"{SOURCE}\""))?;
        Ok(())
    }
}

fn source_of(statement: &mut HostStatement) -> Option<&mut Query> {
    let HostStatement::Statement(statement) = statement else {
        return None;
    };
    match statement.as_mut() {
        SqlStatement::Insert(insert) => insert.source.as_deref_mut(),
        SqlStatement::CreateTable(table) if !table.columns.is_empty() => table.query.as_deref_mut(),
        _ => None,
    }
}

/// Stops at VALUES.
struct Rows;

impl VisitorMut for Rows {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        match has_rows(&query.body) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn has_rows(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => has_rows(left) || has_rows(right),
        _ => false,
    }
}
