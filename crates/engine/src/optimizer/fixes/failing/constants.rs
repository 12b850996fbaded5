//! An overflow among constants is an error before DataFusion folds it into a wrapped number.
//!
//! In: a plan on its way through DataFusion's `simplify_expressions`. Out: what that rule makes of it, or the overflow.
//! Invariant: an expression without columns is evaluated as it would be when it runs: a CASE that goes around the overflow
//! goes around the error.
//! DataFusion plans in passes, and a constant of a subquery meets another one between two of them: so each pass is watched,
//! not only the statement.
//! Not here: constants that DataFusion makes and folds in one go, as of `coalesce(9223372036854775807, x) + 1`; arguments
//! of table functions.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, Volatility,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::create_physical_expr;

use crate::error::Error;
use crate::functions::ranges;
use crate::optimizer::fixes::failing::checked::checked;
use crate::optimizer::fixes::types::compared_casts;
use crate::optimizer::fixes::{each_named, equal_values, in_lists};

/// Expressions of more nodes are evaluated from their leaves up: DataFusion's evaluation recurses without a limit.
const NODES_MAX: usize = 200;

/// DataFusion's rule with a check before it.
pub(in crate::optimizer) fn rewrite(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = equal_values::among_constants(plan)?;
    let plan = plan.transform_data(without_long_lists)?;
    let plan = plan.transform_data(compared_casts::kept)?;
    let plan = plan.transform_data(in_lists::apart)?;
    let changed = plan.transformed;
    let plan = plan.data;
    plan.apply_expressions(|expr| {
        if expr.exists(|part| Ok(is_arithmetic(part)))? {
            expr.apply(check)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut plan = datafusion.rewrite(plan, config)?;
    plan.transformed |= changed;
    Ok(plan)
}

/// Long lists are made when the query runs.
fn without_long_lists(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(ranges::is_folded(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    match found {
        true => each_named(plan, |part| Ok(ranges::unfolded(part))),
        false => Ok(Transformed::no(plan)),
    }
}

fn is_arithmetic(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
        }
        _ => false,
    }
}

/// Evaluates the largest parts that are constant and have arithmetic.
fn check(expr: &Expr) -> Result<TreeNodeRecursion> {
    if is_condition(expr) || expr.exists(|part| Ok(!is_fixed(part)))? {
        return Ok(TreeNodeRecursion::Continue);
    }
    let (mut nodes, mut arithmetic) = (0, false);
    expr.apply(|part| {
        nodes += 1;
        arithmetic |= is_arithmetic(part);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if arithmetic && nodes <= NODES_MAX {
        evaluate(expr)?;
    } else if arithmetic {
        fold(expr.clone())?;
    }
    Ok(TreeNodeRecursion::Jump)
}

/// Conditions are taken apart without a look at the whole, because there are very long ones.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        _ => false,
    }
}

/// Whether a node whose inputs are constant is constant itself.
fn is_fixed(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(_)
        | Expr::Literal(..)
        | Expr::BinaryExpr(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::InList(_) => true,
        Expr::ScalarFunction(function) => {
            function.func.signature().volatility == Volatility::Immutable
        }
        _ => false,
    }
}

/// Evaluates a constant expression from its leaves up, for the errors that this may have.
fn fold(expr: Expr) -> Result<()> {
    expr.transform_up(|part| {
        let mut settled = !matches!(part, Expr::Literal(..));
        part.apply_children(|child| {
            settled &= matches!(child, Expr::Literal(..));
            Ok(TreeNodeRecursion::Continue)
        })?;
        match settled.then(|| evaluate(&part)).transpose()?.flatten() {
            Some(value) => Ok(Transformed::yes(Expr::Literal(value, None))),
            None => Ok(Transformed::no(part)),
        }
    })?;
    Ok(())
}

/// The value of a constant expression; only an overflow is an error, all others are DataFusion's to report.
pub(in crate::optimizer::fixes) fn evaluate(expr: &Expr) -> Result<Option<ScalarValue>> {
    let expr = create_physical_expr(
        expr,
        &DFSchema::empty(),
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    );
    let Ok(expr) = expr else {
        return Ok(None);
    };
    // Some expressions expect a batch to have columns, if only for its length.
    let column: ArrayRef = Arc::new(BooleanArray::from(vec![false]));
    let row = RecordBatch::try_from_iter([("unused", column)])?;
    let expr = checked(expr, &row.schema())?.data;
    match expr.evaluate(&row).map_err(Error::from) {
        Ok(ColumnarValue::Scalar(value)) => Ok(Some(value)),
        Ok(ColumnarValue::Array(values)) => Ok(ScalarValue::try_from_array(&values, 0).ok()),
        Err(error @ Error::Overflow { .. }) => Err(error.into()),
        Err(_) => Ok(None),
    }
}
