//! Results of CASE, COALESCE and lists that are compared: integers beside literals with a point, of which they make doubles.
//!
//! In: a plan as it was planned. Out: the same plan, in which literals in such operands of comparisons are decimals.
//! Invariant: `coalesce(x, 0.5)` is a double wherever it is no operand of a comparison.
//! Not here: operands that are literals or columns (compared.rs); arithmetic, which is a double's wherever it stands.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::expr::columns::is_comparison;
use crate::optimizer::fixes::each_named;
use crate::optimizer::fixes::types::beside_integers::{self, MAKE_LIST};
use crate::optimizer::fixes::types::compared::in_scope;

/// Functions that give one of their arguments, or all of them.
const OF_ARGUMENTS: [&str; 6] = ["coalesce", "nvl", "ifnull", "greatest", "least", MAKE_LIST];

/// Gives results that are compared in a plan their own digits.
pub(super) fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut is_found = false;
    plan.apply_expressions(|expr| {
        is_found = is_found || expr.exists(|part| Ok(has_results(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !is_found || matches!(plan, LogicalPlan::Values(_)) {
        return Ok(Transformed::no(plan));
    }
    let schema = in_scope(&plan)?;
    each_named(plan, |mut part| {
        let mut changed = false;
        for operand in operands_of(&mut part) {
            changed |= as_written(operand, &schema);
        }
        Ok(Transformed::new_transformed(part, changed))
    })
}

/// Whether this is a comparison of such results.
fn has_results(expr: &Expr) -> bool {
    let is_result = |operand: &Expr| match operand {
        Expr::Case(_) => true,
        Expr::ScalarFunction(call) => OF_ARGUMENTS.contains(&call.func.name()),
        _ => false,
    };
    match expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            is_result(&binary.left) || is_result(&binary.right)
        }
        Expr::Between(between) => {
            is_result(&between.expr) || is_result(&between.low) || is_result(&between.high)
        }
        Expr::InList(list) => is_result(&list.expr) || list.list.iter().any(is_result),
        Expr::InSubquery(InSubquery { expr, .. })
        | Expr::SetComparison(SetComparison { expr, .. }) => is_result(expr),
        _ => false,
    }
}

/// What a comparison compares.
fn operands_of(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            vec![binary.left.as_mut(), binary.right.as_mut()]
        }
        Expr::Between(between) => vec![
            between.expr.as_mut(),
            between.low.as_mut(),
            between.high.as_mut(),
        ],
        Expr::InList(list) => {
            let mut operands = vec![list.expr.as_mut()];
            operands.extend(list.list.iter_mut());
            operands
        }
        Expr::InSubquery(InSubquery { expr, .. })
        | Expr::SetComparison(SetComparison { expr, .. }) => vec![expr.as_mut()],
        _ => Vec::new(),
    }
}

fn as_written(operand: &mut Expr, schema: &DFSchema) -> bool {
    let mut results: Vec<&mut Expr> = match operand {
        Expr::Case(case) => {
            let whens = case.when_then_expr.iter_mut().map(|(_, then)| then);
            let branches = whens.chain(case.else_expr.as_mut());
            branches.map(|branch| branch.as_mut()).collect()
        }
        Expr::ScalarFunction(call) if OF_ARGUMENTS.contains(&call.func.name()) => {
            call.args.iter_mut().collect()
        }
        _ => return false,
    };
    let mut changed = false;
    for result in &mut results {
        changed |= as_written(result, schema);
    }
    changed | beside_integers::as_written(&mut results, schema)
}
