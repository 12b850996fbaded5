//! LATERAL whose outer columns stand in subqueries of its expressions alone is marked, since DataFusion takes it for no LATERAL. And
//! LATERAL behind a comma: `FROM a, b CROSS JOIN LATERAL (… a.x …) l` is `FROM a CROSS JOIN b CROSS JOIN LATERAL (… a.x …) l`.
//!
//! In: the FROM of a SELECT. Out: the same joins, in which a LATERAL query has all that stands before it on its left. Around a
//! query with such subqueries stands one of a name that the optimizer knows.
//! Invariant: rows, columns and their order stay. Only inner, cross and left joins move, none with USING, whose columns might
//! be found in more tables than before.
//! Not here: what LATERAL means (optimizer/fixes/unnested).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, TableFactor, TableWithJoins, Visit, Visitor,
};

use crate::error::Result;
use crate::sql::fixes::shared_tables::wrapped;

/// The name of the query within a LATERAL that is one whatever DataFusion makes of it.
pub(crate) const LATERAL_TABLE: &str = "__lateral";

/// Marks the LATERAL queries with subqueries.
pub(super) fn mark(from: &mut [TableWithJoins]) -> Result<()> {
    let factors = from.iter_mut().flat_map(|table| {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        std::iter::once(&mut table.relation).chain(joined)
    });
    for factor in factors {
        // Without a name its columns have those of the tables within.
        if let TableFactor::Derived {
            lateral: true,
            subquery,
            alias: Some(_),
            ..
        } = factor
            && subquery.visit(&mut SubquerySearch).is_break()
        {
            **subquery = wrapped(subquery.as_ref().clone(), LATERAL_TABLE)?;
        }
    }
    Ok(())
}

/// Stops at a subquery of an expression.
struct SubquerySearch;

impl Visitor for SubquerySearch {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Makes one tree of joins of those that a LATERAL query may look into.
pub(super) fn join_laterals(from: &mut Vec<TableWithJoins>) {
    let mut joined: Vec<TableWithJoins> = Vec::with_capacity(from.len());
    for item in std::mem::take(from) {
        let item = opened(item);
        match joined.last_mut() {
            Some(before) if moves(&item.joins) => {
                before.joins.push(cross(item.relation));
                before.joins.extend(item.joins);
            }
            _ => joined.push(item),
        }
    }
    *from = joined;
}

/// Without the parentheses around joins with LATERAL, where they begin the list or stand behind CROSS JOIN.
fn opened(item: TableWithJoins) -> TableWithJoins {
    let mut opened = TableWithJoins {
        relation: item.relation,
        joins: Vec::with_capacity(item.joins.len()),
    };
    if let Some(inner) = nested(&opened.relation) {
        opened = inner;
    }
    for join in item.joins {
        match (nested(&join.relation), &join.join_operator) {
            (Some(inner), JoinOperator::CrossJoin(JoinConstraint::None)) => {
                opened.joins.push(cross(inner.relation));
                opened.joins.extend(inner.joins);
            }
            _ => opened.joins.push(join),
        }
    }
    opened
}

fn nested(relation: &TableFactor) -> Option<TableWithJoins> {
    match relation {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => {
            let inner = opened(table_with_joins.as_ref().clone());
            moves(&inner.joins).then_some(inner)
        }
        _ => None,
    }
}

fn moves(joins: &[Join]) -> bool {
    let is_lateral = |join: &Join| match &join.relation {
        TableFactor::Derived { lateral, .. } | TableFactor::Function { lateral, .. } => *lateral,
        _ => false,
    };
    let stays_right = |join: &Join| {
        let (JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::CrossJoin(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)) = &join.join_operator
        else {
            return false;
        };
        matches!(on, JoinConstraint::On(_) | JoinConstraint::None) && !join.global
    };
    joins.iter().any(is_lateral) && joins.iter().all(stays_right)
}

fn cross(relation: TableFactor) -> Join {
    Join {
        relation,
        global: false,
        join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
    }
}
