//! Extremes of strings that come as codes: ranks of a dictionary's values are compared, not their bytes.
//!
//! In: rows of one dictionary after another. Out: of each group the best value among the rows of the last one.
//! Invariant: of two ranks the smaller is better; NULL has the worst, as has a group without rows.
//! Not here: the best of all rows (`min_max_bytes`), whose strings they are offered to before another dictionary comes.

use arrow::array::{AnyDictionaryArray, Array, ArrayRef};

use super::byte_values::with_byte_values;
use super::min_max::Order;
use super::rows::Rows;
use crate::keys::{same_dictionary, with_integers};

/// More values cost more to sort than their rows to compare.
const VALUES_MAX: usize = 4096;
/// And so do those of a dictionary of which no more rows come at once.
const ROWS_PER_VALUE: usize = 8;

const WORST: u32 = u32::MAX;

/// The best of each group among the rows of one dictionary.
pub(super) struct Ranked {
    dictionary: ArrayRef,
    /// Of each value.
    ranks: Vec<u32>,
    /// The value of each rank.
    values: Vec<u32>,
    /// The rank of each group's best.
    best: Vec<u32>,
}

/// The code of each row; of a NULL any.
pub(super) fn codes_of(coded: &dyn AnyDictionaryArray) -> Vec<u32> {
    use arrow::datatypes::DataType;
    with_integers!(&coded.keys().to_data(), keys => keys.iter().map(|&key| key as u32).collect())
}

/// True where ranks are worth making for `rows` rows of a dictionary, and `groups` groups worth looking through once it ends.
pub(super) fn is_worth_ranks(values: usize, rows: usize, groups: usize) -> bool {
    values <= VALUES_MAX && values * ROWS_PER_VALUE <= rows && groups <= rows
}

impl Ranked {
    /// No group has any row.
    pub(super) fn new<O: Order>(dictionary: &ArrayRef) -> Self {
        let is_valid = |value: &u32| dictionary.is_valid(*value as usize);
        let mut values: Vec<u32> = (0..dictionary.len() as u32).filter(is_valid).collect();
        with_byte_values!(dictionary, |value| {
            values.sort_unstable_by(|left, right| {
                let (left, right) = (value(*left as usize), value(*right as usize));
                O::is_better_bytes(right, left).cmp(&O::is_better_bytes(left, right))
            });
        });
        let mut ranks = vec![WORST; dictionary.len()];
        for (rank, value) in values.iter().enumerate() {
            ranks[*value as usize] = rank as u32;
        }
        Self {
            dictionary: ArrayRef::clone(dictionary),
            ranks,
            values,
            best: Vec::new(),
        }
    }

    /// True if rows of `dictionary` are of this one.
    pub(super) fn is_of(&self, dictionary: &ArrayRef) -> bool {
        same_dictionary(&self.dictionary, dictionary)
    }

    /// The dictionary.
    pub(super) fn dictionary(&self) -> &ArrayRef {
        &self.dictionary
    }

    /// Takes in the rows with these codes.
    pub(super) fn offer(&mut self, codes: &[u32], rows: &Rows<'_>, total: usize) {
        let (ranks, best) = (&self.ranks, &mut self.best);
        best.resize(total.max(best.len()), WORST);
        rows.for_each(codes, |group, code| {
            best[group] = best[group].min(ranks[code as usize]);
        });
    }

    /// The groups that had rows and their best values' places. None are left.
    pub(super) fn take(&mut self) -> Vec<(usize, usize)> {
        let best = self.best.drain(..).enumerate();
        let had_rows = best.filter(|(_, rank)| *rank != WORST);
        let values = &self.values;
        let found = had_rows.map(|(group, rank)| (group, values[rank as usize] as usize));
        found.collect()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let of_values = (self.ranks.capacity() + self.values.capacity()) * size_of::<u32>();
        self.dictionary.get_array_memory_size() + of_values + self.group_bytes()
    }

    /// Those of them that grow with the groups.
    pub(super) fn group_bytes(&self) -> usize {
        self.best.capacity() * size_of::<u32>()
    }
}
