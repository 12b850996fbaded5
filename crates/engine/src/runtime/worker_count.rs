//! How many workers a session has where nobody says it: a rule over published measurements.
//!
//! In: the machine's topology. Out: a number of workers, at least one.
//! Invariant: pure. Siblings work wherever they gained in what was measured, else one worker a core; a quota is rounded up.
//! Not here: reading the machine (the algorithm's `runtime/topology.rs`); option `threads`, which overrides it.

use grouse_groupby::runtime::Topology;

/// Queries per second of ClickBench by logical CPUs, two a core: with a worker on each of them, and with one a core. Published
/// beside the rule by which ClickHouse leaves siblings idle.
const MEASURED: [Measured; 9] = [
    Measured::new(16, 5.79, 4.71),
    Measured::new(32, 8.38, 7.40),
    Measured::new(48, 9.48, 8.81),
    Measured::new(64, 9.93, 9.76),
    Measured::new(80, 9.63, 10.25),
    Measured::new(96, 10.13, 10.92),
    Measured::new(112, 10.28, 11.59),
    Measured::new(128, 10.46, 12.00),
    Measured::new(144, 10.42, 12.09),
];

struct Measured {
    cpus: usize,
    of_cpus: f64,
    of_cores: f64,
}

impl Measured {
    const fn new(cpus: usize, of_cpus: f64, of_cores: f64) -> Measured {
        Measured {
            cpus,
            of_cpus,
            of_cores,
        }
    }
}

/// Workers for a machine. Small cores count as others do: workers take pieces from one queue, and slow ones take fewer.
pub(super) fn worker_count(topology: &Topology) -> usize {
    let by_machine = match topology.cpus() <= siblings_gain_up_to() {
        true => topology.cpus(),
        false => topology.cores.len(),
    };
    // Half a CPU is worth a worker: at the end of a query it has the time that others do not use.
    let by_quota = topology
        .quota
        .map_or(usize::MAX, |cpus| cpus.ceil() as usize);
    by_machine.min(by_quota).max(1)
}

/// The most logical CPUs with which a worker on each gave more than one a core.
fn siblings_gain_up_to() -> usize {
    let gained = MEASURED.iter().filter(|at| at.of_cpus >= at.of_cores);
    gained.map(|at| at.cpus).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use grouse_groupby::runtime::topology::{Core, CoreKind};

    use super::*;

    fn machine(cores: usize, siblings: usize, quota: Option<f64>) -> Topology {
        let core = |at| Core {
            cpus: (0..siblings).map(|sibling| at + sibling * cores).collect(),
            kind: 0,
        };
        Topology {
            cores: (0..cores).map(core).collect(),
            kinds: vec![CoreKind {
                capacity: None,
                is_small: false,
                caches: Vec::new(),
            }],
            nodes: 1,
            quota,
        }
    }

    #[test]
    fn siblings_work_up_to_64_cpus() {
        assert_eq!(siblings_gain_up_to(), 64);
        for (cores, siblings, workers) in [
            (1, 1, 1),
            (2, 1, 2),
            (8, 2, 16),
            (32, 2, 64),
            (33, 2, 33),
            (224, 2, 224),
            // Without siblings there is nothing to leave idle.
            (96, 1, 96),
        ] {
            let of = worker_count(&machine(cores, siblings, None));
            assert_eq!(of, workers, "{cores} cores with {siblings} CPUs each");
        }
    }

    #[test]
    fn a_quota_is_rounded_up() {
        for (quota, workers) in [(0.1, 1), (1.0, 1), (1.5, 2), (7.2, 8), (40.0, 16)] {
            let of = worker_count(&machine(8, 2, Some(quota)));
            assert_eq!(of, workers, "a quota of {quota}");
        }
    }
}
