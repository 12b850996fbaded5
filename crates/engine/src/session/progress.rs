//! Progress: how far a running query is.
//!
//! In: the metrics that the plan's nodes keep.
//! Out: a snapshot; taking one costs a walk over the plan and never disturbs the workers.
//! Invariant: the share never exceeds 1 and is absent where the total is not known.
//! Not here: drawing it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::stats::Precision;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use datafusion::physical_plan::{ExecutionPlan, StatisticsArgs, StatisticsContext};
use object_store::path::Path;

use crate::optimizer::scans::morsels::MorselRows;

/// A snapshot of a query's progress.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Rows that the scans have read, also those that they have held against a condition themselves.
    pub input_rows: u64,
    /// Bytes that the scans have read from files, where they count them.
    pub input_bytes: u64,
    /// Share of the input that is read, from 0 to 1; `None` = the total is unknown.
    pub input_share: Option<f64>,
    /// Groups that GROUP BY operators hold or have emitted.
    pub groups: u64,
    /// Bytes that the session's queries hold.
    pub memory_bytes: u64,
    /// Bytes that operators wrote to disk for want of memory.
    pub spilled_bytes: u64,
    /// Time since the query started, up to its end.
    pub elapsed: Duration,
}

/// Names under which a node whose plan other machines run says how many stages it has, and how many are over.
const STAGES_METRICS: [&str; 2] = ["stages", "stages_over"];

/// Names under which operators count their groups.
const GROUPS_METRICS: &[&str] = &["groups", "groups_out"];

impl Progress {
    pub(crate) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        memory_bytes: usize,
        elapsed: Duration,
    ) -> Progress {
        let mut progress = Progress {
            memory_bytes: memory_bytes as u64,
            elapsed,
            ..Default::default()
        };
        let mut total = InputTotal::default();
        progress.visit(plan, &mut total);
        progress.input_share = total.share();
        progress
    }

    fn visit(&mut self, plan: &Arc<dyn ExecutionPlan>, total: &mut InputTotal) {
        let metrics = plan.metrics();
        let metrics = metrics.as_ref();
        self.spilled_bytes += metrics.and_then(MetricsSet::spilled_bytes).unwrap_or(0) as u64;
        self.groups += GROUPS_METRICS
            .iter()
            .find_map(|name| sum(metrics, name))
            .unwrap_or(0);
        let [stages, over] = STAGES_METRICS.map(|name| sum(metrics, name));
        if let Some(stages) = stages {
            return total.add_stages(stages, over.unwrap_or(0));
        }
        let children = plan.children();
        if children.is_empty() {
            let rows = metrics.and_then(MetricsSet::output_rows).unwrap_or(0) as u64;
            self.input_rows += rows + filtered(metrics);
            self.input_bytes += sum(metrics, "bytes_scanned").unwrap_or(0);
            total.add_leaf(plan, metrics, rows);
        }
        for child in children {
            self.visit(child, total);
        }
    }
}

/// How much there is to read, and how much of it is read, in rows or in files.
#[derive(Debug, Default)]
struct InputTotal {
    leaves: usize,
    done: f64,
    unknown: bool,
}

impl InputTotal {
    fn add_leaf(&mut self, plan: &Arc<dyn ExecutionPlan>, metrics: Option<&MetricsSet>, rows: u64) {
        let share = match rows_of_morsels(plan) {
            // What is skipped only while reading: whole row groups, by predicates that planning could not evaluate.
            Some(total) => Some(share(
                rows + filtered(metrics),
                total as f64 * kept_share(metrics),
            )),
            None => rows_total(plan)
                .map(|total| share_of_rows(metrics, rows, total))
                .or_else(|| share_of_files(plan, metrics)),
        };
        self.leaves += 1;
        match share {
            Some(share) => self.done += share.clamp(0.0, 1.0),
            None => self.unknown = true,
        }
    }

    /// What other machines run counts as one scan.
    fn add_stages(&mut self, stages: u64, over: u64) {
        self.leaves += 1;
        match stages {
            0 => self.unknown = true,
            stages => self.done += over as f64 / stages as f64,
        }
    }

    /// The mean over the scans: their rows differ in cost, so weighing by rows would be no better.
    fn share(&self) -> Option<f64> {
        (!self.unknown && self.leaves > 0).then(|| self.done / self.leaves as f64)
    }
}

/// Rows that the scan will have looked at in the end; a filter inside the scan does not change them.
fn rows_total(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    if let Some(config) = file_scan(plan) {
        return rows_of_files(config);
    }
    let statistics = StatisticsContext::new()
        .compute(plan.as_ref(), &StatisticsArgs::new())
        .ok()?;
    match statistics.num_rows {
        Precision::Exact(rows) => Some(rows as u64),
        Precision::Inexact(_) | Precision::Absent => None,
    }
}

/// Rows of a scan in morsels, which are cut from what the bounds of row groups and pages leave.
fn rows_of_morsels(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let files = file_scan(plan)?.file_groups.iter();
    let rows = files.flat_map(|group| group.iter());
    rows.map(|file| file.extension::<MorselRows>().map(|rows| rows.0))
        .sum()
}

/// A file that is read in several pieces occurs once per piece, each with the rows of the whole file.
fn rows_of_files(config: &FileScanConfig) -> Option<u64> {
    let mut rows: HashMap<&Path, u64> = HashMap::new();
    for file in config.file_groups.iter().flat_map(|group| group.iter()) {
        let known = file.statistics.as_ref()?.num_rows.get_value().copied()?;
        rows.insert(&file.object_meta.location, known as u64);
    }
    Some(rows.values().sum())
}

fn file_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref::<FileScanConfig>()
}

/// Rows that were handed on or seen and filtered out, of those in row groups that are not skipped.
fn share_of_rows(metrics: Option<&MetricsSet>, rows: u64, total: u64) -> f64 {
    let (skipped_rows, _) = pruned_and_matched(metrics, "page_index_rows_pruned");
    let seen = rows + filtered(metrics) + skipped_rows;
    share(seen, total as f64 * kept_share(metrics))
}

/// Of the row groups that were looked at, the share that is read.
fn kept_share(metrics: Option<&MetricsSet>) -> f64 {
    let (skipped, kept) = pruned_and_matched(metrics, "row_groups_pruned_statistics");
    match skipped + kept {
        0 => 1.0,
        all => kept as f64 / all as f64,
    }
}

/// Rows that the scan's own filter has dropped.
fn filtered(metrics: Option<&MetricsSet>) -> u64 {
    sum(metrics, "pushdown_rows_pruned").unwrap_or(0)
}

fn share(seen: u64, expected: f64) -> f64 {
    match expected > 0.0 {
        true => seen as f64 / expected,
        false => 1.0,
    }
}

fn pruned_and_matched(metrics: Option<&MetricsSet>, wanted: &str) -> (u64, u64) {
    let mut sums = (0, 0);
    for metric in metrics.into_iter().flat_map(MetricsSet::iter) {
        if let MetricValue::PruningMetrics {
            name,
            pruning_metrics,
        } = metric.value()
            && name == wanted
        {
            sums.0 += pruning_metrics.pruned() as u64;
            sums.1 += pruning_metrics.matched() as u64;
        }
    }
    sums
}

fn share_of_files(plan: &Arc<dyn ExecutionPlan>, metrics: Option<&MetricsSet>) -> Option<f64> {
    let pieces: usize = file_scan(plan)?
        .file_groups
        .iter()
        .map(|group| group.len())
        .sum();
    let done = sum(metrics, "files_processed")?;
    (pieces > 1).then(|| done as f64 / pieces as f64)
}

fn sum(metrics: Option<&MetricsSet>, name: &str) -> Option<u64> {
    metrics
        .and_then(|metrics| metrics.sum_by_name(name))
        .map(|value| value.as_usize() as u64)
}
