//! A part of a plan that is there several times and has to have the same rows each time.
//!
//! In: a part such as a LIMIT without ORDER BY, or a column of random(), of which a rewrite makes copies. Out: a node that is
//! copied with it; all copies hand out the rows of one run.
//! Invariant: nothing is pushed into a copy, so that each could run for all; the rows stay in memory, which is accounted for.
//! Not here: who makes copies (unnested/).

mod rows;
pub(in crate::optimizer) mod turns;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::logical_plan::{Distinct, Extension, SubqueryAlias};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use rows::{ReadOnceExec, SharedRows};

use super::each_plan;
use crate::sql::fixes::shared_tables::SHARED_TABLE;

/// The rule for common table expressions that are used more than once.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let mut tables: HashMap<String, Arc<SharedRows>> = HashMap::new();
    each_plan(plan, |plan| {
        let LogicalPlan::SubqueryAlias(alias) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let name = alias.alias.table();
        if !name.starts_with(SHARED_TABLE)
            || is_steady(&alias.input)?
            || is_of_recursion(&alias.input)?
            || has_outer_columns(&alias.input)?
        {
            return Ok(Transformed::no(plan));
        }
        let rows = tables.entry(name.to_string()).or_default();
        let node = ReadOnce {
            input: alias.input.as_ref().clone(),
            rows: Arc::clone(rows),
        };
        let node = LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        });
        let shared = SubqueryAlias::try_new(Arc::new(node), alias.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(shared)))
    })
}

fn has_outer_columns(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|part| {
        found |= part.contains_outer_reference();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The part in a node whose copies share its rows. It is the part itself where it has the same rows each time, or where it
/// depends on the turns of a recursion.
pub(super) fn shared(plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
    if is_of_recursion(&plan)? {
        return Ok(None);
    }
    let node = ReadOnce {
        input: plan,
        rows: Arc::new(SharedRows::default()),
    };
    Ok(Some(LogicalPlan::Extension(Extension {
        node: Arc::new(node),
    })))
}

/// Whether a plan has the same rows each time that it is read: all that it does is decided by its tables.
pub(super) fn is_steady(plan: &LogicalPlan) -> Result<bool> {
    let mut steady = true;
    plan.apply_with_subqueries(|part| {
        steady &= match part {
            LogicalPlan::Aggregate(aggregate) => {
                // Sums of floats depend on the order of rows.
                let mut fields = aggregate.schema.fields().iter();
                let are_exact = fields.all(|field| !field.data_type().is_floating());
                are_exact && aggregate.aggr_expr.iter().all(is_steady_aggregate)
            }
            LogicalPlan::Sort(sort) => sort.fetch.is_none(),
            LogicalPlan::Distinct(distinct) => matches!(distinct, Distinct::All(_)),
            LogicalPlan::Extension(extension) => extension.node.name() == NAME,
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::Repartition(_) => true,
            _ => false,
        };
        part.apply_expressions(|expr| {
            steady &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(match steady {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    })?;
    Ok(steady)
}

fn is_steady_aggregate(expr: &Expr) -> bool {
    match expr.clone().unalias() {
        Expr::AggregateFunction(function) => {
            ["count", "sum", "min", "max", "avg", "bool_and", "bool_or"]
                .contains(&function.func.name())
        }
        _ => false,
    }
}

/// Whether a plan reads the rows of a turn of a recursion that is not a part of it.
pub(super) fn is_of_recursion(plan: &LogicalPlan) -> Result<bool> {
    let (mut read, mut own) = (HashSet::new(), HashSet::new());
    plan.apply_with_subqueries(|part| {
        if let LogicalPlan::RecursiveQuery(recursion) = part {
            own.insert(recursion.name.clone());
        }
        if let LogicalPlan::TableScan(scan) = part
            && let Ok(table) = source_as_provider(&scan.source)
            && let Some(table) = table.downcast_ref::<CteWorkTable>()
        {
            read.insert(table.name().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!read.is_subset(&own))
}

/// The node's name.
const NAME: &str = "ReadOnce";

/// The node.
#[derive(Debug, Clone)]
struct ReadOnce {
    input: LogicalPlan,
    rows: Arc<SharedRows>,
}

impl ReadOnce {
    fn place(&self) -> usize {
        Arc::as_ptr(&self.rows).addr()
    }
}

impl PartialEq for ReadOnce {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place() && self.input == other.input
    }
}

impl Eq for ReadOnce {}

impl PartialOrd for ReadOnce {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.place().cmp(&other.place()) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            order => Some(order),
        }
    }
}

impl Hash for ReadOnce {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

impl UserDefinedLogicalNodeCore for ReadOnce {
    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 1]>::try_from(inputs) {
            Ok([input]) => Ok(ReadOnce {
                input,
                rows: Arc::clone(&self.rows),
            }),
            Err(inputs) => internal_err!("{NAME} has one input, not {}", inputs.len()),
        }
    }
}

/// DataFusion's planner with one for such nodes.
#[derive(Debug)]
pub(super) struct SharedTablePlanner;

#[async_trait]
impl QueryPlanner for SharedTablePlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(NodePlanner)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct NodePlanner;

#[async_trait]
impl ExtensionPlanner for NodePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let node = node.as_any().downcast_ref::<ReadOnce>();
        Ok(node.zip(inputs.first()).map(|(node, input)| {
            let node = ReadOnceExec::new(Arc::clone(input), Arc::clone(&node.rows));
            Arc::new(node) as _
        }))
    }
}
