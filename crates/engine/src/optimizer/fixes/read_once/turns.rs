//! The rows of a turn of a recursion, where its recursive part reads them in several places.
//!
//! In: a recursive query whose own table stands in its recursive part more than once. Out: the same query, in which all these places
//! hand out the rows that one of them reads.
//! Invariant: each turn has rows of its own, and so has each run of a recursion. Which place reads them is chosen in the physical
//! plan: the optimizer may have dropped any.
//! DataFusion hands the rows of a turn to one place, and refuses others.
//! Not here: a recursion that another one runs in each of its turns (refused).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, internal_err, not_impl_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::logical_plan::{RecursiveQuery, TableScan};
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::TryStreamExt;
use parking_lot::Mutex;

use super::rows::SharedRows;
use crate::exec::TURN_ROWS;
use crate::expr::plan_nodes::node_methods;

/// The rule for the places that read a turn.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::RecursiveQuery(recursion) => shared(recursion),
        other => Ok(Transformed::no(other)),
    });
    plan.data()
}

/// The recursion, in which the places that read a turn share its rows.
fn shared(recursion: RecursiveQuery) -> Result<Transformed<LogicalPlan>> {
    let (name, term) = (&recursion.name, &recursion.recursive_term);
    let places = places(term, name)?;
    if places < 2 {
        return Ok(Transformed::no(LogicalPlan::RecursiveQuery(recursion)));
    }
    term.apply_with_subqueries(|part| match part {
        LogicalPlan::RecursiveQuery(inner)
            if inner.name != *name && self::places(&inner.recursive_term, name)? > 0 =>
        {
            not_impl_err!(
                "the table '{name}' of WITH RECURSIVE several times, of which one is in the recursive part of another table"
            )
        }
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    let rows = Arc::new(TurnRows::default());
    let term = term.as_ref().clone();
    let term = term.transform_down_with_subqueries(|part| match part {
        LogicalPlan::TableScan(scan) if is_turn(&scan, name) => {
            let table = TurnTable {
                turn: source_as_provider(&scan.source)?,
                rows: Arc::clone(&rows),
            };
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan {
                source: provider_as_source(Arc::new(table)),
                ..scan
            })))
        }
        other if is_of_same_name(&other, name) => {
            Ok(Transformed::new(other, false, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    });
    let recursion = RecursiveQuery {
        recursive_term: Arc::new(term.data()?),
        ..recursion
    };
    Ok(Transformed::yes(LogicalPlan::RecursiveQuery(recursion)))
}

/// In how many places a plan reads the turns of the recursion of that name around it.
fn places(plan: &LogicalPlan, name: &str) -> Result<usize> {
    let mut number = 0;
    plan.apply_with_subqueries(|part| {
        if let LogicalPlan::TableScan(scan) = part {
            number += usize::from(is_turn(scan, name));
        }
        Ok(match is_of_same_name(part, name) {
            true => TreeNodeRecursion::Jump,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(number)
}

fn is_turn(scan: &TableScan, name: &str) -> bool {
    let Ok(table) = source_as_provider(&scan.source) else {
        return false;
    };
    let table = table.downcast_ref::<CteWorkTable>();
    table.is_some_and(|table| table.name() == name)
}

/// Whether a plan is a recursion of that name, whose turns are others.
fn is_of_same_name(plan: &LogicalPlan, name: &str) -> bool {
    matches!(plan, LogicalPlan::RecursiveQuery(recursion) if recursion.name == name)
}

/// The rows of the turn that is on.
#[derive(Debug, Default)]
struct TurnRows(Mutex<Option<Turn>>);

#[derive(Debug, Clone)]
struct Turn {
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<SharedRows>,
}

/// The table of a recursion in one of the places.
#[derive(Debug)]
struct TurnTable {
    /// DataFusion's table.
    turn: Arc<dyn TableProvider>,
    rows: Arc<TurnRows>,
}

#[async_trait]
impl TableProvider for TurnTable {
    fn schema(&self) -> SchemaRef {
        self.turn.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.schema();
        let all = || (0..schema.fields().len()).collect();
        let columns: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let schema = Arc::new(schema.project(&columns)?);
        Ok(Arc::new(TurnRowsExec {
            properties: properties(&schema),
            schema,
            columns,
            turn: self.turn.scan(session, None, &[], None).await?,
            input: None,
            rows: Arc::clone(&self.rows),
        }))
    }
}

fn properties(schema: &Arc<Schema>) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Final,
        Boundedness::Bounded,
    ))
}

/// One of the places.
#[derive(Debug, Clone)]
struct TurnRowsExec {
    schema: SchemaRef,
    /// Which columns of the table it hands out.
    columns: Vec<usize>,
    /// DataFusion's node, which only one place of a recursion may have as its input.
    turn: Arc<dyn ExecutionPlan>,
    /// That node, in the place through which the rows are read.
    input: Option<Arc<dyn ExecutionPlan>>,
    rows: Arc<TurnRows>,
    properties: Arc<PlanProperties>,
}

impl TurnRowsExec {
    /// The same in all places that share their rows.
    fn address(&self) -> usize {
        Arc::as_ptr(&self.rows).addr()
    }
}

impl DisplayAs for TurnRowsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TURN_ROWS)
    }
}

impl ExecutionPlan for TurnRowsExec {
    node_methods!(with_new_children, no_expressions, properties);

    fn name(&self) -> &'static str {
        TURN_ROWS
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.children().len() {
            return internal_err!("{TURN_ROWS} has one input, not {}", children.len());
        }
        Ok(Arc::new(TurnRowsExec {
            input: children.into_iter().next(),
            ..self.as_ref().clone()
        }))
    }

    /// A turn begins: DataFusion resets all nodes before it runs any.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(input) = &self.input {
            *self.rows.0.lock() = Some(Turn {
                input: Arc::clone(input),
                rows: Arc::default(),
            });
        }
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("{TURN_ROWS} has one partition, not {}", partition + 1);
        }
        let Some(turn) = self.rows.0.lock().clone() else {
            return internal_err!("{TURN_ROWS} outside of a turn");
        };
        let columns = self.columns.clone();
        let batches = async move {
            let batches = turn.rows.get(turn.input, context).await?.into_iter();
            let project =
                move |batch: RecordBatch| -> Result<RecordBatch> { Ok(batch.project(&columns)?) };
            Ok::<_, DataFusionError>(futures::stream::iter(batches.map(project)))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::once(batches).try_flatten(),
        )))
    }
}

/// The rule that gives each recursion of a plan turns of its own, and one of its places the rows to read: copies of a recursion
/// are several.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let separate = plan.transform_up(|node| {
        let Some(recursion) = node.downcast_ref::<RecursiveQueryExec>() else {
            return Ok(Transformed::no(node));
        };
        let term = with_own_rows(Arc::clone(recursion.recursive_term()))?;
        if !term.transformed {
            return Ok(Transformed::no(node));
        }
        let parts = vec![Arc::clone(recursion.static_term()), term.data];
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::yes(node.replace_children(parts, options)?))
    });
    separate.data()
}

fn with_own_rows(term: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut read = HashSet::new();
    term.apply(|node| {
        if let Some(place) = node.downcast_ref::<TurnRowsExec>()
            && place.input.is_some()
        {
            read.insert(place.address());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut own: HashMap<usize, Arc<TurnRows>> = HashMap::new();
    term.transform_up(|node| {
        let Some(place) = node.downcast_ref::<TurnRowsExec>() else {
            return Ok(Transformed::no(node));
        };
        let rows = own.entry(place.address()).or_default();
        let input = match read.insert(place.address()) {
            true => Some(Arc::clone(&place.turn)),
            false => place.input.clone(),
        };
        let place = TurnRowsExec {
            input,
            rows: Arc::clone(rows),
            ..place.clone()
        };
        Ok(Transformed::yes(Arc::new(place) as _))
    })
}
