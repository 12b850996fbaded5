//! The immutable node: what to compute, for which input, and what DataFusion may know about the result.
//!
//! In: DataFusion's own description of the aggregation (an `AggregateExec` in one stage, which is never executed).
//! Out: schema, properties, requirements, statistics and filters as DataFusion's node has them, but no exchange.
//! Invariant: everything that depends on the input is computed anew with each input, so that rules may replace children
//! in any order and as often as they like.
//! Not here: executing (execution.rs), text (explain.rs).

mod columns;
mod portable;
mod properties;
mod stages;

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, LimitOptions, PhysicalGroupBy,
};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::projection::{
    EmbeddedProjection, ProjectionExec, try_embed_projection,
};
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, StatisticsArgs,
};
use grouse_groupby::keys::is_bytes;
use grouse_groupby::{FirstGroups, Sizes, TableKind};
use parking_lot::Mutex;

use super::NAME;
use super::build_barrier::BuildBarrier;
use super::column_encodings::{ColumnEncoding, ReadExpr};
use super::compiled_aggregation::CompiledAggregation;
use super::conditions::is_dynamic;
use super::execution::{Execution, Output};
use super::memory::{PoolBudget, spill};
use super::order::{self, Fitted, InputOrder, fit};
use super::output_queue::OutputQueue;
use super::source::{Sources, readers};
use super::worker::SharedByWorkers;
use crate::aggregate::native::{adds_up, hands_out, is_count, is_extreme};
use crate::exec::explain;
use crate::expr::plan_expressions::{Exchange, in_aggregate};
use crate::expr::plan_nodes::node_methods;
use crate::runtime::faults::Faults;
use crate::runtime::options::SessionOptions;
use crate::runtime::trace::Trace;
use properties::properties;

pub(super) use columns::NodeColumns;
pub(super) use stages::Stage;

/// How a node runs, whatever it computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Workers of an execution.
    pub workers: usize,
    /// Which key table; anything but the automatic choice is for tests.
    pub table: TableKind,
    /// When tables are emptied, skipped and split.
    pub sizes: Sizes,
}

/// GROUP BY, by our own operator.
#[derive(Debug)]
pub struct GroupByExec {
    described: Arc<AggregateExec>,
    aggregates: Vec<Arc<AggregateFunctionExpr>>,
    input_order: InputOrder,
    columns: NodeColumns,
    tuning: Tuning,
    stage: Stage,
    aggregation: Arc<CompiledAggregation>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Of each task.
    generations: Mutex<Vec<Option<Generation>>>,
}

/// Groups that are chosen for a LIMIT: their hashes fit a core's cache.
const GROUPS_CHOSEN_MAX: usize = 32 << 10;

/// An execution of which some partitions are not executed yet.
#[derive(Debug)]
struct Generation {
    execution: Arc<Execution>,
    executed: Vec<bool>,
}

impl GroupByExec {
    /// Takes over from a pair of DataFusion's nodes or from a single one; fails where the algorithm cannot.
    pub(crate) fn replacing(pair: &Replaced<'_>, tuning: Tuning) -> Result<GroupByExec> {
        let first = pair.first;
        let described = AggregateExec::try_new(
            AggregateMode::Single,
            first.group_expr().clone(),
            first.aggr_expr().to_vec(),
            first.filter_expr().to_vec(),
            Arc::clone(first.input()),
            first.input_schema(),
        )?;
        let described = described.with_limit_options(pair.last.limit_options());
        let columns = NodeColumns::all(pair.last.schema());
        GroupByExec::over(Arc::new(described), columns, tuning, Stage::Whole)
    }

    fn over(
        described: Arc<AggregateExec>,
        columns: NodeColumns,
        tuning: Tuning,
        stage: Stage,
    ) -> Result<GroupByExec> {
        let fitted = match &stage {
            Stage::Whole | Stage::Single | Stage::Partial { .. } => fit(&described)?,
            Stage::Final(merged) => Fitted {
                aggregates: merged.aggregates.clone(),
                input_order: InputOrder::Any,
            },
        };
        let aggregation = CompiledAggregation::of_stage(
            &stage,
            &described,
            &fitted.aggregates,
            &columns,
            tuning,
        )?;
        let properties = properties(&described, &columns, tuning.workers, &stage)?;
        Ok(GroupByExec {
            described,
            aggregates: fitted.aggregates,
            input_order: fitted.input_order,
            columns,
            tuning,
            stage,
            aggregation: Arc::new(aggregation),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            generations: Mutex::new(Vec::new()),
        })
    }

    /// What it reads: rows, or what a partial stage made of them.
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        match &self.stage {
            Stage::Whole | Stage::Single | Stage::Partial { .. } => self.described.input(),
            Stage::Final(merged) => &merged.input,
        }
    }

    /// The node with HAVING: it yields the groups of which `predicate` holds.
    pub(crate) fn having(&self, predicate: &Arc<dyn PhysicalExpr>) -> Result<GroupByExec> {
        let predicates = split_conjunction(predicate).into_iter().cloned();
        self.with_columns(self.columns.where_all(predicates.collect())?)
    }

    fn with_columns(&self, columns: NodeColumns) -> Result<GroupByExec> {
        let (described, stage) = (Arc::clone(&self.described), self.stage.clone());
        GroupByExec::over(described, columns, self.tuning, stage)
    }

    /// What has to hold of the groups that it yields, over all its columns.
    pub fn conditions(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.columns.conditions
    }

    /// The keys and grouping sets.
    pub fn group_by(&self) -> &PhysicalGroupBy {
        self.described.group_expr()
    }

    /// The key that a column of the result is, over the input.
    pub(crate) fn key(&self, column: usize) -> Option<Arc<dyn PhysicalExpr>> {
        let emitted = self.columns.emitted.as_ref();
        let at = emitted.map_or(column, |emitted| emitted[column]);
        let (key, name) = self.group_by().expr().get(at)?;
        Some(match &self.stage {
            Stage::Whole | Stage::Single | Stage::Partial { .. } => Arc::clone(key),
            Stage::Final(_) => Arc::new(Column::new(name, at)),
        })
    }

    /// Which part of the grouping it does, if not all.
    pub fn stage(&self) -> Option<&'static str> {
        self.stage.name()
    }

    /// Bits of a packed key, where bounds or shared dictionaries of its columns make it shorter.
    pub fn key_bits(&self) -> Option<u32> {
        self.aggregation.spec.keys.narrowed_bits()
    }

    /// The aggregates as they run.
    pub fn aggregates(&self) -> &[Arc<AggregateFunctionExpr>] {
        &self.aggregates
    }

    /// The FILTER of each aggregate.
    pub fn filters(&self) -> &[Option<Arc<dyn PhysicalExpr>>] {
        self.described.filter_expr()
    }

    /// Which aggregates have DISTINCT arguments that are grouped with the keys.
    pub fn with_distinct_groupings(&self) -> Vec<bool> {
        let aggregates = 0..self.aggregates.len();
        aggregates
            .map(|at| self.aggregation.has_distinct_grouping(at))
            .collect()
    }

    /// True if rows are grouped by all keys first, for several grouping sets.
    pub fn has_base_grouping(&self) -> bool {
        self.aggregation.base_grouping.is_some()
    }

    /// Which aggregates have native states; the others keep theirs in DataFusion's accumulators.
    pub fn native(&self) -> &[bool] {
        self.aggregation.native()
    }

    /// The names of the columns that it yields, if not all.
    pub fn projection(&self) -> Option<Vec<&str>> {
        self.columns.emitted.as_ref()?;
        let fields = self.columns.schema.fields().iter();
        Some(fields.map(|field| field.name().as_str()).collect())
    }

    /// Workers of an execution.
    pub fn workers(&self) -> usize {
        self.tuning.workers
    }

    /// The key table that rows meet first.
    pub fn table(&self) -> &'static str {
        self.aggregation.spec.keys.kind()
    }

    /// The plan in which each group-by is what `change` makes of it, if anything; it gets the node in both its forms.
    pub(crate) fn exchanged_in(
        plan: Arc<dyn ExecutionPlan>,
        mut change: impl FnMut(
            &GroupByExec,
            &Arc<dyn ExecutionPlan>,
        ) -> Result<Option<Arc<dyn ExecutionPlan>>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let exchanged = |node: Arc<dyn ExecutionPlan>| {
            let group_by = node.downcast_ref::<GroupByExec>();
            let changed = group_by.map(|group_by| change(group_by, &node));
            Ok(match changed.transpose()?.flatten() {
                Some(changed) => Transformed::yes(changed),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(exchanged).data()
    }

    /// True if keys of strings may come as codes.
    pub(crate) fn takes_codes(&self) -> bool {
        !matches!(self.stage, Stage::Final(_)) && self.aggregation.spec.keys.takes_codes()
    }

    /// True if a filter below may select the rows that it leaves, and hand batches on in another order: aggregates, if there are
    /// any, count and add up.
    pub(crate) fn takes_selections(&self) -> bool {
        let mut aggregates = self.aggregates.iter().zip(self.native());
        let add_up = aggregates.all(|(aggregate, is_native)| {
            *is_native && (is_count(aggregate.fun()) || adds_up(aggregate.fun()))
        });
        let has_filters = self.filters().iter().any(Option::is_some);
        let reads_rows = !matches!(self.stage, Stage::Final(_));
        add_up && !has_filters && reads_rows && self.aggregation.takes_selections()
    }

    /// What it reads.
    pub(crate) fn reads(&self) -> Vec<ReadExpr> {
        if let Stage::Final(merged) = &self.stage {
            return merged.reads();
        }
        let keys = self.group_by().expr().iter().map(|(key, _)| ReadExpr {
            expr: Arc::clone(key),
            takes: match self.takes_codes() {
                true => ColumnEncoding::Codes,
                false => ColumnEncoding::Values,
            },
        });
        let aggregates = self.described.aggr_expr().iter().enumerate();
        let arguments = aggregates.flat_map(|(at, aggregate)| {
            let all = aggregate.all_expressions();
            let read = all.args.into_iter().chain(all.order_by_exprs);
            let column = |column| Arc::new(column) as Arc<dyn PhysicalExpr>;
            let read: Vec<_> = match aggregate.is_reversed() {
                // Its expressions stay (plan_expressions.rs).
                true => read
                    .flat_map(|expr| collect_columns(&expr))
                    .map(column)
                    .collect(),
                false => read.collect(),
            };
            let read = read.into_iter().enumerate();
            read.map(move |(nth, expr)| ReadExpr {
                expr,
                takes: self.takes(at, aggregate, nth),
            })
        });
        let filters = self.filters().iter().flatten();
        keys.chain(arguments)
            .chain(filters.map(ReadExpr::plain))
            .collect()
    }

    /// The form in which an aggregate takes the `nth` of what it reads.
    fn takes(&self, at: usize, aggregate: &AggregateFunctionExpr, nth: usize) -> ColumnEncoding {
        let has_rows = self.native()[at] && !self.aggregation.has_distinct_grouping(at);
        let keeps = is_extreme(aggregate.fun()) || nth == 0 && hands_out(aggregate);
        if self.aggregation.takes_codes(at) || has_rows && keeps {
            ColumnEncoding::Codes
        } else if has_rows && is_count(aggregate.fun()) {
            ColumnEncoding::Any
        } else if has_rows && adds_up(aggregate.fun()) {
            ColumnEncoding::Decimal64
        } else {
            ColumnEncoding::Values
        }
    }

    /// The node with what `keys` makes of its keys and `others` of arguments, their orders and FILTERs; `None` if these stay.
    pub(crate) fn with_expressions(
        &self,
        keys: Exchange<'_>,
        others: Exchange<'_>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if matches!(self.stage, Stage::Final(_)) {
            return Ok(None);
        }
        let Some(exchanged) = in_aggregate(&self.described, keys, others)? else {
            return Ok(None);
        };
        let (columns, stage) = (self.columns.clone(), self.stage.clone());
        let node = GroupByExec::over(description(&exchanged)?, columns, self.tuning, stage)?;
        Ok(Some(Arc::new(node)))
    }

    /// The columns of strings that arrive as codes.
    pub(crate) fn codes(&self) -> Vec<String> {
        let is_text = |of: &DataType| matches!(of, DataType::Dictionary(_, of) if is_bytes(of));
        self.read_as(ReadExpr::codes, is_text)
    }

    /// The columns of decimals that arrive in 64 bits.
    pub(crate) fn decimal64(&self) -> Vec<String> {
        self.read_as(ReadExpr::decimal64, |of| {
            matches!(of, DataType::Decimal64(..))
        })
    }

    /// Those of its inputs that readers take in another form, and that have its type.
    fn read_as(
        &self,
        taken: impl Fn(&ReadExpr) -> Vec<usize>,
        has_form: impl Fn(&DataType) -> bool,
    ) -> Vec<String> {
        let schema = self.input().schema();
        let read: BTreeSet<usize> = self.reads().iter().flat_map(taken).collect();
        let fields = read.into_iter().map(|column| schema.field(column));
        let fields = fields.filter(|field| has_form(field.data_type()));
        fields.map(|field| field.name().clone()).collect()
    }

    /// How many groups are wanted at least, where any are as good as others.
    pub fn limit(&self) -> Option<usize> {
        let limited = self
            .described
            .limit_options()
            .filter(|limit| limit.descending().is_none());
        limited
            .filter(|_| self.conditions().is_empty())
            .map(|limit| limit.limit())
    }

    /// The node of whose groups any `groups` are wanted; `None` where it yields all the same.
    pub(crate) fn limited(&self, groups: usize) -> Result<Option<GroupByExec>> {
        let keys = self.described.group_expr();
        let is_plain = !keys.is_true_no_grouping() && !keys.has_grouping_set();
        let grouped_before = !self.aggregation.distinct_groupings.is_empty();
        if !is_plain || grouped_before || groups > GROUPS_CHOSEN_MAX || self.limit().is_some() {
            return Ok(None);
        }
        let described = self.described.as_ref().clone();
        let described = described.with_limit_options(Some(LimitOptions::new(groups)));
        let (columns, stage) = (self.columns.clone(), self.stage.clone());
        GroupByExec::over(Arc::new(described), columns, self.tuning, stage).map(Some)
    }

    /// How many executions share the partitions.
    fn tasks(&self) -> usize {
        let partitions = self.properties.output_partitioning().partition_count();
        match self.stage {
            Stage::Partial { tasks } => tasks.clamp(1, partitions.max(1)),
            Stage::Whole | Stage::Single | Stage::Final(_) => 1,
        }
    }

    /// A task's share of so many partitions.
    fn share(&self, task: usize, partitions: usize) -> Vec<usize> {
        (task..partitions).step_by(self.tasks()).collect()
    }

    /// A task's streams.
    fn streams(&self, task: usize) -> usize {
        let partitions = self.properties.output_partitioning().partition_count();
        self.share(task, partitions).len()
    }

    fn new_execution(&self, task: usize, context: &Arc<TaskContext>) -> Execution {
        let input = self.input();
        let partitions = self.share(task, input.output_partitioning().partition_count());
        let workers = readers(partitions.len(), self.tuning.workers, self.input_order);
        let streams = self.streams(task);
        let options = SessionOptions::of(context.session_config().options());
        let faults = options.group_by_fault.map(Faults::new);
        let shares = workers > 1 && self.input_order != InputOrder::Preserved;
        let spill = spill(context, shares, faults.clone());
        let base_grouping = self
            .aggregation
            .base_grouping
            .iter()
            .map(|base_grouping| &base_grouping.spec);
        let distinct = self
            .aggregation
            .distinct_groupings
            .iter()
            .map(|one| &one.spec);
        let groups = std::iter::once(&self.aggregation.spec);
        let trace = context.session_config().get_extension::<Trace>();
        let (limit, is_bare) = (self.limit(), self.aggregates.is_empty());
        let chosen = limit.filter(|_| !is_bare);
        let first_groups = chosen.map(|groups| Arc::new(FirstGroups::new(groups)));
        let shared = SharedByWorkers {
            operator: trace.as_ref().map_or(0, |trace| trace.operator()),
            trace,
            base_grouping: BuildBarrier::new(workers, base_grouping, spill.as_ref()),
            distinct_groupings: BuildBarrier::new(workers, distinct, spill.as_ref()),
            groups: BuildBarrier::new(workers, groups, spill.as_ref())
                .choosing(first_groups.as_ref()),
            aggregation: Arc::clone(&self.aggregation),
            sources: Sources::new(
                Arc::clone(input),
                partitions,
                Arc::clone(context),
                workers,
                self.input_order,
            ),
            output_queue: OutputQueue::new(workers, streams),
            budget: PoolBudget::new(context, faults),
            spill,
            metrics: self.metrics.clone(),
            rows_max: context.session_config().batch_size(),
            groups_enough: limit.filter(|_| is_bare),
            enough: AtomicBool::new(false),
            first_groups,
        };
        Execution::new(shared, workers)
    }

    /// The execution that `partition` belongs to, and which of its streams that is: each execution serves every one once.
    fn execution_of(
        &self,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> (Arc<Execution>, usize) {
        let tasks = self.tasks();
        let (task, stream) = (partition % tasks, partition / tasks);
        let mut generations = self.generations.lock();
        generations.resize_with(tasks, || None);
        let generation = &mut generations[task];
        let current = generation
            .take()
            .filter(|current| !current.executed[stream]);
        let mut current = current.unwrap_or_else(|| Generation {
            execution: Arc::new(self.new_execution(task, context)),
            executed: vec![false; self.streams(task)],
        });
        current.executed[stream] = true;
        let execution = Arc::clone(&current.execution);
        if current.executed.contains(&false) {
            *generation = Some(current);
        }
        (execution, stream)
    }
}

impl EmbeddedProjection for GroupByExec {
    fn with_projection(&self, projection: Option<Vec<usize>>) -> Result<GroupByExec> {
        if self.stage().is_some() {
            return internal_err!("{NAME}: a stage yields all its columns");
        }
        let columns = match projection {
            Some(places) => self.columns.narrowed(places)?,
            None => self.columns.clone(),
        };
        self.with_columns(columns)
    }
}

/// DataFusion's nodes that one node of ours replaces.
pub(crate) struct Replaced<'a> {
    /// The node that reads rows.
    pub first: &'a AggregateExec,
    /// The node that yields results; the same one where there is no partial stage.
    pub last: &'a AggregateExec,
}

/// DataFusion's description of an aggregation, after DataFusion has exchanged something in it.
fn description(exchanged: &Arc<dyn ExecutionPlan>) -> Result<Arc<AggregateExec>> {
    match exchanged.downcast_ref::<AggregateExec>() {
        Some(described) => Ok(Arc::new(described.clone())),
        None => internal_err!("{NAME}: DataFusion's node became another one"),
    }
}

impl DisplayAs for GroupByExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        explain::group_by(self, format, f)
    }
}

impl ExecutionPlan for GroupByExec {
    node_methods!(with_new_children, properties, metrics);

    fn name(&self) -> &str {
        NAME
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.schema)
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.input()]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match &self.stage {
            Stage::Whole | Stage::Partial { .. } => Distribution::UnspecifiedDistribution,
            Stage::Single => Distribution::SinglePartition,
            Stage::Final(merged) => merged.distribution(self.keys()),
        }])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        // Workers share streams; an exchange would only copy rows.
        vec![false]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        match &self.stage {
            Stage::Whole | Stage::Single | Stage::Partial { .. } => {
                order::required(&self.described)
            }
            Stage::Final(_) => vec![None],
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = match &self.stage {
            Stage::Whole | Stage::Single | Stage::Partial { .. } => {
                self.described.apply_expressions(f)?
            }
            Stage::Final(_) => TreeNodeRecursion::Continue,
        };
        // Who fills a filter while the query runs asks whether anybody reads it.
        for condition in self.conditions() {
            recursion = match recursion {
                TreeNodeRecursion::Stop => return Ok(recursion),
                _ => f(condition)?,
            };
        }
        Ok(recursion)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Stage::Final(merged) = &self.stage {
            let described = Arc::clone(&self.described);
            let stage = Stage::Final(merged.over(children)?);
            let columns = self.columns.clone();
            let node = GroupByExec::over(described, columns, self.tuning, stage)?;
            return Ok(Arc::new(node));
        }
        let keeps = options.children_properties == ChildrenPropertiesMode::Keep;
        let described = Arc::clone(&self.described).replace_children(children, options)?;
        let described = description(&described)?;
        if !keeps {
            return Ok(Arc::new(GroupByExec::over(
                described,
                self.columns.clone(),
                self.tuning,
                self.stage.clone(),
            )?));
        }
        Ok(Arc::new(GroupByExec {
            described,
            aggregates: self.aggregates.clone(),
            input_order: self.input_order,
            columns: self.columns.clone(),
            tuning: self.tuning,
            stage: self.stage.clone(),
            aggregation: Arc::clone(&self.aggregation),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
            generations: Mutex::new(Vec::new()),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.output_partitioning().partition_count();
        if partition >= partitions {
            return internal_err!(
                "{NAME} has {partitions} partitions, number {partition} was asked for"
            );
        }
        let (execution, stream) = self.execution_of(partition, &context);
        Ok(Box::pin(cooperative(Output::new(
            execution,
            self.schema(),
            stream,
        ))))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // What a sort above wanted of the execution before is nothing to this one.
        let mut columns = self.columns.clone();
        columns
            .conditions
            .retain(|condition| !is_dynamic(condition));
        Ok(Arc::new(self.with_columns(columns)?))
    }

    fn child_stats_requests(&self, _partition: Option<usize>) -> Vec<ChildStats> {
        // Our partitions are not the input's.
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let is_part = args.partition().is_some() && !self.group_by().is_true_no_grouping();
        if is_part {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        if self.stage().is_some() {
            return self.stage_statistics(input, args).map(Arc::new);
        }
        let mut all = self.described.statistics_from_inputs(input, args)?;
        if !self.conditions().is_empty() {
            all = Arc::new(Arc::unwrap_or_clone(all).to_inexact());
        }
        let Some(emitted) = &self.columns.emitted else {
            return Ok(all);
        };
        Ok(Arc::new(Arc::unwrap_or_clone(all).project(Some(emitted))))
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        match self.stage() {
            None => try_embed_projection(projection, self),
            Some(_) => Ok(None),
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        if self.stage().is_some() {
            let children = self.children();
            return Ok(FilterDescription::all_unsupported(
                &parent_filters,
                &children,
            ));
        }
        let filters = parent_filters
            .into_iter()
            .map(|filter| self.columns.widen(filter))
            .collect::<Result<Vec<_>>>()?;
        let input = self.described.input();
        let child = match self.described.group_expr() {
            keys if has_group_without_rows(keys) => {
                ChildFilterDescription::all_unsupported(&filters)
            }
            keys => ChildFilterDescription::from_child_with_allowed_indices(
                &filters,
                input_columns(keys, &input.schema()),
                input,
            )?,
        };
        Ok(FilterDescription::new().with_child(child))
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // What no child makes sure of holds of the groups that leave: a sort's LIMIT may be by keys or by aggregates.
        let filters = child_pushdown_result.parent_filters.iter();
        let left = filters.filter(|filter| matches!(filter.all(), PushedDown::No));
        let left: Vec<_> = left.map(|filter| Arc::clone(&filter.filter)).collect();
        if left.is_empty() || self.stage().is_some() {
            return Ok(FilterPushdownPropagation::if_any(child_pushdown_result));
        }
        let node = self.with_columns(self.columns.where_all(left)?)?;
        let filters =
            FilterPushdownPropagation::<Arc<dyn ExecutionPlan>>::if_any(child_pushdown_result);
        Ok(filters.with_updated_node(Arc::new(node)))
    }
}

/// Whether there is a group without a row of the input: then a filter of groups is none of rows.
fn has_group_without_rows(keys: &PhysicalGroupBy) -> bool {
    let is_empty = |nulls: &Vec<bool>| nulls.iter().all(|is_null| *is_null);
    keys.is_true_no_grouping() || keys.groups().iter().any(is_empty)
}

/// The keys that are columns of the input under their name, and keys of each set. DataFusion finds the columns of a filter by
/// name, and a key that is computed may have the name of a column.
fn input_columns(keys: &PhysicalGroupBy, input: &Schema) -> HashSet<usize> {
    let is_column = |(key, name): &(Arc<dyn PhysicalExpr>, String)| {
        let column = key.downcast_ref::<Column>();
        column.is_some_and(|column| {
            column.name() == name && input.index_of(name).ok() == Some(column.index())
        })
    };
    let in_each_set = |key: usize| {
        keys.groups()
            .iter()
            .all(|nulls| nulls.get(key) != Some(&true))
    };
    let keys = keys.expr().iter().enumerate();
    let columns = keys.filter(|(number, key)| is_column(key) && in_each_set(*number));
    columns.map(|(number, _)| number).collect()
}
