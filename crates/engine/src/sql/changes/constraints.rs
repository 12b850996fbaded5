//! Constraints of CREATE TABLE, which the table checks by itself.
//!
//! In: a parsed CREATE TABLE. Out: the statement without PRIMARY KEY, UNIQUE, CHECK and, where it has rows of a query, NOT NULL;
//! these apart, with names of columns as written.
//! Invariant: DataFusion hears of no key that may be NULL: it would take a UNIQUE column with several NULL for one without
//! repetitions.
//! Not here: checking rows (scan/checked_table.rs); constraints that nobody checks, which planned/ refuses.

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, Expr,
    Ident, IndexColumn, NullsDistinctOption, ObjectName, OrderByExpr, OrderByOptions,
    PrimaryKeyConstraint, Statement as SqlStatement, TableConstraint, UniqueConstraint,
};

use crate::error::{Error, Result};
use crate::scan::constraints::{Constraints, KeyKind, UniqueKey};

impl Constraints {
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.not_null.is_empty() && self.checks.is_empty()
    }

    /// Adds a constraint; gives back one that nobody checks.
    pub(in crate::sql) fn add(
        &mut self,
        constraint: TableConstraint,
    ) -> Result<Option<TableConstraint>> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let key = primary(key)?;
                self.not_null.extend(key.columns.iter().cloned());
                self.keys.push(key);
            }
            TableConstraint::Unique(key) => self.keys.push(unique(key)?),
            TableConstraint::Check(check) => self.checks.push(condition(check)?),
            other => return Ok(Some(other)),
        }
        Ok(None)
    }
}

/// Takes the constraints out of a CREATE TABLE.
pub(crate) fn take(statement: &mut DataFusionStatement) -> Result<Option<Constraints>> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(None);
    };
    let SqlStatement::CreateTable(table) = statement.as_mut() else {
        return Ok(None);
    };
    let mut constraints = Constraints::default();
    for column in &mut table.columns {
        of_column(column, &mut constraints)?;
    }
    let mut others = Vec::new();
    for constraint in std::mem::take(&mut table.constraints) {
        others.extend(constraints.add(constraint)?);
    }
    table.constraints = others;
    Ok((!constraints.is_empty()).then_some(constraints))
}

fn of_column(column: &mut ColumnDef, constraints: &mut Constraints) -> Result<()> {
    let mut others = Vec::new();
    for ColumnOptionDef { name, option } in std::mem::take(&mut column.options) {
        match option {
            ColumnOption::PrimaryKey(mut key) => {
                key.columns = vec![index_column(&column.name)];
                constraints.add(TableConstraint::PrimaryKey(key))?;
            }
            ColumnOption::Unique(mut key) => {
                key.columns = vec![index_column(&column.name)];
                constraints.keys.push(unique(key)?);
            }
            ColumnOption::Check(check) => constraints.checks.push(condition(check)?),
            ColumnOption::NotNull => constraints.not_null.push(column.name.clone()),
            // Strings are compared by their bytes.
            ColumnOption::Collation(name) if is_of_bytes(&name) => {}
            option => others.push(ColumnOptionDef { name, option }),
        }
    }
    column.options = others;
    Ok(())
}

fn is_of_bytes(collation: &ObjectName) -> bool {
    let name = collation.to_string();
    let name = name.trim_matches('"');
    ["C", "POSIX", "BINARY"]
        .iter()
        .any(|one| name.eq_ignore_ascii_case(one))
}

fn index_column(name: &Ident) -> IndexColumn {
    IndexColumn {
        column: OrderByExpr {
            expr: Expr::Identifier(name.clone()),
            options: OrderByOptions {
                asc: None,
                nulls_first: None,
            },
            with_fill: None,
        },
        operator_class: None,
    }
}

fn primary(key: PrimaryKeyConstraint) -> Result<UniqueKey> {
    let PrimaryKeyConstraint {
        // Names of a constraint and of an index say nothing about rows.
        name: _,
        index_name: _,
        index_type: _,
        columns,
        index_options: _,
        characteristics,
    } = key;
    Ok(UniqueKey {
        columns: names(columns, "PRIMARY KEY")?,
        kind: enforced(characteristics, KeyKind::Primary, "PRIMARY KEY")?,
    })
}

fn unique(key: UniqueConstraint) -> Result<UniqueKey> {
    let UniqueConstraint {
        name: _,
        index_name: _,
        index_type_display: _,
        index_type: _,
        columns,
        index_options: _,
        characteristics,
        nulls_distinct,
    } = key;
    let kind = match nulls_distinct {
        NullsDistinctOption::None | NullsDistinctOption::Distinct => KeyKind::Unique,
        NullsDistinctOption::NotDistinct => KeyKind::UniqueNulls,
    };
    Ok(UniqueKey {
        columns: names(columns, "UNIQUE")?,
        kind: enforced(characteristics, kind, "UNIQUE")?,
    })
}

fn condition(check: CheckConstraint) -> Result<String> {
    let CheckConstraint {
        name: _,
        expr,
        enforced,
    } = check;
    match enforced {
        None | Some(true) => Ok(expr.to_string()),
        Some(false) => Err(Error::unsupported_clause(
            "CHECK … NOT ENFORCED; leave it out",
        )),
    }
}

fn enforced(
    characteristics: Option<ConstraintCharacteristics>,
    kind: KeyKind,
    clause: &str,
) -> Result<KeyKind> {
    let Some(ConstraintCharacteristics {
        deferrable,
        initially: _,
        enforced,
    }) = characteristics
    else {
        return Ok(kind);
    };
    match (deferrable, enforced) {
        (None | Some(false), None | Some(true)) => Ok(kind),
        (Some(true), _) => Err(Error::unsupported_clause(format!(
            "{clause} … DEFERRABLE; each statement is checked by itself"
        ))),
        (_, Some(false)) => Err(Error::unsupported_clause(format!(
            "{clause} … NOT ENFORCED; leave it out"
        ))),
    }
}

fn names(columns: Vec<IndexColumn>, clause: &str) -> Result<Vec<Ident>> {
    let name = |column: IndexColumn| match column.column.expr {
        Expr::Identifier(name) => Ok(name),
        other => Err(Error::unsupported_clause(format!(
            "{clause} of {other}; a key consists of columns"
        ))),
    };
    columns.into_iter().map(name).collect()
}
