//! Two IN lists of one value, in SQL's logic of three values.
//!
//! In: a plan on its way through DataFusion's `simplify_expressions`. Out: the same plan; two lists of one value under AND or OR
//! are one where that is right, and otherwise in a form that DataFusion does not take for two lists.
//! Invariant: names stay, and so does a condition that has no two lists of one value side by side.
//! DataFusion intersects lists as sets of expressions: a value that is NULL is not outside of an empty list, a list with NULL
//! does not say what is outside of it, and columns of two names may be equal.
//! Not here: a list alone.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, binary_expr,
};

use super::constants::evaluate;
use super::each_named;

/// The name of what an expression is called within a list that stands apart.
pub(super) const APART: &str = "apart";

/// The plan with pairs of lists put right.
pub(super) fn united(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = found || has_pair(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    match found {
        true => each_named(plan, |part| Ok(in_pair(part))),
        false => Ok(Transformed::no(plan)),
    }
}

/// True if two lists may meet: an OR of equalities is a list as well.
fn has_pair(expr: &Expr) -> Result<bool> {
    let (mut lists, mut ands, mut ors) = (0, 0, 0);
    expr.apply(|part| {
        match part {
            Expr::InList(_) => lists += 1,
            Expr::BinaryExpr(BinaryExpr { op, .. }) if *op == Operator::And => ands += 1,
            Expr::BinaryExpr(BinaryExpr { op, .. }) if *op == Operator::Or => ors += 1,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(ands + ors > 0 && lists + ors > 1)
}

fn in_pair(part: Expr) -> Transformed<Expr> {
    let part = match part {
        Expr::Not(inner) => return denied(*inner),
        other => other,
    };
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &part else {
        return Transformed::no(part);
    };
    if !matches!(op, Operator::And | Operator::Or) {
        return Transformed::no(part);
    }
    let (Some(left), Some(right)) = (list(left), list(right)) else {
        return Transformed::no(part);
    };
    if uncast(&left.expr) != uncast(&right.expr) || left.expr.is_volatile() {
        return Transformed::no(part);
    }
    let kept: fn(&InList, &Expr) -> bool = match (op, left.negated, right.negated) {
        (Operator::And, false, false) | (Operator::Or, true, true) => {
            |other, item| other.list.contains(item)
        }
        (Operator::And, false, true) | (Operator::And, true, false) => {
            |other, item| !other.list.contains(item)
        }
        // DataFusion unites these as it should.
        _ => return Transformed::no(part),
    };
    if left.expr != right.expr || ![&left, &right].into_iter().all(is_of_values) {
        let [left, right] = [left, apart(right)].map(Expr::InList);
        return Transformed::yes(binary_expr(left, *op, right));
    }
    let (mut first, other) = match op {
        Operator::And if left.negated => (right, left),
        _ => (left, right),
    };
    first.list.retain(|item| kept(&other, item));
    Transformed::yes(match first.list.is_empty() {
        // False and true, but NULL of NULL.
        true if first.negated => (*first.expr).clone().eq(*first.expr),
        true => (*first.expr).clone().not_eq(*first.expr),
        false => Expr::InList(first),
    })
}

/// NOT of a condition, in which lists may come side by side.
fn denied(inner: Expr) -> Transformed<Expr> {
    match inner {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::And | Operator::Or)
                && (list(&left).is_some() || list(&right).is_some()) =>
        {
            let op = match op {
                Operator::And => Operator::Or,
                _ => Operator::And,
            };
            let [left, right] = [left, right].map(|side| denied(*side).data);
            Transformed::yes(in_pair(binary_expr(left, op, right)).data)
        }
        Expr::InList(mut list) => {
            list.negated = !list.negated;
            Transformed::yes(Expr::InList(list))
        }
        other => Transformed::no(Expr::Not(Box::new(other))),
    }
}

/// The list that DataFusion would make of a condition, its constants as values.
fn list(expr: &Expr) -> Option<InList> {
    match expr {
        Expr::InList(list) => {
            let mut list = list.clone();
            list.list = list.list.into_iter().map(value).collect();
            Some(list)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == Operator::Or => {
            let [mut left, right] = [equality(left)?, equality(right)?];
            let are_one = left.expr == right.expr && !left.negated && !right.negated;
            left.list.extend(right.list);
            are_one.then_some(left)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == Operator::And => {
            let [mut left, right] = [list(left)?, list(right)?];
            let are_one = left.expr == right.expr && left.negated && right.negated;
            left.list.extend(right.list);
            are_one.then_some(left)
        }
        Expr::Not(inner) => {
            let mut list = list(inner)?;
            list.negated = !list.negated;
            Some(list)
        }
        _ => None,
    }
}

/// An equality with a constant, or a list.
fn equality(expr: &Expr) -> Option<InList> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return list(expr);
    };
    if *op != Operator::Eq {
        return list(expr);
    }
    let [left, right] = [left, right].map(|side| value(side.as_ref().clone()));
    let (of, item) = match (left, right) {
        (item @ Expr::Literal(..), of) | (of, item @ Expr::Literal(..)) => (of, item),
        _ => return None,
    };
    Some(InList::new(Box::new(of), vec![item], false))
}

/// A constant as its value, without the notes that literals carry.
fn value(item: Expr) -> Expr {
    let value = match &item {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Literal(..)) => {
            evaluate(&item).ok().flatten()
        }
        Expr::Negative(inner) if matches!(inner.as_ref(), Expr::Literal(..)) => {
            evaluate(&item).ok().flatten()
        }
        _ => None,
    };
    value.map_or(item, |value| Expr::Literal(value, None))
}

/// True of lists of values that are different where they are not the same: those of several forms are canonical by now
/// (`equal_values::among_constants`).
fn is_of_values(list: &InList) -> bool {
    let is_value = |item: &Expr| matches!(item, Expr::Literal(value, _) if !value.is_null());
    list.list.iter().all(is_value)
}

/// What is cast: DataFusion does without casts that literals can have instead.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => uncast(&cast.expr),
        Expr::TryCast(cast) => uncast(&cast.expr),
        other => other,
    }
}

/// A list of another expression to DataFusion, which does not intersect it then.
fn apart(mut list: InList) -> InList {
    let signature = Signature::any(1, Volatility::Immutable);
    let apart = ScalarUDF::new_from_impl(Apart { signature });
    list.expr = Box::new(apart.call(vec![*list.expr]));
    list
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Apart {
    signature: Signature,
}

impl ScalarUDFImpl for Apart {
    fn name(&self) -> &str {
        APART
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}
