//! Rows of files and tables that nothing groups, joins or sorts come in their order, as users of other engines expect.
//!
//! In: a plan before its exchanges, and a finished one. Out: tables in memory divided in their order; scans in pieces that follow
//! each other, and `OrderedCoalesceExec` where their rows come together.
//! Invariant: no row is another, and plans without such rows stay. A piece is small, so that several are read at once while the
//! first one's rows go out.
//! Not here: the order of joins' and groupings' rows, which is open, as in SQL.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{Boundedness, replace_children_if_necessary};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::morsels::MorselsRule;
use super::ordered_coalesce::OrderedCoalesceExec;
use crate::runtime::options::SessionOptions;
use crate::scan::numbers::NumbersExec;

/// Rows of a piece: sixteen batches.
const PIECE_ROWS: usize = 1 << 17;
/// Pieces of a scan. Each has some dozens of metrics; with more of them, pieces are larger.
const PIECES_MAX: usize = 1 << 10;

fn is_asked_for(config: &ConfigOptions) -> bool {
    let options = SessionOptions::of(config);
    // The pieces of a cluster's plan are its partitions.
    options.preserve_insertion_order && options.cluster.is_none()
}

/// Tables in memory are divided among workers in their order; DataFusion does so by the size of their batches.
pub(crate) fn divide_tables(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let parts = config.execution.target_partitions;
    if !is_asked_for(config) || parts < 2 {
        return Ok(plan);
    }
    let batch_rows: usize = config.execution.batch_size.into();
    let divided = plan.transform_up(|node| {
        let Some(table) = memory_of(&node) else {
            return Ok(Transformed::no(node));
        };
        let batches = table.partitions().concat();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        // Where DataFusion does so.
        let is_divided =
            table.partitions().len() < parts && batches.len() >= parts && rows > batch_rows;
        match is_divided {
            true => in_parts(table, &batches, rows.div_ceil(parts)).map(Transformed::yes),
            false => Ok(Transformed::no(node)),
        }
    });
    divided.data()
}

fn memory_of(node: &Arc<dyn ExecutionPlan>) -> Option<&MemorySourceConfig> {
    let scan = node.downcast_ref::<DataSourceExec>()?;
    scan.data_source().downcast_ref::<MemorySourceConfig>()
}

/// The table with its batches in parts of about so many rows, in their order.
fn in_parts(
    table: &MemorySourceConfig,
    batches: &[RecordBatch],
    rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut parts: Vec<Vec<RecordBatch>> = Vec::new();
    let mut filled = usize::MAX;
    for batch in batches {
        if filled >= rows {
            parts.push(Vec::new());
            filled = 0;
        }
        filled += batch.num_rows();
        if let Some(part) = parts.last_mut() {
            part.push(batch.clone());
        }
    }
    let divided =
        MemorySourceConfig::try_new(&parts, table.original_schema(), table.projection().clone())?
            .with_limit(table.fetch())
            .with_show_sizes(table.show_sizes())
            .try_with_sort_information(table.sort_information().to_vec())?;
    Ok(DataSourceExec::from_data_source(divided))
}

/// The rule for finished plans.
pub(crate) struct RowOrderRule {
    morsels: MorselsRule,
}

impl RowOrderRule {
    /// A rule that cuts Parquet files as this one does.
    pub fn new(morsels: MorselsRule) -> RowOrderRule {
        RowOrderRule { morsels }
    }
}

impl RowOrderRule {
    pub fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The inputs of a UNION are several partitions for one worker, too.
        let asked = Asked {
            readers: config.execution.target_partitions,
            batch_rows: config.execution.batch_size.into(),
        };
        if !is_asked_for(config) {
            return Ok(plan);
        }
        let gathered = self.gathered(plan, asked)?;
        match self.in_order(&gathered, asked)? {
            Some(pieces) => Ok(coalesced(pieces, asked.readers, None)),
            None => Ok(gathered),
        }
    }
}

/// How the session reads.
#[derive(Clone, Copy)]
struct Asked {
    readers: usize,
    batch_rows: usize,
}

/// One stream of the rows of a plan whose partitions follow each other.
fn coalesced(
    pieces: Arc<dyn ExecutionPlan>,
    readers: usize,
    fetch: Option<usize>,
) -> Arc<dyn ExecutionPlan> {
    if fetch.is_none() && pieces.output_partitioning().partition_count() == 1 {
        return pieces;
    }
    Arc::new(OrderedCoalesceExec::new(pieces, readers, fetch))
}

impl RowOrderRule {
    /// The plan, in which rows come together in their order below its root; those that a join looks up have none.
    fn gathered(
        &self,
        node: Arc<dyn ExecutionPlan>,
        asked: Asked,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let is_join = node.name().ends_with("JoinExec");
        let children = node.children().into_iter().map(|child| {
            match is_join && child.is::<CoalescePartitionsExec>() {
                true => Ok(Arc::clone(child)),
                false => self.gathered(Arc::clone(child), asked),
            }
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        let node = replace_children_if_necessary(node, children)?;
        let Some(merge) = node.downcast_ref::<CoalescePartitionsExec>() else {
            return Ok(node);
        };
        let pieces = self.in_order(merge.input(), asked)?;
        Ok(pieces.map_or_else(
            || Arc::clone(&node),
            |pieces| coalesced(pieces, asked.readers, merge.fetch()),
        ))
    }

    /// The same rows in partitions that follow each other, of a plan that is gathered below; none if nothing is known of their
    /// order.
    fn in_order(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        asked: Asked,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if matches!(node.boundedness(), Boundedness::Unbounded { .. }) {
            return Ok(None);
        }
        // A LIMIT may have come down into a single partition, whose pieces would each have as many rows.
        if node.output_partitioning().partition_count() == 1 {
            return Ok(Some(Arc::clone(node)));
        }
        if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
            return self.scan_in_order(scan, asked.batch_rows).map(Some);
        }
        if let Some(numbers) = node.downcast_ref::<NumbersExec>() {
            let pieces = numbers.in_pieces(PIECE_ROWS as u64, PIECES_MAX);
            return Ok(Some(Arc::new(pieces)));
        }
        if let Some(exchange) = node.downcast_ref::<RepartitionExec>() {
            let input = exchange.input();
            let is_dealt_out = matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_))
                && input.output_partitioning().partition_count() == 1;
            return Ok(is_dealt_out.then(|| Arc::clone(input)));
        }
        let keeps_order = node.is::<FilterExec>()
            || node.is::<ProjectionExec>()
            || node.is::<CooperativeExec>()
            || node.is::<LocalLimitExec>()
            || node.is::<UnnestExec>()
            || node.is::<UnionExec>();
        if !keeps_order {
            return Ok(None);
        }
        let inputs = node.children().into_iter();
        let inputs = inputs.map(|input| self.in_order(input, asked));
        let Some(inputs) = inputs.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        replace_children_if_necessary(Arc::clone(node), inputs).map(Some)
    }

    fn scan_in_order(
        &self,
        scan: &DataSourceExec,
        batch_rows: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = scan.data_source();
        if let Some(table) = source.downcast_ref::<MemorySourceConfig>() {
            let batches = table.partitions().concat();
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            return in_parts(table, &batches, PIECE_ROWS.max(rows / PIECES_MAX));
        }
        match source.downcast_ref::<FileScanConfig>() {
            Some(files) if files.file_groups.len() > 1 && files.output_partitioning.is_none() => {
                Ok(self.files_in_order(files, batch_rows))
            }
            _ => Ok(Arc::new(scan.clone())),
        }
    }

    fn files_in_order(&self, files: &FileScanConfig, batch_rows: usize) -> Arc<dyn ExecutionPlan> {
        let parquet = files.file_source().downcast_ref::<ParquetSource>();
        let cut = parquet.and_then(|source| {
            let scan = (files, source);
            self.morsels.pieces(scan, None, PIECE_ROWS, batch_rows)
        });
        let builder = FileScanConfigBuilder::from(files.clone()).with_preserve_order(true);
        let scan = match cut {
            Some((pieces, source)) => builder
                .with_file_groups(grouped(pieces))
                .with_source(Arc::new(source)),
            None => {
                let pieces = files.file_groups.iter().flat_map(FileGroup::iter);
                builder.with_file_groups(grouped(pieces.cloned().collect()))
            }
        };
        DataSourceExec::from_data_source(scan.build())
    }
}

/// Pieces as partitions, neighbours together where they are too many.
fn grouped(pieces: Vec<PartitionedFile>) -> Vec<FileGroup> {
    let each = pieces.len().div_ceil(PIECES_MAX).max(1);
    let groups = pieces.chunks(each);
    groups.map(|files| FileGroup::new(files.to_vec())).collect()
}
