//! One group-by over batches in memory, timed.
//!
//! In: a spec, batches made beforehand, threads. Out: time of each phase, CPU time of all threads, what was counted.
//! Invariant: each thread takes its share of the batches in order, as a scan would give it.
//! Not here: which keys (`operator`, `policy`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use grouse_groupby::runtime::budget::Unlimited;
use grouse_groupby::runtime::{Counters, Grant};
use grouse_groupby::{Batch, Build, Built, Disk, Merge, ScratchFile, Spec, Spill};
use nix::time::{ClockId, clock_gettime};

/// Rows of a batch, which is what a scan gives.
pub const BATCH_ROWS: usize = 8_192;

/// What one run took and counted.
pub struct Outcome {
    /// Wall time of the builds.
    pub build: Duration,
    /// Wall time of the merge, results included.
    pub merge: Duration,
    /// CPU time of all threads in the builds; nothing where the system does not tell.
    pub build_cpu: Duration,
    /// The same in the merge.
    pub merge_cpu: Duration,
    /// Groups that came out.
    pub groups: usize,
    /// Counters of all builds.
    pub counters: Counters,
    /// The longest task of the merge.
    pub longest: Longest,
}

/// Times of merge tasks with their groups' batches: what the longest one has of all bounds what more workers can do.
#[derive(Default)]
pub struct Longest {
    task: Duration,
    all: Duration,
}

impl Longest {
    fn add(&mut self, task: Duration) {
        self.join(&Self { task, all: task });
    }

    fn join(&mut self, other: &Self) {
        self.task = self.task.max(other.task);
        self.all += other.all;
    }

    /// Its share of all tasks' time.
    pub fn percent(&self) -> f64 {
        self.task.as_secs_f64() * 100.0 / self.all.as_secs_f64()
    }
}

/// One group-by over all batches.
pub fn run(spec: &Arc<Spec>, batches: &[Batch], threads: usize) -> Outcome {
    let started = Instant::now();
    let spill = Arc::new(Spill::new(Nowhere, true));
    let share = batches.len().div_ceil(threads);
    let shares = batches.chunks(share);
    let begun = &spill;
    let built = together(shares.map(|share| move || build(spec, share, begun)));
    let build = started.elapsed();
    let build_cpu = built.iter().map(|(_, cpu)| *cpu).sum();
    let built: Vec<Built> = built.into_iter().map(|(built, _)| built).collect();
    let mut counters = Counters::default();
    built.iter().for_each(|built| counters.add(&built.counters));
    let merge = Merge::new(Arc::clone(spec), built.into_iter().collect(), Some(spill));
    let merged = together((0..threads).map(|_| || tasks(&merge)));
    let (mut groups, mut longest) = (0, Longest::default());
    for ((of_one, times), _) in &merged {
        groups += of_one;
        longest.join(times);
    }
    Outcome {
        build,
        merge: started.elapsed() - build,
        build_cpu,
        merge_cpu: merged.iter().map(|(_, cpu)| *cpu).sum(),
        groups,
        counters,
        longest,
    }
}

/// What each thread gives, and its CPU time.
fn together<T: Send, W: FnOnce() -> T + Send>(work: impl Iterator<Item = W>) -> Vec<(T, Duration)> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = work
            .map(|work| scope.spawn(|| (work(), thread_cpu())))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.map(|result| result.expect("a thread")).collect()
    })
}

/// Time that this thread has run so far.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn grant() -> Grant {
    Grant::new(Arc::new(Unlimited))
}

/// Memory is ample, so that nothing is written. Workers share blocks as those of a query do.
struct Nowhere;

impl Disk for Nowhere {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

fn build(spec: &Arc<Spec>, share: &[Batch], spill: &Arc<Spill>) -> Built {
    let spill = Some(Arc::clone(spill));
    let mut build = Build::new(Arc::clone(spec), grant(), spill).expect("a build");
    for batch in share {
        build.push(batch).expect("memory");
    }
    build.finish().expect("memory")
}

/// The tasks that one thread gets: how many groups they have, and their times.
fn tasks(merge: &Merge) -> (usize, Longest) {
    let mut worker = merge.worker(grant()).expect("a worker");
    let (mut groups, mut longest) = (0, Longest::default());
    while let Some(task) = merge.next().expect("memory") {
        let started = Instant::now();
        let merged = worker.run(merge, &task, &|| false).expect("memory");
        if let Some(mut finished) = merged.groups() {
            while let Some(batch) = finished.next(BATCH_ROWS).expect("a batch") {
                groups += batch.rows;
            }
        }
        longest.add(started.elapsed());
    }
    (groups, longest)
}
