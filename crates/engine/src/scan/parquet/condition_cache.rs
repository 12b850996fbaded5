//! Condition cache: which rows of a Parquet file a condition is known to leave none of.
//!
//! In: the version of a file, conditions of which all have to hold, for a row group which ranges had a row that they held for.
//! Out: the same to whoever asks for these conditions or more, before anything of the file is read.
//! Invariant: a range without its bit was evaluated or excluded as a whole, on exactly this version of the file and by exactly
//! these conditions. All rows of its row group were, without an error, before the row group was written down at all. What a
//! filter leaves of a conjunction says nothing of its parts, so a conjunction is kept as a set, and knowledge of a set holds
//! for every larger one. A file that is too young to tell a change by its times has no version.
//! Not here: who evaluates (exec/recording_filter.rs), what counts as evaluated (recording.rs), how conditions are written
//! (optimizer/scans/conditions.rs).
//!
//! All sessions of a process share one cache. Readers share its lock; the lock is taken alone only where something changes.

mod set_tree;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::ObjectMeta;
use parking_lot::RwLock;

use crate::scan::steady::is_same;
use set_tree::SetTree;

/// Rows of a range, for which one bit says whether the conditions held for any of them: a batch of DataFusion's.
pub(crate) const RANGE_ROWS: usize = 8_192;
/// A shorter stretch in a row group is read although no row of it is wanted: it is about a page, which is decoded in any case.
const SKIPPED_ROWS_MIN: usize = 4 * RANGE_ROWS;
/// What all sessions of a process keep together: 280,000 row groups of a million rows, or 40,000 pairs of conditions.
const BYTES_MAX: usize = 32 << 20;
/// What keeping a set of conditions takes, each of them beside its string, and a row group beside its bits.
const SET_BYTES: usize = 256;
const CONDITION_BYTES: usize = 192;
const GROUP_BYTES: usize = 96;
/// Two changes within a tick of a file system's clock give a file the same times. This is the longest tick there is.
const AGE_MIN: Duration = Duration::from_secs(2);

static CACHE: LazyLock<ConditionCache> = LazyLock::new(|| ConditionCache::new(BYTES_MAX));

/// Conditions as they are written, in order and each once, all of which have to hold.
pub(crate) type Conjunction = Arc<[String]>;

/// One version of one file: another one is another file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FileVersion {
    /// On this machine. A change that puts the time of modification back does not put back the time of change.
    Local {
        device: u64,
        node: u64,
        bytes: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    },
    /// Behind an address.
    Remote {
        place: String,
        tag: Option<String>,
        version: Option<String>,
        bytes: u64,
        modified_ns: Option<i64>,
    },
}

impl FileVersion {
    /// That of a local file, if it is the one that planning found and was not changed just before `now`.
    #[cfg(unix)]
    pub fn of_local(path: &Path, planned: &ObjectMeta, now: SystemTime) -> Option<FileVersion> {
        let found = std::fs::metadata(path).ok()?;
        if !is_same(&found, planned) {
            return None;
        }
        let version = FileVersion::found(&found);
        let FileVersion::Local {
            modified, changed, ..
        } = &version
        else {
            return None;
        };
        let now = now.duration_since(UNIX_EPOCH).ok()?;
        let old = now.checked_sub(AGE_MIN)?;
        let old = (
            i64::try_from(old.as_secs()).ok()?,
            i64::from(old.subsec_nanos()),
        );
        (*modified < old && *changed < old).then_some(version)
    }

    #[cfg(not(unix))]
    pub fn of_local(_: &Path, _: &ObjectMeta, _: SystemTime) -> Option<FileVersion> {
        None
    }

    #[cfg(unix)]
    fn found(file: &std::fs::Metadata) -> FileVersion {
        use std::os::unix::fs::MetadataExt;
        FileVersion::Local {
            device: file.dev(),
            node: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// That of an object at a place, whose store has to say which it is: a weak tag does not.
    pub fn of_remote(place: String, planned: &ObjectMeta) -> Option<FileVersion> {
        let is_strong = |tag: &&String| !tag.starts_with("W/");
        let tag = planned.e_tag.as_ref().filter(is_strong).cloned();
        let version = planned.version.clone();
        (tag.is_some() || version.is_some()).then(|| FileVersion::Remote {
            place: format!("{place}\0{}", planned.location),
            tag,
            version,
            bytes: planned.size,
            modified_ns: planned.last_modified.timestamp_nanos_opt(),
        })
    }

    /// Whether the file at `path` still is this version. Stores hold each read against the version themselves.
    pub fn is_at(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            std::fs::metadata(path).is_ok_and(|found| FileVersion::found(&found) == *self)
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            false
        }
    }
}

/// Of one row group, for which ranges of rows the conditions held at least once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MatchedRanges {
    rows: usize,
    bits: Box<[u64]>,
}

/// Words of the bits of a row group.
pub(crate) fn range_words(rows: usize) -> usize {
    rows.div_ceil(RANGE_ROWS).div_ceil(64)
}

impl MatchedRanges {
    pub fn new(rows: usize, bits: Box<[u64]>) -> MatchedRanges {
        assert_eq!(bits.len(), range_words(rows), "bits of another row group");
        MatchedRanges { rows, bits }
    }

    fn has(&self, range: usize) -> bool {
        self.bits[range / 64] >> (range % 64) & 1 == 1
    }
}

/// What is left of a row group by all that is known of it, in order. `is_paged`: rows in its middle are found without reading
/// those before. Knowledge of a row group with another number of rows is of another one.
pub(crate) fn rows_left(
    rows: usize,
    known: &[Arc<MatchedRanges>],
    is_paged: bool,
) -> Vec<Range<usize>> {
    let known = || known.iter().filter(|known| known.rows == rows);
    let mut left: Vec<Range<usize>> = Vec::new();
    for range in 0..rows.div_ceil(RANGE_ROWS) {
        if !known().all(|known| known.has(range)) {
            continue;
        }
        let (start, end) = (range * RANGE_ROWS, rows.min((range + 1) * RANGE_ROWS));
        let before = left.last().map_or(0, |last| last.end);
        let is_near = start - before < SKIPPED_ROWS_MIN;
        match left.last_mut() {
            Some(last) if is_near => last.end = end,
            None if is_near => left.push(0..end),
            _ => left.push(start..end),
        }
    }
    match left.last_mut() {
        Some(last) if rows - last.end < SKIPPED_ROWS_MIN => last.end = rows,
        _ => {}
    }
    match left.is_empty() || is_paged {
        true => left,
        false => std::iter::once(0..rows).collect(),
    }
}

/// What is known of the row groups of a file under some conditions.
#[derive(Debug, Default)]
pub(crate) struct KnownGroups {
    groups: HashMap<usize, Vec<Arc<MatchedRanges>>>,
    /// Those that are known under exactly these conditions.
    own: HashSet<usize>,
}

impl KnownGroups {
    pub fn of(&self, group: usize) -> &[Arc<MatchedRanges>] {
        self.groups.get(&group).map_or(&[], Vec::as_slice)
    }

    /// Whether another look at the row group says nothing new.
    pub fn is_own(&self, group: usize) -> bool {
        self.own.contains(&group)
    }
}

/// The cache.
pub(crate) struct ConditionCache {
    kept: RwLock<Kept>,
    bytes_max: usize,
}

#[derive(Default)]
struct Kept {
    files: HashMap<FileVersion, SetTree<MatchedGroups>>,
    /// The oldest first; each set of a file once.
    order: VecDeque<(FileVersion, Conjunction)>,
    bytes: usize,
}

/// The row groups of a file that are known under a set of conditions.
type MatchedGroups = BTreeMap<usize, Arc<MatchedRanges>>;

/// Each string is there twice, in the order and in the tree.
fn set_bytes(conditions: &[String]) -> usize {
    let each = conditions.iter();
    let each = each.map(|condition| CONDITION_BYTES + 2 * condition.len());
    SET_BYTES + each.sum::<usize>()
}

fn group_bytes(group: &MatchedRanges) -> usize {
    GROUP_BYTES + size_of_val(&*group.bits)
}

impl ConditionCache {
    fn new(bytes_max: usize) -> ConditionCache {
        ConditionCache {
            kept: RwLock::default(),
            bytes_max,
        }
    }

    /// The one of this process.
    pub fn of_process() -> &'static ConditionCache {
        &CACHE
    }

    /// What is known of a file's row groups under `conditions`.
    pub fn known(&self, file: &FileVersion, conditions: &Conjunction) -> KnownGroups {
        let kept = self.kept.read();
        let mut known = KnownGroups::default();
        let parts = kept.files.get(file).map(|sets| sets.parts_of(conditions));
        for (groups, length) in parts.into_iter().flatten() {
            for (at, group) in groups {
                let of_group = known.groups.entry(*at).or_default();
                of_group.push(Arc::clone(group));
            }
            if length == conditions.len() {
                known.own = groups.keys().copied().collect();
            }
        }
        known
    }

    /// Writes a row group down, if nobody has.
    pub fn put(
        &self,
        file: &FileVersion,
        conditions: &Conjunction,
        group: usize,
        matched: MatchedRanges,
    ) {
        if self.kept.read().has(file, conditions, group) {
            return;
        }
        let mut kept = self.kept.write();
        // Somebody else may have been here in between.
        if kept.has(file, conditions, group) {
            return;
        }
        kept.add(file, conditions, group, matched);
        while kept.bytes > self.bytes_max && kept.drop_oldest() {}
    }
}

impl Kept {
    fn has(&self, file: &FileVersion, conditions: &Conjunction, group: usize) -> bool {
        let sets = self.files.get(file);
        let groups = sets.and_then(|sets| sets.get(conditions));
        groups.is_some_and(|groups| groups.contains_key(&group))
    }

    fn add(
        &mut self,
        file: &FileVersion,
        conditions: &Conjunction,
        group: usize,
        matched: MatchedRanges,
    ) {
        let sets = self.files.entry(file.clone()).or_default();
        let groups = sets.place(conditions).get_or_insert_with(|| {
            self.bytes += set_bytes(conditions);
            self.order.push_back((file.clone(), Arc::clone(conditions)));
            MatchedGroups::new()
        });
        self.bytes += group_bytes(&matched);
        groups.insert(group, Arc::new(matched));
    }

    /// False if there is nothing to drop.
    fn drop_oldest(&mut self) -> bool {
        let Some((file, conditions)) = self.order.pop_front() else {
            return false;
        };
        if let Some(sets) = self.files.get_mut(&file) {
            if let Some(groups) = sets.remove(&conditions) {
                let of_groups = groups.values().map(|group| group_bytes(group));
                self.bytes -= set_bytes(&conditions) + of_groups.sum::<usize>();
            }
            if sets.is_empty() {
                self.files.remove(&file);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::io::Write;

    use object_store::path::Path as StorePath;

    use super::*;

    fn conjunction(conditions: &[&str]) -> Conjunction {
        conditions.iter().map(|text| (*text).to_string()).collect()
    }

    fn file(node: u64) -> FileVersion {
        FileVersion::Local {
            device: 1,
            node,
            bytes: 7,
            modified: (1, 2),
            changed: (3, 4),
        }
    }

    fn ranges(rows: usize, matched: &[usize]) -> MatchedRanges {
        let mut bits = vec![0; range_words(rows)];
        for range in matched {
            bits[range / 64] |= 1 << (range % 64);
        }
        MatchedRanges::new(rows, bits.into())
    }

    #[test]
    fn knowledge_of_conditions_holds_for_more_conditions_of_the_same_version() {
        let cache = ConditionCache::new(1 << 20);
        let (a, ab, b) = (
            conjunction(&["a"]),
            conjunction(&["a", "b"]),
            conjunction(&["b"]),
        );
        cache.put(&file(1), &a, 3, ranges(10, &[]));
        cache.put(&file(1), &ab, 4, ranges(10, &[]));
        let known = cache.known(&file(1), &ab);
        assert!(known.of(3).len() == 1 && known.of(4).len() == 1 && known.of(5).is_empty());
        assert!(known.is_own(4) && !known.is_own(3));
        assert!(cache.known(&file(1), &a).of(4).is_empty());
        assert!(cache.known(&file(1), &b).of(3).is_empty());
        assert!(cache.known(&file(2), &ab).of(3).is_empty());
    }

    #[test]
    fn the_oldest_conditions_go_first_and_bytes_are_bounded() {
        let conditions = conjunction(&["1234"]);
        let each = set_bytes(&conditions) + group_bytes(&ranges(10, &[]));
        let cache = ConditionCache::new(10 * each);
        for at in 0..100 {
            cache.put(&file(at), &conditions, 0, ranges(10, &[]));
            assert!(cache.kept.read().bytes <= cache.bytes_max);
        }
        let is_kept = |at| !cache.known(&file(at), &conditions).of(0).is_empty();
        assert!((0..90).all(|at| !is_kept(at)) && (90..100).all(is_kept));
        let kept = cache.kept.read();
        assert_eq!((kept.files.len(), kept.order.len()), (10, 10));
        assert_eq!(kept.bytes, 10 * each);
    }

    #[test]
    fn readers_and_writers_share_it() {
        let cache = ConditionCache::new(64 << 10);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for at in 0..500 {
                        let condition = conjunction(&[&format!("c{}", at % 50)]);
                        let group = at / 50;
                        cache.put(
                            &file(worker % 2),
                            &condition,
                            group,
                            ranges(70_000, &[group % 9]),
                        );
                        for known in cache.known(&file(worker % 2), &condition).of(group) {
                            assert_eq!(**known, ranges(70_000, &[group % 9]));
                        }
                    }
                });
            }
        });
        assert!(cache.kept.read().bytes <= cache.bytes_max);
    }

    #[test]
    fn rows_left_are_those_of_ranges_that_matched_without_short_gaps() {
        let rows = 20 * RANGE_ROWS + 5;
        let of = |matched: &[usize], is_paged| {
            rows_left(rows, &[Arc::new(ranges(rows, matched))], is_paged)
        };
        let at = |range: usize| range * RANGE_ROWS;
        assert!(of(&[], true).is_empty() && of(&[], false).is_empty());
        assert_eq!(of(&[10], true), [at(10)..at(11)]);
        assert_eq!(of(&[10], false), [0..rows]);
        assert_eq!(of(&[3, 7], true), [0..at(8)]);
        assert_eq!(
            of(&[4, 9, 18], true),
            [at(4)..at(5), at(9)..at(10), at(18)..rows]
        );
        assert_eq!(of(&[20], true), [at(20)..rows]);
        let two = [
            Arc::new(ranges(rows, &[4, 9])),
            Arc::new(ranges(rows, &[9, 15])),
        ];
        assert_eq!(rows_left(rows, &two, true), [at(9)..at(10)]);
        let other = [Arc::new(ranges(rows + 1, &[]))];
        assert_eq!(rows_left(rows, &other, true), [0..rows]);
    }

    fn planned(path: &Path) -> ObjectMeta {
        let found = std::fs::metadata(path).unwrap();
        ObjectMeta {
            location: StorePath::from_absolute_path(path).unwrap(),
            last_modified: found.modified().unwrap().into(),
            size: found.len(),
            e_tag: None,
            version: None,
        }
    }

    #[test]
    fn a_rewritten_file_is_another_version_whatever_its_size_and_time_of_modification() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"old").unwrap();
        let now = SystemTime::now();
        let later = now + Duration::from_secs(10);
        assert_eq!(FileVersion::of_local(&path, &planned(&path), now), None);
        let before = planned(&path);
        let old = FileVersion::of_local(&path, &before, later).unwrap();
        assert!(old.is_at(&path));
        // Longer than the tick of any local file system's clock.
        std::thread::sleep(Duration::from_millis(50));
        let mut file = File::options().write(true).open(&path).unwrap();
        file.write_all(b"new").unwrap();
        let times = FileTimes::new().set_modified(SystemTime::from(before.last_modified));
        file.set_times(times).unwrap();
        drop(file);
        assert_eq!(planned(&path).last_modified, before.last_modified);
        assert!(!old.is_at(&path));
        assert_ne!(FileVersion::of_local(&path, &before, later), Some(old));
        // Nor is one from the future old enough.
        assert_eq!(FileVersion::of_local(&path, &before, UNIX_EPOCH), None);
    }

    #[test]
    fn objects_need_a_strong_tag_or_a_version() {
        let mut object = planned(Path::new("/"));
        let of = |object: &ObjectMeta| FileVersion::of_remote("s3://b".to_string(), object);
        assert_eq!(of(&object), None);
        object.e_tag = Some("W/\"1\"".to_string());
        assert_eq!(of(&object), None);
        object.e_tag = Some("\"1\"".to_string());
        let first = of(&object).unwrap();
        object.e_tag = Some("\"2\"".to_string());
        assert_ne!(of(&object), Some(first));
    }
}
