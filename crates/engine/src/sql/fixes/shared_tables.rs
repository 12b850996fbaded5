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
use crate::sql::walk::{Walk, done, flow, visit};

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
    share_volatile(statement, &VolatileCalls::OfSql)
}

/// The same for calls of these functions, which a caller has registered; names in lower case.
pub(crate) fn name_tables_of_functions(
    statement: &mut Statement,
    functions: Vec<String>,
) -> Result<()> {
    match functions.is_empty() {
        true => Ok(()),
        false => share_volatile(statement, &VolatileCalls::Registered(functions)),
    }
}

fn share_volatile(statement: &mut Statement, calls: &VolatileCalls) -> Result<()> {
    let mut uses = TableUses::of(calls);
    let ControlFlow::Continue(()) = visit(statement, &mut uses);
    if uses.has_ctes && uses.has_volatile {
        let mut naming = SharedTableNames {
            tables: uses.tables,
            volatile: volatile_tables(statement, calls),
            calls,
            named: 0,
        };
        done(visit(statement, &mut naming))?;
    }
    Ok(())
}

/// What has other rows each time.
enum VolatileCalls {
    /// SQL's own functions, samples, and what cuts rows off.
    OfSql,
    /// Functions of these names.
    Registered(Vec<String>),
}

impl VolatileCalls {
    /// How the names of subqueries begin.
    fn prefix(&self) -> String {
        match self {
            VolatileCalls::OfSql => SHARED_TABLE.to_owned(),
            VolatileCalls::Registered(_) => format!("{SHARED_TABLE}call_"),
        }
    }

    fn has_expr(&self, expr: &Expr) -> bool {
        match (self, expr) {
            (VolatileCalls::OfSql, _) => is_volatile(expr),
            (VolatileCalls::Registered(names), Expr::Function(function)) => {
                names.contains(&last_name(&function.name))
            }
            _ => false,
        }
    }

    fn has_query(&self, query: &Query) -> bool {
        matches!(self, VolatileCalls::OfSql) && is_cut(query)
    }

    fn has_table(&self, table: &TableFactor) -> bool {
        matches!(self, VolatileCalls::OfSql) && is_drawn(table)
    }
}

/// How often tables are named in a statement.
struct TableUses<'a> {
    calls: &'a VolatileCalls,
    tables: HashMap<String, usize>,
    has_ctes: bool,
    has_volatile: bool,
}

impl<'a> TableUses<'a> {
    fn of(calls: &'a VolatileCalls) -> TableUses<'a> {
        TableUses {
            calls,
            tables: HashMap::new(),
            has_ctes: false,
            has_volatile: false,
        }
    }
}

impl VisitorMut for TableUses<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.has_ctes |= query.with.is_some();
        self.has_volatile |= self.calls.has_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Infallible> {
        *self.tables.entry(last_name(relation)).or_default() += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        self.has_volatile |= self.calls.has_table(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.has_volatile |= self.calls.has_expr(expr);
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
fn volatile_tables(statement: &mut Statement, calls: &VolatileCalls) -> HashSet<String> {
    let mut volatile = VolatileTables {
        calls,
        names: HashSet::new(),
    };
    loop {
        let known = volatile.names.len();
        let ControlFlow::Continue(()) = visit(statement, &mut volatile);
        if volatile.names.len() == known {
            return volatile.names;
        }
    }
}

struct VolatileTables<'a> {
    calls: &'a VolatileCalls,
    names: HashSet<String>,
}

impl VisitorMut for VolatileTables<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let own = uses_in(cte, self.calls);
            let mut tables = own.tables.keys();
            if own.has_volatile || tables.any(|table| self.names.contains(table)) {
                self.names.insert(name_of(cte));
            }
        }
        ControlFlow::Continue(())
    }
}

fn name_of(cte: &Cte) -> String {
    cte.alias.name.value.to_lowercase()
}

fn uses_in<'a>(cte: &mut Cte, calls: &'a VolatileCalls) -> TableUses<'a> {
    let mut uses = TableUses::of(calls);
    let ControlFlow::Continue(()) = cte.query.walk(&mut uses);
    uses
}

struct SharedTableNames<'a> {
    /// How often tables are named in the whole statement.
    tables: HashMap<String, usize>,
    volatile: HashSet<String>,
    calls: &'a VolatileCalls,
    named: usize,
}

impl VisitorMut for SharedTableNames<'_> {
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

impl SharedTableNames<'_> {
    fn share(&mut self, cte: &mut Cte, may_recur: bool) -> Result<()> {
        let name = name_of(cte);
        if !self.volatile.contains(&name) {
            return Ok(());
        }
        let uses = |tables: &HashMap<String, usize>| tables.get(&name).copied().unwrap_or_default();
        let own_uses = match may_recur {
            true => uses(&uses_in(cte, self.calls).tables),
            false => 0,
        };
        // Each turn of a recursion may use what stands beside it.
        let least = if may_recur && own_uses == 0 { 1 } else { 2 };
        if uses(&self.tables) < own_uses + least {
            return Ok(());
        }
        self.named += 1;
        let alias = format!("{}{}", self.calls.prefix(), self.named);
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
