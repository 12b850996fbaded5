//! Reads a topology from Linux's files.
//!
//! In: `/sys/devices`, the mask of CPUs of this thread, the cgroups around the process. Out: a topology, or nothing where
//! no CPU is listed.
//! Invariant: what is read is the same whatever the order of CPUs; nothing here measures.
//! Not here: what follows from it.

use std::collections::BTreeSet;

use super::{Cache, Core, CoreKind, Topology};
use crate::runtime::cgroup::{SystemFiles, cgroups};

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";
/// The small cores of Intel's hybrid processors.
const SMALL_CPUS: &str = "/sys/devices/cpu_atom/cpus";
/// Levels of data and of instructions together; no processor has as many.
const CACHES_MAX: usize = 8;
/// No machine has as many CPUs: a list with more is no list of CPUs.
const CPUS_MAX: usize = 1 << 16;

impl Topology {
    /// As the files say.
    pub fn read(files: SystemFiles<'_>) -> Option<Topology> {
        let usable = usable_cpus(files)?;
        let small = listed(files, SMALL_CPUS).unwrap_or_default();
        let mut kinds: Vec<CoreKind> = Vec::new();
        let mut core = |cpus: Vec<usize>| {
            let (capacity, is_small) = (capacity(files, cpus[0]), small.contains(&cpus[0]));
            let known = kinds
                .iter()
                .position(|kind| (kind.capacity, kind.is_small) == (capacity, is_small));
            let kind = known.unwrap_or_else(|| {
                kinds.push(CoreKind {
                    capacity,
                    is_small,
                    caches: caches(files, cpus[0], &usable),
                });
                kinds.len() - 1
            });
            Core { cpus, kind }
        };
        let cores = siblings(files, &usable).into_iter().map(&mut core);
        Some(Topology {
            cores: cores.collect(),
            nodes: nodes(files, &usable),
            quota: quota(files),
            kinds,
        })
    }
}

/// CPUs that are online and that this thread may run on.
fn usable_cpus(files: SystemFiles<'_>) -> Option<BTreeSet<usize>> {
    let online = listed(files, &format!("{CPUS}/online"))?;
    let status = files("/proc/thread-self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = mask.and_then(cpus_of);
    let both: BTreeSet<usize> = match &allowed {
        Some(allowed) => online.intersection(allowed).copied().collect(),
        None => online,
    };
    (!both.is_empty()).then_some(both)
}

/// The usable CPUs of each core.
fn siblings(files: SystemFiles<'_>, usable: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let smt = files(&format!("{CPUS}/smt/active"));
    let alone = smt.is_some_and(|active| active.trim() == "0");
    let mut left = usable.clone();
    let mut cores = Vec::new();
    while let Some(cpu) = left.pop_first() {
        let path = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
        let all = match alone {
            true => None,
            false => listed(files, &path),
        };
        let others = all.into_iter().flatten().filter(|other| left.remove(other));
        cores.push(std::iter::once(cpu).chain(others).collect());
    }
    cores
}

fn capacity(files: SystemFiles<'_>, cpu: usize) -> Option<u32> {
    let text = files(&format!("{CPUS}/cpu{cpu}/cpu_capacity"))?;
    text.trim().parse().ok()
}

/// The caches of data of one CPU.
fn caches(files: SystemFiles<'_>, cpu: usize, usable: &BTreeSet<usize>) -> Vec<Cache> {
    let cache = |index| {
        let file = |name| files(&format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}"));
        let level: usize = file("level")?.trim().parse().ok()?;
        if file("type")?.trim() == "Instruction" {
            return None;
        }
        let bytes = size_of(file("size")?.trim())?;
        let sharing = file("shared_cpu_list").and_then(|list| cpus_of(&list));
        let sharing = sharing.map_or(1, |sharing| sharing.intersection(usable).count());
        Some(Cache {
            level,
            bytes,
            cpus: sharing.max(1),
        })
    };
    let mut caches: Vec<Cache> = (0..CACHES_MAX).filter_map(cache).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// Nodes with usable CPUs.
fn nodes(files: SystemFiles<'_>, usable: &BTreeSet<usize>) -> usize {
    let all = listed(files, &format!("{NODES}/has_cpu")).unwrap_or_default();
    if all.len() <= 1 {
        return 1;
    }
    let is_used = |node: &&usize| {
        let own = listed(files, &format!("{NODES}/node{node}/cpulist"));
        own.is_some_and(|own| !own.is_disjoint(usable))
    };
    all.iter().filter(is_used).count().max(1)
}

/// The least quota of all cgroups around the process, in CPUs.
fn quota(files: SystemFiles<'_>) -> Option<f64> {
    let quotas = cgroups(files, "cpu").into_iter().filter_map(|cgroup| {
        let file = |name| files(&format!("{}/{name}", cgroup.folder));
        let (quota, period) = match cgroup.is_unified {
            true => {
                let text = file("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.to_string(), period.to_string())
            }
            false => (file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?),
        };
        // Without a limit it is `max` in version 2, and -1 in version 1.
        let quota: u64 = quota.trim().parse().ok()?;
        let period: u64 = period.trim().parse().ok()?;
        (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
    });
    quotas.reduce(f64::min)
}

fn listed(files: SystemFiles<'_>, path: &str) -> Option<BTreeSet<usize>> {
    cpus_of(&files(path)?)
}

/// CPUs as the kernel lists them: `0-3,8`.
pub(super) fn cpus_of(list: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Bytes as the kernel writes them: `2048K`.
pub(super) fn size_of(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(['K', 'M']);
    let number: usize = digits.parse().ok()?;
    match &text[digits.len()..] {
        "K" => Some(number << 10),
        "M" => Some(number << 20),
        "" => Some(number),
        _ => None,
    }
}
