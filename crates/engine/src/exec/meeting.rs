//! The groupings of a run and where the builds of all workers come together.
//!
//! In: one build per worker and grouping. Out: one merge per grouping, for all workers.
//! Invariant: no merge begins before all workers have handed their builds over; the last one to do so cuts it.
//! Not here: what is pushed and what becomes of the merges' groups (worker.rs).

use std::sync::Arc;

use datafusion::common::Result;
use grouse_groupby::runtime::Grant;
use grouse_groupby::{Batch, Build, Gathered, Merge, Spec, Spill};

use super::metrics::{Spilled, WorkerMetrics};
use super::rendezvous::Rendezvous;
use crate::error::to_datafusion;
use crate::runtime::trace::Phase;
use crate::runtime::wakeups;

/// One grouping of a run: what it computes and where it writes.
struct Grouping {
    spec: Arc<Spec>,
    spill: Option<Arc<Spill>>,
}

/// Where builds come together and become one merge for each of their groupings.
pub(super) struct Meeting {
    groupings: Vec<Grouping>,
    /// Of each grouping.
    place: Rendezvous<Vec<Gathered>, Vec<Merge>>,
}

impl Meeting {
    /// Of `workers` workers, each with a build of each of these groupings, which write beside `spill`.
    pub fn new<'a>(
        workers: usize,
        specs: impl Iterator<Item = &'a Arc<Spec>>,
        spill: Option<&Arc<Spill>>,
    ) -> Meeting {
        let grouping = |spec| Grouping {
            spec: Arc::clone(spec),
            spill: spill.map(|spill| Arc::new(spill.beside())),
        };
        let groupings: Vec<Grouping> = specs.map(grouping).collect();
        let nothing = groupings.iter().map(|_| Gathered::default()).collect();
        Meeting {
            groupings,
            place: Rendezvous::new(workers, nothing),
        }
    }

    /// Builds of its groupings that have not begun.
    pub fn builds(&self) -> Builds<'_> {
        let building = |grouping| Building {
            grouping,
            build: None,
            told: Spilled::default(),
        };
        Builds(self.groupings.iter().map(building).collect())
    }

    /// Hands builds over and waits for the others; the last worker makes the merges.
    pub async fn meet(
        &self,
        builds: Builds<'_>,
        metrics: &WorkerMetrics,
    ) -> Result<Option<Arc<Vec<Merge>>>> {
        for (at, mut building) in builds.0.into_iter().enumerate() {
            if let Some(build) = building.build {
                let begun = metrics.recorder.begin();
                let built = build.finish().map_err(to_datafusion)?;
                let tuples = built.blocks().map(|stored| stored.len()).sum();
                metrics.recorder.end(begun, Phase::Partition, tuples);
                metrics.spilled(&built.counters, &mut building.told);
                metrics.built(&built.counters);
                self.place.bring(|gathered| gathered[at].add(built));
            }
        }
        let cut = |gathered: Vec<Gathered>| self.cut(gathered, metrics);
        let merges = self.place.meet(cut).await;
        wakeups::share();
        Ok(merges)
    }

    fn cut(&self, gathered: Vec<Gathered>, metrics: &WorkerMetrics) -> Vec<Merge> {
        let groupings = self.groupings.iter().zip(gathered);
        let (cutting, begun) = (metrics.cut.timer(), metrics.recorder.begin());
        let merges = groupings.map(|(Grouping { spec, spill }, gathered)| {
            Merge::new(Arc::clone(spec), gathered, spill.clone())
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
        self.place.end();
    }
}

/// One worker's builds of the groupings that meet at one place, each made with its first row: many workers of a small
/// query never see one.
pub(super) struct Builds<'a>(Vec<Building<'a>>);

struct Building<'a> {
    grouping: &'a Grouping,
    build: Option<Build>,
    /// What the metrics say of it.
    told: Spilled,
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
            let Grouping { spec, spill } = building.grouping;
            let new = Build::new(Arc::clone(spec), grant(), spill.clone());
            building.build = Some(new.map_err(to_datafusion)?);
        }
        let build = building.build.as_mut().expect("made above");
        build.push(batch).map_err(to_datafusion)?;
        metrics.spilled(build.counters(), &mut building.told);
        Ok(build)
    }
}
