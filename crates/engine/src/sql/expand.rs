//! Expansion: what a statement says shortly, and only its tables' columns can say at length.
//!
//! In: a parsed statement, a [`Catalog`] that knows the columns of a query. Out: the statement in words that DataFusion plans.
//! Invariant: inner queries are expanded before those around them, with the common tables that they see; DataFusion is asked
//! for columns only where a form needs them.
//! Not here: the forms themselves, each in a file of its own; forms that need no columns (short_forms.rs).

pub(in crate::sql) mod joined_aliases;
mod ambiguous_names;
mod outer_names;
pub(crate) mod outer_fields;
mod order_names;
mod limits;
mod asof;
mod positional;
pub(crate) mod hidden;
mod combinators;
mod columns;
pub(in crate::sql) mod aliases;
mod pivot;
mod unpivot;
mod summarize;
mod describe;
mod by_name;
pub(crate) mod default_values;
mod inner_names;
mod repeated_calls;
mod tableless;
mod whole_rows;

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Query, Select, SetExpr, Statement as SqlStatement, TableFactor, TableWithJoins,
    VisitorMut, With,
};

use crate::error::{Error, Result};
use crate::scan::constraints::KeyKind;
use crate::sql::ast::{around, parse_query, quoted};
use crate::sql::expand::outer_names::Outer;
use crate::sql::short_forms;
use crate::sql::tokens::query_forms::LIST;
use crate::sql::walk::{done, flow, visit};

/// What the expansion asks of a session.
pub(crate) trait Catalog {
    /// The columns of a query.
    fn columns(&self, query: Query) -> Result<Vec<Column>>;
    /// The rows of a query.
    fn rows(&self, query: Query) -> Result<Vec<RecordBatch>>;
    /// The columns of a query, and what else is known of the table that it is all of; nothing for any other query.
    fn described(&self, query: Query) -> Result<(Vec<Column>, TableFacts)>;
    /// Names of the user's tables, sorted.
    fn tables(&self) -> Vec<String>;
    /// Whether a function is an aggregate.
    fn is_aggregate(&self, name: &str) -> bool;
    /// Whether two calls of a function may differ.
    fn is_volatile(&self, name: &str) -> bool;
}

/// What a table knows beside its columns.
#[derive(Debug, Default)]
pub(crate) struct TableFacts {
    /// What each column has by default.
    pub defaults: Vec<Option<String>>,
    /// Places of the columns of each key.
    pub keys: Vec<(Vec<usize>, KeyKind)>,
    /// Conditions as SQL.
    pub checks: Vec<String>,
    /// A CREATE TABLE makes such a table.
    pub is_in_memory: bool,
}

/// A column of a query.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The parts of its table's name, none for a column without a table.
    pub table: Vec<String>,
    pub field: Field,
}

impl Column {
    pub fn name(&self) -> &str {
        self.field.name()
    }

    pub fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    pub fn has_name(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// The column, as an expression.
    pub fn expr(&self) -> Expr {
        match self.table.as_slice() {
            [] => Expr::Identifier(quoted(self.name())),
            parts => {
                let table = parts.iter().map(String::as_str);
                let parts = table.chain([self.name()]).map(quoted);
                Expr::CompoundIdentifier(parts.collect())
            }
        }
    }
}

/// The common tables of one query, of which those before `next` are expanded.
#[derive(Debug)]
struct ExpandedQuery {
    with: Option<With>,
    next: usize,
}

impl ExpandedQuery {
    /// The common tables that a query within sees; of a recursive one within itself, its first part.
    fn visible(&self) -> Option<With> {
        let mut with = self.with.clone()?;
        let inside = with.cte_tables.get(self.next).cloned();
        with.cte_tables.truncate(self.next);
        if with.recursive
            && let Some(Cte { query, .. }) = &inside
            && let SetExpr::SetOperation { left, .. } = query.body.as_ref()
        {
            let first = left.as_ref().clone();
            with.cte_tables.extend(inside.clone().map(|mut cte| {
                cte.query.body = Box::new(first);
                cte
            }));
        }
        (!with.cte_tables.is_empty()).then_some(with)
    }
}

/// The queries around the place that is expanded.
pub(crate) struct Scope<'a> {
    pub catalog: &'a dyn Catalog,
    frames: Vec<ExpandedQuery>,
}

impl Scope<'_> {
    /// The columns of a query at this place.
    pub fn columns(&self, query: Query) -> Result<Vec<Column>> {
        self.catalog.columns(self.with_common_tables(query))
    }

    /// The rows of a query at this place.
    pub fn rows(&self, query: Query) -> Result<Vec<RecordBatch>> {
        self.catalog.rows(self.with_common_tables(query))
    }

    /// The columns of a query, and what else is known of the table that it is all of.
    pub fn described(&self, query: Query) -> Result<(Vec<Column>, TableFacts)> {
        self.catalog.described(self.with_common_tables(query))
    }

    /// The columns of what stands in FROM.
    pub fn columns_from(&self, from: &[TableWithJoins]) -> Result<Vec<Column>> {
        if from.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = parse_query("SELECT *")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from = from.to_vec();
        }
        self.columns(*query)
    }

    fn with_common_tables(&self, mut query: Query) -> Query {
        for frame in self.frames.iter().rev() {
            let Some(with) = frame.visible() else {
                continue;
            };
            if query.with.is_some() {
                query = around(query);
            }
            query.with = Some(with);
        }
        query
    }
}

/// Expands a statement.
pub(crate) fn expand(statement: &mut DataFusionStatement, catalog: &dyn Catalog) -> Result<()> {
    let scope = Scope {
        catalog,
        frames: Vec::new(),
    };
    let outer = Outer::default();
    done(visit(statement, &mut Expansion { scope, outer }))
}

/// Expands BY NAME and DEFAULT in a statement of which only parts are planned.
pub(crate) fn expand_change(
    statement: &mut DataFusionStatement,
    catalog: &dyn Catalog,
) -> Result<()> {
    let scope = Scope {
        catalog,
        frames: Vec::new(),
    };
    match statement {
        DataFusionStatement::Statement(statement) => {
            by_name::expand_before(statement, catalog)?;
            default_values::expand_assigned(statement, &scope)
        }
        _ => Ok(()),
    }
}

struct Expansion<'a> {
    scope: Scope<'a>,
    outer: Outer,
}

/// Whether a select list is nothing but the list of an argument.
pub(crate) fn is_list(select: &Select) -> bool {
    use datafusion::sql::sqlparser::ast::SelectItem;
    matches!(select.projection.first(), Some(SelectItem::UnnamedExpr(Expr::Identifier(name)))
        if name.value == LIST && select.from.is_empty())
}

impl VisitorMut for Expansion<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.outer.enter_query(query);
        self.scope.frames.push(ExpandedQuery {
            with: query.with.clone(),
            next: 0,
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.outer.leave_query(query);
        flow(joined_aliases::refuse_ordered(query, &self.scope))?;
        flow(ambiguous_names::refuse_tables_in_order(query))?;
        flow(self.query(query))?;
        self.scope.frames.pop();
        // A query's common tables are visited first, in their order.
        if let Some(ExpandedQuery {
            with: Some(with),
            next,
        }) = self.scope.frames.last_mut()
            && let Some(cte) = with.cte_tables.get_mut(*next)
        {
            *cte.query = query.clone();
            *next += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.outer.enter(select);
        flow(
            joined_aliases::refuse_ambiguous(select, &self.scope)
                .and_then(|()| ambiguous_names::refuse_tables(select)),
        )
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.outer.leave(select, &self.scope);
        if is_list(select) {
            return ControlFlow::Continue(());
        }
        flow(self.select(select))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        tableless::take_out(expr, self.scope.catalog);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        combinators::expand(expr, self.scope.catalog);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        self.outer.enter_table(factor);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        self.outer.leave_table(factor);
        flow(self.table(factor))
    }

    fn post_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<Error> {
        flow(
            by_name::expand(statement, &self.scope)
                .and_then(|()| default_values::expand(statement, &self.scope)),
        )
    }
}

impl Expansion<'_> {
    fn query(&self, query: &mut Query) -> Result<()> {
        ambiguous_names::refuse_columns_in_order(query, &self.scope)?;
        order_names::name_distinct(query);
        let hidden = order_names::hide_aliases(query, &self.scope)?;
        limits::expand(query, &self.scope)?;
        match hidden {
            Some(names) => order_names::show_aliases(query, names),
            None => Ok(()),
        }
    }

    fn select(&self, select: &mut Select) -> Result<()> {
        asof::expand(select, &self.scope)?;
        positional::expand(select)?;
        columns::expand(select, &self.scope)?;
        inner_names::name_unnested(select, &self.scope);
        whole_rows::expand(select, &self.scope)?;
        ambiguous_names::refuse_columns(select, &self.scope)?;
        aliases::expand(select, &self.scope)?;
        aliases::keys_of_numbers(select, &self.scope);
        repeated_calls::tell_apart(select, self.scope.catalog);
        Ok(())
    }

    fn table(&self, factor: &mut TableFactor) -> Result<()> {
        inner_names::name_rest(factor, &self.scope)?;
        let expanded = pivot::expand(factor, &self.scope)?
            .or(unpivot::expand(factor, &self.scope)?)
            .or(summarize::expand(factor, &self.scope)?)
            .or(describe::expand(factor, &self.scope)?);
        if let Some(expanded) = expanded {
            *factor = expanded;
        }
        Ok(())
    }
}

/// The arguments of a call that stands for a table, if it has this name.
pub(crate) fn arguments_of<'a>(factor: &'a TableFactor, call: &str) -> Option<Vec<&'a Query>> {
    use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr};
    let TableFactor::Table {
        name,
        args: Some(args),
        ..
    } = factor
    else {
        return None;
    };
    let is_call = matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| ident.value == call));
    let queries = args.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) => Some(query.as_ref()),
        _ => None,
    });
    is_call.then(|| queries.collect()).flatten()
}

/// Folds keys of ORDER BY that have a collation.
pub(crate) use short_forms::fold_order;
