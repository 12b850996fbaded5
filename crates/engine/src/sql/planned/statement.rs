//! Statements: queries, writing, tables, settings, prepared statements.
//!
//! In: a statement. Out: nothing, or its first clause that DataFusion drops.
//! Invariant: as of the folder; a kind of statement that is not listed is refused by its first words.
//! Not here: CREATE TABLE and views (table.rs).

use std::ops::ControlFlow;

use datafusion::sql::parser::{
    CopyToSource, CopyToStatement, ExplainStatement, ResetStatement,
    Statement as DataFusionStatement,
};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, DescribeAlias, DropFunction, Expr, FromTable,
    FunctionDesc, Insert, ObjectType, Query, Set, ShowStatementIn, ShowStatementOptions, Statement,
    TableObject, TableWithJoins, Truncate, TruncateTableTarget, Update, Visit, Visitor,
};

use super::{Absent, Checked, StatementWalk};

const REPLACE_TABLE: &str = "write CREATE OR REPLACE TABLE t AS SELECT … FROM t WHERE …";
const ALTER_ADVICE: &str = "a table in memory takes ADD, DROP and RENAME COLUMN, RENAME TO, ADD of PRIMARY KEY, UNIQUE and CHECK, and ALTER COLUMN with TYPE, NOT NULL and DEFAULT, one a statement; make others anew by CREATE OR REPLACE TABLE";
const TYPE_ADVICE: &str = "an ENUM would be ordered by its letters and not by the places of its labels; write VARCHAR with CHECK (c IN ('a', 'b')), and ORDER BY list_position(['a', 'b'], c)";
const SEQUENCE_ADVICE: &str =
    "its options are START, INCREMENT, MINVALUE, MAXVALUE and CYCLE, its numbers BIGINT";
const WRITE_ONE: &str = "write one statement for each";
const SEVERAL_TABLES: &str = "INSERT into several tables";

impl StatementWalk<'_> {
    pub(super) fn datafusion_statement(&mut self, statement: &DataFusionStatement) -> Checked {
        match statement {
            DataFusionStatement::Statement(statement) => self.statement(statement),
            DataFusionStatement::CreateExternalTable(table) => self.external_table(table),
            DataFusionStatement::CopyTo(copy) => {
                let CopyToStatement {
                    source,
                    target: _,
                    partitioned_by: _,
                    stored_as: _,
                    // Each is judged by the writer of its format.
                    options: _,
                } = copy;
                match source {
                    CopyToSource::Relation(name) => self.name(name),
                    CopyToSource::Query(query) => self.query(query),
                }
            }
            DataFusionStatement::Explain(explain) => {
                let ExplainStatement {
                    // Its type is DataFusion's own secret; DataFusion reads all of it.
                    options: _,
                    statement,
                } = explain;
                if let DataFusionStatement::Statement(statement) = statement.as_ref() {
                    self.only_explained(statement)?;
                }
                self.datafusion_statement(statement)
            }
            DataFusionStatement::Reset(ResetStatement::Variable(name)) => self.name(name),
        }
    }

    /// DataFusion changes a table in memory while it plans.
    fn only_explained(&mut self, statement: &Statement) -> Checked {
        let clause = match statement {
            Statement::Delete(_) => "DELETE",
            Statement::Update(_) => "UPDATE",
            Statement::Truncate(_) => "TRUNCATE",
            _ => return Ok(()),
        };
        self.refuse(clause, "explain a SELECT with the same condition")
    }

    fn statement(&mut self, statement: &Statement) -> Checked {
        match statement {
            Statement::Query(query) => self.top_query(query),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Truncate(truncate) => self.truncate(truncate),
            Statement::CreateTable(table) => self.create_table(table),
            Statement::CreateView(view) => self.create_view(view),
            Statement::Set(set) => self.set(set),
            Statement::ShowVariable { variable } => {
                variable.iter().for_each(|part| self.ident(part));
                Ok(())
            }
            Statement::ShowFunctions { filter: _ } => Ok(()),
            Statement::ShowCreate {
                obj_type: _,
                obj_name,
            } => self.name(obj_name),
            Statement::Prepare {
                name,
                data_types,
                statement,
            } => {
                self.ident(name);
                self.each(data_types, Self::data_type)?;
                self.statement(statement)
            }
            Statement::Deallocate { name, prepare: _ } => {
                self.ident(name);
                Ok(())
            }
            Statement::Execute {
                name,
                parameters,
                has_parentheses: _,
                immediate,
                into,
                using,
                output,
                default,
            } => {
                self.maybe(name, Self::name)?;
                self.exprs(parameters)?;
                self.absent(immediate, "IMMEDIATE", "prepare the statement before")?;
                self.absent(into, "INTO", "")?;
                self.absent(using, "USING", "write the values in parentheses")?;
                self.absent(output, "OUTPUT", "")?;
                self.absent(default, "DEFAULT", "")
            }
            _ => self.description(statement),
        }
    }

    fn description(&mut self, statement: &Statement) -> Checked {
        match statement {
            Statement::ExplainTable {
                describe_alias: DescribeAlias::Describe | DescribeAlias::Desc,
                hive_format,
                has_table_keyword: _,
                table_name,
            } => {
                self.absent(hive_format, "EXTENDED or FORMATTED", "leave it out")?;
                self.name(table_name)
            }
            Statement::Explain {
                describe_alias: _,
                analyze: _,
                verbose: _,
                query_plan,
                estimate,
                statement,
                format: _,
                options,
            } => {
                self.absent(query_plan, "QUERY PLAN", "write EXPLAIN alone")?;
                self.absent(estimate, "ESTIMATE", "write EXPLAIN alone")?;
                self.absent(
                    options,
                    "options of EXPLAIN in parentheses",
                    "write EXPLAIN ANALYZE",
                )?;
                self.only_explained(statement)?;
                self.statement(statement)
            }
            Statement::ShowTables {
                terse,
                history,
                extended,
                full,
                external,
                show_options,
            } => {
                self.absent(terse, "TERSE", "")?;
                self.absent(history, "HISTORY", "")?;
                self.absent(extended, "EXTENDED", "")?;
                self.absent(full, "FULL", "")?;
                self.absent(external, "EXTERNAL", "")?;
                self.absent(
                    &show_options.show_in,
                    "FROM or IN",
                    "read information_schema.tables",
                )?;
                self.show_options(show_options)
            }
            Statement::ShowColumns {
                extended: _,
                full: _,
                show_options,
            } => self.show_options(show_options),
            Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. } => self.refuse_transaction(statement),
            // A MERGE that runs never comes here (changes/merged_rows.rs).
            Statement::Merge(_) => self.refuse("MERGE", "explain a SELECT with the same join"),
            Statement::CreateIndex(_) => {
                self.refuse("CREATE INDEX", "tables are read whole and need none")
            }
            _ => self.definition(statement),
        }
    }

    fn refuse_transaction(&self, statement: &Statement) -> Checked {
        let clause = match statement {
            Statement::StartTransaction { begin: true, .. } => "BEGIN",
            Statement::StartTransaction { .. } => "START TRANSACTION",
            Statement::Commit { end: true, .. } => "END",
            Statement::Commit { .. } => "COMMIT",
            Statement::Savepoint { .. } => "SAVEPOINT",
            Statement::ReleaseSavepoint { .. } => "RELEASE",
            _ => "ROLLBACK",
        };
        self.refuse(
            clause,
            "each statement takes effect by itself; there are no transactions",
        )
    }

    fn definition(&mut self, statement: &Statement) -> Checked {
        match statement {
            Statement::CreateSchema {
                schema_name: _,
                if_not_exists: _,
                with,
                options,
                default_collate_spec,
                clone,
            } => {
                self.absent(with, "WITH", "")?;
                self.absent(options, "OPTIONS", "")?;
                self.absent(default_collate_spec, "DEFAULT COLLATE", "")?;
                self.absent(clone, "CLONE", "")
            }
            Statement::Drop { .. } | Statement::DropFunction(_) => self.drop(statement),
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().collect();
                let count = match words.first().map(|word| word.to_uppercase()).as_deref() {
                    Some("CREATE" | "ALTER" | "DROP" | "SHOW" | "COPY" | "RELEASE" | "LOCK") => 2,
                    _ => 1,
                };
                let words: Vec<String> = words
                    .iter()
                    .take(count)
                    .map(|word| word.to_uppercase())
                    .collect();
                let advice = match other {
                    Statement::AlterTable(_) => ALTER_ADVICE,
                    Statement::CreateType { .. } => TYPE_ADVICE,
                    Statement::CreateSequence { .. } => SEQUENCE_ADVICE,
                    _ => "",
                };
                self.refuse(words.join(" "), advice)
            }
        }
    }

    fn drop(&mut self, statement: &Statement) -> Checked {
        match statement {
            Statement::Drop {
                object_type,
                if_exists: _,
                names,
                cascade,
                restrict: _,
                purge,
                temporary: _,
                table,
            } => {
                self.each(names, Self::name)?;
                match object_type {
                    ObjectType::Table | ObjectType::View => {
                        self.absent(
                            cascade,
                            "CASCADE",
                            "views look their tables up by name; drop them by themselves",
                        )?;
                    }
                    ObjectType::Schema => {}
                    other => {
                        return self.refuse(format!("DROP {other}"), "");
                    }
                }
                if names.len() > 1 {
                    return self.refuse("DROP of several names", WRITE_ONE);
                }
                self.absent(purge, "PURGE", "leave it out")?;
                self.absent(table, "ON", "")
            }
            Statement::DropFunction(drop) => {
                let DropFunction {
                    if_exists: _,
                    func_desc,
                    drop_behavior,
                } = drop;
                self.each(func_desc, |walk, function| {
                    let FunctionDesc { name, args } = function;
                    walk.name(name)?;
                    walk.absent(
                        args,
                        "types of a function's arguments in DROP FUNCTION",
                        "write its name alone",
                    )
                })?;
                if func_desc.len() > 1 {
                    return self.refuse("DROP of several names", WRITE_ONE);
                }
                self.absent(drop_behavior, "CASCADE or RESTRICT", "leave it out")
            }
            _ => Ok(()),
        }
    }

    fn show_options(&mut self, options: &ShowStatementOptions) -> Checked {
        let ShowStatementOptions {
            show_in,
            starts_with,
            limit,
            limit_from,
            filter_position,
        } = options;
        self.maybe(show_in, |walk, show_in| {
            let ShowStatementIn {
                clause: _,
                parent_type,
                parent_name,
            } = show_in;
            walk.maybe(parent_name, Self::name)?;
            walk.absent(
                parent_type,
                "a kind of name after FROM or IN",
                "write the table's name",
            )
        })?;
        self.absent(starts_with, "STARTS WITH", "read information_schema")?;
        self.absent(limit, "LIMIT", "read information_schema")?;
        self.absent(limit_from, "FROM", "read information_schema")?;
        self.absent(
            filter_position,
            "LIKE or WHERE after SHOW",
            "read information_schema",
        )
    }

    fn set(&mut self, set: &Set) -> Checked {
        match set {
            Set::SingleAssignment {
                scope,
                hivevar,
                variable,
                values,
            } => {
                self.absent(
                    scope,
                    "a scope after SET",
                    "options are the session's; write SET name = value",
                )?;
                self.absent(hivevar, "HIVEVAR", "write SET name = value")?;
                self.name(variable)?;
                self.exprs(values)
            }
            other => {
                let text = other.to_string();
                let words = text.split_whitespace().take(2).collect::<Vec<_>>();
                self.refuse(words.join(" "), "write SET name = value")
            }
        }
    }

    fn insert(&mut self, insert: &Insert) -> Checked {
        let Insert {
            insert_token,
            optimizer_hints: _,
            or,
            ignore,
            into: _,
            table,
            table_alias,
            columns,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword: _,
            on,
            returning,
            output,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        self.pass(insert_token.0.span.start);
        let parts: [(&dyn Absent, &str); 17] = [
            (or, "OR"),
            (replace_into, "REPLACE"),
            (overwrite, "OVERWRITE"),
            (priority, "a priority of INSERT"),
            (ignore, "IGNORE"),
            (table_alias, "AS after INSERT INTO"),
            (partitioned, "PARTITION"),
            (after_columns, "columns after PARTITION"),
            (assignments, "SET"),
            (settings, "SETTINGS"),
            (format_clause, "FORMAT"),
            (on, "ON"),
            (insert_alias, "AS after VALUES"),
            (returning, "RETURNING"),
            (output, "OUTPUT"),
            (multi_table_insert_type, SEVERAL_TABLES),
            (multi_table_else_clause, SEVERAL_TABLES),
        ];
        self.none_of(
            &parts,
            "write INSERT INTO table(columns) and VALUES or a query",
        )?;
        self.absent(multi_table_into_clauses, SEVERAL_TABLES, WRITE_ONE)?;
        self.absent(multi_table_when_clauses, SEVERAL_TABLES, WRITE_ONE)?;
        match table {
            TableObject::TableName(name) => self.name(name)?,
            TableObject::TableFunction(_) => {
                return self.refuse("a function after INSERT INTO", "write COPY … TO 'file'");
            }
            TableObject::TableQuery(_) => return self.refuse("a query after INSERT INTO", ""),
        }
        self.each(columns, Self::name)?;
        match source {
            Some(source) => self.query(source),
            None => self.refuse("INSERT without VALUES or a query", "write VALUES (…)"),
        }
    }

    fn update(&mut self, update: &Update) -> Checked {
        let Update {
            update_token,
            optimizer_hints: _,
            table,
            assignments,
            from,
            selection,
            returning,
            output,
            or,
            order_by,
            limit,
        } = update;
        self.pass(update_token.0.span.start);
        self.absent(or, "OR", "")?;
        self.written(table)?;
        // Without these clauses a statement with subqueries runs (changed_rows.rs).
        self.absent(returning, "RETURNING", "read the table afterwards")?;
        self.absent(output, "OUTPUT", "read the table afterwards")?;
        self.absent(order_by, "ORDER BY", "the rows are chosen by WHERE")?;
        self.absent(limit, "LIMIT", "the rows are chosen by WHERE")?;
        self.each(assignments, |walk, assignment| {
            let Assignment { target, value } = assignment;
            match target {
                AssignmentTarget::ColumnName(name) => {
                    walk.name(name)?;
                }
                AssignmentTarget::Tuple(_) => {
                    return walk
                        .refuse("a list of columns in SET", "set one column after the other");
                }
            }
            walk.condition(value)
        })?;
        self.absent(from, "FROM", REPLACE_TABLE)?;
        self.maybe(selection, Self::condition)
    }

    fn delete(&mut self, delete: &Delete) -> Checked {
        let Delete {
            delete_token,
            optimizer_hints: _,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        self.pass(delete_token.0.span.start);
        self.absent(tables, "DELETE from several tables", WRITE_ONE)?;
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
        match from.as_slice() {
            [table] => self.written(table)?,
            _ => return self.refuse("DELETE from several tables", WRITE_ONE),
        }
        self.absent(returning, "RETURNING", "read the rows before")?;
        self.absent(output, "OUTPUT", "read the rows before")?;
        self.absent(order_by, "ORDER BY", "the rows are chosen by WHERE")?;
        self.absent(limit, "LIMIT", "the rows are chosen by WHERE")?;
        self.absent(using, "USING", REPLACE_TABLE)?;
        self.maybe(selection, Self::condition)
    }

    fn written(&mut self, table: &TableWithJoins) -> Checked {
        let TableWithJoins { relation, joins } = table;
        self.target(relation)?;
        self.absent(
            joins,
            "JOIN with a table that is written to",
            "write a subquery in WHERE",
        )
    }

    /// DataFusion would not find a condition with a subquery, and change all rows.
    fn condition(&mut self, expr: &Expr) -> Checked {
        self.expr(expr)?;
        match expr.visit(&mut Subqueries) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => self.refuse("a query within DELETE or UPDATE", REPLACE_TABLE),
        }
    }

    fn truncate(&mut self, truncate: &Truncate) -> Checked {
        let Truncate {
            table_names,
            partitions,
            table: _,
            if_exists,
            identity,
            cascade,
            on_cluster,
        } = truncate;
        self.each(table_names, |walk, target| {
            let TruncateTableTarget {
                name,
                only,
                has_asterisk: _,
            } = target;
            walk.name(name)?;
            walk.absent(only, "ONLY", "leave it out")
        })?;
        if table_names.len() > 1 {
            return self.refuse("TRUNCATE of several tables", WRITE_ONE);
        }
        self.absent(partitions, "PARTITION", "write DELETE … WHERE")?;
        self.absent(if_exists, "IF EXISTS", "leave it out")?;
        self.absent(identity, "RESTART or CONTINUE IDENTITY", "leave it out")?;
        self.absent(cascade, "CASCADE or RESTRICT", "leave it out")?;
        self.absent(on_cluster, "ON CLUSTER", "leave it out")
    }
}

/// Stops at a query within an expression.
struct Subqueries;

impl Visitor for Subqueries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}
