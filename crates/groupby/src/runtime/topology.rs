//! The machine as this process may use it: cores with their siblings, kinds and caches, nodes of memory, a quota of CPU time.
//!
//! In: what Linux says in `/sys` and `/proc`; elsewhere what the standard library knows. Out: [`Topology`].
//! Invariant: at least one core. What is not said, or not as expected, narrows nothing.
//! Each file costs a call of the system, and large machines have thousands: siblings and cores of one kind are taken to be alike.
//! Not here: how many workers there are; the session decides.

mod read;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::cgroup::system_file;

/// A core's second-level cache where nothing is known.
const L2_BYTES_DEFAULT: usize = 1 << 20;

/// What of a machine a process may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Cores of which it may use at least one logical CPU.
    pub cores: Vec<Core>,
    /// Kinds of cores; hybrid machines have several.
    pub kinds: Vec<CoreKind>,
    /// Nodes of memory that these cores belong to.
    pub nodes: usize,
    /// CPUs whose time cgroups allow at most, such as 1.5.
    pub quota: Option<f64>,
}

/// A physical core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// Its logical CPUs that the process may use; several are siblings, which share what the core has.
    pub cpus: Vec<usize>,
    /// Its place in [`Topology::kinds`].
    pub kind: usize,
}

/// What cores of a kind have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreKind {
    /// Its speed, where the fastest has 1024; `None` where the system does not say.
    pub capacity: Option<u32>,
    /// True of a hybrid processor's small cores.
    pub is_small: bool,
    /// Its caches of data, from the nearest on.
    pub caches: Vec<Cache>,
}

/// A cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: usize,
    /// Its size.
    pub bytes: usize,
    /// Logical CPUs that share it and that the process may use.
    pub cpus: usize,
}

impl Topology {
    /// Of this machine, when it was first asked for.
    pub fn of_this_machine() -> &'static Topology {
        static THIS: LazyLock<Topology> = LazyLock::new(|| {
            let read = Topology::read(&system_file);
            read.unwrap_or_else(|| {
                let cpus = std::thread::available_parallelism().map_or(1, usize::from);
                Topology::unknown(cpus)
            })
        });
        &THIS
    }

    /// Of a machine that says no more than how many CPUs it has.
    fn unknown(cpus: usize) -> Topology {
        let core = |cpu| Core {
            cpus: vec![cpu],
            kind: 0,
        };
        Topology {
            cores: (0..cpus).map(core).collect(),
            kinds: vec![CoreKind {
                capacity: None,
                is_small: false,
                caches: Vec::new(),
            }],
            nodes: 1,
            quota: None,
        }
    }

    /// Logical CPUs.
    pub fn cpus(&self) -> usize {
        self.cores.iter().map(|core| core.cpus.len()).sum()
    }

    /// Bytes of a cache of this level that each of `workers` workers has for itself, on the middle one of the cores: workers
    /// move between cores. With fewer workers than CPUs, the system spreads them over the caches.
    pub fn cache_share(&self, level: usize, workers: usize) -> Option<usize> {
        let cpus = self.cpus();
        let share = |core: &Core| {
            let caches = &self.kinds[core.kind].caches;
            let cache = caches.iter().find(|cache| cache.level == level)?;
            let sharing = (workers * cache.cpus).div_ceil(cpus);
            Some(cache.bytes / sharing.clamp(1, cache.cpus.max(1)))
        };
        let mut shares: Vec<usize> = self.cores.iter().filter_map(share).collect();
        shares.sort_unstable();
        shares.get(shares.len().saturating_sub(1) / 2).copied()
    }

    /// Bytes of the second-level cache that each of `workers` workers has for itself.
    pub fn l2_bytes(&self, workers: usize) -> usize {
        self.cache_share(2, workers).unwrap_or(L2_BYTES_DEFAULT)
    }
}
