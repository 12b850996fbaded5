//! Memory of one session: how much the machine has, and the pool that every operator reserves from.
//!
//! In: reservations of DataFusion's operators and of ours.
//! Out: leave to hold the bytes, or an error that names the operator, the amount, the limit and the option.
//! Invariant: the sum of all reservations stays within the limit, save for `grow`, which DataFusion defines as infallible. We
//! use it for what cannot be given up: a worker's least, bytes of files that are being decoded.
//! Not here: who writes to disk when a reservation is refused; that is the operator's own decision.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use grouse_groupby::runtime::cgroup::{Cgroup, cgroups, system_file};

use crate::error::OutOfMemory;
use crate::runtime::accounted;

/// Parts of the names of those of DataFusion's consumers that keep rows until they have seen all.
const KEEPERS: [&str; 6] = [
    "Join",
    "SMJStream",
    "Sorter",
    "HashAggregate",
    "GroupedHash",
    "RecursiveQuery",
];

/// The name of our operator in plans, metrics and errors.
pub(crate) const GROUP_BY: &str = "GroupByExec";

/// A sort that holds nothing cannot write, nor can a merge that reads nothing go on: what holds no more than this takes a
/// batch more wherever memory has room. Merges hold as much from the beginning.
pub(crate) const SORT_BYTES_MIN: usize = 2 << 20;

/// The process's allocator, if it has asked.
static ALLOCATOR: OnceLock<fn(bool)> = OnceLock::new();

/// Sessions whose memory is short.
static SHORT: AtomicUsize = AtomicUsize::new(0);

/// Has `told` hear when memory becomes short (`true`): a session uses more than half of what it may. It also hears
/// when it is no longer (`false`): every session that did uses nothing. The first call in a process counts.
///
/// Pages that the allocator keeps add to those in use: as long as these are less than half they can at most double.
pub fn on_short_memory(told: fn(bool)) {
    ALLOCATOR.get_or_init(|| told);
    if SHORT.load(Ordering::Relaxed) > 0 {
        tell(true);
    }
}

fn tell(is_short: bool) {
    if let Some(told) = ALLOCATOR.get() {
        told(is_short);
    }
}

/// The session's memory pool: one counter, checked against one limit.
///
/// DataFusion's `FairSpillPool` looks at one reservation at a time and never at the sum of those that can spill. Groupings
/// can do with little, since they write to disk. DataFusion's joins cannot. Its sorts fail where they have no room to
/// merge in memory what they are about to write, and where one took it all. So while one of these is at work all groupings
/// together may hold a fifth, and so may the sorts, in equal parts. Merging takes up to 2.1 times as much again for rows
/// that it compares. That was 3 M groups by two numbers; with three tenths 3 of 40 such sorts failed at 64 MB on a busy
/// machine. A sort that merges what it wrote takes as many files at once as memory allows. Three tenths of the memory are
/// for them, in equal parts, more than for sorts, since a run of one batch is read as a whole.
#[derive(Debug)]
pub struct SessionPool {
    limit_bytes: AtomicUsize,
    used_bytes: AtomicUsize,
    /// Bytes of files that are being decoded, beside them: groupings make room for them, others do not know them.
    scan_bytes: AtomicUsize,
    /// Of these, what large pages and long rows will be when they are decoded.
    decoding_bytes: AtomicUsize,
    /// Of the used bytes, groupings hold so many.
    grouping_bytes: AtomicUsize,
    /// Consumers at work that keep rows.
    keepers: AtomicUsize,
    /// Sorts at work.
    sorts: AtomicUsize,
    /// Merges of what they wrote.
    merges: AtomicUsize,
    /// Counted in [`SHORT`].
    is_short: AtomicBool,
}

impl SessionPool {
    /// A pool of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> SessionPool {
        let pool = SessionPool {
            limit_bytes: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
            scan_bytes: AtomicUsize::new(0),
            decoding_bytes: AtomicUsize::new(0),
            grouping_bytes: AtomicUsize::new(0),
            keepers: AtomicUsize::new(0),
            sorts: AtomicUsize::new(0),
            merges: AtomicUsize::new(0),
            is_short: AtomicBool::new(false),
        };
        pool.set_limit(limit_bytes);
        pool
    }

    /// What is held beyond a lower limit stays until it is given back.
    pub fn set_limit(&self, limit_bytes: u64) {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }

    /// Bytes that may be taken in all.
    pub(crate) fn limit(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that a grouping can get.
    pub(crate) fn free_for_grouping(&self) -> usize {
        let free = self
            .bounds(ConsumerKind::Grouping)
            .map(|bound| match bound {
                Some((counter, limit)) => limit.saturating_sub(counter.load(Ordering::Relaxed)),
                None => usize::MAX,
            });
        free.into_iter().min().unwrap_or(0)
    }

    /// What counts the bytes of a kind of consumer, the narrowest first, and what they may come to now.
    fn bounds(&self, kind: ConsumerKind) -> [Option<(&AtomicUsize, usize)>; 2] {
        let limit = self.limit();
        let groupings = match self.keepers.load(Ordering::Relaxed) {
            0 => limit,
            _ => limit / 5,
        };
        let beside_scans = limit.saturating_sub(self.scan_bytes.load(Ordering::Relaxed));
        match kind {
            ConsumerKind::Scan => [None, Some((&self.scan_bytes, usize::MAX))],
            // Groupings write to disk what they have no room for; others hold theirs.
            ConsumerKind::Decoding => {
                let used = self.used_bytes.load(Ordering::Relaxed);
                let groupings = self.grouping_bytes.load(Ordering::Relaxed);
                let others = used.saturating_sub(groupings);
                [
                    Some((&self.decoding_bytes, limit.saturating_sub(others))),
                    Some((&self.scan_bytes, usize::MAX)),
                ]
            }
            ConsumerKind::Grouping => [
                Some((&self.grouping_bytes, groupings)),
                Some((&self.used_bytes, beside_scans)),
            ],
            ConsumerKind::Sort | ConsumerKind::Merge | ConsumerKind::Other => {
                [None, Some((&self.used_bytes, limit))]
            }
        }
    }

    /// True if a reservation may become so much larger.
    fn is_within_share(&self, reservation: &MemoryReservation, additional: usize) -> bool {
        let (all, among) = match ConsumerKind::of(reservation.consumer()) {
            ConsumerKind::Sort => (self.limit() / 5, &self.sorts),
            ConsumerKind::Merge => (self.limit() / 10 * 3, &self.merges),
            ConsumerKind::Scan
            | ConsumerKind::Decoding
            | ConsumerKind::Grouping
            | ConsumerKind::Other => return true,
        };
        let each = all / among.load(Ordering::Relaxed).max(1);
        let held = reservation.size();
        held <= SORT_BYTES_MIN || held.saturating_add(additional) <= each
    }

    /// After growth.
    fn look_if_short(&self) {
        if self.reserved() > self.limit() / 2
            && !self.is_short.load(Ordering::Relaxed)
            && !self.is_short.swap(true, Ordering::Relaxed)
            && SHORT.fetch_add(1, Ordering::Relaxed) == 0
        {
            tell(true);
        }
    }

    /// After something was given back.
    fn look_if_ample(&self) {
        if self.is_short.load(Ordering::Relaxed)
            && self.reserved() == 0
            && self.is_short.swap(false, Ordering::Relaxed)
            && SHORT.fetch_sub(1, Ordering::Relaxed) == 1
        {
            tell(false);
        }
    }

    /// What counts the consumers of its kind, and those that keep rows if it is one.
    fn counted(&self, consumer: &MemoryConsumer) -> impl Iterator<Item = &AtomicUsize> {
        let of_kind = match ConsumerKind::of(consumer) {
            ConsumerKind::Sort => Some(&self.sorts),
            ConsumerKind::Merge => Some(&self.merges),
            ConsumerKind::Scan
            | ConsumerKind::Decoding
            | ConsumerKind::Grouping
            | ConsumerKind::Other => None,
        };
        let keeps = KEEPERS.iter().any(|part| consumer.name().contains(part));
        of_kind.into_iter().chain(keeps.then_some(&self.keepers))
    }

    fn counters(&self, reservation: &MemoryReservation) -> impl Iterator<Item = &AtomicUsize> {
        let bounds = self.bounds(ConsumerKind::of(reservation.consumer()));
        bounds.into_iter().flatten().map(|(counter, _)| counter)
    }

    fn refuse(&self, reservation: &MemoryReservation, asked: usize) -> DataFusionError {
        let consumer = reservation.consumer();
        let share = match ConsumerKind::of(consumer) {
            ConsumerKind::Grouping if self.keepers.load(Ordering::Relaxed) > 0 => {
                " (beside joins or sorts, which leave it a fifth of the limit)"
            }
            ConsumerKind::Sort => " (a fifth of the limit is for all that sort)",
            ConsumerKind::Merge => {
                " (three tenths of the limit are for all that merge what they sorted)"
            }
            _ => "",
        };
        // DataFusion's operators spill when they see exactly this variant, so our own typed error
        // cannot travel here; `Error::from` reads it back from the text.
        DataFusionError::ResourcesExhausted(
            OutOfMemory {
                operator: format!("{}{share}", consumer.name()),
                asked_bytes: asked as u64,
                held_bytes: reservation.size() as u64,
                used_bytes: self.reserved() as u64,
                limit_bytes: self.limit() as u64,
            }
            .to_string(),
        )
    }
}

/// Consumers that are treated alike.
#[derive(Debug, Clone, Copy)]
enum ConsumerKind {
    Scan,
    /// What a scan will take beyond the bytes of its file.
    Decoding,
    Grouping,
    /// DataFusion's sorts, which keep rows and write them to disk.
    Sort,
    /// What these take to merge it.
    Merge,
    Other,
}

impl ConsumerKind {
    fn of(consumer: &MemoryConsumer) -> ConsumerKind {
        match consumer.name() {
            accounted::NAME => ConsumerKind::Scan,
            accounted::DECODING => ConsumerKind::Decoding,
            GROUP_BY => ConsumerKind::Grouping,
            name if name.contains("SorterMerge") => ConsumerKind::Merge,
            name if consumer.can_spill() && name.contains("Sorter") => ConsumerKind::Sort,
            _ => ConsumerKind::Other,
        }
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "grouse session"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        for counter in self.counted(consumer) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        for counter in self.counted(consumer) {
            counter.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        for counter in self.counters(reservation) {
            counter.fetch_add(additional, Ordering::Relaxed);
        }
        self.look_if_short();
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        for counter in self.counters(reservation) {
            counter.fetch_sub(shrink, Ordering::Relaxed);
        }
        self.look_if_ample();
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionResult<()> {
        let kind = ConsumerKind::of(reservation.consumer());
        if !self.is_within_share(reservation, additional) {
            return Err(self.refuse(reservation, additional));
        }
        let bounds = self.bounds(kind);
        for (at, bound) in bounds.iter().enumerate() {
            let Some((counter, limit)) = bound else {
                continue;
            };
            if take(counter, additional, *limit).is_err() {
                for (counter, _) in bounds[..at].iter().flatten() {
                    counter.fetch_sub(additional, Ordering::Relaxed);
                }
                return Err(self.refuse(reservation, additional));
            }
        }
        self.look_if_short();
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed) + self.scan_bytes.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit())
    }
}

impl fmt::Display for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}(used: {}, limit: {})",
            self.name(),
            self.reserved(),
            self.limit()
        )
    }
}

/// Adds to `counter` unless that would be more than `limit`; then says what it is.
pub(crate) fn take(counter: &AtomicUsize, additional: usize, limit: usize) -> Result<(), usize> {
    let added = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(additional).filter(|sum| *sum <= limit)
    });
    added.map(|_| ())
}

/// Memory that this process may use: the smallest of the machine's and of the cgroups' limits around it, when it was first
/// asked for. Reading them takes as long as a tenth of planning.
pub fn machine_memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = machine_total_bytes();
        cgroup_limits().into_iter().fold(machine, u64::min)
    })
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
    let limit = |cgroup: Cgroup| {
        let file = match cgroup.is_unified {
            true => "memory.max",
            false => "memory.limit_in_bytes",
        };
        let text = system_file(&format!("{}/{file}", cgroup.folder))?;
        text.trim().parse().ok()
    };
    let around = cgroups(&system_file, "memory").into_iter();
    around.filter_map(limit).collect()
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
    fn groupings_leave_room_to_those_that_keep_rows() {
        let session = Arc::new(SessionPool::new(1000 << 20));
        let pool: Arc<dyn MemoryPool> = Arc::clone(&session) as _;
        let grouping = MemoryConsumer::new(GROUP_BY)
            .with_can_spill(true)
            .register(&pool);
        grouping.try_grow(900 << 20).unwrap();
        assert_eq!(session.free_for_grouping(), 100 << 20);
        let join = MemoryConsumer::new("HashJoinInput").register(&pool);
        let sorts = [0, 1].map(|partition| {
            let name = format!("ExternalSorter[{partition}]");
            let consumer = MemoryConsumer::new(name).with_can_spill(true);
            consumer.register(&pool)
        });
        assert_eq!(session.free_for_grouping(), 0);
        let refused = grouping.try_grow(1 << 20).unwrap_err().to_string();
        assert!(refused.contains("a fifth of the limit"), "{refused}");
        grouping.shrink(730 << 20);
        assert_eq!(session.free_for_grouping(), 30 << 20);
        assert!(grouping.try_grow(31 << 20).is_err());
        grouping.try_grow(30 << 20).unwrap();
        for sort in &sorts {
            sort.try_grow(60 << 20).unwrap();
            assert!(sort.try_grow(41 << 20).is_err());
            sort.try_grow(40 << 20).unwrap();
        }
        let merges = [0, 1].map(|partition| {
            MemoryConsumer::new(format!("ExternalSorterMerge[{partition}]")).register(&pool)
        });
        for merge in &merges {
            merge.try_grow(150 << 20).unwrap();
            let refused = merge.try_grow(1).unwrap_err().to_string();
            assert!(refused.contains("three tenths of the limit"), "{refused}");
            merge.new_empty().try_grow(1).unwrap();
        }
        drop(merges);
        join.try_grow(600 << 20).unwrap();
        assert!(join.try_grow(1 << 20).is_err());
        drop((join, sorts));
        let scan = MemoryConsumer::new(accounted::NAME).register(&pool);
        scan.grow(900 << 20);
        assert_eq!(
            (session.free_for_grouping(), pool.reserved()),
            (0, 1100 << 20)
        );
        assert!(grouping.try_grow(1 << 20).is_err());
        let join = MemoryConsumer::new("HashJoinInput").register(&pool);
        join.try_grow(800 << 20).unwrap();
        drop((scan, join));
        grouping.try_grow(800 << 20).unwrap();
        session.set_limit(100 << 20);
        assert!(grouping.try_grow(1 << 20).is_err());
        drop(grouping);
        assert_eq!(
            (pool.reserved(), session.free_for_grouping()),
            (0, 100 << 20)
        );
    }

    /// The one test that has the allocator's place; other tests' sessions are short, too.
    #[test]
    fn the_allocator_hears_when_memory_is_short() {
        static TOLD: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        on_short_memory(|is_short| {
            TOLD[usize::from(is_short)].fetch_add(1, Ordering::Relaxed);
        });
        let session = Arc::new(SessionPool::new(1000));
        let pool: Arc<dyn MemoryPool> = Arc::clone(&session) as _;
        let holder = MemoryConsumer::new("holder").register(&pool);
        let is_short = || session.is_short.load(Ordering::Relaxed);
        holder.try_grow(500).unwrap();
        assert!(!is_short());
        holder.try_grow(1).unwrap();
        assert!(is_short() && TOLD[1].load(Ordering::Relaxed) > 0);
        holder.shrink(500);
        assert!(is_short());
        holder.shrink(1);
        assert!(!is_short());
        holder.grow(501);
        assert!(is_short());
        drop(holder);
        assert!(!is_short());
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
