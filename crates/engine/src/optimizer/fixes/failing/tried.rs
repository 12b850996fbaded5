//! `CAST(s AS INTEGER) IS NULL`, `count(10 / x)`: a value of which only its NULL-ness is asked is computed all the same.
//!
//! In: a plan whose types are known. Out: the same plan; such values can be NULL to DataFusion.
//! Invariant: a value that cannot fail is not touched.
//! DataFusion takes a value for there whose columns have no NULL, and does not compute it: a text that is no number is counted.
//! Not here: which values can fail (fallible.rs).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::functions::tried;
use crate::optimizer::fixes::failing::fallible::can_fail;
use crate::optimizer::fixes::types::compared::in_scope;
use crate::optimizer::fixes::{each_named, each_plan};

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        let mut asks = false;
        plan.apply_expressions(|expr| {
            asks = asks || expr.exists(|part| Ok(asks_for_nulls(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !asks {
            return Ok(Transformed::no(plan));
        }
        let schema = in_scope(&plan)?;
        each_named(plan, |part| Ok(in_part(part, &schema)))
    })
}

/// Of values that are asked for nothing else.
fn asks_for_nulls(part: &Expr) -> bool {
    match part {
        Expr::IsNull(_) | Expr::IsNotNull(_) => true,
        Expr::AggregateFunction(call) => call.func.name() == "count",
        Expr::WindowFunction(call) => call.fun.name() == "count",
        _ => false,
    }
}

fn in_part(mut part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if !asks_for_nulls(&part) {
        return Transformed::no(part);
    }
    let mut changed = false;
    let mut keep = |value: &mut Expr| {
        let is_there = value.nullable(schema).is_ok_and(|nullable| !nullable);
        if is_there && can_fail(value, schema) {
            *value = tried(std::mem::take(value));
            changed = true;
        }
    };
    match &mut part {
        Expr::IsNull(value) | Expr::IsNotNull(value) => keep(value),
        Expr::AggregateFunction(call) => call.params.args.iter_mut().for_each(keep),
        Expr::WindowFunction(call) => call.params.args.iter_mut().for_each(keep),
        _ => {}
    }
    Transformed::new_transformed(part, changed)
}
