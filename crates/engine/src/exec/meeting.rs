//! The groupings of a run and where the builds of all workers come together.
//!
//! In: one build per worker and grouping. Out: one merge per grouping, for all workers.
//! Invariant: no merge begins before all workers have handed their builds over; the last one to do so cuts it.
//! Not here: what is pushed and what becomes of the merges' groups (worker.rs).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result;
use grouse_groupby::runtime::Grant;
use grouse_groupby::{Batch, Build, Gathered, Merge, Spec, Spill};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::memory::to_host;
use super::metrics::{Spilled, WorkerMetrics};

/// One grouping of a run: what it computes and where it writes.
struct Grouping {
    spec: Arc<Spec>,
    spill: Option<Arc<Spill>>,
}

/// Where builds come together and become one merge for each of their groupings.
pub(super) struct Meeting {
    groupings: Vec<Grouping>,
    /// Workers that still build.
    building: AtomicUsize,
    /// Of each grouping.
    gathered: Mutex<Vec<Gathered>>,
    merges: watch::Sender<Stage>,
}

#[derive(Clone)]
enum Stage {
    Building,
    Merging(Arc<Vec<Merge>>),
    /// All tasks are done; the merges' memory is free.
    Over,
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
        Meeting {
            building: AtomicUsize::new(workers),
            gathered: Mutex::new(groupings.iter().map(|_| Gathered::default()).collect()),
            groupings,
            merges: watch::Sender::new(Stage::Building),
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
                let built = build.finish().map_err(to_host)?;
                metrics.spilled(&built.counters, &mut building.told);
                metrics.built(&built.counters);
                self.gathered.lock()[at].add(built);
            }
        }
        if self.building.fetch_sub(1, Ordering::AcqRel) == 1 {
            let gathered = std::mem::take(&mut *self.gathered.lock());
            let groupings = self.groupings.iter().zip(gathered);
            let cutting = metrics.cut.timer();
            let merges = groupings.map(|(Grouping { spec, spill }, gathered)| {
                Merge::new(Arc::clone(spec), gathered, spill.clone())
            });
            let merges: Arc<Vec<Merge>> = Arc::new(merges.collect());
            cutting.done();
            self.merges
                .send_replace(Stage::Merging(Arc::clone(&merges)));
            for (Grouping { spec, .. }, merge) in self.groupings.iter().zip(&*merges) {
                metrics.cut_into(spec.sizes.partitions, merge);
            }
        }
        let mut stage = self.merges.subscribe();
        let stage = stage
            .wait_for(|stage| !matches!(stage, Stage::Building))
            .await;
        Ok(match stage.as_deref() {
            Ok(Stage::Merging(merges)) => Some(Arc::clone(merges)),
            Ok(Stage::Building | Stage::Over) | Err(_) => None,
        })
    }

    /// No task is left.
    pub fn end(&self) {
        self.merges.send_replace(Stage::Over);
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
            building.build = Some(new.map_err(to_host)?);
        }
        let build = building.build.as_mut().expect("made above");
        build.push(batch).map_err(to_host)?;
        metrics.spilled(build.counters(), &mut building.told);
        Ok(build)
    }
}
