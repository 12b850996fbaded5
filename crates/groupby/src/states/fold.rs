//! Values into what is kept per group: one group's whole column, few groups in lanes, or row by row.
//!
//! In: values and live rows with their groups. Out: what is kept, changed.
//! Invariant: all three ways give the same, but for the order in which floats are added.
//! Not here: what is kept (`Fold` or `Reduce` of each aggregate), the lanes (`lanes`).

use super::lanes::add_up;
use super::rows::Rows;
use crate::keys::GroupId;

/// What is kept of all groups, and how values of type `T` change it.
pub(super) trait Fold<T: Copy> {
    /// All values are group 0's.
    fn column(&mut self, values: &[T]);

    /// A value of `group`.
    fn add(&mut self, group: usize, value: T);

    /// Values of few groups, `total` in all.
    fn few(&mut self, ids: &[GroupId], values: &[T], total: usize);

    /// True if lanes have room for these values.
    #[inline]
    fn fits_lanes(_values: &[T]) -> bool {
        true
    }
}

/// What is kept of one group, where that is all of it.
pub(super) trait Reduce<T: Copy>: Copy + Default {
    /// What is kept of a column.
    fn of(values: &[T]) -> Self;

    /// A value more.
    fn add(&mut self, value: T);

    /// All that `other` has kept.
    fn merge(&mut self, other: Self);

    /// Values of few groups into what `all` groups keep.
    #[inline]
    fn few(all: &mut [Self], ids: &[GroupId], values: &[T]) {
        let total = all.len();
        add_up(ids, values, total, Self::add, |group, lane| {
            all[group].merge(lane);
        });
    }
}

impl<T: Copy, R: Reduce<T>> Fold<T> for &mut [R] {
    fn column(&mut self, values: &[T]) {
        self[0].merge(R::of(values));
    }

    #[inline(always)]
    fn add(&mut self, group: usize, value: T) {
        self[group].add(value);
    }

    #[inline]
    fn few(&mut self, ids: &[GroupId], values: &[T], total: usize) {
        R::few(&mut self[..total], ids, values);
    }
}

impl Rows<'_> {
    /// Folds the live rows' values into what `kept` has of `total` groups.
    #[inline]
    pub(super) fn fold<T: Copy, F: Fold<T>>(&self, values: &[T], total: usize, mut kept: F) {
        if self.is_whole_column() {
            kept.column(values);
        } else if let Some(ids) = self.few(total).filter(|_| F::fits_lanes(values)) {
            kept.few(ids, values, total);
        } else {
            self.for_each(values, |group, value| kept.add(group, value));
        }
    }
}
