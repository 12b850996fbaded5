//! Tables in FROM: names, functions, subqueries, joins.
//!
//! In: a table factor or a join. Out: nothing, or its first clause that DataFusion drops.
//! Invariant: as of the folder. A word without AS that other dialects take for a clause is no alias.
//! Not here: samples, which samples.rs plans.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, TableAlias,
    TableAliasColumnDef, TableFactor, TableFunctionArgs, TableVersion, TableWithJoins,
};

use super::{Checked, StatementWalk};

/// Words after a table that the parser takes for its alias, and what they are elsewhere.
const NO_ALIASES: &[(&str, &str)] = &[
    ("final", "rows are read as they are; leave FINAL out"),
    (
        "any",
        "write a join without ANY, and DISTINCT ON (…) where one match is enough",
    ),
    ("asof", "write ASOF JOIN … ON with a comparison"),
    ("positional", "join on row_number() OVER ()"),
    ("semi", "write WHERE EXISTS (…)"),
    ("anti", "write WHERE NOT EXISTS (…)"),
    ("option", "leave the hints out"),
];

impl StatementWalk<'_> {
    pub(super) fn table_with_joins(&mut self, table: &TableWithJoins) -> Checked {
        let TableWithJoins { relation, joins } = table;
        self.relation(relation)?;
        self.each(joins, Self::join)
    }

    pub(super) fn join(&mut self, join: &Join) -> Checked {
        let Join {
            relation,
            global,
            join_operator,
        } = join;
        self.absent(
            global,
            "GLOBAL",
            "all runs on one machine; leave GLOBAL out",
        )?;
        self.relation(relation)?;
        match join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint) => self.constraint(constraint),
            JoinOperator::CrossJoin(JoinConstraint::None) => Ok(()),
            JoinOperator::CrossJoin(_) => self.refuse("CROSS JOIN with a condition", "write JOIN"),
            JoinOperator::Semi(_) => self.refuse("SEMI JOIN", "write LEFT SEMI JOIN"),
            JoinOperator::Anti(_) => self.refuse("ANTI JOIN", "write LEFT ANTI JOIN"),
            JoinOperator::StraightJoin(_) => self.refuse("STRAIGHT_JOIN", "write JOIN"),
            JoinOperator::CrossApply => self.refuse("CROSS APPLY", "write CROSS JOIN LATERAL"),
            JoinOperator::OuterApply => {
                self.refuse("OUTER APPLY", "write LEFT JOIN LATERAL … ON true")
            }
            JoinOperator::AsOf { .. } => self.refuse(
                "ASOF JOIN",
                "write a LATERAL subquery with ORDER BY and LIMIT 1",
            ),
            JoinOperator::ArrayJoin | JoinOperator::InnerArrayJoin => {
                self.refuse("ARRAY JOIN", "write unnest(…)")
            }
            JoinOperator::LeftArrayJoin => self.refuse("LEFT ARRAY JOIN", "write unnest(…)"),
        }
    }

    fn constraint(&mut self, constraint: &JoinConstraint) -> Checked {
        match constraint {
            JoinConstraint::On(expr) => self.expr(expr),
            JoinConstraint::Using(names) => self.each(names, Self::name),
            JoinConstraint::Natural | JoinConstraint::None => Ok(()),
        }
    }

    pub(super) fn alias(&mut self, alias: &TableAlias) -> Checked {
        let TableAlias {
            explicit,
            name,
            columns,
            at,
        } = alias;
        self.ident(name);
        if !explicit && name.quote_style.is_none() {
            let word = name.value.to_lowercase();
            if let Some((_, advice)) = NO_ALIASES.iter().find(|(other, _)| *other == word) {
                return self.refuse(word.to_uppercase(), advice);
            }
        }
        self.each(columns, |walk, column| {
            let TableAliasColumnDef { name, data_type } = column;
            walk.ident(name);
            walk.absent(
                data_type,
                "types in the column list of an alias",
                "write CAST in the select list",
            )
        })?;
        self.absent(at, "AT after an alias", "")
    }

    pub(super) fn relation(&mut self, factor: &TableFactor) -> Checked {
        match factor {
            TableFactor::Table { .. } => self.table(factor),
            TableFactor::Derived {
                lateral: _,
                subquery,
                alias,
                // Planned by samples.rs.
                sample: _,
            } => {
                self.query(subquery)?;
                self.maybe(alias, Self::alias)
            }
            TableFactor::Function {
                lateral: _,
                name,
                args,
                with_ordinality,
                alias,
            } => {
                self.name(name)?;
                self.each(args, Self::table_argument)?;
                self.absent(
                    with_ordinality,
                    "WITH ORDINALITY",
                    "number the rows by row_number() OVER ()",
                )?;
                self.maybe(alias, Self::alias)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset,
                with_offset_alias: _,
                with_ordinality,
            } => {
                self.exprs(array_exprs)?;
                self.absent(
                    with_ordinality,
                    "WITH ORDINALITY",
                    "unnest generate_series(1, array_length(…)) beside it",
                )?;
                self.absent(
                    with_offset,
                    "WITH OFFSET",
                    "unnest generate_series(1, array_length(…)) beside it",
                )?;
                self.maybe(alias, Self::alias)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                self.table_with_joins(table_with_joins)?;
                self.maybe(alias, Self::alias)
            }
            _ => self.foreign_relation(factor),
        }
    }

    /// Tables of other dialects.
    fn foreign_relation(&mut self, factor: &TableFactor) -> Checked {
        match factor {
            TableFactor::TableFunction { .. } => {
                self.refuse("TABLE", "write the function without TABLE(…)")
            }
            TableFactor::JsonTable { .. } => {
                self.refuse("JSON_TABLE", "read the file by read_json(…)")
            }
            TableFactor::OpenJsonTable { .. } => {
                self.refuse("OPENJSON", "read the file by read_json(…)")
            }
            TableFactor::Pivot { .. } => {
                self.refuse("PIVOT", "write sum(x) FILTER (WHERE …) for each column")
            }
            TableFactor::Unpivot { .. } => {
                self.refuse("UNPIVOT", "write a UNION ALL of the columns")
            }
            TableFactor::MatchRecognize { .. } => self.refuse("MATCH_RECOGNIZE", ""),
            TableFactor::XmlTable { .. } => self.refuse("XMLTABLE", ""),
            TableFactor::SemanticView { .. } => self.refuse("SEMANTIC_VIEW", ""),
            _ => self.refuse("this table", ""),
        }
    }

    fn table(&mut self, factor: &TableFactor) -> Checked {
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            // Planned by samples.rs.
            sample: _,
            index_hints,
        } = factor
        else {
            return Ok(());
        };
        self.name(name)?;
        self.maybe(args, |walk, args| {
            let TableFunctionArgs { args, settings } = args;
            if name.0.len() > 1 {
                return walk.refuse("a function of a schema in FROM", "write its name alone");
            }
            walk.each(args, Self::table_argument)?;
            walk.absent(
                settings,
                "SETTINGS",
                "set an option by SET name = value before",
            )
        })?;
        self.maybe(version, |walk, version| {
            let clause = match version {
                TableVersion::ForSystemTimeAsOf(_) => "FOR SYSTEM_TIME",
                TableVersion::TimestampAsOf(_) => "TIMESTAMP AS OF",
                TableVersion::VersionAsOf(_) => "VERSION AS OF",
                TableVersion::Function(_) => "AT or BEFORE after a table",
                TableVersion::Changes { .. } => "CHANGES",
            };
            walk.refuse(clause, "tables have no earlier versions")
        })?;
        self.absent(
            with_ordinality,
            "WITH ORDINALITY",
            "number the rows by row_number() OVER ()",
        )?;
        self.absent(
            partitions,
            "PARTITION",
            "write a condition on the partition's columns",
        )?;
        self.absent(
            json_path,
            "a path after a table",
            "write the fields in the select list",
        )?;
        self.maybe(alias, Self::alias)?;
        self.absent(
            with_hints,
            "WITH",
            "tables have no locks; leave the hints out",
        )?;
        self.absent(
            index_hints,
            "an index hint (USE, FORCE or IGNORE INDEX)",
            "tables have no indexes; leave it out",
        )
    }

    /// A table that is written to: nothing but a name.
    pub(super) fn target(&mut self, factor: &TableFactor) -> Checked {
        match factor {
            TableFactor::Table { sample, .. } => {
                self.table(factor)?;
                self.absent(
                    sample,
                    "TABLESAMPLE",
                    "rows that are changed are chosen by WHERE",
                )
            }
            _ => self.refuse("a table that is written to and is no name", ""),
        }
    }

    fn table_argument(&mut self, argument: &FunctionArg) -> Checked {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expr(expr),
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(expr),
                operator: _,
            } => {
                self.ident(name);
                self.expr(expr)
            }
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(expr),
                operator: _,
            } => {
                self.ident(name);
                self.expr(expr)
            }
            _ => self.refuse("an argument of a table function that is no value", ""),
        }
    }
}
