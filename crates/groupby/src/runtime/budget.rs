//! Memory that workers hold: one budget per operator, one grant per worker and phase.
//!
//! In: what a worker holds. Out: success, or the budget's own error.
//! Invariant: a worker asks in steps of at least `GRANT_BYTES`, so that the shared budget is not
//! touched once per batch; a dropped grant gives everything back.
//! Not here: what to do when memory is short.

use std::sync::Arc;

use crate::error::{Error, Result};

/// Step in which a worker's grant grows.
const GRANT_BYTES: usize = 1 << 20;

/// What large buffers of so many bytes take: allocators round up, mimalloc from 512 KiB to 576.
pub(crate) fn allocated(bytes: usize) -> usize {
    bytes + bytes / 8
}

/// Where memory comes from; shared by all workers of an operator.
pub trait Budget: Send + Sync {
    /// Takes `bytes` more, or says why not.
    fn grow(
        &self,
        bytes: usize,
    ) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;
    /// Takes `bytes` more, whether or not they are there: the little without which a worker cannot free more.
    fn insist(&self, bytes: usize);
    /// Gives `bytes` back.
    fn shrink(&self, bytes: usize);
    /// Bytes that nobody has taken.
    fn free(&self) -> usize;
}

/// A budget without limit.
#[derive(Debug, Default)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn grow(
        &self,
        _bytes: usize,
    ) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    fn insist(&self, _bytes: usize) {}

    fn shrink(&self, _bytes: usize) {}

    fn free(&self) -> usize {
        usize::MAX
    }
}

/// One worker's share.
pub struct Grant {
    budget: Arc<dyn Budget>,
    bytes: usize,
}

impl Grant {
    /// An empty grant.
    pub fn new(budget: Arc<dyn Budget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// An empty grant from the same budget.
    pub fn sibling(&self) -> Self {
        Self::new(Arc::clone(&self.budget))
    }

    /// Makes the grant cover `bytes`; gives back what exceeds it by more than a step.
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            let wanted = bytes.next_multiple_of(GRANT_BYTES);
            let grown = self.budget.grow(wanted - self.bytes);
            grown.map_err(|error| Error::Memory {
                error,
                aggregate: None,
            })?;
            self.bytes = wanted;
        } else if self.bytes - bytes > 2 * GRANT_BYTES {
            self.keep(bytes);
        }
        Ok(())
    }

    /// The same, but that a worker gets the `least` that it cannot do without whatever the budget says.
    pub fn hold_or_insist(&mut self, bytes: usize, least: usize) -> Result<()> {
        match self.hold(bytes) {
            Err(Error::Memory { .. }) if bytes <= least => {
                let wanted = bytes.next_multiple_of(GRANT_BYTES);
                self.budget.insist(wanted - self.bytes);
                self.bytes = wanted;
                Ok(())
            }
            held => held,
        }
    }

    /// Leaves all but `bytes` to another grant.
    pub fn split(&mut self, bytes: usize) -> Self {
        let kept = bytes.next_multiple_of(GRANT_BYTES).min(self.bytes);
        let mut other = self.sibling();
        other.bytes = self.bytes - kept;
        self.bytes = kept;
        other
    }

    /// Takes another grant of the same budget in.
    pub fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Gives back what exceeds `bytes`.
    pub fn keep(&mut self, bytes: usize) {
        let kept = bytes.next_multiple_of(GRANT_BYTES);
        if kept < self.bytes {
            self.budget.shrink(self.bytes - kept);
            self.bytes = kept;
        }
    }

    /// Bytes that nobody has taken from the budget.
    pub fn free(&self) -> usize {
        self.budget.free()
    }

    /// Bytes granted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.shrink(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Limited(AtomicUsize);

    impl Budget for Limited {
        fn grow(
            &self,
            bytes: usize,
        ) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
            if self.0.load(Ordering::Relaxed) + bytes > 8 << 20 {
                return Err("8 MiB is the limit".into());
            }
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn insist(&self, bytes: usize) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn shrink(&self, bytes: usize) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }

        fn free(&self) -> usize {
            (8 << 20) - self.0.load(Ordering::Relaxed).min(8 << 20)
        }
    }

    #[test]
    fn a_grant_covers_what_is_held_and_gives_everything_back() {
        let budget = Arc::new(Limited::default());
        let mut grant = Grant::new(budget.clone());
        for bytes in [1, 5 << 20, (5 << 20) + 1, 100, 8 << 20] {
            grant.hold(bytes).expect("within the limit");
            assert!(grant.bytes() >= bytes && budget.0.load(Ordering::Relaxed) == grant.bytes());
        }
        assert!(matches!(grant.hold(9 << 20), Err(Error::Memory { .. })));
        assert!(grant.hold_or_insist(9 << 20, 8 << 20).is_err());
        grant.hold_or_insist(9 << 20, 9 << 20).expect("the least");
        assert_eq!(grant.bytes(), 9 << 20);
        let other = grant.split((2 << 20) + 1);
        assert_eq!((grant.bytes(), other.bytes()), (3 << 20, 6 << 20));
        grant.join(other);
        assert_eq!(
            (grant.bytes(), budget.0.load(Ordering::Relaxed)),
            (9 << 20, 9 << 20)
        );
        drop(grant);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }
}
