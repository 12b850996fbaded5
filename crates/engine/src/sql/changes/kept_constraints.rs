//! Constraints and defaults of a table that ALTER TABLE makes anew.
//!
//! In: an alteration, what the table has. Out: what the new one has: renamed with their column, or gone with it.
//! Invariant: as in DuckDB, a column of a key, or of a condition that reads others too, is not dropped. One of a key or of any
//! condition keeps its type.
//! Not here: the rows (alterations.rs).

use std::ops::ControlFlow;

use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::sql::sqlparser::ast::{Expr, Ident, TableConstraint};

use crate::error::{Error, Result};
use crate::scan::constraints::{Constraints, KeyKind};
use crate::sql::ast::{parse_expr, quoted};
use crate::sql::changes::alterations::{Alteration, AlterationKind};
use crate::sql::walk::{Walk, each};

impl Alteration {
    /// What the table's rows have to keep afterwards.
    pub(crate) fn constraints(&self, mut of: Constraints) -> Result<Constraints> {
        match &self.kind {
            AlterationKind::RenameColumn(old, new) => {
                let keys = of.keys.iter_mut().flat_map(|key| &mut key.columns);
                for column in keys.chain(&mut of.not_null) {
                    if is_same(old, &column.value) {
                        *column = quoted(&new.value);
                    }
                }
                for check in &mut of.checks {
                    *check = renamed(check, old, new)?;
                }
            }
            AlterationKind::DropColumns(names, _) => {
                for name in names {
                    drop_column(name, &mut of)?;
                }
            }
            AlterationKind::ChangeType(name, ..) => {
                if is_in_key(name, &of) {
                    return Err(refused(name, "change its type", "PRIMARY KEY or UNIQUE"));
                }
                for check in &of.checks {
                    if columns_of(check)?
                        .iter()
                        .any(|column| is_same(name, column))
                    {
                        let check = format!("CHECK ({check})");
                        return Err(refused(name, "change its type", &check));
                    }
                }
            }
            AlterationKind::AddConstraint(constraint) => {
                let is_primary = matches!(**constraint, TableConstraint::PrimaryKey(_));
                if is_primary && of.keys.iter().any(|key| key.kind == KeyKind::Primary) {
                    return Err(Error::Execution(
                        "the table has a PRIMARY KEY already; a second key is UNIQUE".to_string(),
                    ));
                }
                of.add(constraint.as_ref().clone())?;
            }
            AlterationKind::SetNotNull(name) => {
                of.not_null.retain(|column| !is_same(name, &column.value));
                of.not_null.push(name.clone());
            }
            AlterationKind::DropNotNull(name) => {
                let mut primary = of.keys.iter().filter(|key| key.kind == KeyKind::Primary);
                if primary.any(|key| {
                    key.columns
                        .iter()
                        .any(|column| is_same(name, &column.value))
                }) {
                    return Err(refused(name, "let it be NULL", "PRIMARY KEY"));
                }
                of.not_null.retain(|column| !is_same(name, &column.value));
            }
            AlterationKind::RenameTable(_)
            | AlterationKind::AddColumn(..)
            | AlterationKind::SetDefault(..)
            | AlterationKind::DropDefault(_) => {}
        }
        Ok(of)
    }

    /// What columns have by default afterwards.
    pub(crate) fn defaults(&self, of: Vec<(String, PlanExpr)>) -> Vec<(String, PlanExpr)> {
        let kept = of
            .into_iter()
            .filter_map(|(column, default)| match &self.kind {
                AlterationKind::RenameColumn(old, new) if is_same(old, &column) => {
                    Some((new.value.clone(), default))
                }
                AlterationKind::DropColumns(names, _)
                    if names.iter().any(|name| is_same(name, &column)) =>
                {
                    None
                }
                AlterationKind::SetDefault(name, _) | AlterationKind::DropDefault(name)
                    if is_same(name, &column) =>
                {
                    None
                }
                _ => Some((column, default)),
            });
        kept.collect()
    }
}

/// Whether a name that is written is that of a column.
fn is_same(written: &Ident, column: &str) -> bool {
    match written.quote_style {
        Some(_) => written.value == column,
        None => written.value.eq_ignore_ascii_case(column),
    }
}

fn is_in_key(name: &Ident, of: &Constraints) -> bool {
    let mut columns = of.keys.iter().flat_map(|key| &key.columns);
    columns.any(|column| is_same(name, &column.value))
}

/// A condition that reads nothing but the column goes with it.
fn drop_column(name: &Ident, of: &mut Constraints) -> Result<()> {
    if is_in_key(name, of) {
        return Err(refused(name, "drop it", "PRIMARY KEY or UNIQUE"));
    }
    of.not_null.retain(|column| !is_same(name, &column.value));
    let mut kept = Vec::new();
    for check in std::mem::take(&mut of.checks) {
        let columns = columns_of(&check)?;
        if !columns.iter().any(|column| is_same(name, column)) {
            kept.push(check);
        } else if columns.iter().any(|column| !is_same(name, column)) {
            return Err(refused(name, "drop it", &format!("CHECK ({check})")));
        }
    }
    of.checks = kept;
    Ok(())
}

fn refused(name: &Ident, what: &str, constraint: &str) -> Error {
    Error::unsupported(format!(
        "column '{}' stands in {constraint}: to {what}, make the table anew by CREATE TABLE and INSERT",
        name.value
    ))
}

/// The columns that a condition reads.
fn columns_of(check: &str) -> Result<Vec<String>> {
    let mut columns = Vec::new();
    let ControlFlow::Continue(()) = parse_expr(check)?.walk(&mut each(|expr| {
        columns.extend(column_of(expr).map(|column| column.value.clone()));
    }));
    Ok(columns)
}

/// A condition in which a column has another name.
fn renamed(check: &str, old: &Ident, new: &Ident) -> Result<String> {
    let mut expr = parse_expr(check)?;
    let ControlFlow::Continue(()) = expr.walk(&mut each(|expr| {
        if let Some(column) = column_of(expr)
            && is_same(old, &column.value)
        {
            *column = quoted(&new.value);
        }
    }));
    Ok(expr.to_string())
}

/// The name of a column in a condition; a field of a struct stands behind it.
fn column_of(expr: &mut Expr) -> Option<&mut Ident> {
    match expr {
        Expr::Identifier(column) => Some(column),
        Expr::CompoundIdentifier(parts) => parts.first_mut(),
        _ => None,
    }
}
