//! Equal values have one form wherever they are compared: -0.0 is 0.0, all NaN are one, 30 days are a month.
//!
//! In: a logical plan. Out: the same plan, in which what is compared passes through `canonical` (canonical.rs), if its type
//! has equal values of several forms, also inside lists and structs. Compared are operands of comparisons, IN, BETWEEN and
//! CASE, join keys, sort keys, the partitions and orders of windows, and arguments with DISTINCT. Groupings by intervals are
//! in groups.rs.
//! Invariant: results keep the values that the data has; names and other types are not touched. The rule is the last, so that
//! no comparison that DataFusion makes escapes it, and those that DataFusion makes of them compare canonical values.
//! DataFusion compares the bits of NaN, in IN, CASE, joins, sorts and windows those of -0.0 too, and intervals part by part.
//! Not here: keys of floats, which our operator makes canonical itself.

mod groups;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use grouse_groupby::keys::row::has_forms;

use super::each_named;
use crate::expr::columns::is_comparison;
use crate::functions::equal_values::canonical::canonical;
use crate::functions::equal_values::{in_part, wrap, wrap_order};
use crate::optimizer::fixes::failing::constants::evaluate;
use crate::optimizer::fixes::types::compared::in_scope;

/// The rule.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Join(join) => in_join(join)?,
        LogicalPlan::Aggregate(aggregate) => groups::by_canonical(aggregate)?,
        other => Transformed::no(other),
    };
    // The aggregation below new names has its turn in the next pass.
    match &plan.data {
        LogicalPlan::Projection(_) if plan.transformed => Ok(plan),
        _ => plan.transform_data(|plan| in_expressions(plan, |_| true)),
    }
}

/// The keys of a join.
fn in_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        changed |= wrap(left, join.left.schema())?;
        changed |= wrap(right, join.right.schema())?;
    }
    Ok(Transformed::new_transformed(
        LogicalPlan::Join(join),
        changed,
    ))
}

/// The same for constants in comparisons, before DataFusion evaluates them and concludes from one that it is not another.
pub(super) fn among_constants(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Sort(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
            Transformed::no(plan)
        }
        other => in_expressions(other, is_constant)?,
    };
    plan.transform_data(|plan| {
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= expr.exists(has_other_form)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        match found {
            true => each_named(plan, with_canonical_constants),
            false => Ok(Transformed::no(plan)),
        }
    })
}

/// A comparison whose operands, where they are constants of another form, are replaced by equal ones in canonical form.
fn with_canonical_constants(part: Expr) -> Result<Transformed<Expr>> {
    match compares(&part) {
        true => part.map_children(|operand| {
            let form = other_form(&operand)?;
            Ok(form.map_or_else(|| Transformed::no(operand), Transformed::yes))
        }),
        false => Ok(Transformed::no(part)),
    }
}

fn has_other_form(part: &Expr) -> Result<bool> {
    let mut found = false;
    if compares(part) {
        part.apply_children(|operand| {
            found |= other_form(operand)?.is_some();
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

fn compares(part: &Expr) -> bool {
    match part {
        Expr::BinaryExpr(binary) => is_comparison(binary.op),
        Expr::Between(_) | Expr::InList(_) => true,
        _ => false,
    }
}

/// The canonical form of a constant that has another one.
fn other_form(operand: &Expr) -> Result<Option<Expr>> {
    let value = match operand {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Negative(inner) if is_literal(inner) => evaluate(operand)?,
        Expr::Cast(cast) if has_forms(cast.field.data_type()) && is_literal(&cast.expr) => {
            evaluate(operand)?
        }
        _ => None,
    };
    Ok(match value {
        Some(value) if has_forms(&value.data_type()) => {
            let form = canonical(Expr::Literal(value.clone(), None))?;
            (form != Expr::Literal(value, None)).then_some(form)
        }
        _ => None,
    })
}

/// True of literals, and of what is made of one by signs and casts.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Negative(inner) => is_literal(inner),
        Expr::Cast(cast) => is_literal(&cast.expr),
        _ => false,
    }
}

fn is_constant(part: &Expr) -> bool {
    let compares = match part {
        Expr::BinaryExpr(binary) => is_comparison(binary.op),
        Expr::Between(_) | Expr::InList(_) | Expr::Case(_) | Expr::ScalarFunction(_) => true,
        _ => false,
    };
    let is_open = |part: &Expr| {
        Ok(matches!(
            part,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::Placeholder(_)
        ))
    };
    compares && !part.is_volatile() && !part.exists(is_open).unwrap_or(true)
}

/// Puts those parts of a plan's expressions that `is_wanted` says into canonical form.
fn in_expressions(
    plan: LogicalPlan,
    is_wanted: fn(&Expr) -> bool,
) -> Result<Transformed<LogicalPlan>> {
    let schema = in_scope(&plan)?;
    let names = NamePreserver::new(&plan);
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    plan.map_expressions(|expr| {
        if matches!(expr, Expr::GroupingSet(_)) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let mut expr = expr.transform_up(|part| match is_wanted(&part) {
            true => in_part(part, &schema),
            false => Ok(Transformed::no(part)),
        })?;
        if is_sort {
            expr.transformed |= wrap_order(&mut expr.data, &schema)?;
            return Ok(expr);
        }
        Ok(match expr.transformed {
            true => expr.update_data(|expr| name.restore(expr)),
            false => expr,
        })
    })
}
