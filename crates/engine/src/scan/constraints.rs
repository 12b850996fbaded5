//! Constraints of a table: what its rows have to keep.
//!
//! In: names of columns and conditions as written. Out: what checked_table.rs holds rows against.
//! Not here: reading them from CREATE TABLE (sql/changes/constraints.rs).

use datafusion::sql::sqlparser::ast::Ident;

/// What a table's rows have to keep.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    pub keys: Vec<UniqueKey>,
    pub not_null: Vec<Ident>,
    /// Conditions as SQL, none of which may be false.
    pub checks: Vec<String>,
}

/// Columns whose values together occur once.
#[derive(Debug)]
pub(crate) struct UniqueKey {
    pub columns: Vec<Ident>,
    pub kind: KeyKind,
}

/// What a key says about NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// None of the columns is NULL.
    Primary,
    /// Rows with NULL are never the same.
    Unique,
    /// `UNIQUE NULLS NOT DISTINCT`: NULL is a value as others are.
    UniqueNulls,
}
