//! Canonical forms in aggregates and windows.
//!
//! In: an aggregate or a window function. Out: the same, whose arguments with DISTINCT, sort keys and partitions are canonical.
//! The least interval is the one of the least length, the least list or struct the first in ORDER BY.
//! Invariant: an aggregate that counts nothing twice, sorts nothing and compares nothing is not touched. `percentile_cont` and
//! its kin are sorted by the argument that they take, and order floats themselves.
//! Not here: keys of groupings (groups.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, SortExpr, WindowFunctionDefinition,
};
use grouse_groupby::keys::row::{has_forms, has_interval_forms};

use super::canonical::{canonical, is_canonical};
use super::{wrap, wrap_each, wrap_order};
use crate::functions::aggregates::exclusions::{with_exclusion, without_exclusion};
use crate::functions::extreme_by;

/// Aggregates that compare the values of all their arguments.
const COMPARING: [&str; 5] = [
    "uniq",
    "uniq_exact",
    "approx_distinct",
    "mode",
    "approx_top_k",
];

/// Aggregates that compare the values of their second argument.
const COMPARING_SECOND: [&str; 2] = ["max_by", "min_by"];

/// Aggregates whose order is their argument.
const OF_ORDERED: [&str; 6] = [
    "percentile_cont",
    "percentile_disc",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "median",
    "mode",
];

/// The aggregate with canonical values; whether it has changed.
pub(super) fn in_aggregate(aggregate: &mut AggregateFunction, schema: &DFSchema) -> Result<bool> {
    let AggregateFunction { func, params } = aggregate;
    let mut changed = by_length(func, &mut params.args, schema)?;
    let name = func.name();
    if params.distinct || COMPARING.contains(&name) {
        changed |= distinct(&mut params.args, &mut params.order_by, schema)?;
    } else if COMPARING_SECOND.contains(&name) {
        changed |= wrap_each(params.args.iter_mut().skip(1), schema)?;
    }
    if !params.distinct && !OF_ORDERED.contains(&name) {
        for key in &mut params.order_by {
            changed |= wrap_order(&mut key.expr, schema)?;
        }
    }
    Ok(changed)
}

/// The window function with canonical partitions and order; whether it has changed.
pub(super) fn in_window(window: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let WindowFunction { fun, params } = window;
    let mut changed = wrap_each(&mut params.partition_by, schema)?;
    for key in &mut params.order_by {
        changed |= wrap_order(&mut key.expr, schema)?;
    }
    if let WindowFunctionDefinition::AggregateUDF(func) = fun {
        changed |= by_length_in_frame(func, &mut params.args, schema)?;
        if params.distinct || COMPARING.contains(&func.name()) {
            changed |= wrap_each(&mut params.args, schema)?;
        } else if COMPARING_SECOND.contains(&func.name()) {
            changed |= wrap_each(params.args.iter_mut().skip(1), schema)?;
        }
    }
    Ok(changed)
}

/// The same of an aggregate whose frames may leave rows out.
fn by_length_in_frame(
    func: &mut Arc<AggregateUDF>,
    args: &mut Vec<Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    let (mut plain, exclusion) = without_exclusion(func);
    let changed = by_length(&mut plain, args, schema)?;
    if changed {
        *func = match exclusion {
            Some(exclusion) => with_exclusion(plain, exclusion),
            None => plain,
        };
    }
    Ok(changed)
}

/// `min(x)` of intervals, lists and structs as `min_by(x, canonical(x))`: DataFusion's compares part by part, or not at all.
fn by_length(
    func: &mut Arc<AggregateUDF>,
    args: &mut Vec<Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    let is_max = **func == *max_udaf();
    let [arg] = args.as_slice() else {
        return Ok(false);
    };
    let is_by_parts = |of: &DataType| {
        let is_nested = of.is_nested() && !matches!(of, DataType::Union(..));
        is_nested || has_interval_forms(of)
    };
    let kind = arg.get_type(schema);
    let is_by_parts = || kind.as_ref().is_ok_and(is_by_parts);
    if !is_max && **func != *min_udaf() || !is_by_parts() {
        return Ok(false);
    }
    *func = extreme_by(func.name());
    // Of maps there is no canonical form.
    let key = match kind {
        Ok(DataType::Map(..)) => args[0].clone(),
        _ => canonical(args[0].clone())?,
    };
    args.push(key);
    Ok(true)
}

/// Wraps the arguments, and the sort keys that are arguments: DataFusion asks for ORDER BY of a DISTINCT aggregate to be one.
fn distinct(args: &mut [Expr], order: &mut [SortExpr], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for arg in args {
        let plain = arg.clone();
        if !plain.get_type(schema).is_ok_and(|of| has_forms(&of)) || is_canonical(&plain, schema) {
            continue;
        }
        changed |= wrap(arg, schema)?;
        for key in order.iter_mut().filter(|key| key.expr == plain) {
            key.expr = arg.clone();
        }
    }
    Ok(changed)
}
