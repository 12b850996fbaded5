//! ALTER TABLE of a table in memory.
//!
//! In: a parsed statement. Out: the new name of the table, or the query that makes it anew.
//! Invariant: one operation a statement; what is not listed here is refused (planned/).
//! Not here: constraints and defaults of the table, which it keeps (kept_constraints.rs).

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, DataType, Expr,
    Ident, ObjectName, RenameTableNameKind, Statement as SqlStatement, TableConstraint,
};

use crate::error::Result;
use crate::sql::ast::parse_statement;

/// A change of a table.
pub(crate) struct Alteration {
    pub table: ObjectName,
    pub kind: AlterationKind,
    /// Whether a table that is not there is no error.
    pub if_exists: bool,
}

/// What changes.
#[derive(Debug, Clone)]
pub(crate) enum AlterationKind {
    RenameTable(ObjectName),
    RenameColumn(Ident, Ident),
    DropColumns(Vec<Ident>, ColumnConflict),
    /// The column, its type, and its value in the rows that are there and in those that leave it out.
    AddColumn(Ident, DataType, Option<Box<Expr>>, ColumnConflict),
    /// The column, its new type and its value.
    ChangeType(Ident, DataType, Option<Box<Expr>>),
    AddConstraint(Box<TableConstraint>),
    SetNotNull(Ident),
    DropNotNull(Ident),
    /// The column, and its value in rows that leave it out from now on.
    SetDefault(Ident, Box<Expr>),
    DropDefault(Ident),
}

/// What it is that a column is not there, or is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnConflict {
    Error,
    /// IF EXISTS, IF NOT EXISTS.
    Nothing,
}

impl ColumnConflict {
    fn of(is_nothing: bool) -> ColumnConflict {
        match is_nothing {
            true => ColumnConflict::Nothing,
            false => ColumnConflict::Error,
        }
    }
}

/// The alteration that a statement is, if it is one that is done.
pub(crate) fn of(statement: &DataFusionStatement) -> Option<Alteration> {
    let DataFusionStatement::Statement(statement) = statement else {
        return None;
    };
    let SqlStatement::AlterTable(AlterTable {
        name,
        if_exists,
        only: false,
        operations,
        location: None,
        on_cluster: None,
        table_type: None,
        end_token: _,
    }) = statement.as_ref()
    else {
        return None;
    };
    let [operation] = operations.as_slice() else {
        return None;
    };
    Some(Alteration {
        table: name.clone(),
        kind: kind_of(operation)?,
        if_exists: *if_exists,
    })
}

fn kind_of(operation: &AlterTableOperation) -> Option<AlterationKind> {
    match operation {
        AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
        } => Some(AlterationKind::RenameTable(name.clone())),
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        } => Some(AlterationKind::RenameColumn(
            old_column_name.clone(),
            new_column_name.clone(),
        )),
        AlterTableOperation::DropColumn {
            has_column_keyword: _,
            column_names,
            if_exists,
            drop_behavior: None,
        } => Some(AlterationKind::DropColumns(
            column_names.clone(),
            ColumnConflict::of(*if_exists),
        )),
        AlterTableOperation::AddColumn {
            column_keyword: _,
            if_not_exists,
            column_def,
            column_position: None,
        } => added(column_def, ColumnConflict::of(*if_not_exists)),
        AlterTableOperation::AddConstraint {
            constraint:
                constraint @ (TableConstraint::PrimaryKey(_)
                | TableConstraint::Unique(_)
                | TableConstraint::Check(_)),
            not_valid: false,
        } => Some(AlterationKind::AddConstraint(Box::new(constraint.clone()))),
        AlterTableOperation::AlterColumn { column_name, op } => altered(column_name.clone(), op),
        _ => None,
    }
}

fn altered(column: Ident, operation: &AlterColumnOperation) -> Option<AlterationKind> {
    match operation {
        AlterColumnOperation::SetDataType {
            data_type,
            using,
            had_set: _,
        } => Some(AlterationKind::ChangeType(
            column,
            data_type.clone(),
            using.clone().map(Box::new),
        )),
        AlterColumnOperation::SetNotNull => Some(AlterationKind::SetNotNull(column)),
        AlterColumnOperation::DropNotNull => Some(AlterationKind::DropNotNull(column)),
        AlterColumnOperation::SetDefault { value } => {
            Some(AlterationKind::SetDefault(column, Box::new(value.clone())))
        }
        AlterColumnOperation::DropDefault => Some(AlterationKind::DropDefault(column)),
        AlterColumnOperation::AddGenerated { .. } => None,
    }
}

/// A column that has nothing but a DEFAULT: constraints would be lost.
fn added(column: &ColumnDef, otherwise: ColumnConflict) -> Option<AlterationKind> {
    let ColumnDef {
        name,
        data_type,
        options,
    } = column;
    let mut default = None;
    for option in options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::Default(value) if default.is_none() => {
                default = Some(Box::new(value.clone()));
            }
            _ => return None,
        }
    }
    Some(AlterationKind::AddColumn(
        name.clone(),
        data_type.clone(),
        default,
        otherwise,
    ))
}

impl Alteration {
    /// What is left to do in a table with these columns; `None` where nothing is.
    pub(crate) fn left(&self, has_column: impl Fn(&Ident) -> bool) -> Option<Alteration> {
        let kind = match &self.kind {
            AlterationKind::AddColumn(name, _, _, ColumnConflict::Nothing) if has_column(name) => {
                return None;
            }
            AlterationKind::DropColumns(names, ColumnConflict::Nothing) => {
                let names: Vec<Ident> = names
                    .iter()
                    .filter(|name| has_column(name))
                    .cloned()
                    .collect();
                if names.is_empty() {
                    return None;
                }
                AlterationKind::DropColumns(names, ColumnConflict::Nothing)
            }
            kind => kind.clone(),
        };
        Some(Alteration {
            kind,
            table: self.table.clone(),
            if_exists: self.if_exists,
        })
    }

    /// The statement that makes the table anew; `None` where it only gets another name.
    pub(crate) fn made_anew(&self) -> Result<Option<DataFusionStatement>> {
        let items = match &self.kind {
            AlterationKind::RenameTable(_) => return Ok(None),
            AlterationKind::RenameColumn(old, new) => format!("* RENAME ({old} AS {new})"),
            AlterationKind::DropColumns(names, _) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!("* EXCLUDE ({})", names.join(", "))
            }
            AlterationKind::AddColumn(name, data_type, default, _) => {
                let value = default
                    .as_ref()
                    .map_or("NULL".to_string(), ToString::to_string);
                format!("*, CAST({value} AS {data_type}) AS {name}")
            }
            AlterationKind::ChangeType(name, data_type, value) => {
                let value = value.as_ref().map_or(name.to_string(), ToString::to_string);
                format!("* REPLACE (CAST({value} AS {data_type}) AS {name})")
            }
            AlterationKind::AddConstraint(_) => "*".to_string(),
            // The rows stay as they are; a column that is not there is an error.
            AlterationKind::SetNotNull(name)
            | AlterationKind::DropNotNull(name)
            | AlterationKind::SetDefault(name, _)
            | AlterationKind::DropDefault(name) => format!("* REPLACE ({name} AS {name})"),
        };
        let table = &self.table;
        let text = format!("CREATE OR REPLACE TABLE {table} AS SELECT {items} FROM {table}");
        parse_statement(&text).map(Some)
    }

    /// The query of what a column gets by default from now on, if that changes.
    pub(crate) fn default(&self) -> Result<Option<(&Ident, DataFusionStatement)>> {
        match &self.kind {
            AlterationKind::SetDefault(column, value) => {
                let query = parse_statement(&format!("SELECT {value} AS {column}"))?;
                Ok(Some((column, query)))
            }
            _ => Ok(None),
        }
    }
}
