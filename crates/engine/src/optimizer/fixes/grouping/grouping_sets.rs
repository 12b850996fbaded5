//! Forgets what DataFusion believes to know about the output of GROUPING SETS.
//!
//! In: a physical plan. Out: the same plan with a [`ForgetEquivalencesExec`] on each aggregation over grouping sets
//! that is left to DataFusion.
//! Invariant: columns that are equal, constant, unique or ordered below GROUPING SETS need not be so above: a set
//! without the column makes it NULL. DataFusion carries all four through. Then an ORDER BY over CUBE after an
//! equi-join loses the second of the two join keys, one after `WHERE a = 1` loses `a`.
//! Not here: our own operator, whose properties claim nothing for grouping sets.

use std::fmt::{Formatter, Result as FmtResult};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Aggregate;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateOutputMode};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};

use crate::expr::plan_nodes::node_methods;
use crate::optimizer::fixes::joins::outer_constants::without_constants;
use crate::wire::{PortableNode, WireReader, WireValue};

/// The rule, which runs before DataFusion's that drops sort keys.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|plan| {
        Ok(match finishes_grouping_sets(&plan) {
            true => Transformed::yes(Arc::new(ForgetEquivalencesExec::new(plan, Claims::All)) as _),
            false => Transformed::no(plan),
        })
    })?;
    Ok(plan.data)
}

fn finishes_grouping_sets(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // The final step of two has forgotten the sets; the key that tells them apart is there in any step.
    plan.downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| {
            aggregate.mode().output_mode() == AggregateOutputMode::Final
                && aggregate
                    .schema()
                    .index_of(Aggregate::INTERNAL_GROUPING_ID)
                    .is_ok()
        })
}

/// What is forgotten about an input.
#[derive(Debug, Clone, Copy)]
pub(in crate::optimizer::fixes) enum Claims {
    /// Everything.
    All,
    /// Which columns are constant, or equal to another.
    Constants,
}

/// Hands its input through and forgets claims about it.
#[derive(Debug, Clone)]
pub(in crate::optimizer) struct ForgetEquivalencesExec {
    input: Arc<dyn ExecutionPlan>,
    forgotten: Claims,
    properties: Arc<PlanProperties>,
}

impl ForgetEquivalencesExec {
    pub(in crate::optimizer::fixes) fn new(
        input: Arc<dyn ExecutionPlan>,
        forgotten: Claims,
    ) -> Self {
        let below = input.properties();
        let (equivalences, partitioning) = match forgotten {
            Claims::All => (
                EquivalenceProperties::new(input.schema()),
                Partitioning::UnknownPartitioning(below.partitioning.partition_count()),
            ),
            Claims::Constants => (without_constants(&input), below.partitioning.clone()),
        };
        let properties = PlanProperties::new(
            equivalences,
            partitioning,
            below.emission_type,
            below.boundedness,
        );
        Self {
            input,
            forgotten,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for ForgetEquivalencesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "{}", self.name())
    }
}

impl ExecutionPlan for ForgetEquivalencesExec {
    node_methods!(with_new_children, no_expressions, properties, input);

    fn name(&self) -> &str {
        "ForgetEquivalencesExec"
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![matches!(self.forgotten, Claims::Constants)]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, self.forgotten))),
            _ => internal_err!("{} has one input", self.name()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }
}

impl PortableNode for ForgetEquivalencesExec {
    const KIND: &'static str = "forget_equivalences";

    fn apart(&self) -> Result<Vec<WireValue>> {
        Ok(vec![matches!(self.forgotten, Claims::All).into()])
    }

    fn whole(
        children: Vec<Arc<dyn ExecutionPlan>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let forgotten = match values.flag()? {
            true => Claims::All,
            false => Claims::Constants,
        };
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(input, forgotten))),
            Err(_) => internal_err!("ForgetEquivalencesExec has one input"),
        }
    }
}
