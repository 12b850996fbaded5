//! Which groups have got a value: the others' results are NULL.
//!
//! In: live rows of each batch. Out: a validity bitmap.
//! Invariant: nothing is allocated while every batch gave a value to every new group. Relies on
//! the build: a group that is new in a batch of rows has one of them.
//! Not here: the values.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::rows::Rows;

/// One bit per group.
#[derive(Debug, Default)]
pub(super) struct Bitmap {
    bytes: Vec<u8>,
    groups: usize,
}

impl Bitmap {
    /// Bits for groups `0..total`, the new ones unset.
    pub(super) fn grow(&mut self, total: usize) {
        self.groups = total.max(self.groups);
        self.bytes.resize(self.groups.div_ceil(8), 0);
    }

    /// Sets the bit of `group`.
    #[inline]
    pub(super) fn set(&mut self, group: usize) {
        self.bytes[group / 8] |= 1 << (group % 8);
    }

    /// Sets the bit of `group`, or clears it.
    #[inline]
    pub(super) fn put(&mut self, group: usize, is_set: bool) {
        let byte = &mut self.bytes[group / 8];
        *byte = *byte & !(1 << (group % 8)) | u8::from(is_set) << (group % 8);
    }

    /// The bit of `group`.
    #[inline]
    pub(super) fn get(&self, group: usize) -> bool {
        self.bytes[group / 8] & (1 << (group % 8)) != 0
    }

    fn set_range(&mut self, from: usize, to: usize) {
        let (from_byte, to_byte) = (from.next_multiple_of(8), to / 8 * 8);
        if from_byte >= to_byte {
            return (from..to).for_each(|group| self.set(group));
        }
        (from..from_byte).for_each(|group| self.set(group));
        self.bytes[from_byte / 8..to_byte / 8].fill(u8::MAX);
        (to_byte..to).for_each(|group| self.set(group));
    }

    fn is_full(&self) -> bool {
        let set: usize = self
            .bytes
            .iter()
            .map(|byte| byte.count_ones() as usize)
            .sum();
        set == self.groups
    }

    /// The bits as validity of `total` groups; none if all are set.
    pub(super) fn take(&mut self, total: usize) -> Option<NullBuffer> {
        self.grow(total);
        let Self { bytes, groups } = std::mem::take(self);
        let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bytes), 0, groups));
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The groups that have got a value.
#[derive(Debug)]
pub(super) enum Validity {
    /// All groups below.
    All(usize),
    /// Those whose bit is set; `rows` came since it was last looked whether all are.
    Some { bits: Bitmap, rows: usize },
}

impl Default for Validity {
    fn default() -> Self {
        Self::All(0)
    }
}

impl Validity {
    /// Takes note of a batch after which `total` groups exist.
    pub(super) fn note(&mut self, batch: &Rows<'_>, total: usize) {
        let all_live = batch.live() == batch.count() && batch.count() > 0;
        if let Self::All(groups) = self {
            if *groups >= total || all_live {
                *groups = total.max(*groups);
                return;
            }
            let mut bits = Bitmap::default();
            bits.grow(total);
            bits.set_range(0, *groups);
            *self = Self::Some { bits, rows: 0 };
        }
        self.note_bits(batch, total);
    }

    fn note_bits(&mut self, batch: &Rows<'_>, total: usize) {
        let Self::Some { bits, rows } = self else {
            return;
        };
        bits.grow(total);
        batch.for_each_group(|group| bits.set(group));
        *rows += batch.count();
        // Looking at all bits is worth it once per `total` rows.
        if *rows >= bits.groups {
            *rows = 0;
            if bits.is_full() {
                *self = Self::All(total);
            }
        }
    }

    /// The validity of `total` groups; afterwards there are none.
    pub(super) fn take(&mut self, total: usize) -> Option<NullBuffer> {
        match std::mem::take(self) {
            Self::All(groups) if groups >= total => None,
            Self::All(groups) => {
                let mut bits = Bitmap::default();
                bits.grow(total);
                bits.set_range(0, groups);
                bits.take(total)
            }
            Self::Some { mut bits, .. } => bits.take(total),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::All(_) => 0,
            Self::Some { bits, .. } => bits.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::BooleanArray;

    use super::*;
    use crate::keys::GroupId;
    use crate::states::Groups;

    fn note(seen: &mut Validity, ids: &[u32], filter: Option<&[bool]>, total: usize) {
        let ids: Vec<_> = ids.iter().map(|id| GroupId(*id)).collect();
        let filter = filter.map(|keep| BooleanArray::from(keep.to_vec()));
        seen.note(&Rows::new(&[], filter.as_ref(), Groups::Ids(&ids)), total);
    }

    fn taken(seen: &mut Validity, total: usize) -> Vec<bool> {
        match seen.take(total) {
            Some(nulls) => nulls.iter().collect(),
            None => vec![true; total],
        }
    }

    #[test]
    fn nothing_is_held_while_all_rows_count() {
        let mut seen = Validity::default();
        note(&mut seen, &[0, 1, 2], None, 3);
        note(&mut seen, &[1, 3], Some(&[true, true]), 4);
        // A filter that only meets groups that have a value changes nothing.
        note(&mut seen, &[1, 3], Some(&[false, true]), 4);
        assert_eq!(seen.bytes(), 0);
        assert!(seen.take(4).is_none());
    }

    #[test]
    fn new_groups_of_a_filtered_batch_wait_for_a_value() {
        let mut seen = Validity::default();
        note(&mut seen, &[0, 1], None, 2);
        note(&mut seen, &[2, 3, 4], Some(&[false, true, false]), 5);
        assert!(seen.bytes() > 0);
        note(&mut seen, &[5], None, 6);
        note(&mut seen, &[2], None, 6);
        assert_eq!(
            taken(&mut seen, 7),
            [true, true, true, true, false, true, false]
        );
        assert_eq!(seen.bytes(), 0);
    }

    #[test]
    fn bits_go_when_all_are_set() {
        let mut seen = Validity::default();
        note(&mut seen, &[0, 1, 2], Some(&[true, false, false]), 3);
        note(&mut seen, &[1, 2, 1], None, 3);
        assert!(matches!(seen, Validity::All(3)), "{seen:?}");
    }

    #[test]
    fn an_empty_batch_gives_its_group_no_value() {
        let mut seen = Validity::default();
        seen.note(&Rows::new(&[], None, Groups::One(0)), 1);
        assert_eq!(taken(&mut seen, 1), [false]);
    }

    #[test]
    fn ranges_of_bits() {
        for (from, to) in [(0, 0), (0, 3), (2, 8), (2, 9), (7, 30), (8, 16), (5, 64)] {
            let mut bits = Bitmap::default();
            bits.grow(70);
            bits.set_range(from, to);
            let set: Vec<_> = (0..70).filter(|group| bits.get(*group)).collect();
            assert_eq!(set, (from..to).collect::<Vec<_>>());
        }
    }
}
