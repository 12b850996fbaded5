//! What of a plan is distributed.
//!
//! In: a plan made for several machines (`grouse::distribution::planning_state`), the cluster's size. Out: the plan in stages
//! that travel, or why this machine runs it; an error names what cannot go anywhere.
//! Invariant: nothing falls back in silence. What reads files is distributed or an error; what reads none runs here, unless it
//! counts up many numbers.
//! Not here: how a grouping is cut in stages (the engine), messages (codec/).

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, not_impl_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use grouse::distribution;

use crate::codec::{codec, meet};
use crate::gathered_joins::gathered;
use crate::scan::{scan_of, travelling};

/// Why a plan without a scan of files runs here.
pub(crate) const NO_FILES: &str = "it reads no files";

/// Tables in memory travel up to so many bytes: each machine gets all of them in a message.
const MEMORY_BYTES_MAX: usize = 8 << 20;

/// So many numbers that are counted up are a matter of milliseconds, less than a cluster's stages take.
const NUMBERS_HERE_MAX: u64 = 10_000_000;

/// Nodes that write, explain or change this session: they run where the session is.
const LOCAL: [(&str, &str); 4] = [
    ("DataSinkExec", "it writes files or tables of this machine"),
    ("ExplainExec", "it explains a plan"),
    ("AnalyzeExec", "it explains a plan"),
    ("WholeFilesExec", "it writes files of this machine"),
];

/// How large a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterShape {
    /// Cores of all executors.
    pub vcores: usize,
    /// Partitions of an exchange.
    pub partitions: usize,
}

impl ClusterShape {
    /// Groups of files of a scan whose rows go to a node. For an exchange each core has some, so that none waits long for another.
    /// For a grouping each has one: what comes to an executor as a second task groups anew, and hands on the same keys once more.
    fn scan_partitions(&self, node: &dyn ExecutionPlan) -> usize {
        let each = match distribution::stage_of(node) {
            Some(_) => 1,
            None => 2,
        };
        self.partitions.max(each * self.vcores)
    }
}

/// Where a plan runs.
#[derive(Debug)]
pub enum Distribution {
    /// On the cluster, as this plan.
    Cluster(Arc<dyn ExecutionPlan>),
    /// On this machine.
    Here {
        /// Why, in a user's words.
        reason: String,
    },
}

/// The plan for a cluster of this shape.
pub fn distribute(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    shape: ClusterShape,
) -> Result<Distribution> {
    let mut found = Found::default();
    found.look(&plan);
    if let Some(reason) = found.local {
        let reason = reason.to_string();
        return Ok(Distribution::Here { reason });
    }
    let is_large = found.numbers > NUMBERS_HERE_MAX && found.memory_bytes <= MEMORY_BYTES_MAX;
    if !found.files && !is_large {
        let reason = NO_FILES.to_string();
        return Ok(Distribution::Here { reason });
    }
    if found.memory_bytes > MEMORY_BYTES_MAX {
        return not_impl_err!(
            "the query cannot be distributed: its tables in memory have {} MB, and {} may travel; write them to files, or SET cluster = '' to run it here",
            found.memory_bytes >> 20,
            MEMORY_BYTES_MAX >> 20
        );
    }
    staged(plan, config, shape).map(Distribution::Cluster)
}

/// The plan in stages that travel, whatever it reads.
pub fn staged(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    shape: ClusterShape,
) -> Result<Arc<dyn ExecutionPlan>> {
    meet(config);
    let staged = distribution::in_stages(plan).map_err(refused)?;
    let spread = spread(gathered(staged)?, config, shape)?;
    let plan = travelling(spread).map_err(refused)?;
    plan.apply(keeps_its_sets).map_err(refused)?;
    encoded(&plan, codec().as_ref())?;
    Ok(plan)
}

/// An error at a grouping of DataFusion's whose message loses its grouping sets: those that have no keys.
fn keeps_its_sets(node: &Arc<dyn ExecutionPlan>) -> Result<TreeNodeRecursion> {
    let keys = node
        .downcast_ref::<AggregateExec>()
        .map(AggregateExec::group_expr);
    match keys {
        Some(keys) if keys.has_grouping_set() && keys.expr().is_empty() => {
            not_impl_err!("AggregateExec over grouping sets without keys")
        }
        _ => Ok(TreeNodeRecursion::Continue),
    }
}

/// The message of a plan.
pub fn encoded(
    plan: &Arc<dyn ExecutionPlan>,
    codec: &dyn PhysicalExtensionCodec,
) -> Result<PhysicalPlanNode> {
    PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), codec).map_err(refused)
}

/// The error in a user's words. DataFusion puts what a codec says into brackets, once for each node around.
fn refused(error: DataFusionError) -> DataFusionError {
    let text = error.strip_backtrace();
    let inner = text.rsplit("codec failed with [").next().unwrap_or(&text);
    let inner = inner.split("]. ").next().unwrap_or(inner);
    let inner = inner.trim_start_matches("This feature is not implemented: ");
    DataFusionError::NotImplemented(format!(
        "the query cannot be distributed because of {inner}; SET cluster = '' runs it here"
    ))
}

/// What a plan has.
#[derive(Debug, Default)]
struct Found {
    files: bool,
    /// Those that are counted up.
    numbers: u64,
    memory_bytes: usize,
    local: Option<&'static str>,
}

impl Found {
    fn look(&mut self, node: &Arc<dyn ExecutionPlan>) {
        let mut local = LOCAL.iter();
        if let Some((_, reason)) = local.find(|(name, _)| *name == node.name()) {
            self.local = Some(reason);
        }
        self.files |= scan_of(node.as_ref()).is_some();
        for share in distribution::numbers_of(node.as_ref()).unwrap_or_default() {
            self.numbers = self.numbers.saturating_add(share.end - share.start);
        }
        if let Some(scan) = node.downcast_ref::<DataSourceExec>()
            && let Some(memory) = scan.data_source().downcast_ref::<MemorySourceConfig>()
        {
            let batches = memory.partitions().iter().flatten();
            let bytes = batches.map(RecordBatch::get_array_memory_size);
            self.memory_bytes += bytes.sum::<usize>();
        }
        for child in node.children() {
            self.look(child);
        }
    }
}

/// The plan whose scans directly below a stage's end are cut into enough groups of files.
fn spread(
    node: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    shape: ClusterShape,
) -> Result<Arc<dyn ExecutionPlan>> {
    let ends = ends_stage(node.as_ref());
    let partitions = shape.scan_partitions(node.as_ref());
    let children = node.children().into_iter().map(|child| {
        let child = spread(Arc::clone(child), config, shape)?;
        match ends {
            true => cut(child, config, partitions),
            false => Ok(child),
        }
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(node, children)
}

/// Whether a node takes its input in any number of partitions and in any order.
fn ends_stage(node: &dyn ExecutionPlan) -> bool {
    if let Some(exchange) = node.downcast_ref::<RepartitionExec>() {
        return matches!(exchange.partitioning(), Partitioning::Hash(..));
    }
    node.is::<CoalescePartitionsExec>() || distribution::stage_of(node) == Some(Some("partial"))
}

/// A scan, or what computes row by row over one, with more groups of files.
fn cut(
    node: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    if scan_of(node.as_ref()).is_some() {
        let before = node.output_partitioning().partition_count();
        return match before < partitions && node.output_ordering().is_none() {
            true => Ok(node.repartitioned(partitions, config)?.unwrap_or(node)),
            false => Ok(node),
        };
    }
    let is_by_row = node.is::<ProjectionExec>()
        || node.is::<UnionExec>()
        || node.name() == "CooperativeExec"
        || node.name() == "ForgetEquivalencesExec"
        || node
            .downcast_ref::<FilterExec>()
            .is_some_and(|filter| filter.fetch().is_none());
    if !is_by_row {
        return Ok(node);
    }
    let children = node.children().into_iter();
    let children = children.map(|child| cut(Arc::clone(child), config, partitions));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(node, children)
}
