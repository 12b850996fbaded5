//! Several IN lists of one value, in SQL's logic of three values.
//!
//! In: a plan on its way through DataFusion's `simplify_expressions`. Out: the same plan; where a condition has several lists of
//! one value, each of them is of another value to DataFusion.
//! Invariant: names stay, equal lists stay equal, and so does a condition with one list of each value. DataFusion intersects
//! lists as sets of expressions. But a value that is NULL is not outside of an empty list, and a list with NULL does not say
//! what is outside of it. Columns of two names may be equal, too. Lists come side by side in many ways, through NOT, constants
//! and equalities, which it takes for lists. Tried: uniting those that stand side by side, which never knew all.
//! Not here: a list alone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_binary;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::named;

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

/// The name of what an expression is called within a list that stands apart.
pub(super) const APART: &str = "apart";

/// The plan with lists of one value apart.
pub(super) fn apart(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    named(plan, |expr| {
        let mut lists = Lists::default();
        lists.find(&expr)?;
        match !lists.several.is_empty() {
            true => expr.transform_down(|part| Ok(lists.set_apart(part))),
            false => Ok(Transformed::no(expr)),
        }
    })
}

/// The lists of an expression.
#[derive(Default)]
struct Lists {
    /// The number of each list, or of the list that an equality is in; equal ones have one.
    places: HashMap<Expr, usize>,
    /// Values of lists.
    values: HashSet<Expr>,
    /// Values of several lists.
    several: HashSet<Expr>,
}

impl Lists {
    fn find(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op, .. }) if is_chain(*op) => {
                let mut members = Vec::new();
                for member in split_binary(expr, *op) {
                    match equality(member, *op) {
                        Some(found) => members.push(found),
                        None => self.find(member)?,
                    }
                }
                self.add_equalities(&members);
                Ok(())
            }
            Expr::InList(list) => {
                self.add(uncast(&list.expr), &[expr]);
                self.within(expr)
            }
            _ => self.within(expr),
        }
    }

    fn within(&mut self, expr: &Expr) -> Result<()> {
        expr.apply_children(|part| {
            self.find(part)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Equalities of one value in one chain are a list.
    fn add_equalities(&mut self, members: &[(&Expr, &Expr)]) {
        let mut of_value: HashMap<&Expr, Vec<&Expr>> = HashMap::new();
        for (value, member) in members {
            of_value.entry(value).or_default().push(member);
        }
        for (value, members) in of_value {
            if members.len() > 1 {
                self.add(value, &members);
            }
        }
    }

    fn add(&mut self, value: &Expr, members: &[&Expr]) {
        if members
            .iter()
            .all(|member| self.places.contains_key(*member))
        {
            return;
        }
        if !self.values.insert(value.clone()) {
            self.several.insert(value.clone());
        }
        let place = self.places.len();
        for member in members {
            self.places.entry((*member).clone()).or_insert(place);
        }
    }

    /// A list, or an equality of one, as of another value, if its own has several.
    fn set_apart(&self, mut part: Expr) -> Transformed<Expr> {
        let Some(place) = self.places.get(&part).copied() else {
            return Transformed::no(part);
        };
        let value = match &mut part {
            Expr::InList(list) => Some(list.expr.as_mut()),
            Expr::BinaryExpr(binary) => sides(binary),
            _ => None,
        };
        match value.filter(|value| self.several.contains(uncast(value))) {
            Some(value) => {
                *value = called_apart(std::mem::take(value), place);
                Transformed::new(part, true, TreeNodeRecursion::Jump)
            }
            None => Transformed::no(part),
        }
    }
}

fn is_chain(op: Operator) -> bool {
    matches!(op, Operator::And | Operator::Or)
}

/// The value that a member of a chain compares with a constant, and the comparison, where members such as it are a list.
/// Such are `x = 1 OR x = 2`, and `x <> 1 AND x <> 2`.
fn equality(member: &Expr, chain: Operator) -> Option<(&Expr, &Expr)> {
    let (compared, is_denied) = match member {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    let Expr::BinaryExpr(binary) = compared else {
        return None;
    };
    let listed = match (chain == Operator::Or) != is_denied {
        true => Operator::Eq,
        false => Operator::NotEq,
    };
    let (left, right) = (binary.left.as_ref(), binary.right.as_ref());
    match (is_constant(left), is_constant(right)) {
        _ if binary.op != listed => None,
        (false, true) => Some((uncast(left), compared)),
        (true, false) => Some((uncast(right), compared)),
        _ => None,
    }
}

/// The side that is compared with a constant.
fn sides(binary: &mut BinaryExpr) -> Option<&mut Expr> {
    match (is_constant(&binary.left), is_constant(&binary.right)) {
        (false, true) => Some(binary.left.as_mut()),
        (true, false) => Some(binary.right.as_mut()),
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Negative(inner) => is_constant(inner),
        other => !std::ptr::eq(uncast(other), other) && is_constant(uncast(other)),
    }
}

/// What is cast: DataFusion does without casts that literals can have instead.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => uncast(&cast.expr),
        Expr::TryCast(cast) => uncast(&cast.expr),
        other => other,
    }
}

fn called_apart(value: Expr, place: usize) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(PartOfList { place, signature }).call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct PartOfList {
    /// Which of the lists of its value it is.
    place: usize,
    signature: Signature,
}

impl ScalarUDFImpl for PartOfList {
    function_methods!(APART);

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
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

portable!(PartOfList, "part_of_list", place: count;
    signature: Signature::any(1, Volatility::Immutable));
