//! What EXPLAIN ANALYZE says about the operator.
//!
//! In: the counters of each worker. Out: DataFusion's metrics.
//! Invariant: a worker writes only its own metrics; DataFusion adds them up when it shows them.
//! Not here: what the counters mean (`grouse_groupby::runtime::Counters`).

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::metrics::{
    Count, CustomMetricValue, ExecutionPlanMetricsSet, Gauge, MetricBuilder, MetricValue, Time,
};
use grouse_groupby::Merge;
use grouse_groupby::runtime::Counters;
use parking_lot::Mutex;

use crate::runtime::trace::Recorder;

/// The metrics of one worker.
pub(super) struct WorkerMetrics {
    rows_in: Count,
    groups_out: Count,
    rows_out: Count,
    spilled_bytes: Count,
    spills: Count,
    /// Evaluating keys, arguments and filters.
    pub evaluate: Time,
    /// Cutting merges into tasks, which the last worker does while the others wait.
    pub cut: Time,
    /// Decoding keys and making batches.
    pub emit: Time,
    /// When it did what.
    pub recorder: Recorder,
    set: ExecutionPlanMetricsSet,
    worker: usize,
}

/// What went to disk.
#[derive(Default)]
pub(super) struct Spilled {
    bytes: u64,
    times: u64,
}

impl WorkerMetrics {
    /// Registers the metrics that change while the query runs.
    pub fn new(set: &ExecutionPlanMetricsSet, worker: usize, recorder: Recorder) -> WorkerMetrics {
        WorkerMetrics {
            recorder,
            rows_in: MetricBuilder::new(set).counter("rows_in", worker),
            groups_out: MetricBuilder::new(set).counter("groups_out", worker),
            rows_out: MetricBuilder::new(set).output_rows(worker),
            spilled_bytes: MetricBuilder::new(set).spilled_bytes(worker),
            spills: MetricBuilder::new(set).spill_count(worker),
            evaluate: MetricBuilder::new(set).subset_time("evaluate_time", worker),
            cut: MetricBuilder::new(set).subset_time("cut_time", worker),
            emit: MetricBuilder::new(set).subset_time("emit_time", worker),
            set: set.clone(),
            worker,
        }
    }

    /// Rows came in.
    pub fn rows_in(&self, rows: usize) {
        self.rows_in.add(rows);
    }

    /// Groups are finished, of which so many leave.
    pub fn groups_out(&self, groups: usize, rows: usize) {
        self.groups_out.add(groups);
        self.rows_out.add(rows);
    }

    /// What a build wrote to disk since the metrics were last `told`.
    pub fn spilled(&self, counters: &Counters, told: &mut Spilled) {
        let now = Spilled {
            bytes: counters.spilled_bytes,
            times: counters.spills,
        };
        self.spilled_bytes.add((now.bytes - told.bytes) as usize);
        self.spills.add((now.times - told.times) as usize);
        *told = now;
    }

    /// What a worker's build phase counted.
    pub fn built(&self, counters: &Counters) {
        self.time(
            "build_time",
            counters.hash_ns + counters.assign_ns + counters.update_ns + counters.partition_ns,
        );
        self.time("hash_time", counters.hash_ns);
        self.time("assign_time", counters.assign_ns);
        self.time("update_time", counters.update_ns);
        self.time("partition_time", counters.partition_ns);
        self.time("spill_time", counters.spill_ns);
        self.count("blocks", counters.blocks);
        self.count("combines", counters.combined);
        self.count("flushes", counters.flushes);
        self.count("rows_bypassed", counters.bypassed_rows);
        self.count("rows_not_chosen", counters.not_chosen_rows);
        self.count("rows_pre_aggregated", counters.pre_aggregated_rows);
        self.count("ranges_widened", counters.widened);
        self.gauge("build_bytes_peak", counters.bytes_peak);
        self.custom("table", UsedTables::new(&counters.kinds));
        self.custom(
            "probes_per_row",
            MeanOfWorkers::new(counters.probes, counters.looked_up),
        );
    }

    /// What a worker's merge phase counted.
    pub fn merged(&self, counters: &Counters) {
        self.time("merge_time", counters.merge_ns);
        self.time("read_time", counters.read_ns);
        self.spilled_bytes.add(counters.spilled_bytes as usize);
        self.spills.add(counters.spills as usize);
        self.time("spill_time", counters.spill_ns);
        self.count("spilled_bytes_read", counters.read_bytes);
        self.count("merge_tasks_repartitioned", counters.repartitioned);
        self.count("merge_pieces", counters.pieces);
        self.emit
            .add_duration(Duration::from_nanos(counters.emit_ns));
        self.gauge("merge_bytes_peak", counters.bytes_peak);
        self.custom(
            "probes_per_row",
            MeanOfWorkers::new(counters.probes, counters.looked_up),
        );
    }

    /// How a merge was cut; one worker says it for all.
    pub fn cut_into(&self, partitions: usize, merge: &Merge) {
        self.gauge("partitions", partitions as u64);
        self.gauge("merge_tasks", merge.tasks() as u64);
    }

    fn time(&self, name: &'static str, ns: u64) {
        let time: Time = MetricBuilder::new(&self.set).subset_time(name, self.worker);
        time.add_duration(Duration::from_nanos(ns));
    }

    fn count(&self, name: &'static str, value: u64) {
        MetricBuilder::new(&self.set)
            .counter(name, self.worker)
            .add(value as usize);
    }

    fn gauge(&self, name: &'static str, value: u64) {
        let gauge: Gauge = MetricBuilder::new(&self.set).gauge(name, self.worker);
        gauge.set(value as usize);
    }

    fn custom(&self, name: &'static str, value: impl CustomMetricValue + 'static) {
        let value = MetricValue::Custom {
            name: name.into(),
            value: Arc::new(value),
        };
        MetricBuilder::new(&self.set)
            .with_partition(self.worker)
            .build(value);
    }
}

/// Which key tables the workers used, in order: `direct > packed` means that one was left for the other.
#[derive(Debug, Default)]
struct UsedTables(Mutex<Vec<TableSequence>>);

/// One sequence of tables, and how many workers had it.
#[derive(Debug, Clone, PartialEq)]
struct TableSequence {
    kinds: Vec<&'static str>,
    workers: usize,
}

impl UsedTables {
    fn new(kinds: &[&'static str]) -> UsedTables {
        UsedTables(Mutex::new(vec![TableSequence {
            kinds: kinds.to_vec(),
            workers: 1,
        }]))
    }
}

impl fmt::Display for UsedTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.0.lock();
        for (at, TableSequence { kinds, workers }) in used.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{} ({workers})", kinds.join(" > "))?;
        }
        Ok(())
    }
}

impl CustomMetricValue for UsedTables {
    fn new_empty(&self) -> Arc<dyn CustomMetricValue> {
        Arc::new(UsedTables::default())
    }

    fn aggregate(&self, other: Arc<dyn CustomMetricValue>) {
        let Some(other) = other.as_any().downcast_ref::<UsedTables>() else {
            return;
        };
        let others = other.0.lock().clone();
        let mut own = self.0.lock();
        for one in others {
            match own.iter_mut().find(|used| used.kinds == one.kinds) {
                Some(same) => same.workers += one.workers,
                None => own.push(one),
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_eq(&self, other: &Arc<dyn CustomMetricValue>) -> bool {
        let Some(other) = other.as_any().downcast_ref::<UsedTables>() else {
            return false;
        };
        let others = other.0.lock().clone();
        *self.0.lock() == others
    }
}

/// A mean over all workers.
#[derive(Debug, Default)]
struct MeanOfWorkers(Mutex<(u64, u64)>);

impl MeanOfWorkers {
    fn new(sum: u64, count: u64) -> MeanOfWorkers {
        MeanOfWorkers(Mutex::new((sum, count)))
    }
}

impl fmt::Display for MeanOfWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0.lock() {
            (_, 0) => f.write_str("0"),
            (sum, count) => write!(f, "{:.2}", sum as f64 / count as f64),
        }
    }
}

impl CustomMetricValue for MeanOfWorkers {
    fn new_empty(&self) -> Arc<dyn CustomMetricValue> {
        Arc::new(MeanOfWorkers::default())
    }

    fn aggregate(&self, other: Arc<dyn CustomMetricValue>) {
        let Some(other) = other.as_any().downcast_ref::<MeanOfWorkers>() else {
            return;
        };
        let (sum, count) = *other.0.lock();
        let mut own = self.0.lock();
        own.0 += sum;
        own.1 += count;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_eq(&self, other: &Arc<dyn CustomMetricValue>) -> bool {
        let Some(other) = other.as_any().downcast_ref::<MeanOfWorkers>() else {
            return false;
        };
        let others = *other.0.lock();
        *self.0.lock() == others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_means_add_up_over_workers() {
        let tables = UsedTables::new(&["direct", "packed"]);
        tables.aggregate(Arc::new(UsedTables::new(&["direct"])));
        tables.aggregate(Arc::new(UsedTables::new(&["direct", "packed"])));
        assert_eq!(tables.to_string(), "direct > packed (2), direct (1)");
        let mean = MeanOfWorkers::new(3, 2);
        mean.aggregate(Arc::new(MeanOfWorkers::new(3, 4)));
        assert_eq!(mean.to_string(), "1.00");
        assert_eq!(MeanOfWorkers::default().to_string(), "0");
    }
}
