//! Common table expressions that are used more than once, or in each turn of a recursion, and may have other rows each time.
//!
//! In: a parsed statement. Out: the same statement, in which the query of such an expression is in a subquery of a name that
//! the optimizer knows. Its uses share the rows of one run.
//! Invariant: other common table expressions stay as they are; DataFusion plans them once for each use.
//! Not here: the sharing (optimizer/fixes/read_once).

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, ObjectName, Query, SetExpr, TableFactor, TableSampleKind, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{derived, parse_query, quoted};
use crate::sql::statement::visit;
use crate::sql::walk::{Walk, done, flow};

/// How the name of a subquery begins whose uses share their rows.
pub(crate) const SHARED_TABLE: &str = "__shared_";

/// Functions with another value each time.
const VOLATILE: [&str; 8] = [
    "nextval",
    "currval",
    "random",
    "rand",
    "uuid",
    "gen_random_uuid",
    "uuidv4",
    "uuidv7",
];

/// Names the common table expressions whose rows are shared.
pub(crate) fn name_shared_tables(statement: &mut Statement) -> Result<()> {
    let mut uses = TableUses::default();
    let ControlFlow::Continue(()) = visit(statement, &mut uses);
    if uses.has_ctes && uses.has_volatile {
        let mut naming = SharedTableNames {
            tables: uses.tables,
            volatile: volatile_tables(statement),
            named: 0,
        };
        done(visit(statement, &mut naming))?;
    }
    Ok(())
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

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        self.has_volatile |= is_drawn(table);
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

/// Whether it calls a function with another value each time.
pub(super) fn is_volatile(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => VOLATILE.contains(&last_name(&function.name).as_str()),
        _ => false,
    }
}

/// Whether a query has some of its rows, which ones being left open.
fn is_cut(query: &Query) -> bool {
    (query.limit_clause.is_some() || query.fetch.is_some()) && query.order_by.is_none()
}

/// Whether a table has a sample, which is another one each time.
fn is_drawn(table: &TableFactor) -> bool {
    let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = table else {
        return false;
    };
    sample.as_ref().is_some_and(|sample| match sample {
        TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample) => {
            sample.seed.is_none()
        }
    })
}

/// Names of common table expressions that may have other rows each time, also since one that they read has.
fn volatile_tables(statement: &mut Statement) -> HashSet<String> {
    let mut volatile = VolatileTables::default();
    loop {
        let known = volatile.0.len();
        let ControlFlow::Continue(()) = visit(statement, &mut volatile);
        if volatile.0.len() == known {
            return volatile.0;
        }
    }
}

#[derive(Default)]
struct VolatileTables(HashSet<String>);

impl VisitorMut for VolatileTables {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let own = uses_in(cte);
            if own.has_volatile || own.tables.keys().any(|table| self.0.contains(table)) {
                self.0.insert(name_of(cte));
            }
        }
        ControlFlow::Continue(())
    }
}

fn name_of(cte: &Cte) -> String {
    cte.alias.name.value.to_lowercase()
}

fn uses_in(cte: &mut Cte) -> TableUses {
    let mut uses = TableUses::default();
    let ControlFlow::Continue(()) = cte.query.walk(&mut uses);
    uses
}

struct SharedTableNames {
    /// How often tables are named in the whole statement.
    tables: HashMap<String, usize>,
    volatile: HashSet<String>,
    named: usize,
}

impl VisitorMut for SharedTableNames {
    type Break = Error;

    // Inner queries first: a recursion that is wrapped is inside of what it becomes.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let Some(with) = &mut query.with else {
            return ControlFlow::Continue(());
        };
        let is_recursive = with.recursive;
        let mut ctes = with.cte_tables.iter_mut();
        flow(ctes.try_for_each(|cte| self.share(cte, is_recursive)))
    }
}

impl SharedTableNames {
    fn share(&mut self, cte: &mut Cte, may_recur: bool) -> Result<()> {
        let name = name_of(cte);
        if !self.volatile.contains(&name) {
            return Ok(());
        }
        let uses = |tables: &HashMap<String, usize>| tables.get(&name).copied().unwrap_or_default();
        let own_uses = match may_recur {
            true => uses(&uses_in(cte).tables),
            false => 0,
        };
        // Each turn of a recursion may use what stands beside it.
        let least = if may_recur && own_uses == 0 { 1 } else { 2 };
        if uses(&self.tables) < own_uses + least {
            return Ok(());
        }
        self.named += 1;
        let alias = format!("{SHARED_TABLE}{}", self.named);
        let inner = match own_uses {
            0 => cte.query.as_ref().clone(),
            _ => recursion(cte)?,
        };
        *cte.query = wrapped(inner, &alias)?;
        Ok(())
    }
}

/// `WITH RECURSIVE cte SELECT * FROM cte`: DataFusion sees a recursion only where the two parts of the query stand at its top.
fn recursion(cte: &Cte) -> Result<Query> {
    let name = &cte.alias.name;
    let mut query = parse_query(&format!(
        "WITH RECURSIVE {name} AS (SELECT 1) SELECT * FROM {name}"
    ))?;
    if let Some(with) = &mut query.with {
        with.cte_tables = vec![cte.clone()];
    }
    Ok(*query)
}

/// `SELECT * FROM (query) AS alias`.
pub(in crate::sql) fn wrapped(query: Query, alias: &str) -> Result<Query> {
    let mut outer = parse_query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(from) = select.from.first_mut()
    {
        from.relation = derived(Box::new(query), Some(quoted(alias)));
    }
    Ok(*outer)
}
