//! One worker of a run: builds from its sources, then merges partitions, then hands batches out.
//!
//! In: what all workers of the run share. Out: batches in the outlet.
//! Invariant: while rows come in a worker gives way and looks whether the run is stopped once per batch; in the merge it
//! looks between two blocks of a task and gives way between two tasks.
//! Not here: who spawns it and who stops it (run.rs).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use grouse_groupby::runtime::{Budget, Grant};
use grouse_groupby::{Batch, Build, Built, Merge, Merged, Spill};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;

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
    pub meeting: Meeting,
}

/// Where builds come together and become one merge.
pub(super) struct Meeting {
    /// Workers that still build.
    building: AtomicUsize,
    built: Mutex<Vec<Built>>,
    merge: watch::Sender<Stage>,
    enough: AtomicBool,
}

#[derive(Clone)]
enum Stage {
    Building,
    Merging(Arc<Merge>),
    /// All tasks are done; the merge's memory is free.
    Over,
}

impl Meeting {
    /// Of `workers` builds.
    pub fn new(workers: usize) -> Meeting {
        Meeting {
            building: AtomicUsize::new(workers),
            built: Mutex::new(Vec::with_capacity(workers)),
            merge: watch::Sender::new(Stage::Building),
            enough: AtomicBool::new(false),
        }
    }
}

/// The life of one worker.
pub(super) async fn work(shared: Arc<Shared>, worker: usize) -> Result<()> {
    let metrics = WorkerMetrics::new(&shared.metrics, worker);
    let build = build(&shared, worker, &metrics).await?;
    let merge = shared.meet(build, &metrics).await?;
    if let Some(merge) = merge {
        finish(&shared, &merge, worker, &metrics).await?;
        shared.meeting.merge.send_replace(Stage::Over);
    }
    Ok(())
}

/// Phase 1: rows into this worker's own table.
async fn build(shared: &Shared, worker: usize, metrics: &WorkerMetrics) -> Result<Option<Build>> {
    let mut build = None;
    if worker == 0 {
        push(shared, &mut build, &shared.program.grand_totals()?)?;
    }
    for source in shared.sources.of(worker) {
        while !shared.meeting.enough.load(Ordering::Relaxed) {
            shared.outlet.has_reader(worker).await;
            let Some(batch) = shared.sources.next(source).await? else {
                break;
            };
            if shared.outlet.is_stopped() {
                return Ok(None);
            }
            metrics.rows_in(batch.num_rows());
            let evaluating = metrics.evaluate.timer();
            let batches = shared.program.evaluate(&batch)?;
            evaluating.done();
            push(shared, &mut build, &batches)?;
            if let Some(build) = &build {
                metrics.spilled(build.counters());
            }
            consume_budget().await;
        }
    }
    Ok(build)
}

fn push(shared: &Shared, build: &mut Option<Build>, batches: &[Batch]) -> Result<()> {
    for batch in batches {
        let build = match build {
            Some(build) => build,
            // Made with the first row: many workers of a small query never see one.
            None => build.insert(shared.new_build()?),
        };
        build.push(batch).map_err(to_host)?;
        if shared
            .groups_enough
            .is_some_and(|enough| build.groups() >= enough)
        {
            shared.meeting.enough.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

impl Shared {
    fn new_build(&self) -> Result<Build> {
        let spec = Arc::clone(&self.program.spec);
        Build::new(spec, self.grant(), self.spill.clone()).map_err(to_host)
    }

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

    /// Hands a build over and waits for the others; the last one makes the merge.
    async fn meet(
        &self,
        build: Option<Build>,
        metrics: &WorkerMetrics,
    ) -> Result<Option<Arc<Merge>>> {
        if let Some(build) = build {
            let built = build.finish().map_err(to_host)?;
            metrics.spilled(&built.counters);
            metrics.built(&built.counters);
            self.meeting.built.lock().push(built);
        }
        if self.meeting.building.fetch_sub(1, Ordering::AcqRel) == 1 {
            let built = std::mem::take(&mut *self.meeting.built.lock());
            let merge = Merge::new(Arc::clone(&self.program.spec), built, self.spill.clone());
            metrics.cut(self.program.spec.sizes.partitions, &merge);
            self.meeting
                .merge
                .send_replace(Stage::Merging(Arc::new(merge)));
        }
        let mut stage = self.meeting.merge.subscribe();
        let stage = stage
            .wait_for(|stage| !matches!(stage, Stage::Building))
            .await;
        Ok(match stage.as_deref() {
            Ok(Stage::Merging(merge)) => Some(Arc::clone(merge)),
            Ok(Stage::Building | Stage::Over) | Err(_) => None,
        })
    }
}

/// Phases 2 and 3: partitions into groups, groups into batches, until no task is left.
async fn finish(
    shared: &Shared,
    merge: &Merge,
    worker: usize,
    metrics: &WorkerMetrics,
) -> Result<()> {
    let cancelled = || shared.outlet.is_stopped();
    let mut merging = None;
    while let Some(task) = merge.next() {
        let merging = match &mut merging {
            Some(merging) => merging,
            None => merging.insert(merge.worker(shared.grant()).map_err(to_host)?),
        };
        consume_budget().await;
        let mut finished = match merging.run(merge, &task, &cancelled).map_err(to_host)? {
            Merged::Groups(finished) => finished,
            Merged::Parted => continue,
            Merged::Cancelled => break,
        };
        metrics.groups_out(finished.groups());
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
    if let Some(merging) = &merging {
        metrics.merged(merging.counters());
    }
    Ok(())
}
