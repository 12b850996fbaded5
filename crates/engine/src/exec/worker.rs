//! One worker of an execution: builds from its sources, merges what is grouped before into its build, then partitions, and hands batches out.
//!
//! In: what all workers of the execution share. Out: batches in the output queue.
//! Invariant: while rows come in a worker looks after each batch whether the execution is stopped and whether it is another query's
//! turn. In the merge it looks between two blocks of a task whether it is stopped, and between two tasks whose turn it is.
//! Not here: who spawns it and who stops it (execution.rs).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use grouse_groupby::emit::Emitted;
use grouse_groupby::merge::MergeWorker;
use grouse_groupby::runtime::{Budget, Grant};
use grouse_groupby::{Batch, Finished, FirstGroups, Merge, Merged, Spill};

use super::build_barrier::{BuildBarrier, Builds};
use super::compiled_aggregation::CompiledAggregation;
use super::metrics::WorkerMetrics;
use super::output_queue::{OutputQueue, Pushed};
use super::source::Sources;
use crate::error::to_datafusion;
use crate::runtime::fair_shares::give_way;
use crate::runtime::trace::{Lane, Phase, Recorder, Trace};
use crate::runtime::wakeups;

/// What the workers of one execution share.
pub(super) struct SharedByWorkers {
    pub aggregation: Arc<CompiledAggregation>,
    pub sources: Sources,
    pub output_queue: OutputQueue,
    pub budget: Arc<dyn Budget>,
    /// Where workers write what memory does not hold.
    pub spill: Option<Arc<Spill>>,
    pub metrics: ExecutionPlanMetricsSet,
    /// The query's, and the how-manieth grouping of it this is.
    pub trace: Option<Arc<Trace>>,
    pub operator: usize,
    pub rows_max: usize,
    /// Groups after which no further input is needed (DISTINCT with LIMIT).
    pub groups_enough: Option<usize>,
    pub enough: AtomicBool,
    /// The groups that are wanted, if any are enough (aggregates with LIMIT).
    pub first_groups: Option<Arc<FirstGroups>>,
    /// Where the grouping by all keys of grouping sets is merged, if there is one.
    pub base_grouping: BuildBarrier,
    /// Where the groupings of pairs are, afterwards.
    pub distinct_groupings: BuildBarrier,
    /// Where that of the keys is, at last.
    pub groups: BuildBarrier,
}

/// One worker's builds.
struct All<'a> {
    base_grouping: Builds<'a>,
    distinct_groupings: Builds<'a>,
    groups: Builds<'a>,
}

/// The life of one worker.
pub(super) async fn work(shared: Arc<SharedByWorkers>, worker: usize) -> Result<()> {
    let metrics = WorkerMetrics::new(&shared.metrics, worker, shared.recorder(worker));
    let mut builds = All {
        base_grouping: shared.base_grouping.builds(),
        distinct_groupings: shared.distinct_groupings.builds(),
        groups: shared.groups.builds(),
    };
    build(&shared, worker, &metrics, &mut builds).await?;
    let All {
        base_grouping,
        distinct_groupings,
        mut groups,
    } = builds;
    if let Some(of) = &shared.aggregation.base_grouping
        && let Some(merges) = shared.base_grouping.wait(base_grouping, &metrics).await?
    {
        let sets_of = |_, found| shared.aggregation.sets_of(of, found);
        take(&shared, &merges, sets_of, &mut groups, &metrics).await?;
        shared.base_grouping.end();
    }
    if !shared.aggregation.distinct_groupings.is_empty()
        && let Some(merges) = shared
            .distinct_groupings
            .wait(distinct_groupings, &metrics)
            .await?
    {
        if shared.aggregation.gives_pairs() {
            hand_out_pairs(&shared, &merges, worker, &mut groups, &metrics).await?;
        } else {
            let distinct = |at, pairs| Ok(vec![shared.aggregation.distinct(at, pairs)]);
            take(&shared, &merges, distinct, &mut groups, &metrics).await?;
        }
        shared.distinct_groupings.end();
    }
    if let Some(merges) = shared.groups.wait(groups, &metrics).await? {
        finish(&shared, &merges, worker, &metrics).await?;
        shared.groups.end();
    }
    Ok(())
}

/// Phase 1: rows into this worker's own tables.
async fn build(
    shared: &SharedByWorkers,
    worker: usize,
    metrics: &WorkerMetrics,
    builds: &mut All<'_>,
) -> Result<()> {
    let grant = || shared.grant();
    let recorder = &metrics.recorder;
    // Until a worker has seen that they are not.
    let mut few = true;
    if worker == 0 {
        for batch in shared.aggregation.grand_totals()? {
            builds.groups.push(0, &batch, grant, metrics)?;
        }
    }
    let scheduler = &shared.sources.scheduler;
    let mut next = scheduler.first(worker).await;
    while let Some(source) = next {
        if shared.enough.load(Ordering::Relaxed) {
            scheduler.over();
            break;
        }
        shared.output_queue.has_reader(worker).await;
        let batch = shared.sources.next(source);
        if let Some(batch) = recorder.polls(Phase::Scan, batch, rows_of).await? {
            if shared.output_queue.is_stopped() {
                builds.give_up();
                return Ok(());
            }
            let (evaluating, begun) = (metrics.evaluate.timer(), recorder.begin());
            let takes_selections = builds.groups.takes_selections(0);
            let evaluated = shared
                .aggregation
                .evaluate_selected(batch, few, takes_selections);
            let (evaluated, rows) = evaluated?;
            metrics.rows_in(rows);
            evaluating.done();
            recorder.end(begun, Phase::Evaluate, rows);
            let begun = recorder.begin();
            if let (Some(of), Some(batch)) =
                (&shared.aggregation.base_grouping, &evaluated.base_grouping)
            {
                few = of.pays(builds.base_grouping.push(0, batch, grant, metrics)?);
            }
            for batch in &evaluated.groups {
                let build = builds.groups.push(0, batch, grant, metrics)?;
                let enough = shared.groups_enough;
                if enough.is_some_and(|enough| build.groups() >= enough) {
                    shared.enough.store(true, Ordering::Relaxed);
                }
            }
            for (at, batches) in evaluated.distinct_groupings.iter().enumerate() {
                for batch in batches {
                    builds.distinct_groupings.push(at, batch, grant, metrics)?;
                }
            }
            recorder.end(begun, Phase::Build, rows);
            give_way().await;
        }
        next = scheduler.next(worker, source).await;
    }
    Ok(())
}

/// Rows of what a source gave.
fn rows_of(next: &Result<Option<RecordBatch>>) -> usize {
    let batch = next.as_ref().ok().and_then(Option::as_ref);
    batch.map_or(0, RecordBatch::num_rows)
}

impl All<'_> {
    /// Nobody wants them any more.
    fn give_up(&mut self) {
        self.base_grouping.give_up();
        self.distinct_groupings.give_up();
        self.groups.give_up();
    }
}

impl SharedByWorkers {
    /// Nobody wants the rest.
    pub fn stop(&self) {
        self.output_queue.stop();
        self.sources.scheduler.over();
        self.stop_writing();
    }

    /// The execution has failed; only the first failure counts.
    pub fn fail(&self, error: DataFusionError) {
        self.output_queue.fail(error);
        self.sources.scheduler.over();
        self.stop_writing();
    }

    fn stop_writing(&self) {
        if let Some(spill) = &self.spill {
            spill.cancel();
        }
    }

    fn recorder(&self, worker: usize) -> Recorder {
        let (trace, operator) = (self.trace.as_ref(), self.operator);
        Recorder::new(trace, Lane::Worker { operator, worker })
    }

    fn grant(&self) -> Grant {
        Grant::new(Arc::clone(&self.budget))
    }
}

/// One worker's share of a merge.
struct Tasks<'a> {
    shared: &'a SharedByWorkers,
    merge: &'a Merge,
    metrics: &'a WorkerMetrics,
    /// Made with the first task.
    worker: Option<MergeWorker>,
}

impl<'a> Tasks<'a> {
    fn of(merge: &'a Merge, shared: &'a SharedByWorkers, metrics: &'a WorkerMetrics) -> Tasks<'a> {
        Tasks {
            shared,
            merge,
            metrics,
            worker: None,
        }
    }

    /// The groups of the next task; `None` when none is left or nobody wants them.
    async fn next(&mut self) -> Result<Option<Finished>> {
        let cancelled = || self.shared.output_queue.is_stopped();
        while let Some(task) = self.merge.next().map_err(to_datafusion)? {
            let worker = match &mut self.worker {
                Some(worker) => worker,
                None => {
                    let worker = self.merge.worker(self.shared.grant());
                    self.worker.insert(worker.map_err(to_datafusion)?)
                }
            };
            give_way().await;
            let begun = self.metrics.recorder.begin();
            let merged = worker.run(self.merge, &task, &cancelled);
            let recorder = &self.metrics.recorder;
            recorder.end(begun, Phase::Merge, task.tuples());
            match merged.map_err(to_datafusion)? {
                Merged::Groups(finished) => return Ok(Some(finished)),
                Merged::Repartitioned | Merged::Piece => {}
                Merged::Cancelled => break,
            }
        }
        Ok(None)
    }

    /// No task is left.
    fn end(self) {
        if let Some(worker) = &self.worker {
            self.metrics.merged(worker.counters());
        }
    }
}

/// Between the phases: what was grouped before, as batches for the groups.
async fn take(
    shared: &SharedByWorkers,
    merges: &[Merge],
    batches_of: impl Fn(usize, Emitted) -> Result<Vec<Batch>>,
    groups: &mut Builds<'_>,
    metrics: &WorkerMetrics,
) -> Result<()> {
    let grant = || shared.grant();
    for (at, merge) in merges.iter().enumerate() {
        let mut tasks = Tasks::of(merge, shared, metrics);
        while let Some(mut finished) = tasks.next().await? {
            while let Some(found) = finished.next(shared.rows_max).map_err(to_datafusion)? {
                if shared.output_queue.is_stopped() {
                    groups.give_up();
                    return Ok(());
                }
                let (begun, rows) = (metrics.recorder.begin(), found.rows);
                for batch in batches_of(at, found)? {
                    groups.push(0, &batch, grant, metrics)?;
                }
                metrics.recorder.end(begun, Phase::Build, rows);
                give_way().await;
            }
        }
        tasks.end();
    }
    Ok(())
}

/// Between the phases of a partial stage: pairs leave, for the final stage to tell those of all tasks apart.
async fn hand_out_pairs(
    shared: &SharedByWorkers,
    merges: &[Merge],
    worker: usize,
    groups: &mut Builds<'_>,
    metrics: &WorkerMetrics,
) -> Result<()> {
    for (at, merge) in merges.iter().enumerate() {
        let mut tasks = Tasks::of(merge, shared, metrics);
        while let Some(mut finished) = tasks.next().await? {
            while let Some(found) = finished.next(shared.rows_max).map_err(to_datafusion)? {
                let begun = metrics.recorder.begin();
                let batch = shared.aggregation.outgoing_pairs(at, found)?;
                let recorder = &metrics.recorder;
                recorder.end(begun, Phase::Emit, batch.num_rows());
                if shared.output_queue.push(worker, batch).await == Pushed::Stopped {
                    groups.give_up();
                    return Ok(());
                }
                wakeups::share();
            }
        }
        tasks.end();
    }
    Ok(())
}

/// Phases 2 and 3: partitions into groups, groups into batches, until no task is left.
async fn finish(
    shared: &SharedByWorkers,
    merges: &[Merge],
    worker: usize,
    metrics: &WorkerMetrics,
) -> Result<()> {
    for merge in merges {
        let mut tasks = Tasks::of(merge, shared, metrics);
        while let Some(mut finished) = tasks.next().await? {
            let groups = finished.groups();
            shared.aggregation.keep(&mut finished)?;
            if let Some(first) = &shared.first_groups {
                finished.keep_chosen(first).map_err(to_datafusion)?;
            }
            metrics.groups_out(groups, finished.groups());
            loop {
                let (emitting, begun) = (metrics.emit.timer(), metrics.recorder.begin());
                let Some(emitted) = finished.next(shared.rows_max).map_err(to_datafusion)? else {
                    break;
                };
                let batch = shared.aggregation.output(emitted)?;
                emitting.done();
                let recorder = &metrics.recorder;
                recorder.end(begun, Phase::Emit, batch.num_rows());
                if shared.output_queue.push(worker, batch).await == Pushed::Stopped {
                    return Ok(());
                }
                wakeups::share();
            }
        }
        tasks.end();
    }
    Ok(())
}
