//! `CREATE TABLE u (LIKE t)` and `CREATE TABLE u LIKE t`: a table with the columns of another one.
//!
//! In: a parsed statement. Out: the statement that makes such a table without rows, and what it keeps of the other one.
//! Invariant: as in PostgreSQL, in parentheses it is columns and NOT NULL, with INCLUDING DEFAULTS their defaults, too. As in MySQL,
//! without them it is all.
//! Not here: the table itself (session/tables_alike.rs).

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    CreateTable, CreateTableLikeDefaults, CreateTableLikeKind, ObjectName,
    Statement as SqlStatement,
};

use crate::error::Result;
use crate::sql::ast::parse_statement;

/// Such a statement.
pub(crate) struct TableAlike {
    /// The other table.
    pub of: ObjectName,
    pub kept: KeptParts,
    /// The table as one of a query without rows.
    pub made: DataFusionStatement,
}

/// What a table has of another one beside its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptParts {
    NotNull,
    /// NOT NULL and defaults.
    Defaults,
    /// Keys and conditions, too.
    All,
}

/// The statement, if it is one and has no other clause.
pub(crate) fn of(statement: &DataFusionStatement) -> Result<Option<TableAlike>> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(None);
    };
    let SqlStatement::CreateTable(table) = statement.as_ref() else {
        return Ok(None);
    };
    let (of, kept) = match &table.like {
        None => return Ok(None),
        Some(CreateTableLikeKind::Plain(like)) => (&like.name, KeptParts::All),
        Some(CreateTableLikeKind::Parenthesized(like)) => {
            let kept = match like.defaults {
                Some(CreateTableLikeDefaults::Including) => KeptParts::Defaults,
                Some(CreateTableLikeDefaults::Excluding) | None => KeptParts::NotNull,
            };
            (&like.name, kept)
        }
    };
    let mut text = String::from("CREATE ");
    text.push_str(if table.or_replace { "OR REPLACE " } else { "" });
    text.push_str("TABLE ");
    text.push_str(if table.if_not_exists {
        "IF NOT EXISTS "
    } else {
        ""
    });
    text.push_str(&table.name.to_string());
    let rest = CreateTable {
        like: None,
        ..table.clone()
    };
    if rest.to_string() != format!("{text} ()") {
        return Ok(None);
    }
    Ok(Some(TableAlike {
        of: of.clone(),
        kept,
        made: parse_statement(&format!("{text} AS SELECT * FROM {of} LIMIT 0"))?,
    }))
}
