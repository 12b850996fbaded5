//! Common tables that hide one of the same name: `WITH x AS (…) SELECT … FROM (WITH x AS (…) SELECT * FROM x)`.
//!
//! In: a parsed statement. Out: the inner table under a name of its own, and its uses under that name AS the old one.
//! Invariant: a table is seen by those behind it and by the query of its WITH. In its own query the name is the outer one's,
//! unless the WITH is recursive. DataFusion takes the second for a mistake.
//! Not here: two tables of one name in one WITH, which is one.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, VisitorMut,
};

use crate::sql::ast::quoted;
use crate::sql::walk::{Walk, visit};

/// Names the inner tables anew.
pub(in crate::sql) fn name_inner_tables(statement: &mut Statement) {
    let ControlFlow::Continue(()) = visit(statement, &mut InnerTables::default());
}

#[derive(Default)]
struct InnerTables {
    /// The names that each query around has in its WITH.
    around: Vec<Vec<String>>,
    renamed: usize,
}

fn names_of(query: &Query) -> Vec<String> {
    let tables = query.with.iter().flat_map(|with| &with.cte_tables);
    tables
        .map(|cte| cte.alias.name.value.to_lowercase())
        .collect()
}

impl VisitorMut for InnerTables {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.around.push(names_of(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let own = self.around.pop().unwrap_or_default();
        for (place, name) in own.iter().enumerate() {
            if self.around.iter().flatten().any(|outer| outer == name) {
                self.renamed += 1;
                rename(query, place, &format!("{name} {}", self.renamed));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Gives the table at `place` of a query's WITH another name.
fn rename(query: &mut Query, place: usize, new: &str) {
    let Some(mut with) = query.with.take() else {
        return;
    };
    if let Some(cte) = with.cte_tables.get_mut(place) {
        let old = std::mem::replace(&mut cte.alias.name, quoted(new));
        let mut uses = InnerTableRenaming { old: &old, new };
        let ControlFlow::Continue(()) = query.walk(&mut uses);
        let first = if with.recursive { place } else { place + 1 };
        for cte in with.cte_tables.iter_mut().skip(first) {
            let ControlFlow::Continue(()) = cte.query.walk(&mut uses);
        }
    }
    query.with = Some(with);
}

struct InnerTableRenaming<'a> {
    old: &'a Ident,
    new: &'a str,
}

impl VisitorMut for InnerTableRenaming<'_> {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table {
            name: ObjectName(parts),
            alias,
            args: None,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(name)] = parts.as_mut_slice() else {
            return ControlFlow::Continue(());
        };
        if name.value.eq_ignore_ascii_case(&self.old.value) {
            let old = std::mem::replace(name, quoted(self.new));
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: old,
                columns: Vec::new(),
                at: None,
            });
        }
        ControlFlow::Continue(())
    }
}
