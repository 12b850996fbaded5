//! Few groups: rows add up in several lanes, which are folded once per batch.
//!
//! In: a batch without NULLs and filter, its groups or what stands for them, their number. Out: one sum per group and lane.
//! Invariant: a row goes to one lane; all lanes together hold the batch.
//! Not here: what is added.
//!
//! Where groups are few, a row often has the group of one of the rows before it. Adding to it waits until that row's sum
//! is stored: 5 cycles for integers, 9 for floats. Neighbours that go
//! to different lanes do not wait.

use super::Groups;
use super::rows::Rows;
use crate::keys::GroupId;

/// Groups that a byte names: no bounds are checked.
pub(super) const GROUPS_MAX: usize = 256;
/// 8 took as long as 4.
pub(super) const LANES: usize = 4;
/// Folding costs a step per group and lane.
const ROWS_PER_GROUP_MIN: usize = 16;
const ROWS_MIN: usize = 1024;

/// True if lanes pay for so many rows of `total` groups.
pub(super) fn pays(rows: usize, total: usize) -> bool {
    total <= GROUPS_MAX && rows >= ROWS_MIN && rows >= total.saturating_mul(ROWS_PER_GROUP_MIN)
}

/// What says to which of few groups a row belongs.
pub(super) trait Few: Copy {
    /// Its number, where that is below `GROUPS_MAX`.
    fn byte(self) -> u8;
}

impl Few for GroupId {
    #[inline(always)]
    fn byte(self) -> u8 {
        self.0 as u8
    }
}

impl Few for u8 {
    #[inline(always)]
    fn byte(self) -> u8 {
        self
    }
}

impl<'a> Rows<'a> {
    /// The groups of all rows if lanes pay for `total` groups.
    pub(super) fn few(&self, total: usize) -> Option<&'a [GroupId]> {
        match self.whole() {
            Some(Groups::Ids(ids)) if pays(self.count(), total) => Some(ids),
            _ => None,
        }
    }
}

/// Calls `add(sum, value)` for each row and `fold(group, sum)` for each of the sums.
#[inline]
pub(super) fn add_up<S: Copy + Default, T: Copy>(
    ids: &[impl Few],
    values: &[T],
    total: usize,
    add: impl Fn(&mut S, T),
    mut fold: impl FnMut(usize, S),
) {
    assert_eq!(
        ids.len(),
        values.len(),
        "a column of another length than its batch"
    );
    let mut lanes = [[S::default(); GROUPS_MAX]; LANES];
    let (id_chunks, id_rest) = ids.as_chunks::<LANES>();
    let (value_chunks, value_rest) = values.as_chunks::<LANES>();
    for (ids, values) in id_chunks.iter().zip(value_chunks) {
        for (lane, (id, value)) in lanes.iter_mut().zip(ids.iter().zip(values)) {
            add(&mut lane[usize::from(id.byte())], *value);
        }
    }
    for (id, value) in id_rest.iter().zip(value_rest) {
        add(&mut lanes[0][usize::from(id.byte())], *value);
    }
    for lane in &lanes {
        for (group, sum) in lane[..total].iter().enumerate() {
            fold(group, *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_add_up_to_the_plain_sums() {
        for (count, total) in [(1024, 1), (1025, 64), (4099, 256), (8192, 7)] {
            let ids: Vec<_> = (0..count as u32)
                .map(|row| GroupId(row.wrapping_mul(0x9E37_79B9) % total as u32))
                .collect();
            let values: Vec<i64> = (0..count).collect();
            let rows = Rows::new(&[], None, Groups::Ids(&ids));
            let few = rows.few(total).expect("few groups of many rows");
            let (mut sums, mut plain) = (vec![0; total], vec![0; total]);
            add_up(
                few,
                &values,
                total,
                |sum, value| *sum += value,
                |group, sum: i64| sums[group] += sum,
            );
            for (id, value) in ids.iter().zip(&values) {
                plain[id.0 as usize] += value;
            }
            assert_eq!(sums, plain);
        }
    }

    #[test]
    fn lanes_are_for_whole_batches_of_few_groups() {
        let ids = vec![GroupId(0); 4096];
        let rows = Rows::new(&[], None, Groups::Ids(&ids));
        assert!(rows.few(256).is_some());
        assert!(rows.few(257).is_none());
        assert!(
            Rows::new(&[], None, Groups::Ids(&ids[..1023]))
                .few(1)
                .is_none()
        );
        assert!(
            Rows::new(&[], None, Groups::Ids(&ids[..2048]))
                .few(200)
                .is_none()
        );
        assert!(Rows::new(&[], None, Groups::One(4096)).few(1).is_none());
    }
}
