//! Where rows come from: FROM without SELECT, TABLE, MINUS, PREWHERE, the ends of recursive queries.
//!
//! In: a query of a statement. Out: SELECT * for FROM alone and for TABLE, EXCEPT for MINUS, one WHERE; a WITH RECURSIVE
//! that is none keeps its ORDER BY and LIMIT.
//! Invariant: PREWHERE holds together with WHERE, in whatever order they are checked.
//! Not here: samples (samples.rs).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectFlavor, SelectItem, SetExpr, SetOperator, TableAlias, TableFactor, TableWithJoins,
    Values, Visit, Visitor, WildcardAdditionalOptions,
};

use super::{binary, refused};
use crate::error::Result;

/// `FROM t` is `SELECT * FROM t`, as `TABLE t` is; MINUS is EXCEPT.
pub(super) fn select_from_first(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            if select.flavor == SelectFlavor::FromFirstNoSelect {
                select.projection = vec![all_columns()];
            }
            select.flavor = SelectFlavor::Standard;
        }
        SetExpr::SetOperation {
            op, left, right, ..
        } => {
            if *op == SetOperator::Minus {
                *op = SetOperator::Except;
            }
            select_from_first(left);
            select_from_first(right);
        }
        SetExpr::Table(table) => {
            let names = [table.schema_name.take(), table.table_name.take()];
            let parts = names.into_iter().flatten();
            let name = parts.map(|part| ObjectNamePart::Identifier(Ident::new(part)));
            let source = table_factor(ObjectName(name.collect()));
            *body = SetExpr::Select(Box::new(select_all(source)));
        }
        SetExpr::Query(_)
        | SetExpr::Values(_)
        | SetExpr::Insert(_)
        | SetExpr::Update(_)
        | SetExpr::Delete(_)
        | SetExpr::Merge(_) => {}
    }
}

/// PREWHERE is a WHERE whose columns are read first, which the scan decides by itself.
pub(super) fn prewhere(select: &mut Select) {
    let Some(first) = select.prewhere.take() else {
        return;
    };
    select.selection = Some(match select.selection.take() {
        Some(second) => binary(
            Expr::Nested(Box::new(first)),
            BinaryOperator::And,
            Expr::Nested(Box::new(second)),
        ),
        None => first,
    });
}

/// DataFusion drops WITH, ORDER BY and LIMIT of a UNION below WITH RECURSIVE.
pub(super) fn wrap_recursive(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else {
        return Ok(());
    };
    for cte in &mut with.cte_tables {
        let inner = cte.query.as_mut();
        let is_union = matches!(
            inner.body.as_ref(),
            SetExpr::SetOperation {
                op: SetOperator::Union,
                ..
            }
        );
        let ends = inner.with.is_some()
            || inner.order_by.is_some()
            || inner.limit_clause.is_some()
            || inner.fetch.is_some();
        if !is_union || !ends {
            continue;
        }
        let mut mention = Mention(&cte.alias.name);
        if inner.body.visit(&mut mention).is_break() {
            let message = format!(
                "WITH, ORDER BY and LIMIT within the recursive query '{}'; write them in the query that reads from it",
                cte.alias.name.value
            );
            return Err(refused(message, cte.alias.name.span));
        }
        let whole = std::mem::replace(inner, empty_query());
        *inner = select_from(whole, cte.alias.name.clone());
    }
    Ok(())
}

/// Stops at a table of a name.
struct Mention<'a>(&'a Ident);

impl Visitor for Mention<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let is_it = name
            .0
            .last()
            .and_then(ObjectNamePart::as_ident)
            .is_some_and(|part| part.value.eq_ignore_ascii_case(&self.0.value));
        match is_it {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// `SELECT * FROM (query) AS name`.
pub(super) fn select_from(query: Query, name: Ident) -> Query {
    let source = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(TableAlias {
            explicit: true,
            name,
            columns: Vec::new(),
            at: None,
        }),
        sample: None,
    };
    Query {
        body: Box::new(SetExpr::Select(Box::new(select_all(source)))),
        ..empty_query()
    }
}

fn select_all(source: TableFactor) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![all_columns()],
        exclude: None,
        into: None,
        from: vec![TableWithJoins {
            relation: source,
            joins: Vec::new(),
        }],
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

fn all_columns() -> SelectItem {
    SelectItem::Wildcard(WildcardAdditionalOptions::default())
}

fn table_factor(name: ObjectName) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

fn empty_query() -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Values(Values {
            explicit_row: false,
            value_keyword: false,
            rows: Vec::new(),
        })),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
