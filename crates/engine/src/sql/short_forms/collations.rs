//! COLLATE NOCASE: `a COLLATE NOCASE = b`, `ORDER BY a COLLATE NOCASE`.
//!
//! In: operands of a comparison, a list, keys of ORDER BY. Out: the same in small letters.
//! Invariant: where one side folds the case, both do; a collation of another name is an error.
//! Not here: COLLATE elsewhere, which is refused (planned/).

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, OrderByExpr};

use crate::error::{Error, Result};
use crate::sql::ast::call;

/// The text below COLLATE NOCASE; collations of other names are errors.
fn without_collation(expr: &Expr) -> Result<Option<&Expr>> {
    match expr {
        Expr::Collate { expr, collation } => folded_by(collation).map(|()| Some(expr.as_ref())),
        Expr::Nested(inner) => without_collation(inner),
        _ => Ok(None),
    }
}

fn folded_by(collation: &ObjectName) -> Result<()> {
    match collation
        .to_string()
        .trim_matches('"')
        .to_lowercase()
        .as_str()
    {
        "nocase" => Ok(()),
        other => Err(Error::unsupported(format!(
            "COLLATE {other}; strings are compared by code point, or with NOCASE"
        ))),
    }
}

fn lower(expr: &Expr) -> Expr {
    call("lower", vec![expr.clone()])
}

/// Where one side folds the case, both do.
pub(super) fn fold_both(left: &mut Expr, right: &mut Expr) -> Result<()> {
    let (from_left, from_right) = (
        without_collation(left)?.cloned(),
        without_collation(right)?.cloned(),
    );
    if from_left.is_some() || from_right.is_some() {
        *left = lower(&from_left.unwrap_or_else(|| left.clone()));
        *right = lower(&from_right.unwrap_or_else(|| right.clone()));
    }
    Ok(())
}

pub(super) fn fold_list(expr: &mut Expr, list: &mut [Expr]) -> Result<()> {
    if let Some(inner) = without_collation(expr)?.cloned() {
        *expr = lower(&inner);
        for one in list {
            *one = lower(one);
        }
    }
    Ok(())
}

/// `ORDER BY a COLLATE NOCASE`.
pub(crate) fn fold_order(order: &mut [OrderByExpr]) -> Result<()> {
    for key in order {
        if let Some(inner) = without_collation(&key.expr)?.cloned() {
            key.expr = lower(&inner);
        }
    }
    Ok(())
}
