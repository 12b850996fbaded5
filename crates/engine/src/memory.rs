//! Memory of one session: how much the machine has, and the pool that every operator reserves from.
//!
//! In: reservations of the host's operators and of ours.
//! Out: leave to hold the bytes, or an error that names the operator, the amount, the limit and the option.
//! Invariant: the sum of all reservations stays within the limit, save for `grow`, which the host defines as infallible.
//! Not here: who writes to disk when a reservation is refused; that is the operator's own decision.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

use crate::error::OutOfMemory;

/// The session's memory pool: one counter, checked against one limit.
///
/// The host's `FairSpillPool` looks at one reservation at a time and never at the sum of those that can spill.
#[derive(Debug)]
pub struct SessionPool {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
}

impl SessionPool {
    /// A pool of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> SessionPool {
        SessionPool {
            limit_bytes: usize::try_from(limit_bytes).unwrap_or(usize::MAX),
            used_bytes: AtomicUsize::new(0),
        }
    }

    fn refuse(
        &self,
        reservation: &MemoryReservation,
        asked: usize,
        used: usize,
    ) -> DataFusionError {
        // The host's operators spill when they see exactly this variant, so our own typed error
        // cannot travel here; `Error::from` reads it back from the text.
        DataFusionError::ResourcesExhausted(
            OutOfMemory {
                operator: reservation.consumer().name().to_string(),
                asked_bytes: asked as u64,
                held_bytes: reservation.size() as u64,
                used_bytes: used as u64,
                limit_bytes: self.limit_bytes as u64,
            }
            .to_string(),
        )
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "grouse session"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.used_bytes.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.used_bytes.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.used_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(additional)
                    .filter(|sum| *sum <= self.limit_bytes)
            })
            .map(|_| ())
            .map_err(|used| self.refuse(reservation, additional, used))
    }

    fn reserved(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit_bytes)
    }
}

impl fmt::Display for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}(used: {}, limit: {})",
            self.name(),
            self.reserved(),
            self.limit_bytes
        )
    }
}

/// Memory that this process may use: the smallest of the machine's and of the cgroups' limits around it.
pub fn machine_memory_bytes() -> u64 {
    let machine = machine_total_bytes();
    cgroup_limits().into_iter().fold(machine, u64::min)
}

fn machine_total_bytes() -> u64 {
    std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| parse_meminfo(&text))
        .or_else(machine_total_from_system)
        .unwrap_or(MACHINE_UNKNOWN_BYTES)
}

/// Assumed where the system does not say: small enough for any machine that can build this.
const MACHINE_UNKNOWN_BYTES: u64 = 4 << 30;

fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// Asks the system's own tool where there is no /proc (macOS).
fn machine_total_from_system() -> Option<u64> {
    let output = std::process::Command::new("sysctl")
        .args(["-n", "hw.memsize"])
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Limits of this process's cgroup and of every one above it (version 2), or of its memory controller (version 1).
fn cgroup_limits() -> Vec<u64> {
    let mut limits = Vec::new();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut folder = path.trim_start_matches('/');
        loop {
            let text = std::fs::read_to_string(std::path::Path::new(root).join(folder).join(file));
            limits.extend(text.ok().and_then(|text| text.trim().parse::<u64>().ok()));
            if folder.is_empty() {
                break;
            }
            folder = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::MemoryConsumer;

    use super::*;
    use crate::error::Error;

    #[test]
    fn the_sum_is_bounded_and_the_error_says_everything() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(1000));
        let first = MemoryConsumer::new("first").register(&pool);
        let second = MemoryConsumer::new("second").register(&pool);
        first.try_grow(600).unwrap();
        let error = Error::from(second.try_grow(500).unwrap_err());
        let text = error.to_string();
        for part in ["second", "500", "600", "1000", "memory_limit"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(
            matches!(&error, Error::OutOfMemory(out) if out.operator == "second" && out.asked_bytes == 500)
        );
        drop(first);
        second.try_grow(1000).unwrap();
        assert_eq!(pool.reserved(), 1000);
    }

    #[test]
    fn meminfo() {
        assert_eq!(
            parse_meminfo("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            Some(16384 << 10)
        );
        assert_eq!(parse_meminfo("nothing"), None);
        assert!(machine_memory_bytes() > 1 << 20);
    }
}
