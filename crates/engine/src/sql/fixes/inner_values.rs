//! VALUES inside an INSERT or a CREATE TABLE with columns, of which only the outermost rows are the table's, and behind IN, ANY and
//! ALL.
//!
//! In: a parsed statement; when it is planned, tables of FROM. Out: the statement, in which each such VALUES is a table of FROM;
//! such tables planned.
//! Invariant: rows of VALUES have the types of their own values wherever they stand, but for those that are inserted as they are
//! written. DataFusion gives all of them the types of the table's columns, so that 1.6 is 2 before it is doubled.
//! Not here: DEFAULT among the rows (default_values.rs).

use std::ops::ControlFlow;

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Query, SetExpr, Statement as SqlStatement, TableFactor, Values, VisitorMut,
};

use crate::error::Result as Checked;
use crate::sql::ast::{derived, parse_query};
use crate::sql::walk::{Expressions, Walk, done, flow, visit};

/// Makes each VALUES that is a part of the statement's query, or a set that values are compared with, a table of FROM.
pub(crate) fn set_apart(statement: &mut Statement) -> Checked<()> {
    done(visit(
        statement,
        &mut Expressions(|expr: &mut Expr| flow(sets_in_from(expr))),
    ))?;
    let Statement::Statement(statement) = statement else {
        return Ok(());
    };
    let query = match statement.as_mut() {
        SqlStatement::Insert(insert) => insert.source.as_mut(),
        SqlStatement::CreateTable(table) if !table.columns.is_empty() => table.query.as_mut(),
        _ => None,
    };
    query.map_or(Ok(()), |query| {
        done(query.walk(&mut ValuesInBrackets { depth: 0 }))
    })
}

/// The same of a query that is a part of a statement, whichever that is: rows may be put into a table of it later.
pub(crate) fn set_apart_within(query: &mut Query) -> Checked<()> {
    done(query.walk(&mut ValuesInBrackets { depth: 1 }))
}

/// What IN, ANY and ALL compare with: DataFusion looks there for the one column of a SELECT.
fn sets_in_from(expr: &mut Expr) -> Checked<()> {
    match expr {
        Expr::InSubquery { subquery, .. } => in_from(&mut subquery.body),
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => match right.as_mut() {
            Expr::Subquery(query) => in_from(&mut query.body),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

struct ValuesInBrackets {
    /// The queries around the place of the walk.
    depth: usize,
}

impl VisitorMut for ValuesInBrackets {
    type Break = crate::error::Error;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        let is_inserted = self.depth == 0 && matches!(query.body.as_ref(), SetExpr::Values(_));
        match is_inserted {
            true => ControlFlow::Continue(()),
            false => flow(in_from(&mut query.body)),
        }
    }
}

/// The body of a query with its VALUES in FROM.
fn in_from(body: &mut SetExpr) -> Checked<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            in_from(left)?;
            in_from(right)
        }
        SetExpr::Query(query) => in_from(&mut query.body),
        SetExpr::Values(_) => {
            let mut rows = parse_query("SELECT 1")?;
            std::mem::swap(rows.body.as_mut(), body);
            let mut query = parse_query("SELECT * FROM x")?;
            if let SetExpr::Select(select) = query.body.as_mut()
                && let Some(from) = select.from.first_mut()
            {
                from.relation = derived(rows, None);
            }
            *body = *query.body;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Plans tables of FROM that are nothing but rows of VALUES.
#[derive(Debug)]
pub(crate) struct ValuesPlanner;

impl RelationPlanner for ValuesPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(values) = rows_alone(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let no_columns = DFSchema::empty();
        let rows = values.rows.iter().map(|row| {
            let values = row.content.iter();
            let values = values.map(|value| context.sql_to_expr(value.clone(), &no_columns));
            values.collect::<Result<Vec<_>>>()
        });
        let plan = LogicalPlanBuilder::values(rows.collect::<Result<Vec<_>>>()?)?.build()?;
        let alias = match relation {
            TableFactor::Derived { alias, .. } => alias,
            _ => None,
        };
        let planned = PlannedRelation::new(plan, alias);
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// The rows of a table that has nothing else.
fn rows_alone(relation: &TableFactor) -> Option<&Values> {
    let TableFactor::Derived {
        lateral: false,
        subquery,
        alias: _,
        sample: None,
    } = relation
    else {
        return None;
    };
    let SetExpr::Values(values) = subquery.body.as_ref() else {
        return None;
    };
    let is_alone = subquery.with.is_none()
        && subquery.order_by.is_none()
        && subquery.limit_clause.is_none()
        && subquery.fetch.is_none();
    is_alone.then_some(values)
}
