//! Expressions in which equal values have one form: -0.0 is 0.0, all NaN are one, 30 days are a month.
//!
//! In: an expression. Out: the same expression, in which operands pass through `canonical` (canonical.rs), if their type has
//! equal values of several forms, also inside lists and structs. Operands are those of comparisons, IN, BETWEEN and CASE, sort
//! keys and arguments with DISTINCT.
//! Invariant: results keep the values that the data has; names and other types are not touched.
//! Not here: which expressions of a plan (optimizer/fixes/equal_values.rs).

pub(crate) mod canonical;
pub(crate) mod identity;
mod ordered;
mod chosen;
mod aggregates;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, Operator, ScalarUDF};
use grouse_groupby::keys::row::has_forms;

use crate::expr::columns::is_comparison;
use crate::functions::ANY_EQUAL;
use crate::wire::{FunctionKind, scalar};
pub(crate) use canonical::plain;
use canonical::{canonical, is_canonical};
pub(crate) use chosen::extreme_items;
use chosen::{chosen, is_chosen};
pub(crate) use ordered::sortable;
use ordered::{extreme, is_extreme, item_bytes, ordered, sort_bytes};

/// Functions of this room that travel.
pub(super) fn kinds() -> Vec<FunctionKind<ScalarUDF>> {
    vec![
        scalar::<canonical::Canonical>(),
        scalar::<chosen::ChoiceFunction>(),
        scalar::<identity::Identified>(),
        scalar::<identity::Identity>(),
        scalar::<ordered::Extreme>(),
        scalar::<ordered::NestedOrder>(),
        scalar::<ordered::SortBytes>(),
    ]
}

/// Functions that tell whether and where a list has a value.
const SEARCHES: [&str; 6] = [
    ANY_EQUAL,
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_position",
    "array_positions",
];

/// Functions of lists whose results have values of their arguments.
const CHOICES: [&str; 11] = [
    "array_distinct",
    "array_except",
    "array_intersect",
    "array_union",
    "array_remove",
    "array_remove_n",
    "array_remove_all",
    "array_replace",
    "array_replace_n",
    "array_replace_all",
    "array_max",
];

/// The same for one expression.
pub(crate) fn among_values(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(expr.transform_up(|part| in_part(part, schema))?.data)
}

pub(crate) fn in_part(mut part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut part {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            let changed = wrap_each([binary.left.as_mut(), binary.right.as_mut()], schema)?;
            if orders_nested(binary, schema) {
                return Ok(Transformed::yes(ordered(binary)));
            }
            changed
        }
        Expr::Between(between) => {
            let (low, high) = (between.low.as_mut(), between.high.as_mut());
            wrap_each([between.expr.as_mut(), low, high], schema)?
        }
        Expr::InList(list) => wrap(&mut list.expr, schema)? | wrap_each(&mut list.list, schema)?,
        Expr::Case(case) => in_case(case, schema)?,
        Expr::ScalarFunction(call) => {
            let (name, args) = (call.func.name(), &mut call.args);
            if is_extreme(&call.func) || is_chosen(&call.func) {
                false
            } else if let Some(other) = chosen(&call.func, args, schema)? {
                return Ok(Transformed::yes(other));
            } else if SEARCHES.contains(&name) {
                wrap_each(args.iter_mut(), schema)? | search_bytes(name, args, schema)?
            } else if CHOICES.contains(&name) {
                wrap_each(args, schema)?
            } else if let Some(other) = in_choice(name, args, schema)? {
                return Ok(Transformed::yes(other));
            } else {
                false
            }
        }
        Expr::AggregateFunction(aggregate) => aggregates::in_aggregate(aggregate, schema)?,
        Expr::WindowFunction(window) => aggregates::in_window(window, schema)?,
        _ => false,
    };
    Ok(Transformed::new_transformed(part, changed))
}

/// A search for lists and structs as one for their bytes: DataFusion does not compare structs.
fn search_bytes(name: &str, args: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let Some(DataType::List(item)) = args.first().and_then(|list| list.get_type(schema).ok())
    else {
        return Ok(false);
    };
    let item = item.data_type();
    if !item.is_nested() {
        return Ok(false);
    }
    let is_of_lists = matches!(name, "array_has_all" | "array_has_any");
    let [list, other, ..] = args else {
        return Ok(false);
    };
    let other_bytes = match is_of_lists {
        true => item_bytes(other, item),
        false => sort_bytes(other, item),
    };
    let bytes = item_bytes(list, item).zip(other_bytes);
    let changed = bytes.is_some();
    if let Some((left, right)) = bytes {
        (*list, *other) = (left, right);
    }
    Ok(changed)
}

/// True of lists and structs.
fn has_nested_order(of: &DataType) -> bool {
    of.is_nested() && !matches!(of, DataType::Map(..) | DataType::Union(..))
}

/// True of `<` and its kin between lists or structs.
fn orders_nested(binary: &BinaryExpr, schema: &DFSchema) -> bool {
    use Operator::{Gt, GtEq, Lt, LtEq};
    matches!(binary.op, Lt | LtEq | Gt | GtEq)
        && binary
            .left
            .get_type(schema)
            .is_ok_and(|of| has_nested_order(&of))
        && binary.left.get_type(schema).ok() == binary.right.get_type(schema).ok()
}

fn in_case(case: &mut Case, schema: &DFSchema) -> Result<bool> {
    let Some(compared) = case.expr.as_deref_mut() else {
        return Ok(false);
    };
    let mut changed = wrap(compared, schema)?;
    for (when, _) in &mut case.when_then_expr {
        changed |= wrap(when, schema)?;
    }
    Ok(changed)
}

/// `nullif`, `greatest` and `least`, whose results have the values of the data, compared by their canonical forms.
fn in_choice(name: &str, args: &[Expr], schema: &DFSchema) -> Result<Option<Expr>> {
    let types: Vec<_> = args.iter().map(|arg| arg.get_type(schema).ok()).collect();
    let of = types.first().cloned().flatten();
    let (is_nested, of_forms) =
        of.map_or((false, false), |of| (has_nested_order(&of), has_forms(&of)));
    if !is_nested && !of_forms || types.windows(2).any(|pair| pair[0] != pair[1]) {
        return Ok(None);
    }
    match (name, args) {
        ("nullif", _) if !of_forms => Ok(None),
        ("greatest" | "least", [_, _, ..]) => Ok(Some(extreme(name, args.to_vec()))),
        ("nullif", [left, right]) if !left.is_volatile() => {
            let equal = canonical(left.clone())?.eq(canonical(right.clone())?);
            let of = left.get_type(schema)?;
            let null = Expr::Literal(ScalarValue::try_new_null(&of)?, None);
            let case = Case {
                expr: None,
                when_then_expr: vec![(Box::new(equal), Box::new(null))],
                else_expr: Some(Box::new(left.clone())),
            };
            Ok(Some(Expr::Case(case)))
        }
        _ => Ok(None),
    }
}

/// Puts an operand into canonical form, if its type has others.
pub(crate) fn wrap(operand: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let has_forms = operand.get_type(schema).is_ok_and(|of| has_forms(&of));
    if !has_forms || is_canonical(operand, schema) {
        return Ok(false);
    }
    *operand = canonical(std::mem::take(operand))?;
    Ok(true)
}

/// Puts a sort key into canonical form, one that is a list or struct into bytes.
pub(crate) fn wrap_order(key: &mut Expr, schema: &DFSchema) -> Result<bool> {
    match key.get_type(schema) {
        Ok(of) if of.is_nested() => {
            let bytes = sort_bytes(key, &of);
            let changed = bytes.is_some();
            *key = bytes.unwrap_or_else(|| std::mem::take(key));
            Ok(changed)
        }
        _ => wrap(key, schema),
    }
}

pub(crate) fn wrap_each<'a>(
    operands: impl IntoIterator<Item = &'a mut Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    let mut changed = false;
    for operand in operands {
        changed |= wrap(operand, schema)?;
    }
    Ok(changed)
}
