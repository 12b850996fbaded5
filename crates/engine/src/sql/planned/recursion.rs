//! Recursive common tables that never end, and those that read themselves in expressions alone.
//!
//! In: a table of WITH RECURSIVE. Out: nothing, or a refusal.
//! Invariant: what is refused has a row in each round, whatever the rounds before it gave: an aggregate without keys and
//! without HAVING, under UNION ALL. PostgreSQL takes no aggregate at all there. Or its recursive part names the table in subqueries of
//! expressions alone, which DataFusion overlooks.
//! Not here: recursions that end for other reasons, or do not.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, GroupByExpr, ObjectName, Select, SetExpr, SetOperator, SetQuantifier, TableFactor,
    Visit, Visitor,
};

use super::{CalledKind, Checked, StatementWalk};
use crate::sql::ast::factors;
use crate::sql::walk::Walk as _;
use crate::sql::walk::first;

impl StatementWalk<'_> {
    pub(super) fn recursion(&self, cte: &Cte) -> Checked {
        let SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier,
            right,
            ..
        } = cte.query.body.as_ref()
        else {
            return Ok(());
        };
        let mut mentions = TableMentions {
            name: &cte.alias.name.value,
            depth: 0,
            in_from: 0,
            in_expressions: 0,
        };
        let _ = right.visit(&mut mentions);
        if mentions.in_from == 0 && mentions.in_expressions > 0 {
            return self.refuse(
                "the table of WITH RECURSIVE in expressions of its recursive part alone",
                "read it in FROM",
            );
        }
        if *set_quantifier != SetQuantifier::All {
            return Ok(());
        }
        let SetExpr::Select(select) = right.as_ref() else {
            return Ok(());
        };
        match reads(select, &cte.alias.name.value) && self.is_one_row(select) {
            false => Ok(()),
            true => self.refuse(
                "an aggregate of all rows in the recursive part of WITH RECURSIVE … UNION ALL",
                "it has a row in each round, so that it never ends; add HAVING or GROUP BY",
            ),
        }
    }

    /// Whether a SELECT has one row, whatever it reads.
    fn is_one_row(&self, select: &Select) -> bool {
        let has_keys = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
        };
        if has_keys || select.having.is_some() || select.qualify.is_some() {
            return false;
        }
        let mut items = select.projection.clone();
        let mut aggregates = first(|expr| match expr {
            Expr::Function(function) if function.over.is_none() => {
                let name = function.name.to_string().to_lowercase();
                self.kind(&name) == CalledKind::Aggregate
            }
            _ => false,
        });
        items.walk_outside_queries(&mut aggregates).is_break()
    }
}

fn reads(select: &Select, table: &str) -> bool {
    let names = factors(&select.from).filter_map(|factor| match factor {
        TableFactor::Table { name, .. } => name.0.last()?.as_ident(),
        _ => None,
    });
    let mut names = names.map(|name| name.value.as_str());
    names.any(|name| name.eq_ignore_ascii_case(table))
}

/// Counts tables of a name.
struct TableMentions<'a> {
    name: &'a str,
    /// Expressions around the place of the visit.
    depth: usize,
    in_from: usize,
    in_expressions: usize,
}

impl Visitor for TableMentions<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let [part] = name.0.as_slice()
            && let Some(part) = part.as_ident()
            && part.value.eq_ignore_ascii_case(self.name)
        {
            match self.depth {
                0 => self.in_from += 1,
                _ => self.in_expressions += 1,
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}
