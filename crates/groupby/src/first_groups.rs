//! The groups of a GROUP BY with LIMIT and without order: some that a worker meets first.
//!
//! In: hashes of keys. Out: which rows and which groups are chosen.
//! Invariant: a group is chosen for all workers or for none, and so is complete. Rows before the choice are kept by whoever has
//! read them, rows after it if their group is chosen; groups with equal hashes are chosen together.
//! Not here: how many groups leave at last, which the plan's own node decides.

use std::collections::HashSet;
use std::sync::OnceLock;

use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;

/// Bits of the filter in front of the chosen hashes, for each of them: one row in so many is looked up in vain.
const FILTER_BITS: usize = 64;

/// Batches in which a worker looks for groups to choose. One with few in each of them goes on with all.
const TRIES_MAX: usize = 64;

/// What the workers of an execution share.
#[derive(Debug)]
pub struct FirstGroups {
    wanted: usize,
    chosen: OnceLock<Chosen>,
}

impl FirstGroups {
    /// So many groups are wanted at least.
    pub fn new(wanted: usize) -> Self {
        Self {
            wanted,
            chosen: OnceLock::new(),
        }
    }

    /// The groups that are chosen, once some are.
    pub fn chosen(&self) -> Option<&Chosen> {
        self.chosen.get()
    }
}

/// Groups, by the hashes of their keys.
#[derive(Debug)]
pub struct Chosen {
    sorted: Box<[u64]>,
    /// One bit is set for each hash; a power of two of words.
    filter: Box<[u64]>,
}

impl Chosen {
    fn new(hashes: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = hashes.into_iter().collect();
        sorted.sort_unstable();
        let words = (sorted.len() * FILTER_BITS / 64).next_power_of_two();
        let mut filter = vec![0; words];
        for hash in &sorted {
            let (word, bit) = place(*hash, words);
            filter[word] |= bit;
        }
        Self {
            sorted: sorted.into(),
            filter: filter.into(),
        }
    }

    /// Whether groups of this hash are chosen.
    pub fn has(&self, hash: u64) -> bool {
        let (word, bit) = place(hash, self.filter.len());
        self.filter[word] & bit != 0 && self.sorted.binary_search(&hash).is_ok()
    }

    /// A boolean per row.
    pub(crate) fn rows(&self, hashes: &[u64]) -> BooleanArray {
        let rows = BooleanBuffer::collect_bool(hashes.len(), |row| self.has(hashes[row]));
        BooleanArray::new(rows, None)
    }
}

/// The word and the bit of a hash in a filter of `words` words.
fn place(hash: u64, words: usize) -> (usize, u64) {
    (hash as usize >> 6 & (words - 1), 1 << (hash & 63))
}

/// What one worker has seen of groups to choose.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    seen: HashSet<u64>,
    tries: usize,
}

impl Candidates {
    /// Whether this worker still looks, where it has met so many groups.
    pub(crate) fn looks(&self, groups: usize, first: &FirstGroups) -> bool {
        groups >= first.wanted && self.tries < TRIES_MAX
    }

    /// Sees the hashes of a batch, and chooses its groups as soon as they are enough.
    pub(crate) fn see(&mut self, hashes: &[u64], first: &FirstGroups) {
        self.tries += 1;
        let missing = first.wanted.saturating_sub(self.seen.len());
        let new = hashes.iter().filter(|hash| !self.seen.contains(hash));
        let new: HashSet<u64> = new.copied().collect();
        self.seen.extend(new.into_iter().take(missing));
        if self.seen.len() >= first.wanted {
            // Another worker may have been faster: one choice holds for all.
            let _ = first.chosen.set(Chosen::new(self.seen.drain()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_what_a_set_has() {
        let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            hash ^= hash << 13;
            hash ^= hash >> 7;
            hash ^= hash << 17;
            hash
        };
        for wanted in [1, 2, 10, 1_000] {
            let set: HashSet<u64> = (0..wanted).map(|_| next()).collect();
            let chosen = Chosen::new(set.iter().copied());
            let others = (0..10_000).map(|_| next());
            let near = set.iter().map(|hash| hash ^ 1 << 63).collect::<Vec<_>>();
            let hashes: Vec<u64> = set.iter().copied().chain(others).chain(near).collect();
            let rows = chosen.rows(&hashes);
            for (row, hash) in hashes.iter().enumerate() {
                assert_eq!(rows.value(row), set.contains(hash));
            }
        }
    }

    #[test]
    fn one_choice_holds_for_all() {
        let first = FirstGroups::new(3);
        let (mut one, mut other) = (Candidates::default(), Candidates::default());
        assert!(!one.looks(2, &first));
        one.see(&[1, 1, 2], &first);
        assert!(first.chosen().is_none());
        other.see(&[7, 8, 9, 10], &first);
        one.see(&[2, 3], &first);
        let chosen = first.chosen().unwrap();
        assert_eq!(chosen.sorted.len(), 3);
        assert!(chosen.sorted.iter().all(|hash| (7..=10).contains(hash)));
    }

    #[test]
    fn a_worker_that_finds_few_gives_up() {
        let first = FirstGroups::new(3);
        let mut few = Candidates::default();
        for _ in 0..TRIES_MAX {
            assert!(few.looks(3, &first));
            few.see(&[1, 2], &first);
        }
        assert!(!few.looks(3, &first));
        assert!(first.chosen().is_none());
    }
}
