//! Topologies of machines that are not here: files in memory, as Linux writes them.

use std::collections::BTreeMap;

use super::read::{cpus_of, size_of};
use super::{Cache, Topology};

/// Files by path.
#[derive(Default)]
struct Machine(BTreeMap<String, String>);

const CPUS: &str = "/sys/devices/system/cpu";

impl Machine {
    /// Cores, each with its CPUs, 1 MiB at the second level each, and 32 MiB for all.
    fn of(cores: &[&[usize]]) -> Machine {
        let mut machine = Machine::default();
        let all: Vec<usize> = cores.iter().copied().flatten().copied().collect();
        machine.put("/sys/devices/system/cpu/online", &list(&all));
        machine.put(
            "/sys/devices/system/cpu/smt/active",
            match all.len() > cores.len() {
                true => "1",
                false => "0",
            },
        );
        machine.put("/sys/devices/system/node/has_cpu", "0");
        for core in cores {
            for cpu in *core {
                let siblings = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
                machine.put(&siblings, &list(core));
                machine.cache(*cpu, 0, ("1", "Data", "32K"), &list(core));
                machine.cache(*cpu, 1, ("1", "Instruction", "64K"), &list(core));
                machine.cache(*cpu, 2, ("2", "Unified", "1024K"), &list(core));
                machine.cache(*cpu, 3, ("3", "Unified", "32M"), &list(&all));
            }
        }
        machine
    }

    fn put(&mut self, path: &str, text: &str) {
        self.0.insert(path.to_string(), format!("{text}\n"));
    }

    fn cache(&mut self, cpu: usize, index: usize, of: (&str, &str, &str), sharing: &str) {
        let (level, kind, size) = of;
        for (name, text) in [
            ("level", level),
            ("type", kind),
            ("size", size),
            ("shared_cpu_list", sharing),
        ] {
            self.put(&format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}"), text);
        }
    }

    fn topology(&self) -> Topology {
        let read = Topology::read(&|path| self.0.get(path).cloned());
        read.expect("a machine with CPUs")
    }
}

fn list(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(",")
}

/// Logical CPUs, cores, kinds and nodes.
fn counts(topology: &Topology) -> [usize; 4] {
    let Topology { cores, kinds, .. } = topology;
    [topology.cpus(), cores.len(), kinds.len(), topology.nodes]
}

#[test]
fn one_core() {
    let topology = Machine::of(&[&[0]]).topology();
    assert_eq!(counts(&topology), [1, 1, 1, 1]);
    assert_eq!(topology.quota, None);
    assert_eq!(topology.l2_bytes(1), 1 << 20);
    assert_eq!(topology.l2_bytes(8), 1 << 20);
}

#[test]
fn two_cores_without_siblings() {
    let topology = Machine::of(&[&[0], &[1]]).topology();
    assert_eq!(counts(&topology), [2, 2, 1, 1]);
    assert_eq!(topology.l2_bytes(2), 1 << 20);
    let cache = |level, bytes, cpus| Cache { level, bytes, cpus };
    assert_eq!(
        topology.kinds[0].caches,
        [
            cache(1, 32 << 10, 1),
            cache(2, 1 << 20, 1),
            cache(3, 32 << 20, 2)
        ]
    );
    assert_eq!(topology.cache_share(3, 1), Some(32 << 20));
    assert_eq!(topology.cache_share(3, 2), Some(16 << 20));
    assert_eq!(topology.cache_share(4, 2), None);
}

#[test]
fn siblings_share_a_core_and_its_cache() {
    let cores: Vec<[usize; 2]> = (0..8).map(|core| [core, core + 8]).collect();
    let cores: Vec<&[usize]> = cores.iter().map(|core| &core[..]).collect();
    let topology = Machine::of(&cores).topology();
    assert_eq!(counts(&topology), [16, 8, 1, 1]);
    assert_eq!(topology.cores[3].cpus, [3, 11]);
    // A core each, then two on a core.
    assert_eq!(topology.l2_bytes(8), 1 << 20);
    assert_eq!(topology.l2_bytes(9), 512 << 10);
    assert_eq!(topology.l2_bytes(16), 512 << 10);
    assert_eq!(topology.l2_bytes(64), 512 << 10);
    assert_eq!(topology.cache_share(3, 16), Some(2 << 20));
}

/// Two sockets of 112 cores with a sibling each.
fn large() -> Machine {
    let cores: Vec<[usize; 2]> = (0..224).map(|core| [core, core + 224]).collect();
    let cores: Vec<&[usize]> = cores.iter().map(|core| &core[..]).collect();
    let mut machine = Machine::of(&cores);
    machine.put("/sys/devices/system/node/has_cpu", "0-1");
    let cpulist = |node| format!("/sys/devices/system/node/node{node}/cpulist");
    machine.put(&cpulist(0), "0-111,224-335");
    machine.put(&cpulist(1), "112-223,336-447");
    for cpu in 0..448 {
        let sharing = match cpu % 224 < 112 {
            true => "0-111,224-335",
            false => "112-223,336-447",
        };
        machine.cache(cpu, 3, ("3", "Unified", "105M"), sharing);
    }
    machine
}

#[test]
fn two_sockets() {
    let topology = large().topology();
    assert_eq!(counts(&topology), [448, 224, 1, 2]);
    assert_eq!(topology.l2_bytes(224), 1 << 20);
    assert_eq!(topology.cache_share(3, 224), Some((105 << 20) / 112));
}

#[test]
fn few_files_are_read_of_a_large_machine() {
    let machine = large();
    let reads = std::cell::Cell::new(0);
    let files = |path: &str| {
        reads.set(reads.get() + 1);
        machine.0.get(path).cloned()
    };
    Topology::read(&files).expect("a machine with CPUs");
    // Siblings and speed of each core, and about 40 more.
    assert!(reads.get() < 2 * 224 + 50, "{}", reads.get());
}

#[test]
fn a_process_may_use_what_its_mask_leaves() {
    let mut machine = large();
    let status = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3,224,500";
    machine.put("/proc/thread-self/status", status);
    let topology = machine.topology();
    assert_eq!(counts(&topology), [5, 4, 1, 1]);
    assert_eq!(topology.cores[0].cpus, [0, 224]);
    // Five CPUs of the process share the socket's.
    assert_eq!(topology.cache_share(3, 5), Some((105 << 20) / 5));
}

#[test]
fn cores_that_are_offline_are_none() {
    let mut machine = Machine::of(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
    machine.put("/sys/devices/system/cpu/online", "0,2-4");
    let topology = machine.topology();
    assert_eq!(counts(&topology), [4, 3, 1, 1]);
    assert_eq!(topology.cores[0].cpus, [0, 4]);
}

#[test]
fn quotas_of_both_versions() {
    let unified = |maximum: &[(&str, &str)]| {
        let mut machine = Machine::of(&[&[0], &[1], &[2], &[3]]);
        machine.put("/proc/self/cgroup", "0::/pod/box");
        for (folder, text) in maximum {
            machine.put(&format!("/sys/fs/cgroup{folder}/cpu.max"), text);
        }
        machine.topology().quota
    };
    assert_eq!(unified(&[("/pod/box", "150000 100000")]), Some(1.5));
    assert_eq!(unified(&[("/pod/box", "max 100000")]), None);
    let narrower = [("/pod/box", "300000 100000"), ("/pod", "50000 100000")];
    assert_eq!(unified(&narrower), Some(0.5));
    assert_eq!(unified(&[("", "oh 1"), ("/pod", "1")]), None);
    let first = |quota| {
        let mut machine = Machine::of(&[&[0], &[1]]);
        machine.put("/proc/self/cgroup", "3:cpu,cpuacct:/box\n1:memory:/");
        machine.put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", quota);
        machine.put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
        machine.topology().quota
    };
    assert_eq!(first("150000"), Some(1.5));
    assert_eq!(first("-1"), None);
}

#[test]
fn kinds_of_hybrid_processors() {
    // Two large cores with siblings, four small ones that share a cache.
    let mut intel = Machine::of(&[&[0, 1], &[2, 3], &[4], &[5], &[6], &[7]]);
    intel.put("/sys/devices/cpu_core/cpus", "0-3");
    intel.put("/sys/devices/cpu_atom/cpus", "4-7");
    for cpu in 4..8 {
        intel.cache(cpu, 2, ("2", "Unified", "2048K"), "4-7");
    }
    let topology = intel.topology();
    assert_eq!(counts(&topology), [8, 6, 2, 1]);
    assert!(topology.kinds[1].is_small && !topology.kinds[0].is_small);
    assert_eq!(topology.cores[5].kind, 1);
    // Large cores have half a MiB for each of two, small ones half a MiB for each of four.
    assert_eq!(topology.l2_bytes(8), 512 << 10);

    let mut arm = Machine::of(&[&[0], &[1], &[2], &[3]]);
    for (cpu, capacity) in [(0, "446"), (1, "446"), (2, "1024"), (3, "1024")] {
        arm.put(&format!("{CPUS}/cpu{cpu}/cpu_capacity"), capacity);
    }
    let topology = arm.topology();
    let capacities: Vec<_> = topology.kinds.iter().map(|kind| kind.capacity).collect();
    assert_eq!(capacities, [Some(446), Some(1024)]);
}

#[test]
fn what_is_not_said_narrows_nothing() {
    assert_eq!(Topology::read(&|_| None), None);
    let online = |path: &str| path.ends_with("cpu/online").then(|| "0-3".to_string());
    let topology = Topology::read(&online).expect("four CPUs");
    assert_eq!(counts(&topology), [4, 4, 1, 1]);
    assert_eq!(topology.l2_bytes(4), super::L2_BYTES_DEFAULT);
    assert_eq!(counts(&Topology::unknown(3)), [3, 3, 1, 1]);
    assert!(Topology::of_this_machine().cpus() > 0);
}

#[test]
fn lists_and_sizes_are_read_as_the_kernel_writes_them() {
    let cpus = |text| cpus_of(text).map(|cpus| cpus.into_iter().collect::<Vec<_>>());
    assert_eq!(cpus("0-2,8\n"), Some(vec![0, 1, 2, 8]));
    assert_eq!(cpus("\n"), Some(vec![]));
    assert_eq!(cpus("0-x"), None);
    assert_eq!(cpus("0-4000000000"), None);
    for (text, bytes) in [
        ("2048K", Some(2 << 20)),
        ("1M", Some(1 << 20)),
        ("512", Some(512)),
        ("?", None),
    ] {
        assert_eq!(size_of(text), bytes, "{text}");
    }
}
