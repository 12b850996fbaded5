//! The groupings of an execution, and the barrier at which the builds of all workers become their merges.
//!
//! In: one build per worker and grouping. Out: one merge per grouping, for all workers.
//! Invariant: no merge begins before all workers have handed their builds over; the last one to do so cuts it.
//! Not here: what is pushed and what becomes of the merges' groups (worker.rs).

use std::sync::Arc;

use datafusion::common::Result;
use grouse_groupby::runtime::Grant;
use grouse_groupby::{Batch, Build, FirstGroups, Merge, MergeInput, Spec, Spill};

use super::barrier::Barrier;
use super::metrics::{Spilled, WorkerMetrics};
use crate::error::to_datafusion;
use crate::runtime::trace::Phase;
use crate::runtime::wakeups;

/// One grouping of an execution: what it computes and where it writes.
struct Grouping {
    spec: Arc<Spec>,
    spill: Option<Arc<Spill>>,
    /// The groups that are wanted, if not all.
    first: Option<Arc<FirstGroups>>,
}

/// The barrier at which builds become one merge for each of their groupings.
pub(super) struct BuildBarrier {
    groupings: Vec<Grouping>,
    /// Of each grouping.
    barrier: Barrier<Vec<MergeInput>, Vec<Merge>>,
}

impl BuildBarrier {
    /// Of `workers` workers, each with a build of each of these groupings, which write beside `spill`.
    pub fn new<'a>(
        workers: usize,
        specs: impl Iterator<Item = &'a Arc<Spec>>,
        spill: Option<&Arc<Spill>>,
    ) -> BuildBarrier {
        let grouping = |spec| Grouping {
            spec: Arc::clone(spec),
            spill: spill.map(|spill| Arc::new(spill.beside())),
            first: None,
        };
        let groupings: Vec<Grouping> = specs.map(grouping).collect();
        let nothing = groupings.iter().map(|_| MergeInput::default()).collect();
        BuildBarrier {
            groupings,
            barrier: Barrier::new(workers, nothing),
        }
    }

    /// The same, of whose groups only the chosen ones are wanted.
    pub fn choosing(mut self, first: Option<&Arc<FirstGroups>>) -> BuildBarrier {
        for grouping in &mut self.groupings {
            grouping.first = first.cloned();
        }
        self
    }

    /// Builds of its groupings that have not begun.
    pub fn builds(&self) -> Builds<'_> {
        let building = |grouping| Building {
            grouping,
            build: None,
            reported: Spilled::default(),
        };
        Builds(self.groupings.iter().map(building).collect())
    }

    /// Hands builds over and waits for the others; the last worker makes the merges.
    pub async fn wait(
        &self,
        builds: Builds<'_>,
        metrics: &WorkerMetrics,
    ) -> Result<Option<Arc<Vec<Merge>>>> {
        for (at, mut building) in builds.0.into_iter().enumerate() {
            if let Some(build) = building.build {
                let begun = metrics.recorder.begin();
                let built = build.finish().map_err(to_datafusion)?;
                metrics
                    .recorder
                    .end(begun, Phase::Partition, built.tuples());
                metrics.spilled(&built.counters, &mut building.reported);
                metrics.built(&built.counters);
                self.barrier.add(|inputs| inputs[at].add(built));
            }
        }
        let cut = |inputs: Vec<MergeInput>| self.cut(inputs, metrics);
        let merges = self.barrier.wait(cut).await;
        wakeups::share();
        Ok(merges)
    }

    fn cut(&self, inputs: Vec<MergeInput>, metrics: &WorkerMetrics) -> Vec<Merge> {
        let groupings = self.groupings.iter().zip(inputs);
        let (cutting, begun) = (metrics.cut.timer(), metrics.recorder.begin());
        let merges = groupings.map(|(Grouping { spec, spill, .. }, input)| {
            Merge::new(Arc::clone(spec), input, spill.clone())
        });
        let merges: Vec<Merge> = merges.collect();
        cutting.done();
        let tasks = merges.iter().map(Merge::tasks).sum();
        metrics.recorder.end(begun, Phase::Cut, tasks);
        for (Grouping { spec, .. }, merge) in self.groupings.iter().zip(&merges) {
            metrics.cut_into(spec.sizes.partitions, merge);
        }
        merges
    }

    /// No task is left.
    pub fn end(&self) {
        self.barrier.end();
    }
}

/// One worker's builds of the groupings of one barrier, each made with its first row: many workers of a small
/// query never see one.
pub(super) struct Builds<'a>(Vec<Building<'a>>);

struct Building<'a> {
    grouping: &'a Grouping,
    build: Option<Build>,
    /// What the metrics say of it.
    reported: Spilled,
}

impl Builds<'_> {
    /// Nobody wants them any more.
    pub fn give_up(&mut self) {
        for building in &mut self.0 {
            building.build = None;
        }
    }

    /// True if the build of one grouping takes rows that nobody wants.
    pub fn takes_selections(&self, grouping: usize) -> bool {
        let build = self.0[grouping].build.as_ref();
        build.is_none_or(Build::takes_selections)
    }

    /// Pushes into the build of one grouping.
    pub fn push(
        &mut self,
        grouping: usize,
        batch: &Batch,
        grant: impl Fn() -> Grant,
        metrics: &WorkerMetrics,
    ) -> Result<&Build> {
        let building = &mut self.0[grouping];
        if building.build.is_none() {
            let Grouping { spec, spill, first } = building.grouping;
            let new = Build::new(Arc::clone(spec), grant(), spill.clone());
            let new = new.map_err(to_datafusion)?;
            building.build = Some(match first {
                Some(first) => new.choosing(Arc::clone(first)),
                None => new,
            });
        }
        let build = building.build.as_mut().expect("made above");
        build.push(batch).map_err(to_datafusion)?;
        metrics.spilled(build.counters(), &mut building.reported);
        Ok(build)
    }
}
