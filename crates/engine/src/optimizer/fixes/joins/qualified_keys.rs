//! Names of a join's keys: the relation of each column, and one of its own for a key that has the name of a column.
//!
//! In: a logical plan. Out: the same plan, in which each column of a join's keys has the relation that its side gives it.
//! Invariant: a column is the same one as before. DataFusion takes parts of structs out of a key as columns without a
//! relation and pushes them below an alias, which gives them one. Then it looks for the name that the key had before. It
//! also puts a key beside the columns of its side; a cast of ours has the name of what it casts.
//! Not here: conditions of a join that are no keys, which it plans by place.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr_rewriter::normalize_col;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

/// The rule.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = plan else {
        return Ok(Transformed::no(plan));
    };
    let is_plain = |key: &Expr| key.column_refs().iter().any(|name| name.relation.is_none());
    let is_named = |key: &Expr, side: &LogicalPlan| !is_plain(key) && !hides_column(key, side);
    let mut on = join.on.iter();
    if on.all(|(left, right)| is_named(left, &join.left) && is_named(right, &join.right)) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let named = |key: &Expr, side: &LogicalPlan| {
        let key = normalize_col(key.clone(), side)?;
        Ok::<_, DataFusionError>(match hides_column(&key, side) {
            true => {
                let name = key.to_string();
                key.alias(name)
            }
            false => key,
        })
    };
    let on = join.on.iter().map(|(left, right)| {
        let left = named(left, &join.left)?;
        Ok((left, named(right, &join.right)?))
    });
    let on = on.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Join(Join { on, ..join })))
}

/// Whether a computed key has the name of a column of its side.
fn hides_column(key: &Expr, side: &LogicalPlan) -> bool {
    let is_apart = matches!(key, Expr::Column(_) | Expr::Alias(_) | Expr::Literal(..));
    // DataFusion gives a cast of its own another name.
    if is_apart || matches!(key, Expr::Cast(_) | Expr::TryCast(_)) {
        return false;
    }
    let name = key.schema_name().to_string();
    let columns = side.schema().columns();
    let mut columns = columns.iter();
    columns.any(|column| column.name == name || column.flat_name() == name)
}
