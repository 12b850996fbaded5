//! Which columns of a grouping, and of a list's elements, determine the others.
//!
//! In: a logical plan before a rule of DataFusion's that reads dependencies. Out: the same plan without those that do not hold.
//! Invariant: a part of the keys determines the other columns only if it determines the other keys. DataFusion takes any key
//! of an input, such as the distinct side of a join, for one of the grouping, and then drops keys, DISTINCT and joins.
//! What determined a row below an unnesting determines none of the rows that its elements make.
//! Not here: dependencies that tables declare.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Dependency, FunctionalDependence, FunctionalDependencies, Result};
use datafusion::logical_expr::logical_plan::{Distinct, Unnest};
use datafusion::logical_expr::{Aggregate, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rules that read dependencies as they are before them; `distinct` is for the one that reads those of its own groupings.
pub(in crate::optimizer) const READERS: &[&str] = &[
    "eliminate_join",
    "eliminate_duplicated_expr",
    "optimize_projections",
];

/// The rule, which comes before each of them.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    with_true_ones(plan)
}

/// DISTINCT as a grouping, or as nothing where its input has each row once. The DISTINCT below it have become groupings just now.
pub(in crate::optimizer) fn distinct(
    datafusion: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = with_true_ones(Arc::unwrap_or_clone(input))?.data;
            LogicalPlan::Distinct(Distinct::All(Arc::new(input)))
        }
        other => other,
    };
    datafusion.rewrite(plan, config)
}

/// The plan with dependencies that hold.
pub(in crate::optimizer::fixes) fn with_true_ones(
    plan: LogicalPlan,
) -> Result<Transformed<LogicalPlan>> {
    let mut any = false;
    plan.apply_with_subqueries(|part| {
        any |= true_ones(part).is_some();
        Ok(match any {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !any {
        return Ok(Transformed::no(plan));
    }
    let mut changed = false;
    plan.transform_up_with_subqueries(|part| {
        // What has changed below, plans above have taken over.
        let part = match changed {
            true => part.recompute_schema()?,
            false => part,
        };
        let Some(dependencies) = true_ones(&part) else {
            return Ok(Transformed::no(part));
        };
        changed = true;
        with_dependencies(part, dependencies).map(Transformed::yes)
    })
}

/// The dependencies of a plan that hold; `None` if all do.
fn true_ones(plan: &LogicalPlan) -> Option<FunctionalDependencies> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => true_ones_of_groups(aggregate),
        LogicalPlan::Unnest(unnest) => {
            let has_some = !unnest.schema.functional_dependencies().is_empty();
            has_some.then(FunctionalDependencies::empty)
        }
        _ => None,
    }
}

/// The plan with these. Its constructors would compute DataFusion's again.
fn with_dependencies(
    plan: LogicalPlan,
    dependencies: FunctionalDependencies,
) -> Result<LogicalPlan> {
    let schema = plan.schema().as_ref().clone();
    let schema = Arc::new(schema.with_functional_dependencies(dependencies)?);
    Ok(match plan {
        LogicalPlan::Aggregate(mut aggregate) => {
            aggregate.schema = schema;
            LogicalPlan::Aggregate(aggregate)
        }
        LogicalPlan::Unnest(unnest) => LogicalPlan::Unnest(Unnest { schema, ..unnest }),
        other => other,
    })
}

fn true_ones_of_groups(aggregate: &Aggregate) -> Option<FunctionalDependencies> {
    let fields = aggregate.schema.fields().len();
    let keys = fields - aggregate.aggr_expr.len();
    let dependencies = aggregate.schema.functional_dependencies();
    let (mut kept, dropped): (Vec<_>, Vec<_>) = dependencies
        .iter()
        .cloned()
        .partition(|dependency| holds(dependency, aggregate, keys));
    if dropped.is_empty() {
        return None;
    }
    let nullable = aggregate.schema.fields()[..keys]
        .iter()
        .any(|key| key.is_nullable());
    let of_keys = FunctionalDependence::new((0..keys).collect(), (0..fields).collect(), nullable);
    kept.push(of_keys.with_mode(Dependency::Single));
    Some(FunctionalDependencies::new(kept))
}

/// Whether a dependency holds whose source is a part of the keys: the input has it, and for the other keys as well.
fn holds(dependency: &FunctionalDependence, aggregate: &Aggregate, keys: usize) -> bool {
    if dependency.source_indices.len() >= keys {
        return true;
    }
    let names = aggregate.schema.field_names();
    let names_below = aggregate.input.schema().field_names();
    let below = aggregate.input.schema().functional_dependencies();
    let source: Vec<_> = dependency
        .source_indices
        .iter()
        .map(|place| &names[*place])
        .collect();
    below.iter().any(|below| {
        let sources = below
            .source_indices
            .iter()
            .map(|place| &names_below[*place]);
        let targets: Vec<_> = below
            .target_indices
            .iter()
            .map(|place| &names_below[*place])
            .collect();
        let mut others = names[..keys].iter().filter(|name| !source.contains(name));
        sources.clone().count() == source.len()
            && sources.clone().all(|name| source.contains(&name))
            && others.all(|name| targets.contains(&name))
    })
}
