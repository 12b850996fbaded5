//! One worker of a run: builds from its sources, merges pairs into its build, then partitions, and hands batches out.
//!
//! In: what all workers of the run share. Out: batches in the outlet.
//! Invariant: while rows come in a worker gives way and looks whether the run is stopped once per batch; in the merge it
//! looks between two blocks of a task and gives way between two tasks.
//! Not here: who spawns it and who stops it (run.rs).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{DataFusionError, Result};
use grouse_groupby::merge::MergeWorker;
use grouse_groupby::runtime::{Budget, Grant};
use grouse_groupby::{Finished, Merge, Merged, Spill};
use tokio::task::coop::consume_budget;

use super::meeting::{Builds, Meeting};
use super::memory::to_host;
use super::metrics::WorkerMetrics;
use super::outlet::{Given, Outlet};
use super::program::Program;
use super::source::Sources;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

/// What the workers of one run share.
pub(super) struct Shared {
    pub program: Arc<Program>,
    pub sources: Sources,
    pub outlet: Outlet,
    pub budget: Arc<dyn Budget>,
    /// Where workers write what memory does not hold.
    pub spill: Option<Arc<Spill>>,
    pub metrics: ExecutionPlanMetricsSet,
    pub rows_max: usize,
    /// Groups after which no further input is needed (DISTINCT with LIMIT).
    pub groups_enough: Option<usize>,
    pub enough: AtomicBool,
    /// Where the groupings of pairs are merged.
    pub pairs: Meeting,
    /// Where that of the keys is, afterwards.
    pub groups: Meeting,
}

/// The life of one worker.
pub(super) async fn work(shared: Arc<Shared>, worker: usize) -> Result<()> {
    let metrics = WorkerMetrics::new(&shared.metrics, worker);
    let (mut groups, mut pairs) = (shared.groups.builds(), shared.pairs.builds());
    build(&shared, worker, &metrics, &mut groups, &mut pairs).await?;
    if !shared.program.pairs.is_empty()
        && let Some(merges) = shared.pairs.meet(pairs, &metrics).await?
    {
        take_pairs(&shared, &merges, &mut groups, &metrics).await?;
        shared.pairs.end();
    }
    if let Some(merges) = shared.groups.meet(groups, &metrics).await? {
        finish(&shared, &merges, worker, &metrics).await?;
        shared.groups.end();
    }
    Ok(())
}

/// Phase 1: rows into this worker's own tables.
async fn build(
    shared: &Shared,
    worker: usize,
    metrics: &WorkerMetrics,
    groups: &mut Builds<'_>,
    pairs: &mut Builds<'_>,
) -> Result<()> {
    let grant = || shared.grant();
    if worker == 0 {
        for batch in shared.program.grand_totals()? {
            groups.push(0, &batch, grant, metrics)?;
        }
    }
    for source in shared.sources.of(worker) {
        while !shared.enough.load(Ordering::Relaxed) {
            shared.outlet.has_reader(worker).await;
            let Some(batch) = shared.sources.next(source).await? else {
                break;
            };
            if shared.outlet.is_stopped() {
                groups.give_up();
                pairs.give_up();
                return Ok(());
            }
            metrics.rows_in(batch.num_rows());
            let evaluating = metrics.evaluate.timer();
            let evaluated = shared.program.evaluate(&batch)?;
            evaluating.done();
            for batch in &evaluated.groups {
                let build = groups.push(0, batch, grant, metrics)?;
                let enough = shared.groups_enough;
                if enough.is_some_and(|enough| build.groups() >= enough) {
                    shared.enough.store(true, Ordering::Relaxed);
                }
            }
            for (at, batches) in evaluated.pairs.iter().enumerate() {
                for batch in batches {
                    pairs.push(at, batch, grant, metrics)?;
                }
            }
            consume_budget().await;
        }
    }
    Ok(())
}

impl Shared {
    /// Nobody wants the rest.
    pub fn stop(&self) {
        self.outlet.stop();
        self.stop_writing();
    }

    /// The run has failed; only the first failure counts.
    pub fn fail(&self, error: DataFusionError) {
        self.outlet.fail(error);
        self.stop_writing();
    }

    fn stop_writing(&self) {
        if let Some(spill) = &self.spill {
            spill.cancel();
        }
    }

    fn grant(&self) -> Grant {
        Grant::new(Arc::clone(&self.budget))
    }
}

/// One worker's share of a merge.
struct Tasks<'a> {
    shared: &'a Shared,
    merge: &'a Merge,
    /// Made with the first task.
    worker: Option<MergeWorker>,
}

impl<'a> Tasks<'a> {
    fn of(merge: &'a Merge, shared: &'a Shared) -> Tasks<'a> {
        Tasks {
            shared,
            merge,
            worker: None,
        }
    }

    /// The groups of the next task; `None` when none is left or nobody wants them.
    async fn next(&mut self) -> Result<Option<Finished>> {
        let cancelled = || self.shared.outlet.is_stopped();
        while let Some(task) = self.merge.next() {
            let worker = match &mut self.worker {
                Some(worker) => worker,
                None => {
                    let worker = self.merge.worker(self.shared.grant());
                    self.worker.insert(worker.map_err(to_host)?)
                }
            };
            consume_budget().await;
            let merged = worker.run(self.merge, &task, &cancelled);
            match merged.map_err(to_host)? {
                Merged::Groups(finished) => return Ok(Some(finished)),
                Merged::Parted => {}
                Merged::Cancelled => break,
            }
        }
        Ok(None)
    }

    /// No task is left.
    fn end(self, metrics: &WorkerMetrics) {
        if let Some(worker) = &self.worker {
            metrics.merged(worker.counters());
        }
    }
}

/// Between the phases: pairs, each once, as rows of the aggregates that are for them.
async fn take_pairs(
    shared: &Shared,
    merges: &[Merge],
    groups: &mut Builds<'_>,
    metrics: &WorkerMetrics,
) -> Result<()> {
    let grant = || shared.grant();
    for (at, merge) in merges.iter().enumerate() {
        let mut tasks = Tasks::of(merge, shared);
        while let Some(mut pairs) = tasks.next().await? {
            while let Some(pairs) = pairs.next(shared.rows_max).map_err(to_host)? {
                if shared.outlet.is_stopped() {
                    groups.give_up();
                    return Ok(());
                }
                let batch = shared.program.distinct(at, pairs);
                groups.push(0, &batch, grant, metrics)?;
                consume_budget().await;
            }
        }
        tasks.end(metrics);
    }
    Ok(())
}

/// Phases 2 and 3: partitions into groups, groups into batches, until no task is left.
async fn finish(
    shared: &Shared,
    merges: &[Merge],
    worker: usize,
    metrics: &WorkerMetrics,
) -> Result<()> {
    for merge in merges {
        let mut tasks = Tasks::of(merge, shared);
        while let Some(mut finished) = tasks.next().await? {
            let groups = finished.groups();
            shared.program.keep(&mut finished)?;
            metrics.groups_out(groups, finished.groups());
            loop {
                let emitting = metrics.emit.timer();
                let Some(emitted) = finished.next(shared.rows_max).map_err(to_host)? else {
                    break;
                };
                let batch = shared.program.output(emitted)?;
                emitting.done();
                if shared.outlet.give(worker, batch).await == Given::Stopped {
                    return Ok(());
                }
            }
        }
        tasks.end(metrics);
    }
    Ok(())
}
