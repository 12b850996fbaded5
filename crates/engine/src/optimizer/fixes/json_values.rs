//! JSON within JSON: `json_object('a', '[1]'::json)` is `{"a":[1]}`, not `{"a":"[1]"}`.
//!
//! In: calls that write JSON, before DataFusion's type coercion. Out: the same calls of `json kept`, which marks strings that are JSON.
//! Invariant: names stay. A string is JSON if a function made it so, here or in a query below; JSON is a VARCHAR, so that a column
//! of a table is text.
//! Not here: how values are written (functions/scalar/json_written.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, Join, LogicalPlan};

use super::{each_named, each_plan};
use crate::functions::{is_json, json_kept, marked_as_json};

/// Functions that write JSON.
const WRITE_JSON: [&str; 7] = [
    "json_array",
    "json_object",
    "json_quote",
    "to_json",
    "array_to_json",
    "row_to_json",
    "json_entries",
];

/// Functions that give one of their arguments.
const CHOICES: [&str; 4] = ["coalesce", "ifnull", "nvl", "nullif"];

/// Aggregates that give one of their arguments' values.
const VALUES: [&str; 4] = ["min", "max", "first_value", "last_value"];

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        if !plan.expressions().iter().any(writes_json) {
            return Ok(Transformed::no(plan));
        }
        let inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
        let inputs: Vec<&LogicalPlan> = inputs.iter().collect();
        each_named(plan, |part| match part {
            Expr::ScalarFunction(call) if is_writer(&call) => kept(call, &inputs),
            other => Ok(Transformed::no(other)),
        })
    })
}

fn is_writer(call: &ScalarFunction) -> bool {
    WRITE_JSON.contains(&call.func.name())
}

fn writes_json(expr: &Expr) -> bool {
    expr.exists(|part| Ok(matches!(part, Expr::ScalarFunction(call) if is_writer(call))))
        .unwrap_or(false)
}

/// The call with its JSON marked.
fn kept(mut call: ScalarFunction, inputs: &[&LogicalPlan]) -> Result<Transformed<Expr>> {
    let has_names = call.func.name() == "json_object";
    let mut changed = false;
    for (at, arg) in call.args.iter_mut().enumerate() {
        let is_name = has_names && at.is_multiple_of(2);
        if !is_name && let Some(marked) = with_json(arg, inputs) {
            *arg = json_kept(std::mem::take(arg), &ScalarValue::try_from(&marked)?);
            changed = true;
        }
    }
    Ok(Transformed::new_transformed(
        Expr::ScalarFunction(call),
        changed,
    ))
}

/// The type of an expression in which strings that are JSON are marked; `None` if there are none.
fn with_json(expr: &Expr, inputs: &[&LogicalPlan]) -> Option<DataType> {
    if is_json(expr) {
        return Some(marked_as_json(&type_of(expr, inputs)?));
    }
    match expr {
        Expr::Alias(alias) => with_json(&alias.expr, inputs),
        Expr::Column(column) => inputs.iter().find_map(|input| in_column(column, input)),
        Expr::ScalarSubquery(subquery) => at_place(&subquery.subquery, 0),
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            one_of(thens.chain(case.else_expr.as_deref()), inputs)
        }
        Expr::ScalarFunction(call) => match call.func.name() {
            "nullif" => with_json(call.args.first()?, inputs),
            name if CHOICES.contains(&name) => one_of(call.args.iter(), inputs),
            "make_array" => Some(list_of(one_of(call.args.iter(), inputs)?)),
            "named_struct" => {
                let values: Vec<&Expr> = call.args.iter().skip(1).step_by(2).collect();
                in_fields(expr, &values, inputs)
            }
            "struct" => in_fields(expr, &call.args.iter().collect::<Vec<_>>(), inputs),
            _ => None,
        },
        Expr::AggregateFunction(call) => of_aggregate(call.func.name(), &call.params.args, inputs),
        Expr::WindowFunction(call) => of_aggregate(call.fun.name(), &call.params.args, inputs),
        _ => None,
    }
}

fn of_aggregate(name: &str, args: &[Expr], inputs: &[&LogicalPlan]) -> Option<DataType> {
    let of = with_json(args.first()?, inputs)?;
    match name {
        "array_agg" => Some(list_of(of)),
        name if VALUES.contains(&name) => Some(of),
        _ => None,
    }
}

/// The type that all of these have, but for NULL.
fn one_of<'a>(exprs: impl Iterator<Item = &'a Expr>, inputs: &[&LogicalPlan]) -> Option<DataType> {
    let is_null = |expr: &&Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
    let mut types = exprs
        .filter(|expr| !is_null(expr))
        .map(|expr| with_json(expr, inputs));
    let first = types.next()??;
    types.all(|of| of.as_ref() == Some(&first)).then_some(first)
}

/// The type of a struct of these values.
fn in_fields(expr: &Expr, values: &[&Expr], inputs: &[&LogicalPlan]) -> Option<DataType> {
    let DataType::Struct(fields) = type_of(expr, inputs)? else {
        return None;
    };
    let types: Vec<_> = values
        .iter()
        .map(|value| with_json(value, inputs))
        .collect();
    if types.len() != fields.len() || types.iter().all(Option::is_none) {
        return None;
    }
    let fields = fields.iter().zip(types).map(|(field, of)| match of {
        Some(of) => Arc::new(Field::new(field.name(), of, true)),
        None => Arc::clone(field),
    });
    Some(DataType::Struct(fields.collect::<Fields>()))
}

fn list_of(item: DataType) -> DataType {
    DataType::new_list(item, true)
}

fn type_of(expr: &Expr, inputs: &[&LogicalPlan]) -> Option<DataType> {
    inputs
        .iter()
        .find_map(|input| expr.get_type(input.schema()).ok())
        .or_else(|| expr.get_type(&DFSchema::empty()).ok())
}

fn in_column(column: &Column, plan: &LogicalPlan) -> Option<DataType> {
    at_place(plan, plan.schema().maybe_index_of_column(column)?)
}

/// The same of a column of a plan.
fn at_place(plan: &LogicalPlan, at: usize) -> Option<DataType> {
    match plan {
        LogicalPlan::Projection(projection) => {
            with_json(projection.expr.get(at)?, &[projection.input.as_ref()])
        }
        LogicalPlan::Aggregate(aggregate) => {
            // Grouping sets are one expression of many columns.
            let keys = aggregate.group_expr.iter();
            if keys.clone().any(|key| matches!(key, Expr::GroupingSet(_))) {
                return None;
            }
            let mut columns = keys.chain(&aggregate.aggr_expr);
            with_json(columns.nth(at)?, &[aggregate.input.as_ref()])
        }
        LogicalPlan::SubqueryAlias(alias) => at_place(&alias.input, at),
        LogicalPlan::Filter(filter) => at_place(&filter.input, at),
        LogicalPlan::Sort(sort) => at_place(&sort.input, at),
        LogicalPlan::Limit(limit) => at_place(&limit.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => at_place(input, at),
        LogicalPlan::Window(window) => {
            let below = window.input.schema().fields().len();
            match at.checked_sub(below) {
                Some(at) => with_json(window.window_expr.get(at)?, &[window.input.as_ref()]),
                None => at_place(&window.input, at),
            }
        }
        LogicalPlan::Join(join) => in_join(join, at),
        LogicalPlan::Union(union) => {
            let mut inputs = union.inputs.iter().map(|input| at_place(input, at));
            let first = inputs.next()??;
            inputs
                .all(|of| of.as_ref() == Some(&first))
                .then_some(first)
        }
        _ => None,
    }
}

fn in_join(join: &Join, at: usize) -> Option<DataType> {
    use JoinType::{Full, Inner, Left, LeftAnti, LeftSemi, Right, RightAnti, RightSemi};
    let left = join.left.schema().fields().len();
    match join.join_type {
        RightSemi | RightAnti => at_place(&join.right, at),
        LeftSemi | LeftAnti => at_place(&join.left, at),
        Inner | Left | Right | Full => match at.checked_sub(left) {
            Some(at) => at_place(&join.right, at),
            None => at_place(&join.left, at),
        },
        _ => None,
    }
}
