//! Stages: a grouping that several tasks share, each of which sees some of the rows, perhaps on another machine.
//!
//! ```text
//! rows -> partial: keys and flat states -> exchange by the keys -> final: merge, HAVING, results
//! ```
//!
//! In: a whole grouping. Out: its two stages with the exchange between them; `None` of one that has to see all rows in one place.
//! Invariant: a stage has as many partitions out as in, so that a scheduler may cut it at any of them. Keys travel as plain
//! values, -0.0 and NaN being one value each, as the exchange hashes bytes; states travel as `StateFormat` says.
//! Not here: when a plan gets stages (optimizer/stages.rs), what the states are (`grouse_groupby`).

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::{Result, Statistics, internal_err, not_impl_err};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, StatisticsArgs};

use super::columns::NodeColumns;
use super::{GroupByExec, Tuning, description};
use crate::exec::NAME;
use crate::exec::column_encodings::ReadExpr;
use crate::exec::order::{InputOrder, is_recursion, shows_order};

/// The share of groups that HAVING is taken to keep: what DataFusion takes a filter to keep.
const KEPT_BY_CONDITIONS: f64 = 0.2;

/// Groups of about so many bytes are few, and a value that is no number has about so many.
const FEW_BYTES: usize = 64 << 20;
const WIDTH: usize = 32;

/// Which part of a grouping a node does.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a plan has few nodes, and none moves per row"
)]
pub(in crate::exec) enum Stage {
    /// All of it.
    Whole,
    /// All of it, of rows that have been brought into one partition.
    Single,
    /// Rows become groups with partial states. The partitions are dealt out to so many tasks, none of which knows groups of another.
    Partial { tasks: usize },
    /// Groups with partial states, all of one key in one partition, become results.
    Final(Merged),
}

/// What a final stage merges.
#[derive(Debug, Clone)]
pub(in crate::exec) struct Merged {
    /// Keys, states of each aggregate, pairs of each DISTINCT.
    pub input: Arc<dyn ExecutionPlan>,
    /// The aggregates as the partial stage has them.
    pub aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// What holds of the whole grouping's result.
    pub equivalences: EquivalenceProperties,
}

impl Stage {
    /// The name that EXPLAIN has for it.
    pub(in crate::exec) fn name(&self) -> Option<&'static str> {
        match self {
            Stage::Whole => None,
            Stage::Single => Some("single"),
            Stage::Partial { .. } => Some("partial"),
            Stage::Final(_) => Some("final"),
        }
    }
}

impl Merged {
    /// How rows have to be spread over its partitions.
    pub(super) fn distribution(&self, keys: usize) -> Distribution {
        match keys {
            0 => Distribution::SinglePartition,
            keys => Distribution::KeyPartitioned(key_columns(&self.input.schema(), keys)),
        }
    }

    /// Its columns, which it takes as they are.
    pub(super) fn reads(&self) -> Vec<ReadExpr> {
        let schema = self.input.schema();
        let columns = key_columns(&schema, schema.fields().len());
        columns.iter().map(ReadExpr::plain).collect()
    }

    /// The same of another input, which has to have the same columns.
    pub(super) fn over(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Merged> {
        let [input] = <[_; 1]>::try_from(inputs)
            .or_else(|inputs| internal_err!("{NAME} reads one input, not {}", inputs.len()))?;
        Ok(Merged {
            input,
            ..self.clone()
        })
    }
}

fn key_columns(schema: &Schema, keys: usize) -> Vec<Arc<dyn PhysicalExpr>> {
    let fields = schema.fields()[..keys].iter().enumerate();
    let column = |(at, field): (usize, &FieldRef)| Arc::new(Column::new(field.name(), at)) as _;
    fields.map(column).collect()
}

impl GroupByExec {
    /// The stages of a whole grouping, of which the partial one runs as `tasks` tasks, or as one where its result shows the order
    /// of rows. `None` if it has to stay whole.
    pub(crate) fn in_stages(&self, tasks: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let input = self.described.input();
        let is_whole = matches!(self.stage, Stage::Whole);
        let partitions = input.output_partitioning().partition_count();
        if !is_whole || is_recursion(input) || partitions == 0 {
            return Ok(None);
        }
        let mut aggregates = self.aggregates.iter();
        let is_ordered = self.input_order == InputOrder::Preserved
            || aggregates.any(|aggregate| shows_order(aggregate));
        let tasks = if is_ordered { 1 } else { tasks };
        let exchanged = self.exchanged(self.partial(tasks)?)?;
        Ok(Some(Arc::new(self.merging(exchanged)?)))
    }

    /// The stages of a whole grouping for several machines, each of which runs some partitions of a stage as one task. One that
    /// relies on the order of rows is a stage by itself; `None` if it has stages already.
    pub(crate) fn across_machines(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let input = self.described.input();
        if !matches!(self.stage, Stage::Whole) {
            return Ok(None);
        }
        if is_recursion(input) {
            return not_impl_err!("{NAME} over the rows of a recursion");
        }
        if self.input_order != InputOrder::Preserved {
            return self.in_stages(1);
        }
        let gathered = self.with_stage(Stage::Single)?;
        if input.output_partitioning().partition_count() == 1 {
            return Ok(Some(Arc::new(gathered)));
        }
        let one: Arc<dyn ExecutionPlan> = match input.output_ordering() {
            Some(order) => Arc::new(SortPreservingMergeExec::new(
                order.clone(),
                Arc::clone(input),
            )),
            None => Arc::new(CoalescePartitionsExec::new(Arc::clone(input))),
        };
        let gathered: Arc<dyn ExecutionPlan> = Arc::new(gathered);
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        gathered.replace_children(vec![one], anew).map(Some)
    }

    fn with_stage(&self, stage: Stage) -> Result<GroupByExec> {
        let (described, columns) = (Arc::clone(&self.described), self.columns.clone());
        GroupByExec::over(described, columns, self.tuning, stage)
    }

    /// The node as it runs on this machine, whose workers share the partitions of its input.
    pub(crate) fn tuned(&self, tuning: impl Fn(usize) -> Tuning) -> Result<GroupByExec> {
        let partitions = self.input().output_partitioning().partition_count();
        let (described, columns) = (Arc::clone(&self.described), self.columns.clone());
        GroupByExec::over(described, columns, tuning(partitions), self.stage.clone())
    }

    /// Rows into groups with partial states, in so many tasks.
    fn partial(&self, tasks: usize) -> Result<GroupByExec> {
        let input = Arc::clone(self.described.input());
        let described = match input.output_partitioning().partition_count() < tasks {
            true => {
                let dealt = RepartitionExec::try_new(input, Partitioning::RoundRobinBatch(tasks))?;
                let described = Arc::clone(&self.described);
                let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                description(&described.replace_children(vec![Arc::new(dealt)], anew)?)?
            }
            false => Arc::clone(&self.described),
        };
        // Any groups will do where they have no states: one that is chosen here may be incomplete.
        let is_enough = self.aggregates.is_empty() && self.limit().is_some();
        let limit = described.limit_options().filter(|_| is_enough);
        let described = described.as_ref().clone().with_limit_options(limit);
        let columns = NodeColumns::all(self.aggregation.partial_schema()?);
        GroupByExec::over(
            Arc::new(described),
            columns,
            self.tuning,
            Stage::Partial { tasks },
        )
    }

    /// Groups of one key in one partition, of as many as the whole grouping has.
    fn exchanged(&self, partial: GroupByExec) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = self.properties.output_partitioning().partition_count();
        let partial: Arc<dyn ExecutionPlan> = Arc::new(partial);
        let keys = key_columns(&partial.schema(), self.keys());
        if keys.is_empty() {
            return Ok(Arc::new(CoalescePartitionsExec::new(partial)));
        }
        let by_keys = Partitioning::Hash(keys, partitions);
        Ok(Arc::new(RepartitionExec::try_new(partial, by_keys)?))
    }

    /// Groups with partial states into what the whole grouping yields.
    fn merging(&self, input: Arc<dyn ExecutionPlan>) -> Result<GroupByExec> {
        // What is described reads rows, which are not here.
        let rows = Arc::new(EmptyExec::new(self.described.input().schema()));
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let described = Arc::clone(&self.described).replace_children(vec![rows], keep)?;
        let merged = Merged {
            input,
            aggregates: self.aggregates.clone(),
            equivalences: self.properties.equivalence_properties().clone(),
        };
        GroupByExec::over(
            description(&described)?,
            self.columns.clone(),
            self.tuning,
            Stage::Final(merged),
        )
    }

    /// What is known of a stage's groups: about how many there may be. A scheduler joins few of them with each part of the other
    /// input where that lies; of an unknown number it hands on both inputs. It refuses some joins of what is said to be large, so
    /// that what may be many groups, and may be few, stays unknown.
    pub(super) fn stage_statistics(
        &self,
        input: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Statistics> {
        let mut all = Statistics::new_unknown(&self.schema());
        let (Stage::Final(_), [merged]) = (&self.stage, input) else {
            let groups = self.described.statistics_from_inputs(input, args)?;
            all.num_rows = groups.num_rows.to_inexact();
            return Ok(all);
        };
        let kept = match self.conditions().is_empty() {
            true => 1.0,
            false => KEPT_BY_CONDITIONS,
        };
        // Those of all tasks, which may be the same ones.
        let groups = merged.num_rows.with_estimated_selectivity(kept);
        let schema = self.schema();
        let widths = schema.fields().iter().map(|field| field.data_type());
        let widths = widths.map(|of| of.primitive_width().unwrap_or(WIDTH));
        let bytes = groups
            .get_value()
            .map(|groups| groups.saturating_mul(widths.sum()));
        if bytes.is_some_and(|bytes| bytes <= FEW_BYTES) {
            all.num_rows = groups.to_inexact();
        }
        Ok(all)
    }

    /// Key columns, the one that tells grouping sets apart among them.
    pub(super) fn keys(&self) -> usize {
        self.described.group_expr().num_group_exprs()
    }
}
