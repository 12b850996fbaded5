//! One plain value per group: what most states are.
//!
//! In: the number of groups. Out: their values as a slice, or all of them.
//! Invariant: new groups hold the default; after a `take` there are none.
//! Not here: values whose size varies.

/// The values of all groups.
#[derive(Debug)]
pub(super) struct PerGroup<T>(Vec<T>);

impl<T> Default for PerGroup<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone + Default> PerGroup<T> {
    /// The values, of groups `0..total` at least.
    #[inline]
    pub(super) fn grow(&mut self, total: usize) -> &mut [T] {
        self.0.resize(total.max(self.0.len()), T::default());
        &mut self.0
    }

    /// The values of groups `0..total`; none are left.
    pub(super) fn take(&mut self, total: usize) -> Vec<T> {
        self.0.resize(total, T::default());
        std::mem::take(&mut self.0)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }
}
