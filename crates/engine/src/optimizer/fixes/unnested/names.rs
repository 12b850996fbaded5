//! Names for columns and relations that a rewrite makes.
//!
//! In: what a name is for. Out: a name that no other has.
//! Invariant: no two names of one statement are the same.
//! Not here: names that a user sees, which a rewrite keeps.

/// The names that were given.
#[derive(Debug, Default)]
pub(super) struct FreshNames(usize);

impl FreshNames {
    /// A new name that begins with `prefix`.
    pub fn next(&mut self, prefix: &str) -> String {
        self.0 += 1;
        format!("{prefix}_{}", self.0)
    }
}
