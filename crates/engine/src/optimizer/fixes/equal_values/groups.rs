//! Groupings by intervals: those of one length are one group.
//!
//! In: an aggregation. Out: one by the canonical forms of its interval keys, under a projection that shows for each group one
//! of the intervals that it has. With grouping sets it shows the canonical form.
//! Invariant: names and order of the columns stay.
//! Not here: keys of floats, and of lists and structs, which our operator makes canonical itself.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::any_value::any_value_udaf;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection};
use grouse_groupby::keys::row::has_interval_forms;

use crate::functions::equal_values::canonical::{canonical, is_canonical};

/// The aggregation by canonical forms.
pub(super) fn by_canonical(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(aggregate.input.schema());
    let (mut keys, mut shown) = (Vec::new(), Vec::new());
    let mut changed = false;
    for (at, key) in aggregate.group_expr.iter().enumerate() {
        if is_shown(&aggregate, at) {
            keys.push(key.clone());
            continue;
        }
        let formed = in_key(key.clone(), &schema)?;
        changed |= formed.transformed;
        if formed.transformed && !matches!(key, Expr::GroupingSet(_)) {
            shown.push((at, key.clone()));
        }
        keys.push(formed.data);
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let columns = aggregate.schema.fields().len();
    let mut aggregates = aggregate.aggr_expr.clone();
    let values = shown.iter().map(|(at, key)| {
        let key = key.clone().unalias();
        any_value_udaf().call(vec![key]).alias(shown_name(*at))
    });
    aggregates.extend(values);
    let below = Aggregate::try_new(Arc::clone(&aggregate.input), keys, aggregates)?;
    let place = |at: usize| {
        let value = shown.iter().position(|(key, _)| *key == at);
        value.map_or(at, |value| columns + value)
    };
    let outputs = aggregate
        .schema
        .iter()
        .enumerate()
        .map(|(at, (of, field))| {
            let column = Column::from(below.schema.qualified_field(place(at)));
            Expr::Column(column).alias_qualified(of.cloned(), field.name())
        });
    let outputs = outputs.collect();
    let plan = Arc::new(LogicalPlan::Aggregate(below));
    let projection = Projection::try_new(outputs, plan)?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// The name of the aggregate that shows a key.
fn shown_name(key: usize) -> String {
    format!("__key_{key}")
}

/// Whether an aggregate shows a key already, which is canonical then. It may be a column by now, where DataFusion computes below the
/// grouping what arguments of aggregates share with it.
fn is_shown(aggregate: &Aggregate, key: usize) -> bool {
    let name = shown_name(key);
    let mut aggregates = aggregate.aggr_expr.iter();
    aggregates.any(|expr| matches!(expr, Expr::Alias(alias) if alias.name == name))
}

/// A key with canonical intervals, which also may be columns of grouping sets.
fn in_key(key: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if matches!(key, Expr::GroupingSet(_)) {
        return key.map_children(|column| in_key(column, schema));
    }
    let of_forms = |data_type| has_interval_forms(&data_type);
    let is_plain = key.get_type(schema).is_ok_and(of_forms);
    if !is_plain || is_canonical(&key.clone().unalias(), schema) {
        return Ok(Transformed::no(key));
    }
    Ok(Transformed::yes(canonical(key.unalias())?))
}
