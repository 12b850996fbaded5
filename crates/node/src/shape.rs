//! Figures of a plan that ran, in the shape of the one that came: the scheduler lays them over its own plan, node by node.
//! In: the plan as it came, and as it ran. Out: a set of figures for each node of the first that has some.
//! Invariant: the number of sets is that of nodes with figures, in the scheduler's order. Kinds that the wire does not know are
//! left out: one of them and Ballista drops all.
//! Not here: what the figures say.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};

/// Figures of `ran` for the nodes of `came`. A node has those of the next one of its name; nodes of one plan only have none.
pub fn in_shape_of(
    came: &Arc<dyn ExecutionPlan>,
    ran: Option<&Arc<dyn ExecutionPlan>>,
) -> Vec<MetricsSet> {
    let mut wanted = Vec::new();
    list(came, &mut wanted);
    let mut there = Vec::new();
    if let Some(ran) = ran {
        list(ran, &mut there);
    }
    let mut rest = there.as_slice();
    let with_figures = wanted.into_iter().filter(|node| node.metrics().is_some());
    with_figures
        .map(
            |node| match rest.iter().position(|other| other.name() == node.name()) {
                Some(place) => {
                    let found = rest[place].metrics();
                    rest = &rest[place + 1..];
                    known(&found.unwrap_or_default())
                }
                None => MetricsSet::new(),
            },
        )
        .collect()
}

/// Those that the wire knows.
pub fn known(figures: &MetricsSet) -> MetricsSet {
    let mut known = MetricsSet::new();
    for metric in figures.iter() {
        if !matches!(metric.value(), MetricValue::Custom { .. }) {
            known.push(Arc::clone(metric));
        }
    }
    known
}

/// The nodes in the order in which the scheduler goes through them.
fn list<'a>(plan: &'a Arc<dyn ExecutionPlan>, nodes: &mut Vec<&'a Arc<dyn ExecutionPlan>>) {
    nodes.push(plan);
    for child in plan.children() {
        list(child, nodes);
    }
}
