//! Common table expressions that are used more than once and may have other rows each time.
//!
//! In: a parsed statement. Out: the same statement, in which the query of such an expression is in a subquery of a name that
//! the optimizer knows: its uses share the rows of one run.
//! Invariant: other common table expressions stay as they are; DataFusion plans them once for each use.
//! Not here: the sharing (optimizer/fixes/read_once).

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableAlias, TableFactor, VisitorMut,
    WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::statement::visit;
use crate::sql::walk::Walk;

/// How the name of a subquery begins whose uses share their rows.
pub(crate) const SHARED_TABLE: &str = "__shared_";

/// Functions with another value each time.
const VOLATILE: [&str; 6] = [
    "random",
    "rand",
    "uuid",
    "gen_random_uuid",
    "uuidv4",
    "uuidv7",
];

/// Names the common table expressions whose rows are shared.
pub fn name_shared_tables(statement: &mut Statement) {
    let mut uses = TableUses::default();
    let ControlFlow::Continue(()) = visit(statement, &mut uses);
    if uses.has_ctes && uses.has_volatile {
        let mut naming = SharedTableNames { uses, named: 0 };
        let ControlFlow::Continue(()) = visit(statement, &mut naming);
    }
}

/// How often tables are named in a statement.
#[derive(Default)]
struct TableUses {
    tables: HashMap<String, usize>,
    has_ctes: bool,
    has_volatile: bool,
}

impl VisitorMut for TableUses {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.has_ctes |= query.with.is_some();
        self.has_volatile |= is_cut(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Infallible> {
        *self.tables.entry(last_name(relation)).or_default() += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.has_volatile |= is_volatile(expr);
        ControlFlow::Continue(())
    }
}

fn last_name(name: &ObjectName) -> String {
    let last = name.0.last().map(|part| match part.as_ident() {
        Some(name) => name.value.clone(),
        None => part.to_string(),
    });
    last.unwrap_or_default().to_lowercase()
}

fn is_volatile(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => VOLATILE.contains(&last_name(&function.name).as_str()),
        _ => false,
    }
}

/// Whether a query has some of its rows, which ones being left open.
fn is_cut(query: &Query) -> bool {
    (query.limit_clause.is_some() || query.fetch.is_some()) && query.order_by.is_none()
}

struct SharedTableNames {
    uses: TableUses,
    named: usize,
}

impl VisitorMut for SharedTableNames {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Some(with) = &mut query.with else {
            return ControlFlow::Continue(());
        };
        if with.recursive {
            return ControlFlow::Continue(());
        }
        for cte in &mut with.cte_tables {
            let name = cte.alias.name.value.to_lowercase();
            let uses = self.uses.tables.get(&name).copied().unwrap_or_default();
            let mut own = TableUses::default();
            let ControlFlow::Continue(()) = cte.query.walk(&mut own);
            if uses > 1 && own.has_volatile {
                self.named += 1;
                let alias = format!("{SHARED_TABLE}{}", self.named);
                if let Some(wrapped) = wrapped(&cte.query, alias) {
                    *cte.query = wrapped;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// `SELECT * FROM (query) AS alias`.
fn wrapped(query: &Query, alias: String) -> Option<Query> {
    let parser = Parser::new(&GenericDialect {}).try_with_sql("SELECT * FROM t");
    let mut outer = parser.ok()?.parse_query().ok()?;
    let SetExpr::Select(select) = outer.body.as_mut() else {
        return None;
    };
    debug_assert!(matches!(
        select.projection.as_slice(),
        [SelectItem::Wildcard(WildcardAdditionalOptions { .. })]
    ));
    select.from.first_mut()?.relation = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(TableAlias {
            explicit: true,
            name: Ident::with_quote('"', alias),
            columns: Vec::new(),
            at: None,
        }),
        sample: None,
    };
    Some(*outer)
}
