//! Queries: SELECT, set operations, VALUES, WITH, ORDER BY, LIMIT, pipes.
//!
//! In: a query. Out: nothing, or its first clause that DataFusion drops.
//! Invariant: as of the folder. INTO is planned only where a statement is one SELECT.
//! Not here: tables and joins (relation.rs), expressions (expr.rs).

use datafusion::sql::sqlparser::ast::{
    ConnectByKind, Cte, CteAsMaterialized, Distinct, ExprWithAlias, ExprWithAliasAndOrderBy,
    GroupByExpr, LimitClause, LockType, Offset, OrderBy, OrderByExpr, OrderByKind, OrderByOptions,
    Parens, PipeOperator, Query, ReplaceSelectElement, ReplaceSelectItem, Select, SelectFlavor,
    SelectInto, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier,
    Values, WildcardAdditionalOptions, With,
};

use super::{Checked, StatementWalk};

impl StatementWalk<'_> {
    /// A query that is a statement: it may make a table of its rows.
    pub(super) fn top_query(&mut self, query: &Query) -> Checked {
        if let SetExpr::Select(select) = query.body.as_ref() {
            self.maybe(&select.into, |walk, into| {
                let SelectInto {
                    // A session's tables are gone with it and have no log.
                    temporary: _,
                    unlogged: _,
                    table: _,
                    name,
                } = into;
                walk.name(name)
            })?;
            let mut without = query.clone();
            if let SetExpr::Select(select) = without.body.as_mut() {
                select.into = None;
            }
            return self.query(&without);
        }
        self.query(query)
    }

    pub(super) fn query(&mut self, query: &Query) -> Checked {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        self.maybe(with, Self::with)?;
        self.set_expr(body)?;
        self.maybe(order_by, Self::order_by)?;
        let is_select = matches!(body.as_ref(), SetExpr::Select(_));
        if let Some(OrderBy {
            kind: OrderByKind::All(_),
            ..
        }) = order_by
            && !is_select
        {
            return self.refuse("ORDER BY ALL", "write the columns");
        }
        self.maybe(limit_clause, Self::limit_clause)?;
        self.absent(fetch, "FETCH", "write LIMIT")?;
        self.each(locks, |walk, lock| {
            let clause = match lock.lock_type {
                LockType::Update => "FOR UPDATE",
                LockType::Share => "FOR SHARE",
            };
            walk.refuse(
                clause,
                "nobody else writes to a session's tables; leave it out",
            )
        })?;
        self.absent(
            for_clause,
            "FOR",
            "results have the format that the caller asks for",
        )?;
        self.absent(
            settings,
            "SETTINGS",
            "set an option by SET name = value before",
        )?;
        self.absent(
            format_clause,
            "FORMAT",
            "choose the format by -o, or by COPY … TO 'file.csv'",
        )?;
        self.each(pipe_operators, Self::pipe)
    }

    fn with(&mut self, with: &With) -> Checked {
        let With {
            with_token: _,
            recursive,
            cte_tables,
        } = with;
        if *recursive {
            self.each(cte_tables, |walk, cte| walk.recursion(cte))?;
        }
        self.each(cte_tables, |walk, cte| {
            let Cte {
                alias,
                query,
                from,
                // Whether a query is kept or written out where it is used changes no answer.
                materialized: None
                | Some(CteAsMaterialized::Materialized | CteAsMaterialized::NotMaterialized),
                closing_paren_token: _,
            } = cte;
            walk.alias(alias)?;
            walk.absent(from, "FROM after the query of a WITH", "")?;
            walk.query(query)
        })
    }

    fn set_expr(&mut self, body: &SetExpr) -> Checked {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.values(values),
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                self.set_expr(left)?;
                match (op, set_quantifier) {
                    (SetOperator::Union, _)
                    | (
                        SetOperator::Intersect | SetOperator::Except,
                        SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None,
                    ) => {}
                    (op, quantifier) => {
                        return self.refuse(format!("{op} {quantifier}"), "only UNION has BY NAME");
                    }
                }
                self.set_expr(right)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                self.refuse(
                    "a statement that writes in the place of a query",
                    "run it by itself",
                )
            }
            SetExpr::Table(_) => self.refuse("TABLE", "write SELECT * FROM"),
        }
    }

    pub(super) fn values(&mut self, values: &Values) -> Checked {
        let Values {
            explicit_row: _,
            value_keyword,
            rows,
        } = values;
        self.absent(value_keyword, "VALUE", "write VALUES")?;
        self.each(rows, |walk, row| {
            let Parens {
                opening_token,
                content,
                closing_token: _,
            } = row;
            walk.pass(opening_token.0.span.start);
            walk.exprs(content)
        })
    }

    fn select(&mut self, select: &Select) -> Checked {
        let Select {
            select_token,
            // A comment, in every dialect that does not know it.
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        self.pass(select_token.0.span.start);
        self.absent(
            select_modifiers,
            "SELECT with modifiers of MySQL",
            "leave them out",
        )?;
        self.absent(top, "TOP", "write LIMIT")?;
        self.absent(
            value_table_mode,
            "AS",
            "SELECT AS STRUCT and AS VALUE are BigQuery's; write struct(…)",
        )?;
        self.maybe(distinct, Self::distinct)?;
        self.each(projection, Self::select_item)?;
        self.absent(exclude, "EXCLUDE", "write it behind the `*`")?;
        self.absent(
            into,
            "INTO",
            "only a statement that is one SELECT makes a table; write CREATE TABLE … AS",
        )?;
        if *flavor != SelectFlavor::Standard {
            return self.refuse("FROM without SELECT", "write SELECT * FROM");
        }
        self.each(from, Self::table_with_joins)?;
        self.absent(
            lateral_views,
            "LATERAL VIEW",
            "write CROSS JOIN LATERAL or unnest(…)",
        )?;
        self.absent(prewhere, "PREWHERE", "write WHERE")?;
        self.maybe(selection, Self::expr)?;
        self.absent(connect_by, connect_word(select), "write WITH RECURSIVE")?;
        self.group_by(group_by)?;
        self.absent(cluster_by, "CLUSTER BY", "leave it out, or write ORDER BY")?;
        // How rows are dealt out among workers changes no answer.
        self.absent(distribute_by, "DISTRIBUTE BY", "leave it out")?;
        self.absent(sort_by, "SORT BY", "write ORDER BY")?;
        self.maybe(having, Self::expr)?;
        self.absent(named_window, "WINDOW", "write the window where it is used")?;
        self.maybe(qualify, Self::expr)
    }

    fn distinct(&mut self, distinct: &Distinct) -> Checked {
        match distinct {
            Distinct::On(exprs) => self.exprs(exprs),
            Distinct::Distinct | Distinct::All => Ok(()),
        }
    }

    fn group_by(&mut self, group_by: &GroupByExpr) -> Checked {
        let advice = "write ROLLUP (…), CUBE (…) or GROUPING SETS (…)";
        match group_by {
            GroupByExpr::All(modifiers) => {
                self.absent(modifiers, "a modifier of GROUP BY ALL", advice)
            }
            GroupByExpr::Expressions(exprs, modifiers) => {
                self.exprs(exprs)?;
                self.absent(modifiers, "a modifier of GROUP BY", advice)
            }
        }
    }

    pub(super) fn select_item(&mut self, item: &SelectItem) -> Checked {
        match item {
            SelectItem::UnnamedExpr(expr) => self.expr(expr),
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expr(expr)?;
                self.ident(alias);
                Ok(())
            }
            SelectItem::ExprWithAliases { expr, aliases } => {
                self.expr(expr)?;
                aliases.iter().for_each(|alias| self.ident(alias));
                self.refuse("several names for one column", "give it one name")
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                match kind {
                    SelectItemQualifiedWildcardKind::ObjectName(name) => self.name(name)?,
                    SelectItemQualifiedWildcardKind::Expr(expr) => {
                        self.expr(expr)?;
                        return self.refuse("`.*` of an expression", "name its fields");
                    }
                }
                self.wildcard(options)
            }
            SelectItem::Wildcard(options) => self.wildcard(options),
        }
    }

    fn wildcard(&mut self, options: &WildcardAdditionalOptions) -> Checked {
        let WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike: _,
            opt_exclude: _,
            opt_except: _,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        self.pass(wildcard_token.0.span.start);
        if let Some(replace) = opt_replace {
            let ReplaceSelectItem { items } = replace;
            self.each(items, |walk, item| {
                let ReplaceSelectElement {
                    expr,
                    column_name,
                    as_keyword: _,
                } = item.as_ref();
                walk.expr(expr)?;
                walk.ident(column_name);
                Ok(())
            })?;
        }
        self.absent(opt_rename, "RENAME", "write the columns with AS")?;
        self.absent(opt_alias, "AS after `*`", "write the columns with AS")
    }

    pub(super) fn order_by(&mut self, order_by: &OrderBy) -> Checked {
        let OrderBy { kind, interpolate } = order_by;
        match kind {
            OrderByKind::All(OrderByOptions {
                asc: _,
                nulls_first: _,
            }) => {}
            OrderByKind::Expressions(keys) => self.order_keys(keys)?,
        }
        self.absent(
            interpolate,
            "INTERPOLATE",
            "join with a series of the values, from generate_series(…)",
        )
    }

    pub(super) fn order_keys(&mut self, keys: &[OrderByExpr]) -> Checked {
        self.each(keys, |walk, key| {
            let OrderByExpr {
                expr,
                options:
                    OrderByOptions {
                        asc: _,
                        nulls_first: _,
                    },
                with_fill,
            } = key;
            walk.expr(expr)?;
            walk.absent(
                with_fill,
                "WITH FILL",
                "join with a series of the values, from generate_series(…)",
            )
        })
    }

    fn limit_clause(&mut self, clause: &LimitClause) -> Checked {
        match clause {
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                self.maybe(limit, Self::expr)?;
                self.maybe(offset, |walk, offset| {
                    let Offset { value, rows: _ } = offset;
                    walk.expr(value)
                })?;
                self.absent(
                    limit_by,
                    "LIMIT BY",
                    "number the rows by row_number() OVER (PARTITION BY …) in QUALIFY",
                )
            }
            LimitClause::OffsetCommaLimit { offset, limit } => {
                self.expr(offset)?;
                self.expr(limit)
            }
        }
    }

    fn pipe(&mut self, operator: &PipeOperator) -> Checked {
        match operator {
            PipeOperator::Limit { expr, offset } => {
                self.expr(expr)?;
                self.maybe(offset, Self::expr)
            }
            PipeOperator::Where { expr } => self.expr(expr),
            PipeOperator::OrderBy { exprs } => self.order_keys(exprs),
            PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } => {
                self.each(exprs, Self::select_item)
            }
            PipeOperator::As { alias } => {
                self.ident(alias);
                Ok(())
            }
            PipeOperator::Aggregate {
                full_table_exprs,
                group_by_expr,
            } => {
                self.each(full_table_exprs, Self::pipe_key)?;
                self.each(group_by_expr, Self::pipe_key)
            }
            PipeOperator::Union {
                set_quantifier: _,
                queries,
            }
            | PipeOperator::Intersect {
                set_quantifier: _,
                queries,
            }
            | PipeOperator::Except {
                set_quantifier: _,
                queries,
            } => self.each(queries, Self::query),
            PipeOperator::Join(join) => self.join(join),
            PipeOperator::Set { .. } => self.refuse("SET after |>", "write |> SELECT"),
            PipeOperator::Drop { .. } => {
                self.refuse("DROP after |>", "write |> SELECT * EXCEPT (…)")
            }
            PipeOperator::TableSample { .. } => {
                self.refuse("TABLESAMPLE after |>", "write it behind the table in FROM")
            }
            PipeOperator::Rename { .. } => self.refuse("RENAME after |>", "write |> SELECT"),
            PipeOperator::Call { .. } => self.refuse("CALL after |>", ""),
            PipeOperator::Pivot { .. } => self.refuse("PIVOT after |>", "write it in FROM"),
            PipeOperator::Unpivot { .. } => self.refuse("UNPIVOT after |>", "write it in FROM"),
        }
    }

    fn pipe_key(&mut self, key: &ExprWithAliasAndOrderBy) -> Checked {
        let ExprWithAliasAndOrderBy {
            expr: ExprWithAlias { expr, alias },
            order_by: OrderByOptions { asc, nulls_first },
        } = key;
        self.expr(expr)?;
        if let Some(alias) = alias {
            self.ident(alias);
        }
        match (asc, nulls_first) {
            (None, None) => Ok(()),
            _ => self.refuse(
                "the order of a key of AGGREGATE",
                "write |> ORDER BY after it",
            ),
        }
    }
}

fn connect_word(select: &Select) -> &'static str {
    match select.connect_by.first() {
        Some(ConnectByKind::StartWith { .. }) => "START WITH",
        _ => "CONNECT BY",
    }
}
