//! Elements of ROLLUP, CUBE and GROUPING SETS that are more than columns are computed below the grouping.
//!
//! In: a plan before all other rules. Out: the same plan, in which such elements, and what `grouping()` takes of them, are
//! columns of a projection. Rules that fix expressions leave grouping sets as they are, and so would leave their elements
//! unfixed.
//! Invariant: names and order of the columns stay.
//! Not here: keys without grouping sets.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};

use crate::optimizer::fixes::each_plan;

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| match &plan {
        LogicalPlan::Aggregate(aggregate) => {
            let found = below(aggregate)?;
            Ok(found.map_or_else(|| Transformed::no(plan), Transformed::yes))
        }
        _ => Ok(Transformed::no(plan)),
    })
}

fn below(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let [key @ Expr::GroupingSet(set)] = aggregate.group_expr.as_slice() else {
        return Ok(None);
    };
    let mut elements: Vec<Expr> = Vec::new();
    for element in set.distinct_expr() {
        if !matches!(element, Expr::Column(_)) && !elements.contains(element) {
            elements.push(element.clone());
        }
    }
    if elements.is_empty() {
        return Ok(None);
    }
    let column = |part: Expr| {
        let number = elements.iter().position(|element| *element == part);
        match number {
            Some(number) => Transformed::yes(Expr::Column(Column::from_name(name_of(number)))),
            None => Transformed::no(part),
        }
    };
    let keys = key.clone().map_children(|element| Ok(column(element)))?;
    let functions = aggregate.aggr_expr.iter().map(|function| {
        let function = function.clone().transform_up(|part| match part {
            Expr::AggregateFunction(call) if call.func.name() == "grouping" => {
                Expr::AggregateFunction(call).map_children(|argument| Ok(column(argument)))
            }
            other => Ok(Transformed::no(other)),
        });
        Ok(function?.data)
    });
    let functions = functions.collect::<Result<Vec<_>>>()?;
    let kept = aggregate.input.schema().iter().map(Column::from);
    let named = elements.iter().enumerate();
    let named = named.map(|(number, element)| element.clone().alias(name_of(number)));
    let columns = kept.map(Expr::Column).chain(named).collect();
    let input = Projection::try_new(columns, Arc::clone(&aggregate.input))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    let grouped = Aggregate::try_new(input, vec![keys.data], functions)?;
    // The number of the set is DataFusion's, which takes it out where it resolves `grouping()`.
    let outputs = grouped.schema.iter().zip(aggregate.schema.iter());
    let outputs = outputs.filter(|((_, field), _)| field.name() != Aggregate::INTERNAL_GROUPING_ID);
    let outputs = outputs.map(|(below, (of, field))| {
        Expr::Column(Column::from(below)).alias_qualified(of.cloned(), field.name())
    });
    let outputs = outputs.collect();
    let outputs = Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(grouped)))?;
    Ok(Some(LogicalPlan::Projection(outputs)))
}

fn name_of(number: usize) -> String {
    format!("__element_{number}")
}
