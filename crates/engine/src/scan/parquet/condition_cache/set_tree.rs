//! Sets of strings, each with a value, found by what they are parts of.
//!
//! In: a set, whose strings are in order and each there once. Out: its value, or those of all sets that are parts of it.
//! Invariant: the way to a node are the strings of a set; a node without a value has nodes behind it, but for the first.
//! Not here: what the values are, and which set goes when there are too many (condition_cache.rs).
//!
//! Queries that differ by a literal make tens of thousands of sets for one file. A look for parts goes only to nodes whose strings
//! it has. Sets may be long, so nothing here is recursive.

use std::collections::HashMap;

/// The sets that begin with the way to this node.
pub(super) struct SetTree<T> {
    value: Option<T>,
    longer: HashMap<Box<str>, Box<SetTree<T>>>,
}

impl<T> Default for SetTree<T> {
    fn default() -> Self {
        Self {
            value: None,
            longer: HashMap::new(),
        }
    }
}

impl<T> SetTree<T> {
    /// Whether there is no set.
    pub fn is_empty(&self) -> bool {
        self.value.is_none() && self.longer.is_empty()
    }

    /// The value of a set.
    pub fn get(&self, set: &[String]) -> Option<&T> {
        let mut node = self;
        for one in set {
            node = node.longer.get(one.as_str())?;
        }
        node.value.as_ref()
    }

    /// The place of a set's value.
    pub fn place(&mut self, set: &[String]) -> &mut Option<T> {
        let mut node = self;
        for one in set {
            node = node.longer.entry(one.as_str().into()).or_default();
        }
        &mut node.value
    }

    /// The value of a set that is there no longer.
    pub fn remove(&mut self, set: &[String]) -> Option<T> {
        // Nodes behind this one of the way lead to this set alone.
        let mut last_shared = 0;
        let mut node = &*self;
        for (at, one) in set.iter().enumerate() {
            if node.value.is_some() || node.longer.len() > 1 {
                last_shared = at;
            }
            node = node.longer.get(one.as_str())?;
        }
        if !node.longer.is_empty() || set.is_empty() {
            return self.place(set).take();
        }
        let mut node = self;
        for one in &set[..last_shared] {
            node = node.longer.get_mut(one.as_str())?;
        }
        let mut node = *node.longer.remove(set[last_shared].as_str())?;
        node.place(&set[last_shared + 1..]).take()
    }

    /// Values of all sets that are parts of this one, and how many strings each has.
    pub fn parts_of(&self, set: &[String]) -> Vec<(&T, usize)> {
        let mut found = Vec::new();
        let mut nodes = vec![(self, 0, 0)];
        while let Some((node, length, start)) = nodes.pop() {
            found.extend(node.value.as_ref().map(|value| (value, length)));
            let left = &set[start..];
            if node.longer.len() < left.len() {
                let longer = node.longer.iter().filter_map(|(one, next)| {
                    let at = left.binary_search_by(|other| other.as_str().cmp(one));
                    Some((&**next, length + 1, start + at.ok()? + 1))
                });
                nodes.extend(longer);
            } else {
                let longer = left.iter().enumerate().filter_map(|(at, one)| {
                    let next = node.longer.get(one.as_str())?;
                    Some((&**next, length + 1, start + at + 1))
                });
                nodes.extend(longer);
            }
        }
        found
    }

    #[cfg(test)]
    pub fn values(&self) -> Vec<&T> {
        let mut nodes = vec![self];
        let mut values = Vec::new();
        while let Some(node) = nodes.pop() {
            values.extend(&node.value);
            nodes.extend(node.longer.values().map(|next| &**next));
        }
        values
    }
}

impl<T> Drop for SetTree<T> {
    fn drop(&mut self) {
        let mut nodes = vec![std::mem::take(&mut self.longer)];
        while let Some(longer) = nodes.pop() {
            for mut node in longer.into_values() {
                nodes.push(std::mem::take(&mut node.longer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The strings whose bits are set.
    fn set(bits: u32) -> Vec<String> {
        let strings = (0..6).filter(|at| bits >> at & 1 == 1);
        strings.map(|at| format!("c{at}")).collect()
    }

    #[test]
    fn equals_a_list_of_sets() {
        let mut tree = SetTree::default();
        let mut list: BTreeMap<u32, u32> = BTreeMap::new();
        let mut random = 0x2545_f491_u32;
        for step in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            let bits = random % 64;
            match random >> 16 & 3 {
                0 => {
                    *tree.place(&set(bits)) = Some(step);
                    list.insert(bits, step);
                }
                1 => assert_eq!(tree.remove(&set(bits)), list.remove(&bits)),
                2 => assert_eq!(tree.get(&set(bits)), list.get(&bits)),
                _ => {
                    let parts = list.iter().filter(|(part, _)| *part & bits == **part);
                    let mut parts: Vec<_> = parts
                        .map(|(part, value)| (value, part.count_ones() as usize))
                        .collect();
                    let mut found = tree.parts_of(&set(bits));
                    parts.sort_unstable();
                    found.sort_unstable();
                    assert_eq!(found, parts);
                }
            }
            assert_eq!(tree.is_empty(), list.is_empty());
            assert_eq!(tree.values().len(), list.len());
        }
        for bits in 0..64 {
            tree.remove(&set(bits));
        }
        assert!(tree.is_empty(), "no node stays without a set");
    }

    #[test]
    fn sets_may_be_long_and_many() {
        let mut tree = SetTree::default();
        let long: Vec<String> = (0..100_000).map(|at| format!("{at:06}")).collect();
        *tree.place(&long) = Some(0);
        for at in 0..50_000 {
            *tree.place(&["a".into(), format!("b = {at}")]) = Some(at);
        }
        assert_eq!(tree.parts_of(&long), [(&0, long.len())]);
        let found = tree.parts_of(&["a".into(), "b = 7".into(), "c".into()]);
        assert_eq!(found, [(&7, 2)]);
        assert_eq!(tree.remove(&long), Some(0));
        assert_eq!(tree.longer.len(), 1);
        *tree.place(&long) = Some(1);
    }
}
